"""The runner in one process: construction, settings, the life of its executor, its hooks."""

from __future__ import annotations

import io
import json
import multiprocessing
import os
import random
import subprocess
import sys
import textwrap
import threading
import warnings
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from configs import (
    InlineExecutor,
    InlineRunner,
    RunnerClass,
    Settings,
    ThreadRunner,
    check_same_as_sequential,
    main,
    make_parallel,
    make_settings,
    session,
    setup,
)
from pams import Cancel, Order, Session, Simulator
from pams.agents import Agent
from pams.logs import Logger
from pams.runners import SequentialRunner
from sample_agents import CountingAgent, SampleAgent

from pams_parallel import (
    MultiProcessAgentParallelRunner,
    PickleBackend,
    References,
    SettingsError,
    SyncedAttributesError,
)

Orders = list[Order | Cancel]
CLASSES = (CountingAgent, SampleAgent)


def settings_for(agent_class: str = "CountingAgent", **more: Any) -> Settings:
    """Return the settings of a small simulation."""
    return make_settings({agent_class: 4}, **more)


def small(runner_class: RunnerClass = InlineRunner, **more: Any) -> Any:
    """Return a runner of a small simulation, not set up."""
    codec = more.pop("codec_argument", None)
    return make_parallel(settings_for(**more), CLASSES, 1, runner_class=runner_class, codec=codec)


class WatchedExecutor(InlineExecutor):
    """Counts what it is asked."""

    def __init__(self) -> None:
        self.n_submitted = 0
        self.n_shut_down = 0

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Count, and run the call."""
        self.n_submitted += 1
        assert self.n_shut_down == 0, "used after its end"
        return super().submit(fn, *args, **kwargs)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Count."""
        self.n_shut_down += 1


class WatchedRunner(MultiProcessAgentParallelRunner):
    """Keeps all executors that it made."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.made: list[WatchedExecutor] = []
        super().__init__(*args, **kwargs)

    def _create_executor(self) -> Executor:
        self.made.append(WatchedExecutor())
        return self.made[-1]


class StepError(Exception):
    """What a step raises."""


def fail(*args: object, **kwargs: object) -> Any:
    """Fail."""
    raise StepError


# ------------------------------------------------------------------------- construction


class OwnSimulator(Simulator):
    """A simulator of the user."""


class OwnRunner(MultiProcessAgentParallelRunner):
    """A runner of the user."""


def test_is_a_sequential_runner() -> None:
    """The runner is one of PAMS's, with the steps that users time."""
    assert issubclass(MultiProcessAgentParallelRunner, SequentialRunner)
    for name in ("_update_markets", "_collect_orders_from_normal_agents", "_handle_orders"):
        assert callable(getattr(MultiProcessAgentParallelRunner, name))


def test_positional_arguments() -> None:
    """The arguments of PAMS's runners can be given by position, and are what the runner uses."""
    settings, prng, logger = settings_for(), random.Random(5), Logger()
    runner = MultiProcessAgentParallelRunner(settings, prng, logger, OwnSimulator)
    assert runner.settings is settings
    assert runner._prng is prng
    assert runner.logger is logger
    assert type(runner.simulator) is OwnSimulator
    assert runner.simulator.logger is logger


def test_draws_as_the_sequential_runner() -> None:
    """Making a runner draws from its generator what making a sequential one draws."""
    ours, theirs = random.Random(5), random.Random(5)
    MultiProcessAgentParallelRunner(settings_for(), ours)
    SequentialRunner(settings_for(), theirs)
    assert ours.getstate() == theirs.getstate()


def test_defaults_of_the_arguments() -> None:
    """Settings suffice: the rest is as PAMS has it."""
    runner = MultiProcessAgentParallelRunner(settings_for())
    assert isinstance(runner._prng, random.Random)
    assert runner.logger is None
    assert type(runner.simulator) is Simulator


def test_codec_by_name_only() -> None:
    """The codec is no positional argument: PAMS may get a fifth."""
    make: Any = MultiProcessAgentParallelRunner
    with pytest.raises(TypeError, match="positional"):
        make(settings_for(), None, None, Simulator, "pickle")


