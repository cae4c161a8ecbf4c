"""The runner: the calls of a step in order, and the hooks."""

from __future__ import annotations

import contextlib
import math
import multiprocessing
import os
import random
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor
from io import TextIOBase
from multiprocessing.context import BaseContext
from time import perf_counter
from types import TracebackType
from typing import Any, TextIO, TypeAlias

from pams import Cancel, Order, Session, Simulator
from pams.agents import Agent
from pams.logs import Logger
from pams.runners import SequentialRunner

from . import _applier
from ._applier import AgentResult, ReceivedAttributes
from ._codec import CODEC_NAMES, CodecBackend, TaskCodec, resolve_codec
from ._dispatch import AgentFailure, Dispatcher, pickle_setup
from ._lost_changes import LostChangesWarner
from ._planner import check_chunks, plan_chunks
from ._pool import WorkerPool
from ._settings import check_start_method, read_settings
from ._simulation import generate_fundamentals
from ._stats import BatchStats, RunnerStats
from ._synced import read_synced_names
from ._worker import SERVICE, LocalSetup, initialize_worker, register_setup

Orders: TypeAlias = list[Order | Cancel]


class MultiProcessAgentParallelRunner(SequentialRunner):
    """Runs a simulation with its normal agents asked in worker processes.

    Same settings and same seed give the same results as ``pams.runners.SequentialRunner``, bit for
    bit. Only ``submit_orders`` of the normal (not high-frequency) agents runs in workers, a batch
    of agents at a time; all else happens in the main process, in the sequential order.

    An agent sees the simulation as it is when its batch is sent. What comes back from it are its
    orders, the state of its ``prng``, what it wrote to the logger, and the attributes that it
    lists in ``synced_attributes``. All other changes are lost, and assignments among them are
    warned about.

    Not covered by the guarantee are results that depend on what other agents of the same batch
    change while they are asked, on objects shared between agents that ``submit_orders`` changes,
    on the order of string hashes, global random state, ``id()``, wall time, or on class and module
    variables.

    Workers live as long as the run. ``close()`` or a ``with`` block ends those of a runner that
    was set up and not run.

    Attributes:
        num_parallel: number of workers; ``simulation.numParallel`` in the config, by default the
            number of CPUs minus one, at least one.
        executor: runs the tasks; None before the setup, after a run, and after an error.
        start_method: how worker processes are started: ``simulation.startMethod`` in the config,
            else ``default_start_method``; None means multiprocessing's current default.
        default_start_method: for subclasses to set.
        stats: what the batches since the setup took, bytes and times.
    """

    default_start_method: str | None = None

    def __init__(
        self,
        settings: dict[str, Any] | TextIOBase | TextIO | os.PathLike[str] | str,
        prng: random.Random | None = None,
        logger: Logger | None = None,
        simulator_class: type[Simulator] = Simulator,
        *,
        codec: str | CodecBackend | None = None,
    ) -> None:
        """Take the settings as the other runners of PAMS do.

        Args:
            settings: the config, or a file or path to read it from as JSON.
            prng: the runner's generator; a new one when None.
            logger: collects the records of the simulation.
            simulator_class: class of the simulator.
            codec: ``"pickle"``, ``"dill"`` or a backend; None takes ``simulation.codec`` of the
                config, else pickle.

        Raises:
            SettingsError: ``codec`` is none of these.
        """
        self._codec_argument = None if codec is None else resolve_codec(codec)
        self.executor: Executor | None = None
        super().__init__(settings, prng, logger, simulator_class)
        warnings.warn(
            f"{type(self).__name__} is experimental. Future changes may occur disruptively.",
            stacklevel=2,
        )
        self.num_parallel: int = max((os.cpu_count() or 1) - 1, 1)
        self.start_method: str | None = self.default_start_method
        self._codec = TaskCodec("pickle" if self._codec_argument is None else self._codec_argument)
        # identifies this runner to workers, which may serve several
        self._token = uuid.uuid4().hex
        self._local_setup: LocalSetup | None = None
        self._dispatcher: Dispatcher | None = None
        self.stats = RunnerStats()
        self._lost_changes = LostChangesWarner(type(self).__name__)

    # --- lifetime -----------------------------------------------------------------------------

    def __enter__(self) -> MultiProcessAgentParallelRunner:
        return self

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the workers. Harmless when there are none."""
        self._shutdown_executor()

    def _setup(self) -> None:
        """Read our settings, set up the simulation, and start the workers.

        Raises:
            SettingsError: a key of ours has a bad value; nothing has been built then.
            SyncedAttributesError: an agent lists bad names.
        """
        with self._closed_on_error():
            self.stats = RunnerStats()
            self._read_settings()
            super()._setup()
            for agent in self.simulator.normal_frequency_agents:
                read_synced_names(agent)
            self._warn_if_too_parallel()
            self._shutdown_executor()
            self._get_executor()

    def _read_settings(self) -> None:
        simulation = self.settings.get("simulation") if isinstance(self.settings, dict) else None
        if not isinstance(simulation, dict):
            return  # PAMS says what is wrong with it
        settings = read_settings(simulation, CODEC_NAMES)
        if settings.start_method is None and self.default_start_method is not None:
            check_start_method(self.default_start_method, "default_start_method")
        codec = self._codec_argument
        if codec is None and settings.codec is not None:
            codec = resolve_codec(settings.codec, "simulation.codec")
        self._codec = TaskCodec("pickle" if codec is None else codec)
        self.start_method = settings.start_method or self.default_start_method
        if settings.num_parallel is not None:
            self.num_parallel = settings.num_parallel

    def _warn_if_too_parallel(self) -> None:
        sessions = self.simulator.sessions
        largest = max((session.max_normal_orders for session in sessions), default=0)
        if self.num_parallel > largest:
            warnings.warn(
                f"{type(self).__name__} asks at most maxNormalOrders agents at the same time, "
                f"{largest} here, even if numParallel ({self.num_parallel}) is set to a larger "
                "value.",
                stacklevel=4,
            )

    def _run(self) -> None:
        """Run the simulation, then end the workers. May be called again after one setup."""
        try:
            super()._run()
            if self.executor is not None:
                dispatcher = self._get_dispatcher()
                dispatcher.finish(self.executor)
                self._warn_of_others(dispatcher)
        finally:
            self._shutdown_executor()

    @contextlib.contextmanager
    def _closed_on_error(self) -> Iterator[None]:
        """Leave no worker behind when a step fails, also one that user code called by itself."""
        try:
            yield
        except BaseException:
            self._shutdown_executor()
            raise

    def _get_executor(self) -> Executor:
        """Return the executor; make it when there is none."""
        if self.executor is None:
            self._prepare_workers()
            self.executor = self._create_executor()
        return self.executor

    def _shutdown_executor(self) -> None:
        """Shut the executor down if there is one. Harmless when repeated."""
        executor, self.executor = self.executor, None
        self._local_setup = self._dispatcher = None
        if isinstance(executor, WorkerPool):
            executor.close()  # also ends workers that are busy, after Ctrl-C say
        elif executor is not None:
            executor.shutdown(wait=True)

    def _prepare_workers(self) -> LocalSetup:
        """Return what workers need once; made before them, so that forked ones inherit it."""
        if self._local_setup is None:
            function = self._get_worker_initializer()
            initializer = None if function is None else (function, self._get_worker_initargs())
            self._local_setup = LocalSetup(self._codec.backend, initializer)
            register_setup(self._token, self._local_setup)
        return self._local_setup

    def _get_dispatcher(self) -> Dispatcher:
        if self._dispatcher is None:
            setup = pickle_setup(self._token, self._prepare_workers())
            self._dispatcher = Dispatcher(self._codec, setup)
        return self._dispatcher

    # --- hooks --------------------------------------------------------------------------------

    def _create_executor(self) -> Executor:
        """Make the executor that runs the tasks (hook).

        Any ``concurrent.futures.Executor`` will do; it is shut down by the runner. The default
        starts ``num_parallel`` processes by ``_get_mp_context()``.
        """
        initializer = self._prepare_workers().initializer
        context = self._get_mp_context()
        if initializer is None:
            return WorkerPool(self.num_parallel, context, service=SERVICE)
        initargs = (self._token, initializer)
        return WorkerPool(self.num_parallel, context, initialize_worker, initargs, SERVICE)

    def _get_mp_context(self) -> BaseContext:
        """Return the multiprocessing context of the workers (hook).

        Where no start method is set, it is that of multiprocessing's current default. Asking for
        it must not fix it: the program may still want to set another.
        """
        method = self.start_method or multiprocessing.get_start_method(allow_none=True)
        return multiprocessing.get_context(method or multiprocessing.get_all_start_methods()[0])

    def _get_worker_initializer(self) -> Callable[..., Any] | None:
        """Return what is called once in each worker before its first task (hook); None: nothing.

        It is never called in the main process. In our own processes it is called when they start;
        in a foreign executor before the first task of each process or thread.
        """
        return None

    def _get_worker_initargs(self) -> tuple[Any, ...]:
        """Return the arguments of the worker initializer (hook).

        They go to our own processes at their start, so that locks and shared values may be among
        them.
        """
        return ()

    def _split_agents_into_chunks(self, agents: list[Agent]) -> list[list[Agent]]:
        """Split a batch into chunks, one for each task (hook).

        Args:
            agents: the agents to ask, in asked order.

        Returns:
            Lists of these very agents, which put together are the batch; some may be empty. The
            default makes at most ``num_parallel`` of nearly equal size.
        """
        return plan_chunks(agents, self.num_parallel)

    def _receive_synced_attributes_from_worker(
        self, agent: Agent, attributes: dict[str, object]
    ) -> None:
        """Bring listed attributes to an agent of main (hook), for agents that list any.

        Args:
            agent: the agent.
            attributes: the values that came back, by name. Names that the worker's agent does not
                have are in ``attributes.deleted``; a plain dict deletes nothing.
        """
        _applier.set_attributes(agent, attributes)

    def _receive_orders_from_worker(self, agent: Agent, orders: Orders, prng_state: Any) -> Orders:
        """Bring the state of the generator to an agent of main, and return its orders (hook).

        Args:
            agent: the agent.
            orders: what it returned.
            prng_state: the state of its generator, as ``getstate`` gave it; None when it has none.

        Returns:
            The orders to handle. They are checked again.
        """
        _applier.set_prng_state(agent, prng_state)
        return orders

    # --- a step -------------------------------------------------------------------------------

    def _iterate_market_updates(self, session: Session) -> None:
        with self._closed_on_error():
            super()._iterate_market_updates(session)

    def _update_markets(self, session: Session) -> None:
        with self._closed_on_error():
            super()._update_markets(session)

    def _handle_orders(self, session: Session, local_orders: list[Orders]) -> list[Orders]:
        with self._closed_on_error():
            return super()._handle_orders(session, local_orders)

    def _collect_orders_from_normal_agents(self, session: Session) -> list[Orders]:
        """Ask normal agents, until as many as the session allows have returned orders.

        Exactly those are asked that ``SequentialRunner`` would ask, in its order: first as many as
        may place orders, then as many again as returned none, and so on.
        """
        with self._closed_on_error():
            agents = self.simulator.normal_frequency_agents
            agents = self._prng.sample(agents, len(agents))
            all_orders: list[Orders] = []
            asked = 0
            while asked < len(agents) and len(all_orders) < session.max_normal_orders:
                missing = session.max_normal_orders - len(all_orders)
                count = math.ceil(min(missing, len(agents) - asked))
                batch = agents[asked : asked + count]
                asked += count
                all_orders.extend(self._ask(batch, session))
            return all_orders

    def _ask(self, batch: list[Agent], session: Session) -> list[Orders]:
        """Ask a batch, and return the orders of the agents that have some."""
        chunks = check_chunks(batch, self._split_agents_into_chunks(agents=list(batch)))
        named = [[(agent, read_synced_names(agent)) for agent in chunk] for chunk in chunks]
        executor = self._get_executor()
        dispatcher = self._get_dispatcher()
        stats = BatchStats(agents=len(batch))
        outcomes = dispatcher.ask(self.simulator, self.logger, named, executor, stats)
        decoded = perf_counter()
        results: list[AgentResult] = []
        for outcome in outcomes:
            if isinstance(outcome, AgentFailure):
                raise outcome.error
            self._check_orders(outcome.agent, outcome.orders, session)
            results.append(outcome)
        self._lost_changes.warn(
            (obj, names, obj is one.agent) for one in results for obj, names in one.lost
        )
        self._warn_of_others(dispatcher)
        checked = perf_counter()
        orders = self._apply(results, session)
        stats.return_seconds += checked - decoded
        stats.apply_seconds = perf_counter() - checked
        self.stats.record(stats)
        return orders

    def _warn_of_others(self, dispatcher: Dispatcher) -> None:
        self._lost_changes.warn((obj, names, False) for obj, names in dispatcher.take_lost())

    def _apply(self, results: Sequence[AgentResult], session: Session) -> list[Orders]:
        """Bring the results to the agents, in asked order."""
        all_orders: list[Orders] = []
        hooked = self._receives_in_its_own_way()

        def receive_orders(agent: Agent, orders: Orders, prng_state: Any) -> Orders:
            received = self._receive_orders_from_worker(
                agent=agent, orders=orders, prng_state=prng_state
            )
            if hooked:
                self._check_orders(agent, received, session)
            return received

        for result in results:
            if result.fundamentals_until is not None:
                generate_fundamentals(self.simulator, result.fundamentals_until)
            orders: Orders = _applier.apply_result(result, self._receive_attributes, receive_orders)
            if len(orders) > 0:
                all_orders.append(orders)
        return all_orders

    def _receives_in_its_own_way(self) -> bool:
        """Return whether a hook that may change orders is not the one defined here."""
        own = MultiProcessAgentParallelRunner
        hooks = (self._receive_orders_from_worker, self._receive_synced_attributes_from_worker)
        defaults = (own._receive_orders_from_worker, own._receive_synced_attributes_from_worker)
        return any(
            getattr(hook, "__func__", None) is not default
            for hook, default in zip(hooks, defaults, strict=True)
        )

    def _receive_attributes(self, agent: Agent, attributes: ReceivedAttributes) -> None:
        self._receive_synced_attributes_from_worker(agent=agent, attributes=attributes)

    def _check_orders(self, agent: Agent, orders: Orders, session: Session) -> None:
        """Make the checks that ``SequentialRunner`` makes on what an agent returned."""
        check = getattr(self, "_check_submitted_orders", None)  # newer PAMS
        if check is not None:
            check(agent=agent, orders=orders)
        if len(orders) == 0:
            return
        if not session.with_order_placement:
            raise AssertionError("currently order is not accepted")
        if check is None and any(order.agent_id != agent.agent_id for order in orders):
            raise ValueError("spoofing order is not allowed. please check agent_id in order")
