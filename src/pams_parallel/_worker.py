"""Everything that runs in a worker.

```
bytes ─▶ setup (once) ─▶ replica ─▶ submit_orders, agent by agent ─▶ bytes
```

`run_chunk` is a pure function of its bytes and returns bytes whatever happens: nothing that a
user's class does while it is loaded, asked or written can break the executor that runs it.
"""

from __future__ import annotations

import pickle
import threading
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast

from pams import Simulator
from pams.agents import Agent

from ._codec import CodecBackend, PickleBackend, ReferenceTable, TaskCodec
from ._codec.prng_state import is_packable, pack_prng
from ._codec.snapshot import LOGGER, decode_snapshot
from ._messages import (
    AgentReport,
    Ask,
    ChunkReport,
    Failure,
    FailureKind,
    LoggerImage,
    LostChanges,
    Task,
    WorkerSetup,
)
from ._replica_logger import LoggerPartMissing, LoggerTraffic, make_replica_logger
from ._simulation import ForeignObjects, describe
from ._watch import Watch, generator_states, read_state
from .exceptions import PamsParallelError, PayloadError, WorkerInitializerError

_NOTHING: Final = ReferenceTable(())
_MISSING: Final = object()

VALUE_NOUNS: Final = ("its orders", "its log calls", "the state of its prng")
"""The values of every agent in a payload, in their order; those of listed attributes follow."""

Initializer = tuple[Callable[..., Any], tuple[Any, ...]]
"""The worker initializer and its arguments."""


@dataclass(eq=False)
class LocalSetup:
    """The backend and the initializer of a runner, as objects.

    Kept under the runner's token in the process of the runner. Workers that are threads, and
    processes forked later, find it there: what cannot be pickled need not be.
    """

    backend: CodecBackend
    initializer: Initializer | None = None


_local_setups: weakref.WeakValueDictionary[str, LocalSetup] = weakref.WeakValueDictionary()
_loaded_backends: dict[str, CodecBackend] = {}


class _Initialized(threading.local):
    """What became of the initializers that this thread has run, by the runner's token."""

    def __init__(self) -> None:
        self.failures: dict[str, Failure | None] = {}


_initialized = _Initialized()


def register_setup(token: str, setup: LocalSetup) -> None:
    """Keep a runner's setup for workers of this process, for as long as the runner keeps it."""
    _local_setups[token] = setup


def initialize_worker(token: str, initializer: Initializer | None) -> None:
    """Run the initializer in a worker of our own pool, at the start of its process.

    What it raises is kept and answered to every task: the pool itself stays whole.
    """
    failure: Failure | None = None
    if initializer is not None:
        function, args = initializer
        try:
            function(*args)
        except BaseException as error:  # SystemExit too: it would end the worker in silence
            image = TaskCodec(PickleBackend()).encode_exception(error, _NOTHING)
            name = getattr(function, "__qualname__", repr(function))
            reason = f"{image.type_name}: {image.text}"
            failure = Failure(FailureKind.SETUP, 0, image, WorkerInitializerError(name, reason))
    _initialized.failures[token] = failure


def run_chunk(data: bytes) -> bytes:
    """Ask the agents of one task.

    Args:
        data: a pickled ``Task``.

    Returns:
        A pickled ``ChunkReport``.
    """
    try:
        report = _run(pickle.loads(data))
    except BaseException as error:  # what escaped is answered, not raised into the executor
        image = TaskCodec(PickleBackend()).encode_exception(error, _NOTHING)
        report = ChunkReport(failure=Failure(FailureKind.SETUP, 0, image))
    return pickle.dumps(report, 5)


def _run(task: Task) -> ChunkReport:
    try:
        failure = _ensure_initialized(task.setup)
        backend = _find_backend(task.setup)
    except BaseException as error:
        image = TaskCodec(PickleBackend()).encode_exception(error, _NOTHING)
        return ChunkReport(failure=Failure(FailureKind.SETUP, 0, image))
    if failure is not None:
        return ChunkReport(failure=failure)
    codec = TaskCodec(backend)
    try:
        replica = _Replica(task, codec)
    except PayloadError as failed:
        cause = failed.__cause__ or failed
        image = codec.encode_exception(cause, _NOTHING)
        return ChunkReport(failure=Failure(FailureKind.DECODE, failed.position, image))
    return replica.ask_all(task.asks)


def _find_backend(setup: WorkerSetup) -> CodecBackend:
    local = _local_setups.get(setup.token)
    if local is not None:
        return local.backend
    if setup.token not in _loaded_backends:
        _loaded_backends[setup.token] = _load(setup.backend, setup.problem)
    return _loaded_backends[setup.token]


def _ensure_initialized(setup: WorkerSetup) -> Failure | None:
    """Run the initializer if this worker has not run it; return what it raised, every time."""
    if not setup.has_initializer:
        return None
    if setup.token not in _initialized.failures:
        local = _local_setups.get(setup.token)
        initializer = local.initializer if local else _load(setup.initializer, setup.problem)
        initialize_worker(setup.token, initializer)
    return _initialized.failures[setup.token]


def _load(data: bytes | None, problem: str) -> Any:
    if data is None:
        raise pickle.PicklingError(problem)
    return pickle.loads(data)


@dataclass(slots=True)
class _Asked:
    """An agent that has been asked, and its values for the payload."""

    report: AgentReport
    agent: object
    values: list[object]
    nouns: list[str]


@dataclass(slots=True)
class _State:
    """What has been found out while the agents of a chunk are asked."""

    asked: list[_Asked] = field(default_factory=list)
    failure: Failure | None = None