def test_settings_from_a_file(tmp_path: Path) -> None:
    """Settings can be a path, or an open file."""
    settings = settings_for(num_parallel=3)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(settings))
    for given in (path, str(path), io.StringIO(json.dumps(settings))):
        assert MultiProcessAgentParallelRunner(given).settings == settings


@pytest.mark.parametrize("cls", [MultiProcessAgentParallelRunner, OwnRunner])
def test_warning_at_construction(cls: RunnerClass) -> None:
    """Making a runner warns once that its class is experimental, at the caller's line."""
    with pytest.warns(UserWarning, match="experimental") as caught:
        cls(settings_for())
    assert [str(warning.message) for warning in caught] == [
        f"{cls.__name__} is experimental. Future changes may occur disruptively."
    ]
    assert caught[0].filename == __file__


@pytest.mark.parametrize("codec", ["invalid", "", 3, PickleBackend, object()])
def test_bad_codec_at_construction(codec: Any) -> None:
    """A bad `codec=` is refused when the runner is made, by its name and value."""
    with pytest.raises(SettingsError, match=r"^codec must be ") as caught:
        MultiProcessAgentParallelRunner({}, codec=codec)
    assert repr(codec) in str(caught.value)


# ----------------------------------------------------------------------------- settings


@pytest.mark.parametrize(("cpus", "expected"), [(8, 7), (2, 1), (1, 1), (None, 1)])
def test_default_number(cpus: int | None, expected: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the config says nothing, there is one worker less than CPUs, and at least one."""
    monkeypatch.setattr(os, "cpu_count", lambda: cpus)
    runner = small(num_parallel=None)
    assert runner.num_parallel == expected
    setup(runner)
    assert runner.num_parallel == expected


def test_attributes_before_the_setup() -> None:
    """A new runner has all its public attributes."""
    runner = MultiProcessAgentParallelRunner({})
    assert isinstance(runner.num_parallel, int)
    assert runner.executor is None
    assert runner.start_method is None
    assert MultiProcessAgentParallelRunner.default_start_method is None


def test_attributes_from_the_config() -> None:
    """Setting up reads the number and the start method."""
    runner = small(num_parallel=3, start_method="spawn")
    runner._setup()
    assert (runner.num_parallel, runner.start_method) == (3, "spawn")


class SpawningRunner(InlineRunner):
    """Has a default of its own."""

    default_start_method = "spawn"


@pytest.mark.parametrize(("given", "expected"), [(None, "spawn"), ("forkserver", "forkserver")])
def test_default_start_method(given: str | None, expected: str) -> None:
    """A subclass's default counts from the beginning, where the config says nothing."""
    runner = small(SpawningRunner, start_method=given)
    assert runner.start_method == "spawn"
    setup(runner)
    assert runner.start_method == expected
    assert runner._get_mp_context().get_start_method() == expected


def test_bad_default_start_method() -> None:
    """A subclass's default that the platform lacks is refused, and named."""

    class BadRunner(InlineRunner):
        default_start_method = "walk"

    with pytest.raises(SettingsError, match=r"^default_start_method must be .*'walk'"):
        small(BadRunner)._setup()


@pytest.mark.parametrize(
    ("key", "value"), [("numParallel", 0), ("startMethod", "walk"), ("codec", "xml")]
)
def test_bad_value_in_the_config(key: str, value: object) -> None:
    """A bad value ends the setup before anything is built, or drawn."""
    runner = small(WatchedRunner)
    runner.settings["simulation"][key] = value
    state = runner._prng.getstate()
    with pytest.raises(SettingsError, match=rf"^simulation\.{key} must be "):
        runner._setup()
    assert runner.simulator.markets == []
    assert runner.simulator.agents == []
    assert runner._prng.getstate() == state
    assert runner.made == []


@pytest.mark.parametrize("settings", [{}, {"simulation": None}, {"simulation": []}], ids=repr)
def test_config_that_pams_refuses(settings: Any) -> None:
    """What is wrong with the rest of the config is told by PAMS."""
    ours: list[str] = []
    for cls in (InlineRunner, SequentialRunner):
        with pytest.raises(Exception) as caught:
            cls(settings)._setup()
        ours.append(repr(caught.value))
    assert ours[0] == ours[1]


SESSIONS = [session(2, 2), session(2, 5, name="wide"), session(2, 3, name="last")]


@pytest.mark.parametrize(("number", "is_warned"), [(1, False), (5, False), (6, True)])
def test_more_workers_than_orders(number: int, is_warned: bool) -> None:
    """More workers than the widest session asks at a time are warned about, with the class."""
    runner = small(num_parallel=number, sessions=SESSIONS)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        runner._setup()
    texts = [str(one.message) for one in caught if one.category is UserWarning]
    assert len(texts) == is_warned
    assert all(
        "is set to a larger value" in text and "InlineRunner" in text and "6" in text
        for text in texts
    )


class CountingBackend(PickleBackend):
    """Counts what it writes."""

    name = "counting"

    def __init__(self) -> None:
        self.n_dumps = 0

    def dumps(self, obj: object, references: References) -> bytes:
        """Count, and write."""
        self.n_dumps += 1
        return super().dumps(obj, references)


def test_codec_argument_wins() -> None:
    """A `codec=` is used whatever the config says."""
    backend = CountingBackend()
    main(small(codec="dill", codec_argument=backend))
    assert backend.n_dumps > 0


class EmptyBackend(CountingBackend):
    """Looks like nothing: a container of what it has not cached yet, say."""

    def __len__(self) -> int:
        return 0


def test_falsy_backend_is_used() -> None:
    """A backend is used whatever it is in an `if`."""
    backend = EmptyBackend()
    main(small(codec_argument=backend))
    assert backend.n_dumps > 0


def with_lambdas(runner: Any) -> Any:
    """Set a runner up, and give its agents what only dill carries."""
    setup(runner)
    for agent in runner.simulator.agents:
        vars(agent)["rule"] = lambda price: price
    return runner


def test_codec_of_the_config() -> None:
    """The codec of the config is used where the constructor was given none; pickle by default."""
    with_lambdas(small(codec="dill"))._run()
    with pytest.raises(RuntimeError, match="'pickle' backend"):
        with_lambdas(small())._run()
    with pytest.raises(RuntimeError, match="'pickle' backend"):
        with_lambdas(small(codec="dill", codec_argument="pickle"))._run()


# ------------------------------------------------------------------- life of the executor


def test_executor_of_a_run() -> None:
    """There is an executor from the setup to the end of the run, one, which is then shut down."""
    runner = small(WatchedRunner)
    runner._setup()
    executor = runner.executor
    assert executor is not None
    assert runner.made == [executor]
    assert runner._get_executor() is executor
    runner._run()
    assert runner.executor is None
    assert runner.made == [executor]
    assert (executor.n_submitted > 0, executor.n_shut_down) == (True, 1)


def test_run_again() -> None:
    """A run after a run has an executor of its own, and goes on where the first ended."""
    runner = small(WatchedRunner)
    runner._setup()
    runner._run()
    asked = sum(agent.n_asked for agent in runner.simulator.agents)
    runner._run()
    assert runner.executor is None
    assert [executor.n_shut_down for executor in runner.made] == [1, 1]
    assert sum(agent.n_asked for agent in runner.simulator.agents) > asked > 0


def test_setup_again() -> None:
    """A second setup ends the executor of the first."""
    runner = small(WatchedRunner)
    runner._setup()
    runner.simulator = Simulator(random.Random(1))
    runner._pending_setups.clear()
    runner._setup()
    first, second = runner.made
    assert (first.n_shut_down, second.n_shut_down) == (1, 0)
    assert runner.executor is second
    runner.close()


def test_get_executor_makes_one() -> None:
    """Where there is no executor, one is made, and kept until it is shut down."""
    runner = small(WatchedRunner)
    first = runner._get_executor()
    assert runner.executor is runner._get_executor() is first
    runner._shutdown_executor()
    assert runner.executor is None
    second = runner._get_executor()
    assert second is not first
    runner._shutdown_executor()
    assert [executor.n_shut_down for executor in runner.made] == [1, 1]


@pytest.mark.parametrize("end", ["close", "_shutdown_executor"])
def test_ending_twice_is_harmless(end: str) -> None:
    """Ending a runner that has no executor does nothing, before the setup, after it, again."""
    runner = small(WatchedRunner)
    getattr(runner, end)()
    runner._setup()
    for _ in range(3):
        getattr(runner, end)()
    assert runner.executor is None
    assert [executor.n_shut_down for executor in runner.made] == [1]


def test_with_block() -> None:
    """A `with` block gives the runner itself, and ends the executor, after an error too."""
    with small(WatchedRunner) as runner:
        runner._setup()
        assert runner.executor is not None
    assert runner.executor is None
    other = small(WatchedRunner)
    other._setup()
    with pytest.raises(StepError), other:
        fail()
    assert other.executor is None
    assert [executor.n_shut_down for executor in runner.made + other.made] == [1, 1]


def bad_names(runner: Any) -> None:
    """Make the setup find an agent with bad names."""
    runner.registered_classes.remove(CountingAgent)
    runner.class_register(type("CountingAgent", (CountingAgent,), {"synced_attributes": ("prng",)}))


SETUP_FAILURES: dict[str, tuple[Callable[[Any], object], type[Exception]]] = {
    "settings": (lambda r: r.settings["simulation"].update(numParallel=0), SettingsError),
    "pams": (lambda r: r.settings["simulation"].pop("agents"), ValueError),
    "names": (bad_names, SyncedAttributesError),
    "executor": (lambda r: setattr(r, "_create_executor", fail), StepError),
}


@pytest.mark.parametrize(("spoil", "error"), SETUP_FAILURES.values(), ids=SETUP_FAILURES)
def test_failed_setup(spoil: Callable[[Any], object], error: type[Exception]) -> None:
    """After a setup that failed there is no executor, also none from before."""
    runner = small(WatchedRunner)
    runner._get_executor()
    spoil(runner)
    with pytest.raises(error):
        runner._setup()
    assert runner.executor is None
    assert [executor.n_shut_down for executor in runner.made] == [1]


STEPS = [
    *("_update_markets", "_collect_orders_from_normal_agents", "_handle_orders"),
    *("_iterate_market_updates", "_run"),
]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("error", [StepError, KeyboardInterrupt])
def test_step_that_fails(
    step: str, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error that leaves a step, called by itself too, leaves no executor; nor does Ctrl-C."""

    def fail(*args: object, **kwargs: object) -> Any:
        raise error

    runner = small(WatchedRunner)
    runner._setup()
    session = runner.simulator.sessions[0]
    arguments: dict[str, tuple[Any, ...]] = {"_handle_orders": (session, []), "_run": ()}
    monkeypatch.setattr(SequentialRunner, step, fail)
    monkeypatch.setattr(runner, "_ask", fail)
    with pytest.raises(error):
        getattr(runner, step)(*arguments.get(step, (session,)))
    assert runner.executor is None
    assert [executor.n_shut_down for executor in runner.made] == [1]


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, StepError])
def test_failed_run(error: type[BaseException]) -> None:
    """Whatever ends a run, the executor is shut down; the next run works."""
    runner = small(WatchedRunner)
    runner._setup()
    ask = runner._ask

    def interrupt(*args: object) -> Any:
        raise error

    runner._ask = interrupt
    with pytest.raises(error):
        runner._run()
    assert runner.executor is None
    runner._ask = ask
    runner._run()
    assert [executor.n_shut_down for executor in runner.made] == [1, 1]


def test_step_by_itself_keeps_the_executor() -> None:
    """A single step that succeeds leaves the executor for the next."""
    runner = small(WatchedRunner)
    runner._setup()
    session = runner.simulator.sessions[0]
    runner.simulator._update_times_on_markets(runner.simulator.markets)
    runner._update_markets(session)
    runner._collect_orders_from_normal_agents(session)
    runner._collect_orders_from_normal_agents(session)
    assert runner.executor is not None
    assert len(runner.made) == 1
    runner.close()


def test_main_after_an_earlier_executor() -> None:
    """A whole run by `main` leaves none of its executors open."""
    runner = small(WatchedRunner)
    runner._get_executor()
    main(runner)
    assert runner.executor is None
    assert {executor.n_shut_down for executor in runner.made} == {1}


# --------------------------------------------------------------------------------- hooks


class KeywordRunner(MultiProcessAgentParallelRunner):
    """Defines all hooks, those with arguments so that they can be given by keyword only."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.seen: list[tuple[Any, ...]] = []
        super().__init__(*args, **kwargs)

    def _create_executor(self) -> Executor:
        self.seen.append(("create",))
        return InlineExecutor()

    def _get_worker_initializer(self) -> Callable[..., Any] | None:
        self.seen.append(("initializer",))
        return None

    def _split_agents_into_chunks(  # type: ignore[override]  # by keyword only: that is the test
        self, *, agents: list[Agent]
    ) -> list[list[Agent]]:
        self.seen.append(("split", list(agents)))
        return [[], *([agent] for agent in agents), []]

    def _receive_synced_attributes_from_worker(  # type: ignore[override]
        self, *, agent: Agent, attributes: dict[str, object]
    ) -> None:
        self.seen.append(("attributes", agent, dict(attributes)))
        super()._receive_synced_attributes_from_worker(agent, attributes)

    def _receive_orders_from_worker(  # type: ignore[override]
        self, *, agent: Agent, orders: Orders, prng_state: Any
    ) -> Orders:
        self.seen.append(("orders", agent, list(orders), prng_state))
        return super()._receive_orders_from_worker(agent, orders, prng_state)


def test_hooks_are_called_by_keyword() -> None:
    """Every hook is called, with keyword arguments of the documented names."""
    runner = small(KeywordRunner)
    main(runner)
    assert {name for name, *_ in runner.seen} == {
        *("create", "initializer", "split", "attributes", "orders")
    }


def test_hooks_get_main_objects_in_asked_order() -> None:
    """Of each batch the agents are split, then each gets attributes and orders, in asked order."""
    runner = small(KeywordRunner)
    main(runner)
    calls = [call for call in runner.seen if call[0] in ("split", "attributes", "orders")]
    while calls:
        name, batch = calls.pop(0)
        assert name == "split"
        for agent in batch:
            assert any(agent is one for one in runner.simulator.agents)
            assert calls.pop(0)[:2] == ("attributes", agent)
            name, receiver, orders, state = calls.pop(0)
            assert (name, receiver) == ("orders", agent)
            assert all(order.agent_id == agent.agent_id for order in orders)
            random.Random().setstate(state)


def test_hook_for_attributes_only_where_names_are_listed() -> None:
    """The hook for attributes is not called for agents that list none."""
    runner = make_parallel(settings_for("SampleAgent"), CLASSES, 1, runner_class=KeywordRunner)
    main(runner)
    names = [call[0] for call in runner.seen]
    assert "orders" in names
    assert "attributes" not in names


class ChangingRunner(InlineRunner):
    """Changes what comes back."""

    def _receive_synced_attributes_from_worker(
        self, agent: Agent, attributes: dict[str, object]
    ) -> None:
        super()._receive_synced_attributes_from_worker(agent, {"n_asked": -7})

    def _receive_orders_from_worker(self, agent: Agent, orders: Orders, prng_state: Any) -> Orders:
        super()._receive_orders_from_worker(agent, orders, prng_state)
        return []


def test_hooks_decide() -> None:
    """What the hooks hand on is what counts: attributes of the agents, and orders."""
    runner = small(ChangingRunner)
    main(runner)
    assert {agent.n_asked for agent in runner.simulator.agents} == {-7}
    market = runner.simulator.markets[0]
    assert sum(market.get_n_buy_orders()) == sum(market.get_n_sell_orders()) == 0


def test_default_chunks() -> None:
    """By default a batch is split into as many chunks as there are workers."""
    runner = small(num_parallel=3)
    setup(runner)
    agents = runner.simulator.agents
    chunks = runner._split_agents_into_chunks(agents=agents)
    assert [len(chunk) for chunk in chunks] == [2, 1, 1]
    runner.close()


def test_batch_is_a_copy() -> None:
    """A hook that empties the list that it is given does not change the batch."""

    class EmptyingRunner(InlineRunner):
        def _split_agents_into_chunks(self, agents: list[Agent]) -> list[list[Agent]]:
            chunks = [[agents.pop(0)] for _ in range(len(agents))]
            assert agents == []
            return chunks

    runner = small(EmptyingRunner)
    main(runner)
    assert sum(agent.n_asked for agent in runner.simulator.agents) > 0


# ---------------------------------------------------------------------- other executors

threads: set[str] = set()
"""Names of the threads in which agents were asked."""


class ThreadNotingAgent(CountingAgent):
    """Notes in which thread it is asked."""

    def submit_orders(self, markets: list[Any]) -> Orders:
        """Note."""
        threads.add(threading.current_thread().name)
        return super().submit_orders(markets)


class NamedThreadRunner(MultiProcessAgentParallelRunner):
    """Runs the tasks in threads with a name."""

    def _create_executor(self) -> Executor:
        return ThreadPoolExecutor(self.num_parallel, thread_name_prefix="asking")


def test_threads() -> None:
    """An executor of threads asks the agents in its threads, with the sequential results."""
    threads.clear()
    check_same_as_sequential(
        make_settings({"ThreadNotingAgent": 6}),
        classes=(ThreadNotingAgent,),
        runner_class=NamedThreadRunner,
    )
    threads.discard(threading.current_thread().name)  # the sequential run
    assert threads
    assert all(name.startswith("asking") for name in threads)


def test_two_runners_at_once() -> None:
    """Two runners in two threads of one process do not get in each other's way."""
    results: list[Any] = []

    def run() -> None:
        runner = small(ThreadRunner)
        runner._setup()
        runner._run()
        results.append([agent.n_asked for agent in runner.simulator.agents])

    running = [threading.Thread(target=run) for _ in range(2)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(30)
    assert len(results) == 2
    assert results[0] == results[1]


# ------------------------------------------------------------------------ start methods


def test_context_of_a_start_method() -> None:
    """The context of the workers is that of the start method."""
    for method in multiprocessing.get_all_start_methods():
        runner = small(start_method=method)
        setup(runner)
        assert runner._get_mp_context().get_start_method() == method
        runner.close()


FIXED = """
import multiprocessing, random
from configs import make_settings
from pams_parallel import MultiProcessAgentParallelRunner

def run(**more):
    settings = make_settings({"FCNAgent": 3}, num_parallel=1, steps=2, **more)
    runner = MultiProcessAgentParallelRunner(settings, random.Random(1))
    runner._setup()
    method = runner.executor.start_method
    runner._run()
    return method

if __name__ == "__main__":
    default = run()
    assert multiprocessing.get_start_method(allow_none=True) is None, "fixed"
    assert default == multiprocessing.get_all_start_methods()[0], default
    multiprocessing.set_start_method("spawn")
    assert run() == "spawn"
    assert multiprocessing.get_start_method() == "spawn"
    print("done")
"""


def test_multiprocessing_default_is_not_fixed(tmp_path: Path) -> None:
    """A run does not fix multiprocessing's start method, and uses the one that a program sets."""
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(FIXED))
    paths = [os.environ.get("PYTHONPATH"), str(Path(__file__).parent)]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(script)],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("done\n", "")


def test_session_is_the_one_given() -> None:
    """A session that asks nobody collects nothing, and asks no executor."""
    runner = small(WatchedRunner)
    runner._setup()
    idle = Session(9, random.Random(1), 0, runner.simulator, "idle")
    idle.setup(session(1, 0))
    assert runner._collect_orders_from_normal_agents(idle) == []
    assert runner.made[0].n_submitted == 0
    runner.close()