class _Replica:
    """The simulation in this worker, for one task."""

    def __init__(self, task: Task, codec: TaskCodec) -> None:
        self._codec = codec
        self._traffic = LoggerTraffic()
        numbers = {
            index: number
            for number, index in enumerate(
                index for index, kind in enumerate(task.snapshot.kinds) if kind == LOGGER
            )
        }

        def make_logger(
            index: int, image: LoggerImage, cls: type, sent: Mapping[str, object]
        ) -> object:
            return make_replica_logger(index, numbers[index], image, cls, sent, self._traffic)

        self._table = decode_snapshot(codec.backend, task.snapshot, make_logger)
        self._simulator = cast("Simulator", self._table.objects[task.simulator])
        self._foreign = ForeignObjects(self._simulator, self._table)
        # Asked for a later price, the fundamentals generate it and remember how far they are. Main
        # repeats that (AgentReport.fundamentals_until).
        fundamentals = self._table.index_of(self._simulator.fundamentals)
        quiet = {} if fundamentals is None else {fundamentals: ("_generated_until",)}
        objects = enumerate(self._table.objects)
        self._watch = Watch((pair for pair in objects if pair[0] not in numbers), quiet)

    def ask_all(self, asks: tuple[Ask, ...]) -> ChunkReport:
        """Ask the agents in order, up to the first that fails: those after it do not matter."""
        state = _State()
        for position, ask in enumerate(asks):
            try:
                state.asked.append(self._ask(ask))
            except LoggerPartMissing:
                pass
            except BaseException as error:  # an agent's SystemExit is the agent's error too
                image = self._codec.encode_exception(error, self._table)
                state.failure = Failure(FailureKind.AGENT, position, image)
            if self._traffic.needs:
                # also when the agent caught the signal and went on with something else
                return ChunkReport(logger_needs=tuple(sorted(self._traffic.needs)))
            if state.failure is not None:
                break
        if state.asked:
            self._add_changes_of_others(state.asked)
        return self._encode(state)

    def _ask(self, ask: Ask) -> _Asked:
        agent = cast("Agent", self._table.objects[ask.index])
        # what agents asked before it have done to it
        lost = [LostChanges(ask.index, self._watch.changed(ask.index, agent, ask.names))]
        self._watch.accept(ask.index, agent)
        generators = generator_states(agent, ask.names)
        generated_until = getattr(self._simulator.fundamentals, "_generated_until", None)
        self._traffic.calls = []
        orders = agent.submit_orders(markets=self._simulator.markets)
        len(orders)  # what PAMS asks of the result first; a generator has none and cannot travel
        changed = set(self._watch.changed(ask.index, agent, ask.names))
        self._watch.accept(ask.index, agent)
        after = generator_states(agent, ask.names)
        changed.update(
            name for name, old in generators.items() if name in after and after[name] != old
        )
        lost.append(LostChanges(ask.index, tuple(sorted(changed))))
        until = getattr(self._simulator.fundamentals, "_generated_until", None)
        prng: Any = getattr(agent, "prng", None)
        attributes = {name: _read_listed(agent, name) for name in ask.names}
        present = {name: item for name, item in attributes.items() if item is not _MISSING}
        report = AgentReport(
            prng=pack_prng(prng) if is_packable(prng) else None,
            present=tuple(present),
            deleted=tuple(name for name in ask.names if name not in present),
            lost=tuple(change for change in lost if change.names),
            fundamentals_until=until if until != generated_until else None,
        )
        state = read_state(prng) if report.prng is None else None
        return _Asked(
            report=report,
            agent=agent,
            values=[
                orders,
                [tuple(call) for call in self._traffic.calls],
                state,
                *present.values(),
            ],
            nouns=[
                *VALUE_NOUNS,
                *(f"attribute '{name}'" for name in present),
            ],
        )

    def _add_changes_of_others(self, asked: list[_Asked]) -> None:
        """Add to the last report what any agent changed on objects that are not itself."""
        changes = [LostChanges(index, names) for index, names in self._watch.changed_objects()]
        changes += [
            LostChanges(index, tuple(sorted(names)))
            for index, names in self._traffic.changed.items()
        ]
        if changes:
            last = asked[-1].report
            asked[-1].report = replace(last, lost=(*last.lost, *changes))

    def _encode(self, state: _State) -> ChunkReport:
        """Turn the values to bytes; an agent whose values cannot be is the one that failed."""
        asked = state.asked
        values = [value for one in asked for value in one.values]
        try:
            data = self._codec.encode(values, self._table, self._foreign.name)
        except PayloadError as failed:
            owners = [position for position, one in enumerate(asked) for _ in one.values]
            position = owners[max(failed.position, 0)]
            first = owners.index(position)
            error = self._explain(asked[position], max(failed.position, 0) - first, failed)
            cause = self._codec.encode_exception(error.__cause__ or failed, self._table)
            failure = Failure(FailureKind.ENCODE, position, cause, error)
            return self._encode(_State(asked[:position], failure))
        return ChunkReport(
            agents=tuple(one.report for one in asked), values=data, failure=state.failure
        )

    def _explain(self, one: _Asked, number: int, failed: PayloadError) -> PamsParallelError:
        return self._codec.explain(
            one.values[number],
            describe(one.agent),
            one.nouns[number],
            self._table,
            self._foreign.name,
            failed.__cause__,
        )


def _read_listed(agent: object, name: str) -> object:
    """Return the value of a listed attribute, or ``_MISSING`` when the agent itself has none."""
    own = getattr(agent, "__dict__", {})
    if name in own:
        return own[name]
    of_class = next((vars(cls)[name] for cls in type(agent).__mro__ if name in vars(cls)), _MISSING)
    if of_class is not _MISSING and not hasattr(type(of_class), "__set__"):
        return _MISSING  # only the class has it: nothing of the agent's to bring back
    # a property, a slot, or something that the class's __getattr__ makes up
    return getattr(agent, name, _MISSING)
