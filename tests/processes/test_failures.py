"""Every error: its type, its text, that nothing was applied, and that the next run works."""

from __future__ import annotations

import contextlib
import copy
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from multiprocessing.context import BaseContext
from pathlib import Path
from typing import Any

import psutil
import pytest
import sample_agents
from configs import (
    SAMPLE_CLASSES,
    ForeignPoolRunner,
    InlineRunner,
    InlineWitnessRunner,
    RunnerClass,
    Settings,
    ThreadRunner,
    WitnessRunner,
    assert_same,
    assert_unchanged,
    child_processes,
    has_ended,
    is_python_service,
    main,
    make_parallel,
    make_sequential,
    make_settings,
    run_sequential,
    session,
    setup,
    wait_for_end,
)
from pams import Market, SequentialRunner, Session
from pams.agents import Agent
from pams.logs import Log
from sample_agents import (
    BallastAgent,
    CountingAgent,
    KeywordError,
    Note,
    Orders,
    OwnError,
    SampleAgent,
    TranscriptLogger,
    Unloadable,
    limit,
    log_line,
    unpicklable,
)

from pams_parallel import (
    ChunkingError,
    EncodeError,
    MultiProcessAgentParallelRunner,
    PamsParallelError,
    RemoteAgentError,
    SettingsError,
    SyncedAttributesError,
    UnknownReferenceError,
    WorkerDiedError,
    WorkerInitializerError,
    WorkerStartError,
)

START_METHODS = multiprocessing.get_all_start_methods()
LOST = "Changes to attributes not listed in synced_attributes are lost"


def raising(
    error: str | dict[str, str],
    *,
    victims: list[int] | None = None,
    from_time: int = 2,
    agents: int = 6,
    agent_class: str = "RaisingAgent",
    **arguments: Any,
) -> Settings:
    """Return settings in which some agents misbehave in the third step."""
    options = {"error": error, "fromTime": from_time}
    if victims is not None:
        options["victims"] = victims  # type: ignore[assignment]  # options are of any type
    return make_settings(
        {agent_class: agents},
        options=options,
        **{"max_normal_orders": agents, "num_parallel": 2, **arguments},
    )


def fail(
    settings: Settings,
    *,
    runner_class: RunnerClass = WitnessRunner,
    classes: tuple[type, ...] = SAMPLE_CLASSES,
    codec: str | None = None,
) -> tuple[BaseException, Any]:
    """Run up to the error; check what holds after every error; return error and runner."""
    runner = make_parallel(
        settings, classes, 42, runner_class=runner_class, codec=codec, logger=TranscriptLogger()
    )
    with pytest.raises(BaseException) as caught:
        main(runner)
    assert child_processes() == []
    assert runner.executor is None
    if isinstance(runner, WitnessRunner):
        assert_unchanged(runner.before, runner)
    return caught.value, runner


def fail_sequentially(settings: Settings) -> BaseException:
    """Return the error of SequentialRunner."""
    runner = make_sequential(settings, SAMPLE_CLASSES, 42, TranscriptLogger())
    with pytest.raises(BaseException) as caught:
        runner.main()
    return caught.value


def text_of(error: BaseException) -> str:
    """Return the error as Python shows it, with its causes."""
    return "".join(traceback.format_exception(error))


def go_on(runner: Any) -> None:
    """Let a runner whose agents behave from now on run once more, and shut down."""
    for agent in runner.simulator.agents:
        agent.options = {**agent.options, "victims": []}
    runner._run()
    assert runner.executor is None


# --------------------------------------------------------------------------- 2. settings


class UntouchedRunner(MultiProcessAgentParallelRunner):
    """Fails when it gets as far as building something."""

    def _generate_markets(self, market_type_names: list[str]) -> None:
        raise AssertionError("built something")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *[("numParallel", value) for value in (0, -1, 1.5, "2", True, False, None, [2])],
        *[("startMethod", value) for value in ("invalid", "", "SPAWN", 1, None, ["fork"])],
        *[("codec", value) for value in ("invalid", "", "PICKLE", 1, True)],
    ],
)
def test_bad_values_of_keys(key: str, value: object) -> None:
    """A bad value is a ValueError that names key and value, before anything is built."""
    settings = make_settings({"SampleAgent": 2})
    settings["simulation"][key] = value
    runner = make_parallel(settings, SAMPLE_CLASSES, 1, runner_class=UntouchedRunner)
    with pytest.raises(ValueError, match=key) as caught:
        runner._setup()
    assert isinstance(caught.value, SettingsError)
    assert repr(value) in str(caught.value)
    assert runner.executor is None
    assert runner.simulator.markets == []


@pytest.mark.parametrize("codec", ["invalid", "", 1, object(), dict])
def test_bad_codecs_of_the_constructor(codec: Any) -> None:
    """A bad codec argument is a ValueError at construction that names it."""
    with pytest.raises(ValueError, match="codec") as caught:
        MultiProcessAgentParallelRunner(make_settings({"SampleAgent": 2}), codec=codec)
    assert repr(codec) in str(caught.value)


def test_a_bad_default_start_method() -> None:
    """A start method that this platform lacks is refused as a class attribute too."""

    class OddRunner(UntouchedRunner):
        default_start_method = "teleport"

    runner = make_parallel(
        make_settings({"SampleAgent": 2}), SAMPLE_CLASSES, 1, runner_class=OddRunner
    )
    with pytest.raises(ValueError, match="teleport"):
        runner._setup()
    assert runner.executor is None


@pytest.mark.parametrize(("largest", "is_warned"), [(2, True), (3, False)])
def test_more_workers_than_agents_asked_at_a_time(largest: int, is_warned: bool) -> None:
    """numParallel above the largest maxNormalOrders of all sessions is warned about."""
    sessions = [session(1, 1, name="one"), session(1, largest, name="two")]
    settings = make_settings({"SampleAgent": 4}, sessions=sessions, num_parallel=3)
    runner = make_parallel(settings, SAMPLE_CLASSES, 1)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        runner._setup()
    runner.close()
    texts = [str(w.message) for w in caught if "is set to a larger value" in str(w.message)]
    assert len(texts) == int(is_warned)
    assert all(w.category is UserWarning for w in caught)


# -------------------------------------------------------------------------- 2. lifetime


def test_a_setup_that_fails_leaves_nothing() -> None:
    """After a setup that failed in PAMS there is no executor and no process."""
    settings = make_settings({"SampleAgent": 2})
    del settings["SampleAgents"]["cashAmount"]
    runner = make_parallel(settings, SAMPLE_CLASSES, 1)
    with pytest.raises(ValueError, match="cashAmount"):
        runner._setup()
    assert runner.executor is None
    assert child_processes() == []


class BrokenRunner(MultiProcessAgentParallelRunner):
    """Cannot make an executor."""

    def _create_executor(self) -> Executor:
        raise OwnError(3, "the executor")


def test_an_executor_that_cannot_be_made() -> None:
    """The error of _create_executor leaves the setup as it is."""
    runner = make_parallel(
        make_settings({"SampleAgent": 2}), SAMPLE_CLASSES, 1, runner_class=BrokenRunner
    )
    with pytest.raises(OwnError, match="the executor failed with 3"):
        runner._setup()
    assert runner.executor is None


def test_shutting_down_is_harmless_at_any_time() -> None:
    """close, a second shutdown, and both before any setup do nothing bad."""
    runner: Any = make_parallel(make_settings({"SampleAgent": 2}), SAMPLE_CLASSES, 1)
    assert runner.executor is None
    runner.close()
    runner._shutdown_executor()
    runner._setup()
    assert len(child_processes()) == 2
    runner.close()
    assert runner.executor is None
    assert child_processes() == []
    runner._shutdown_executor()
    runner.close()
    executor = runner._get_executor()
    assert executor is runner.executor is runner._get_executor()
    runner.close()
    assert child_processes() == []


@pytest.mark.parametrize("start_method", START_METHODS)
def test_with_ends_the_workers(start_method: str) -> None:
    """A with block ends the workers of a runner that was set up and not run, also by an error."""
    settings = make_settings({"SampleAgent": 2}, start_method=start_method)
    with make_parallel(settings, SAMPLE_CLASSES, 1) as runner:
        assert isinstance(runner, MultiProcessAgentParallelRunner)
        runner._setup()
        assert len(child_processes()) == 2
    assert runner.executor is None
    assert child_processes() == []
    with pytest.raises(OwnError):
        use_and_fail(settings)
    assert child_processes() == []


def use_and_fail(settings: Settings) -> None:
    """Fail in a with block after the setup."""
    with make_parallel(settings, SAMPLE_CLASSES, 1) as runner:
        runner._setup()
        raise OwnError(1, "the body")


@pytest.mark.parametrize("runner_class", [MultiProcessAgentParallelRunner, ForeignPoolRunner])
def test_a_dropped_runner_leaves_no_process(runner_class: RunnerClass) -> None:
    """A runner that nobody holds any more after its setup takes its workers with it."""
    runner = make_parallel(
        make_settings({"SampleAgent": 2}), SAMPLE_CLASSES, 1, runner_class=runner_class
    )
    runner._setup()
    # a foreign pool starts its processes at the first task
    runner._get_executor().submit(int, "3").result()
    children = child_processes()
    assert children
    del runner
    gc.collect()
    assert wait_for_end(children, timeout=10) == []


def test_workers_are_gone_after_a_run() -> None:
    """A run leaves no process and no executor."""
    runner = make_parallel(make_settings({"SampleAgent": 4}), SAMPLE_CLASSES, 1)
    main(runner)
    assert runner.executor is None
    assert child_processes() == []


class StepErrorRunner(MultiProcessAgentParallelRunner):
    """Fails while the orders are handled."""

    def _process_order(self, session: Session, order: Any) -> None:
        raise OwnError(2, "the handling")


@pytest.mark.parametrize("step", ["_update_markets", "_collect", "_handle", "_iterate"])
def test_an_error_in_a_single_step(step: str) -> None:
    """Where an error leaves a step that user code called without _run, no worker is left."""
    runner_class: RunnerClass
    if step == "_handle":
        settings, runner_class = make_settings({"SampleAgent": 4}), StepErrorRunner
    else:
        settings, runner_class = raising("own", from_time=0), MultiProcessAgentParallelRunner
    runner = make_parallel(settings, SAMPLE_CLASSES, 1, runner_class=runner_class)
    setup(runner)
    simulator = runner.simulator
    simulator._update_times_on_markets(simulator.markets)
    day = simulator.sessions[0]
    calls: dict[str, Callable[[], object]] = {
        "_update_markets": lambda: runner._update_markets(session=day),
        "_collect": lambda: runner._collect_orders_from_normal_agents(session=day),
        "_handle": lambda: runner._handle_orders(
            day, runner._collect_orders_from_normal_agents(session=day)
        ),
        "_iterate": lambda: runner._iterate_market_updates(session=day),
    }
    with pytest.raises(OwnError):
        calls[step]()
    assert runner.executor is None
    assert child_processes() == []


# ---------------------------------------------------------------------------- 2. chunks


def _copied(agents: list[Agent]) -> list[list[Agent]]:
    return [[copy.copy(agents[0]), *agents[1:]]]


BAD_SPLITS: dict[str, Callable[[list[Agent]], Any]] = {
    "lost": lambda agents: [agents[1:]],
    "repeated": lambda agents: [agents, agents[:1]],
    "repeated in the middle": lambda agents: [agents[:2], agents[1:]],
    "reordered": lambda agents: [agents[2:], agents[:2]],
    "copied": _copied,
    "foreign": lambda agents: [[*agents, agents[0].simulator.agents[-1]]],
    "no lists": lambda agents: agents,
    "nothing": lambda agents: None,
}


@pytest.mark.parametrize("split", BAD_SPLITS)
def test_a_split_that_is_no_partition(split: str) -> None:
    """Chunks that lose, repeat, reorder or copy agents: a ValueError that names the hook."""

    class BadlySplitRunner(WitnessRunner):
        def _split_agents_into_chunks(self, agents: list[Agent]) -> list[list[Agent]]:
            super()._split_agents_into_chunks(agents=agents)
            return BAD_SPLITS[split](list(agents))  # type: ignore[no-any-return]

    # they claim to be equal to each other: identity counts
    settings = make_settings({"EqualAgent": 4}, max_normal_orders=3)
    runner = make_parallel(settings, SAMPLE_CLASSES, 42, runner_class=BadlySplitRunner)
    setup_equal_agents(runner)
    with pytest.raises(ValueError, match="_split_agents_into_chunks") as caught:
        runner._run()
    assert isinstance(caught.value, ChunkingError)
    assert runner.executor is None
    assert_unchanged(runner.before, runner)


def setup_equal_agents(runner: Any) -> None:
    """Set up agents that are equal, which PAMS itself refuses to register."""
    add = runner.simulator._add_agent

    def add_agent(agent: Agent, group_name: str | None = None) -> None:
        simulator = runner.simulator
        if simulator.agents:
            simulator.agents.append(agent)
            simulator.n_agents += 1
            simulator.id2agent[agent.agent_id] = simulator.name2agent[agent.name] = agent
            simulator.normal_frequency_agents.append(agent)
            simulator.agents_group_name2agent[group_name].append(agent)
        else:
            add(agent=agent, group_name=group_name)

    runner.simulator._add_agent = add_agent
    setup(runner)
    del runner.simulator._add_agent


def test_agents_that_are_equal_are_different_agents() -> None:
    """Agents with an equality of their own run like all others."""
    settings = make_settings({"EqualAgent": 4}, max_normal_orders=3)
    runners = [
        make_sequential(settings, SAMPLE_CLASSES, 42),
        make_parallel(settings, SAMPLE_CLASSES, 42),
    ]
    for runner in runners:
        setup_equal_agents(runner)
        runner._run()
    assert_same(*runners)


# ----------------------------------------------------------------------- 4. listed names

BAD_NAMES: dict[str, object] = {
    "a bare str": "n_asked",
    "a set": {"n_asked"},
    "a dict": {"n_asked": 1},
    "an int inside": ("n_asked", 3),
    "None inside": ["n_asked", None],
    "None": None,
    "an iterator": iter(("n_asked",)),
    "simulator": ("simulator",),
    "logger": ["n_asked", "logger"],
    "prng": ("prng",),
    "__dict__": ("__dict__",),
}


@pytest.mark.parametrize("names", BAD_NAMES)
def test_bad_names_at_setup(names: str) -> None:
    """Bad names are a ValueError in _setup that names the class."""

    class BadlyListedAgent(SampleAgent):
        synced_attributes = BAD_NAMES[names]

    runner = make_parallel(make_settings({"BadlyListedAgent": 2}), [BadlyListedAgent], 1)
    with pytest.raises(ValueError, match="BadlyListedAgent") as caught:
        runner._setup()
    assert isinstance(caught.value, SyncedAttributesError)
    assert runner.executor is None
    assert child_processes() == []


class CountingExecutor(Executor):
    """Counts what is submitted."""

    n_submitted = 0

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Count, and run the call."""
        CountingExecutor.n_submitted += 1
        future: Future[Any] = Future()
        future.set_result(fn(*args, **kwargs))
        return future


class RelistingRunner(InlineWitnessRunner):
    """One agent lists bad names when it is asked in the second step."""

    names: object

    def _create_executor(self) -> Executor:
        return CountingExecutor()

    def _update_markets(self, session: Session) -> None:
        if self.simulator.markets[0].get_time() == 1:
            self.simulator.agents[2].synced_attributes = self.names  # type: ignore[attr-defined]
            CountingExecutor.n_submitted = 0
        super()._update_markets(session)


@pytest.mark.parametrize("names", BAD_NAMES)
def test_bad_names_when_asked(names: str) -> None:
    """Bad names are a ValueError when the agent is asked, before any task is submitted."""
    settings = make_settings({"CountingAgent": 4}, max_normal_orders=4, num_parallel=4)
    runner = make_parallel(settings, SAMPLE_CLASSES, 1, runner_class=RelistingRunner)
    runner.names = BAD_NAMES[names]
    with pytest.raises(ValueError, match="CountingAgent"):
        main(runner)
    assert CountingExecutor.n_submitted == 0
    assert runner.executor is None
    assert_unchanged(runner.before, runner)


# -------------------------------------------------------------------- 3. checks on orders


@pytest.mark.parametrize("error", ["spoof", "none", "generator"])
@pytest.mark.parametrize("num_parallel", [1, 3])
def test_orders_that_pams_refuses(error: str, num_parallel: int) -> None:
    """Another agent's id, None or a generator for a list: the error of SequentialRunner."""
    settings = raising(error, victims=[1, 4], num_parallel=num_parallel)
    expected = fail_sequentially(settings)
    got, _ = fail(settings)
    assert type(got) is type(expected)
    assert str(got) == str(expected)


class AlwaysCollectingRunner(WitnessRunner):
    """Collects orders while order placement is off, as user code may."""

    def _iterate_market_updates(self, session: Session) -> None:
        self._collect_orders_from_normal_agents(session)


def test_orders_while_placement_is_off() -> None:
    """Orders in a session without order placement: the AssertionError of SequentialRunner."""
    settings = make_settings(
        {"CountingAgent": 4, "SampleAgent": 2},
        sessions=[session(1, 6, placement=False)],
    )
    error, _ = fail(settings, runner_class=AlwaysCollectingRunner)
    assert type(error) is AssertionError
    assert str(error) == "currently order is not accepted"


def test_no_orders_while_placement_is_off() -> None:
    """Agents without orders may be asked in a session without order placement."""
    settings = make_settings(
        {"NeverAgent": 4}, sessions=[session(1, 6, placement=False)], num_parallel=2
    )
    runner = make_parallel(settings, SAMPLE_CLASSES, 42, runner_class=AlwaysCollectingRunner)
    main(runner)
    assert [agent.n_asked for agent in runner.simulator.agents] == [1] * 4


def test_the_checks_of_a_newer_pams(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where SequentialRunner has _check_submitted_orders, that decides."""
    checked: list[int] = []

    def check(self: SequentialRunner, agent: Agent, orders: Orders) -> None:
        checked.append(agent.agent_id)
        if agent.agent_id == 2 and self.simulator.markets[0].get_time() == 2:
            raise OwnError(5, "the newer check")

    monkeypatch.setattr(SequentialRunner, "_check_submitted_orders", check, raising=False)
    settings = make_settings({"CountingAgent": 4}, max_normal_orders=4)
    error, runner = fail(settings)
    assert isinstance(error, OwnError)
    batches = [agent for batch in runner.batches for agent in batch]
    assert checked == batches[: len(checked)]
    assert len(checked) > 8


# -------------------------------------------------------- 3. nothing of the batch is applied


@pytest.mark.parametrize("num_parallel", [1, 2, 3, 6])
@pytest.mark.parametrize("victims", [[0], [5], [1, 3], [0, 1, 2, 3, 4, 5]])
def test_the_first_in_asked_order_counts(victims: list[int], num_parallel: int) -> None:
    """Of several agents that fail the first asked one's error is raised, at any numParallel."""
    settings = raising("own", victims=victims, num_parallel=num_parallel)
    expected = fail_sequentially(settings)
    assert isinstance(expected, OwnError)
    error, _ = fail(settings)
    assert isinstance(error, OwnError)
    assert error.code == expected.code


FAILURES = ["own", "none", "spoof", "unpicklable order", "unpicklable value", "unloadable"]


@pytest.mark.parametrize("num_parallel", [1, 2, 6])
@pytest.mark.parametrize("seed", range(6))
def test_the_first_counts_whatever_the_failures_are(seed: int, num_parallel: int) -> None:
    """Exceptions, refused orders and values that cannot travel are all the agent's error."""
    errors = {str(agent): FAILURES[(agent + seed) % 6] for agent in range(6)}
    settings = raising(errors, num_parallel=num_parallel, agent_class="MisbehavingAgent")
    runner = make_parallel(
        settings, (*SAMPLE_CLASSES, MisbehavingAgent), seed, runner_class=InlineWitnessRunner
    )
    with pytest.raises(Exception) as caught:
        main(runner)
    assert_unchanged(runner.before, runner)
    first = runner.batches[-1][0]
    kind, words = {
        "own": (OwnError, f"the model failed with {40 + first}"),
        "none": (TypeError, "NoneType"),
        "spoof": (ValueError, "spoofing order is not allowed"),
        "unpicklable order": (EncodeError, f"agent {first} "),
        "unpicklable value": (EncodeError, f"agent {first} "),
        "unloadable": (RuntimeError, f"agent {first} "),
    }[errors[str(first)]]
    assert isinstance(caught.value, kind)
    assert words in str(caught.value)


class MisbehavingAgent(sample_agents.RaisingAgent):
    """Can also list a value that main cannot load."""

    synced_attributes = ("n_asked", "asked_at", "bad")
    bad: object = None

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Fail as the options say."""
        error = self.options["error"]
        if error[str(self.agent_id)] == "unloadable" and self.is_due(markets):
            self.bad = Unloadable()
            return [limit(self, markets[0], 0.0)]
        return super().submit_orders(markets)


def test_an_error_in_the_second_batch_of_a_step() -> None:
    """The batches before it in the same step stay applied."""
    settings = make_settings(
        {"NeverAgent": 3, "RaisingAgent": 1},
        max_normal_orders=1,
        num_parallel=1,
        steps=1,
        options={"error": "own"},
    )
    error, runner = fail(settings)
    assert isinstance(error, OwnError)
    assert runner.batches[-1] == [3]
    asked = [batch[0] for batch in runner.batches[:-1]]
    assert asked
    assert [agent.n_asked for agent in runner.simulator.agents[:3]] == [
        int(agent in asked) for agent in range(3)
    ]


def test_the_warning_as_an_error_leaves_everything_as_it_was() -> None:
    """The warning about lost changes comes before anything is applied."""
    error, runner = fail(raising("unlisted"))
    assert isinstance(error, UserWarning)
    assert str(error).startswith(LOST)
    assert "'forgotten'" in str(error)
    assert len(runner.batches) == 3


def test_an_agents_error_comes_before_the_warning() -> None:
    """When one agent fails and others changed unlisted attributes, the failure is raised."""
    errors = {str(agent): "unlisted" for agent in range(6)} | {"3": "own"}
    error, _ = fail(raising(errors))
    assert isinstance(error, OwnError)
    assert error.code == 43


# ------------------------------------------------------------- 3. errors while applying


class HookErrorRunner(MultiProcessAgentParallelRunner):
    """Fails in a hook for the agent that is asked third in the second step."""

    where = ""
    asked: list[int]
    expected: list[dict[str, Any]]

    def _is_due(self, agent: Agent) -> bool:
        time = self.simulator.markets[0].get_time()
        return time == 1 and agent.agent_id == self.asked[2]

    def _split_agents_into_chunks(self, agents: list[Agent]) -> list[list[Agent]]:
        self.asked = [agent.agent_id for agent in agents]
        self.expected = [
            {"n_asked": a.n_asked, "asked_at": [*a.asked_at], "prng": a.prng.getstate()}  # type: ignore[attr-defined]
            for a in agents
        ]
        return super()._split_agents_into_chunks(agents=agents)

    def _receive_synced_attributes_from_worker(
        self, agent: Agent, attributes: dict[str, object]
    ) -> None:
        if self.where == "before attributes" and self._is_due(agent):
            raise OwnError(6, "the hook")
        super()._receive_synced_attributes_from_worker(agent=agent, attributes=attributes)
        if self.where == "after attributes" and self._is_due(agent):
            raise OwnError(6, "the hook")

    def _receive_orders_from_worker(self, agent: Agent, orders: Orders, prng_state: Any) -> Orders:
        if self.where == "before orders" and self._is_due(agent):
            raise OwnError(6, "the hook")
        received = super()._receive_orders_from_worker(
            agent=agent, orders=orders, prng_state=prng_state
        )
        if self.where == "after orders" and self._is_due(agent):
            raise OwnError(6, "the hook")
        if self.where == "spoofed orders" and self._is_due(agent):
            order = limit(agent, self.simulator.markets[0], 0.0, is_buy=True)
            order.agent_id += 1
            return [order]
        if self.where == "None" and self._is_due(agent):
            return None  # type: ignore[return-value]  # that is the point
        return received


class FailingLogger(TranscriptLogger):
    """Refuses the record of one agent at one time."""

    refused = ""

    def process(self, logs: list[Log]) -> None:
        """Refuse, or write."""
        if self.refused and any(log_line(log) == f"Note {self.refused}" for log in logs):
            raise OwnError(6, "the logger")
        super().process(logs)


class NotingAgent(CountingAgent):
    """Counts, and writes to the logger."""

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Write when and who."""
        assert self.logger is not None
        name = f"{self.agent_id} at {markets[0].get_time()}"
        Note(name).read_and_write_with_direct_process(self.logger)
        return super().submit_orders(markets)


class ChoosyAgent(NotingAgent):
    """Refuses a new value of a listed attribute, in main only."""

    refused_pid: int | None = None

    def __setattr__(self, name: str, value: object) -> None:
        if name == "asked_at" and os.getpid() == self.refused_pid and 1 in value:  # type: ignore[operator]  # a list
            raise OwnError(6, "the setter")
        super().__setattr__(name, value)


class ChoosySlottedAgent(ChoosyAgent):
    """Lists a slot, too."""

    __slots__ = ("level",)
    synced_attributes = ("level", "n_asked", "asked_at")
    level: int

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.level = 0

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Raise the level."""
        self.level += 1
        return super().submit_orders(markets)


@pytest.mark.parametrize("agent_class", [ChoosyAgent, ChoosySlottedAgent])
@pytest.mark.parametrize(
    "where",
    [
        "before attributes",
        "after attributes",
        "before orders",
        "after orders",
        "spoofed orders",
        "None",
        "logger",
        "setter",
    ],
)
def test_an_error_while_results_are_applied(where: str, agent_class: type[Agent]) -> None:
    """Agents before the one in whose turn it happens are applied, it and later ones are not."""
    settings = make_settings({agent_class.__name__: 5}, max_normal_orders=5, num_parallel=3)
    logger = FailingLogger()
    runner = make_parallel(settings, [agent_class], 42, runner_class=HookErrorRunner, logger=logger)
    # whom the second step asks third: the shuffle depends on the seed only
    trial = make_parallel(settings, [agent_class], 42, runner_class=WitnessRunner, logger=logger)
    main(trial)
    third = trial.batches[1][2]
    assert len(trial.batches) == 6
    runner.where = where
    if where == "logger":
        logger.refused = f"{third} at 1"
    setup(runner)
    if where == "setter":
        runner.simulator.agents[third].__dict__["refused_pid"] = os.getpid()
    error_type = {"spoofed orders": ValueError, "None": TypeError}.get(where, OwnError)
    with pytest.raises(error_type):
        runner._run()
    assert runner.executor is None
    assert child_processes() == []
    agents = [runner.simulator.id2agent[number] for number in runner.asked]
    assert agents[2].agent_id == third
    for place, (agent, old) in enumerate(zip(agents, runner.expected, strict=True)):
        assert agent.n_asked == old["n_asked"] + int(place < 2)
        assert getattr(agent, "level", agent.n_asked) == agent.n_asked
        assert len(agent.asked_at) == len(old["asked_at"]) + int(place < 2)
        assert (agent.prng.getstate() == old["prng"]) == (place >= 2)


# -------------------------------------------------------------- 4. values that cannot travel


@pytest.mark.parametrize("codec", ["pickle", "dill"])
@pytest.mark.parametrize("num_parallel", [1, 3])
def test_a_listed_value_that_cannot_be_pickled(codec: str, num_parallel: int) -> None:
    """A RuntimeError names the guilty agent and attribute; the serializer's own is its cause."""
    settings = raising("unpicklable value", victims=[4], num_parallel=num_parallel)
    error, runner = fail(settings, codec=codec)
    assert isinstance(error, RuntimeError)
    assert isinstance(error, EncodeError)
    for word in ("agent 4 ", "RaisingAgent", "asked_at"):
        assert word in str(error)
    assert not [other for other in (0, 1, 2, 3, 5) if f"agent {other} " in str(error)]
    assert isinstance(error.__cause__, TypeError)
    assert "generator" in str(error.__cause__)
    go_on(runner)


class PlainRaisingAgent(SampleAgent):
    """Returns an order that cannot be pickled, and lists nothing."""

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Return such an order when it is due."""
        order: Any = limit(self, markets[0], 0.0)
        if self.is_due(markets):
            order.note = unpicklable()
        return [order]


@pytest.mark.parametrize("agent_class", ["PlainRaisingAgent", "RaisingAgent"])
def test_an_order_that_cannot_be_pickled(agent_class: str) -> None:
    """The same for an order, whether or not any agent of the task lists names."""
    settings = raising("unpicklable order", victims=[2], agent_class=agent_class)
    error, _ = fail(settings, classes=(*SAMPLE_CLASSES, PlainRaisingAgent))
    assert isinstance(error, RuntimeError)
    assert "agent 2 " in str(error)
    assert agent_class in str(error)
    assert "order" in str(error)
    assert isinstance(error.__cause__, TypeError)


class LastingPool(ProcessPoolExecutor):
    """A pool that outlives the runners that use it."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Do nothing."""

    def really_shutdown(self) -> None:
        """End the processes."""
        super().shutdown()


@pytest.fixture
def pool() -> Iterator[LastingPool]:
    """Yield a pool of two workers."""
    made = LastingPool(2, mp_context=multiprocessing.get_context("fork"))
    yield made
    made.really_shutdown()


@pytest.mark.parametrize(
    "error", ["unpicklable value", "unpicklable order", "holding", "hostile", "exit", "own"]
)
def test_the_pool_survives(error: str, pool: LastingPool) -> None:
    """No error of an agent, and none of pickling, breaks the executor."""

    class PoolRunner(MultiProcessAgentParallelRunner):
        def _create_executor(self) -> Executor:
            return pool

    runner = make_parallel(raising(error), SAMPLE_CLASSES, 42, runner_class=PoolRunner)
    with pytest.raises((RuntimeError, SystemExit, OwnError)):
        main(runner)
    assert runner.executor is None
    assert pool.submit(int, "3").result(timeout=10) == 3
    go_on(runner)


class Inner:
    """Holds something."""

    def __init__(self, held: object) -> None:
        self.held = held


@pytest.mark.parametrize("codec", ["pickle", "dill"])
@pytest.mark.parametrize("owner", ["agent", "simulator", "market", "session"])
def test_something_that_cannot_be_sent(owner: str, codec: str) -> None:
    """What cannot be pickled on the way to a worker: the object and the attribute path."""
    settings = make_settings({"SampleAgent": 4})
    runner = make_parallel(settings, SAMPLE_CLASSES, 42, runner_class=WitnessRunner, codec=codec)
    setup(runner)
    simulator = runner.simulator
    holder: Any = {
        "agent": simulator.agents[3],
        "simulator": simulator,
        "market": simulator.markets[0],
        "session": simulator.sessions[0],
    }[owner]
    holder.outer = Inner([1, Inner(unpicklable())])
    with pytest.raises(RuntimeError) as caught:
        runner._run()
    assert isinstance(caught.value, EncodeError)
    words = {
        "agent": ("agent 3", "SampleAgent"),
        "simulator": ("simulator", "Simulator"),
        "market": ("market 0", "Market"),
        "session": ("session 0", "Session"),
    }[owner]
    for word in (*words, "outer", "held"):
        assert word in str(caught.value)
    assert isinstance(caught.value.__cause__, TypeError)
    assert runner.executor is None
    assert child_processes() == []
    del holder.outer
    runner._run()


def test_a_value_that_main_cannot_load() -> None:
    """What raises while main loads it is a RuntimeError naming agent and attribute."""
    settings = raising("unused", victims=[1], agent_class="UnloadableAgent")
    error, runner = fail(settings)
    assert isinstance(error, RuntimeError)
    for word in ("agent 1 ", "UnloadableAgent", "value"):
        assert word in str(error)
    assert "the loading failed with 45" in text_of(error)
    go_on(runner)


class UnloadableStateAgent(SampleAgent):
    """Raises when a worker loads it."""

    def __setstate__(self, state: dict[str, Any]) -> None:
        raise OwnError(46, "the arrival")


@pytest.mark.parametrize("runner_class", [WitnessRunner, ForeignPoolRunner])
def test_an_agent_that_a_worker_cannot_load(runner_class: RunnerClass) -> None:
    """What raises while a worker loads it is a RuntimeError naming the object."""
    settings = make_settings({"UnloadableStateAgent": 3})
    error, _ = fail(
        settings, runner_class=runner_class, classes=(*SAMPLE_CLASSES, UnloadableStateAgent)
    )
    assert isinstance(error, RuntimeError)
    assert "UnloadableStateAgent" in str(error)
    assert "the arrival failed with 46" in text_of(error)


# ----------------------------------------------------------------- 5. unknown references


@pytest.mark.parametrize("codec", ["pickle", "dill"])
@pytest.mark.parametrize(("what", "word"), [("market", "market 99"), ("order", "order")])
@pytest.mark.filterwarnings(f"ignore:{LOST}")
def test_references_to_what_main_lacks(what: str, word: str, codec: str) -> None:
    """A reference to an object that the worker put into the simulation: a RuntimeError."""
    settings = make_settings(
        {"ForeignReferenceAgent": 4},
        options={"what": what, "fromTime": 2, "victims": [3]},
        max_normal_orders=4,
    )
    error, _ = fail(settings, codec=codec)
    assert isinstance(error, RuntimeError)
    assert isinstance(error, UnknownReferenceError)
    for part in ("agent 3", "ForeignReferenceAgent", word, "main process lacks"):
        assert part in str(error)


# ---------------------------------------------------------------- 8. agents' own errors


@pytest.mark.parametrize(
    "runner_class", [WitnessRunner, InlineWitnessRunner, ThreadRunner, ForeignPoolRunner]
)
def test_an_agents_own_exception(runner_class: RunnerClass) -> None:
    """It leaves main() with its type, text and attributes, the worker's traceback attached."""
    settings = raising("own", victims=[3])
    expected = fail_sequentially(settings)
    error, runner = fail(settings, runner_class=runner_class)
    assert type(error) is OwnError
    assert str(error) == str(expected) == "the model failed with 43"
    assert vars(error) == vars(expected)
    assert vars(error)["hint"] == ["late", "field"]
    assert error.args == expected.args
    shown = text_of(error)
    assert "in submit_orders" in shown
    assert "in misbehave" in shown
    go_on(runner)


@pytest.mark.parametrize("start_method", START_METHODS)
def test_an_agents_own_exception_by_any_start_method(start_method: str) -> None:
    """The error and what is left behind are the same by every start method."""
    error, _ = fail(raising("own", victims=[3], start_method=start_method))
    assert isinstance(error, OwnError)
    assert error.code == 43


@pytest.mark.parametrize("runner_class", [WitnessRunner, ThreadRunner, ForeignPoolRunner])
def test_an_agents_system_exit(runner_class: RunnerClass) -> None:
    """SystemExit is the agent's error like any other: no worker ends by it."""
    error, runner = fail(raising("exit", victims=[3]), runner_class=runner_class)
    assert type(error) is SystemExit
    assert error.code == 42
    assert "in misbehave" in text_of(error)
    go_on(runner)


def test_an_agents_stop_iteration() -> None:
    """StopIteration leaves main() as it is."""
    error, _ = fail(raising("stop", victims=[3]))
    assert type(error) is StopIteration
    assert error.value == 43


def test_the_cause_of_an_agents_exception_is_shown() -> None:
    """The worker's traceback tells the whole story, causes included."""
    error, _ = fail(raising("chained", victims=[3]))
    assert isinstance(error, OwnError)
    assert error.code == 44
    assert "KeyError: 'inner'" in text_of(error)


@pytest.mark.parametrize(
    ("name", "class_name", "text"),
    [
        ("holding", "HoldingError", "it holds on"),
        ("hostile", "HostileError", ""),
        ("unloadable", "UnloadableError", "cannot come back"),
    ],
)
@pytest.mark.parametrize("codec", ["pickle", "dill"])
def test_exceptions_that_cannot_travel(name: str, class_name: str, text: str, codec: str) -> None:
    """They become a RuntimeError with type name, text and traceback that names the agent."""
    error, runner = fail(raising(name, victims=[3]), codec=codec)
    assert isinstance(error, RuntimeError)
    assert isinstance(error, RemoteAgentError)
    for word in ("agent 3 ", "RaisingAgent", class_name, text, "in misbehave"):
        assert word in str(error)
    go_on(runner)


@pytest.mark.parametrize("codec", ["pickle", "dill"])
def test_an_exception_with_a_constructor_of_its_own(codec: str) -> None:
    """What pickle would rebuild by a wrong call arrives whole, or as text; nothing is lost."""
    error, _ = fail(raising("keyword", victims=[3]), codec=codec)
    assert "the code is 41" in str(error)
    if isinstance(error, RuntimeError):
        assert "agent 3 " in str(error)
        assert "KeywordError" in str(error)
    else:
        assert type(error) is KeywordError
        assert error.code == 41


def test_every_error_is_one_of_ours() -> None:
    """All errors that the package raises itself have one root."""
    for error in ("unpicklable value", "hostile", "die"):
        assert isinstance(fail(raising(error))[0], PamsParallelError)


def test_a_new_runner_works_after_an_error() -> None:
    """The next run in the same process gives what it should."""
    fail(raising("own"))
    settings = make_settings({"LearnerAgent": 4, "TrackerAgent": 2})
    runner = make_parallel(settings, SAMPLE_CLASSES, 5)
    main(runner)
    assert_same(run_sequential(settings, SAMPLE_CLASSES, 5), runner)


# ----------------------------------------------------------------------- 8. initializers


def fail_to_initialize(error: str) -> None:
    """Fail in a worker; harmless in main, where it must not be called."""
    if error == "exit":
        raise SystemExit("the initializer leaves")
    raise OwnError(47, "the initializer")


class InitializedRunner(MultiProcessAgentParallelRunner):
    """Has an initializer that fails."""

    error = "own"

    def _get_worker_initializer(self) -> Callable[..., Any]:
        return fail_to_initialize

    def _get_worker_initargs(self) -> tuple[Any, ...]:
        return (self.error,)


class ThreadInitializedRunner(InitializedRunner, ThreadRunner):
    """The same in threads."""


class ForeignInitializedRunner(InitializedRunner, ForeignPoolRunner):
    """The same in a foreign pool."""


@pytest.mark.parametrize("error", ["own", "exit"])
@pytest.mark.parametrize(
    ("runner_class", "start_method"),
    [
        *[(InitializedRunner, method) for method in START_METHODS],
        (ThreadInitializedRunner, None),
        (ForeignInitializedRunner, "fork"),
    ],
)
def test_an_initializer_that_fails(
    runner_class: type[InitializedRunner], start_method: str | None, error: str
) -> None:
    """A RuntimeError with fixed words; the worker's traceback is its cause."""

    class ChosenRunner(runner_class):  # type: ignore[valid-type,misc]  # a parameter
        pass

    ChosenRunner.error = error
    settings = make_settings({"SampleAgent": 4}, start_method=start_method)
    caught, _ = fail(settings, runner_class=ChosenRunner)
    assert isinstance(caught, RuntimeError)
    assert isinstance(caught, WorkerInitializerError)
    assert "the worker initializer failed on this worker" in str(caught)
    cause = str(caught.__cause__)
    assert "in fail_to_initialize" in cause
    assert ("the initializer leaves" if error == "exit" else "the initializer failed with 47") in (
        cause
    )


@pytest.mark.parametrize("hook", ["_get_worker_initializer", "_get_worker_initargs"])
def test_an_initializer_that_cannot_be_sent(hook: str) -> None:
    """The error names the hook, and does not speak of the main guard."""

    class UnsendableRunner(MultiProcessAgentParallelRunner):
        def _get_worker_initializer(self) -> Callable[..., Any]:
            return (lambda: None) if hook == "_get_worker_initializer" else print

        def _get_worker_initargs(self) -> tuple[Any, ...]:
            return () if hook == "_get_worker_initializer" else (unpicklable(),)

    settings = make_settings({"SampleAgent": 4}, start_method="spawn")
    error, _ = fail(settings, runner_class=UnsendableRunner)
    assert isinstance(error, WorkerStartError)
    assert hook in str(error)
    assert "__main__" not in str(error)


def test_an_initializer_that_fails_does_not_break_the_pool(pool: LastingPool) -> None:
    """The executor goes on after the initializer failed in it."""

    class PoolRunner(InitializedRunner):
        def _create_executor(self) -> Executor:
            return pool

    for _ in range(2):
        runner = make_parallel(
            make_settings({"SampleAgent": 4}), SAMPLE_CLASSES, 1, runner_class=PoolRunner
        )
        with pytest.raises(RuntimeError, match="the worker initializer failed on this worker"):
            main(runner)
        assert pool.submit(int, "3").result(timeout=10) == 3


initialized: list[tuple[int, str]] = []
"""What the initializer of this process (or its workers' copies) was called with."""


def initialize(counter: Any, word: str) -> None:
    """Count, in memory that all workers share."""
    with counter.get_lock():
        counter.value += 1
    initialized.append((os.getpid(), word))


class InitializedAgent(SampleAgent):
    """Lists what the initializer did in its worker."""

    synced_attributes = ("seen",)
    seen: list[tuple[int, str]]

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Look."""
        self.seen = [*initialized, (os.getpid(), "asked")]
        return []


@pytest.mark.parametrize("start_method", START_METHODS)
def test_the_initializer_runs_once_in_each_worker(start_method: str) -> None:
    """Before the first task, never in main, with a shared value that travels at process start."""
    context: BaseContext = multiprocessing.get_context(start_method)
    counter = context.Value("i", 0)

    class SharingRunner(MultiProcessAgentParallelRunner):
        def _get_worker_initializer(self) -> Callable[..., Any]:
            return initialize

        def _get_worker_initargs(self) -> tuple[Any, ...]:
            return (counter, "hello")

    settings = make_settings(
        {"InitializedAgent": 4}, start_method=start_method, max_normal_orders=4, steps=3
    )
    runner = make_parallel(
        settings, (*SAMPLE_CLASSES, InitializedAgent), 1, runner_class=SharingRunner
    )
    main(runner)
    assert initialized == []
    assert counter.value == 2
    for agent in runner.simulator.agents:
        (pid, word), (asked_pid, _) = agent.seen
        assert word == "hello"
        assert pid == asked_pid != os.getpid()


# --------------------------------------------------------------------- 8. workers that die


@pytest.mark.parametrize("start_method", START_METHODS)
def test_a_worker_that_dies(start_method: str) -> None:
    """The agents of the tasks that had not returned are named, and the exit code."""
    settings = raising("die", victims=[4], start_method=start_method)
    error, runner = fail(settings)
    assert isinstance(error, RuntimeError)
    assert isinstance(error, WorkerDiedError)
    batch = runner.batches[-1]
    chunk = next(c for c in (batch[:3], batch[3:]) if 4 in c)
    for agent in chunk:
        assert f"agent {agent} " in str(error)
    assert "7" in str(error).replace("agent", "")
    assert error.exit_code == 7
    go_on(runner)


def test_a_worker_of_a_foreign_pool_that_dies() -> None:
    """The agents are named too; a foreign pool does not tell the exit code."""
    error, runner = fail(raising("die", victims=[4]), runner_class=ForeignPoolRunner)
    assert isinstance(error, RuntimeError)
    assert "agent 4 " in str(error)
    go_on(runner)


class KillingRunner(MultiProcessAgentParallelRunner):
    """Stops its workers before the third step, and kills them once a task was submitted."""

    started: float

    def _update_markets(self, session: Session) -> None:
        if self.simulator.markets[0].get_time() == 2:
            self.started = time.monotonic()
            workers = child_processes()
            assert len(workers) == 2
            for worker in workers:
                # a stopped worker does not read: 50 MB fit in no pipe, the task stays on its way
                worker.send_signal(signal.SIGSTOP)
            for agent in self.simulator.agents:
                if isinstance(agent, BallastAgent):
                    agent.ballast = agent.ballast[1:]  # what has not changed is not sent again
            executor: Any = self._get_executor()
            exchange, submitted = executor.exchange, threading.Event()

            def exchange_and_tell(*args: Any) -> Any:
                submitted.set()
                return exchange(*args)

            executor.exchange = exchange_and_tell

            def kill() -> None:
                submitted.wait(60)
                # let the writing begin; that it has not begun would be right as well
                threading.Event().wait(0.2)
                for worker in workers:
                    worker.send_signal(signal.SIGKILL)

            threading.Thread(target=kill).start()
        super()._update_markets(session)


@pytest.mark.parametrize("start_method", START_METHODS)
def test_workers_killed_while_a_large_task_is_on_its_way(start_method: str) -> None:
    """The error comes in bounded time, names agents and signal, and the next run works."""
    settings = make_settings(
        {"BallastAgent": 1, "SampleAgent": 3}, start_method=start_method, steps=3
    )
    runner = make_parallel(settings, SAMPLE_CLASSES, 42, runner_class=KillingRunner)
    with pytest.raises(RuntimeError) as caught:
        main(runner)
    assert time.monotonic() - runner.started < 20
    assert isinstance(caught.value, WorkerDiedError)
    assert "agent " in str(caught.value)
    assert caught.value.exit_code == -signal.SIGKILL
    assert runner.executor is None
    assert child_processes() == []
    runner.simulator.sessions[0].iteration_steps = 1
    runner._run()


class SuicidalRunner(WitnessRunner):
    """Kills its idle workers between two steps."""

    def _update_markets(self, session: Session) -> None:
        if self.simulator.markets[0].get_time() == 2:
            workers = child_processes()
            for worker in workers:
                worker.kill()
        super()._update_markets(session)


def test_workers_killed_between_steps() -> None:
    """Either the run goes on with new workers, or it ends with the error; it never hangs."""
    settings = make_settings({"CountingAgent": 4}, max_normal_orders=4)
    runner = make_parallel(settings, SAMPLE_CLASSES, 42, runner_class=SuicidalRunner)
    death: WorkerDiedError | None = None
    try:
        main(runner)
    except WorkerDiedError as error:
        death = error
    if death is None:
        assert_same(run_sequential(settings, SAMPLE_CLASSES, 42), runner)
    else:
        assert death.exit_code == -signal.SIGKILL
        assert "CountingAgent" in str(death)
        assert_unchanged(runner.before, runner)
    assert runner.executor is None
    assert child_processes() == []


class OncePerThreadRunner(ThreadRunner):
    """Has an initializer in its threads."""

    def _get_worker_initializer(self) -> Callable[..., Any]:
        return note_thread


class OncePerProcessRunner(ForeignPoolRunner):
    """Has an initializer in a foreign pool."""

    def _get_worker_initializer(self) -> Callable[..., Any]:
        return note_thread


noted: list[tuple[int, int]] = []
"""Process and thread of every call of the initializer, in this process."""


def note_thread() -> None:
    """Note where this was called."""
    noted.append((os.getpid(), threading.get_ident()))


class ThreadNotingAgent(SampleAgent):
    """Lists what the initializer noted in its process, and where itself was asked."""

    synced_attributes = ("seen", "places")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.seen: list[tuple[int, int]] = []
        self.places: set[tuple[int, int]] = set()

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Look."""
        self.seen = [*noted]
        self.places.add((os.getpid(), threading.get_ident()))
        return []


@pytest.mark.parametrize("runner_class", [OncePerThreadRunner, OncePerProcessRunner])
def test_the_initializer_in_a_foreign_executor(runner_class: RunnerClass) -> None:
    """It runs before the first task, once in each thread or process."""
    noted.clear()
    settings = make_settings({"ThreadNotingAgent": 6}, max_normal_orders=6, num_parallel=2)
    runner = make_parallel(settings, [ThreadNotingAgent], 1, runner_class=runner_class)
    main(runner)
    here = {place for place in noted if place[0] == os.getpid()}
    assert len(here) == len(noted)
    assert (os.getpid(), threading.get_ident()) not in here
    for agent in runner.simulator.agents:
        assert len(agent.seen) == len(set(agent.seen))
        assert agent.places
        if runner_class is OncePerProcessRunner:
            # each worker has a list of its own, with one call in it
            assert len(agent.seen) == 1
            assert noted == []
        else:
            assert agent.places <= set(noted)
    noted.clear()


# --------------------------------------------------------------------------- whole programs

HEAD = """
    import random, sys, threading
    from configs import SAMPLE_CLASSES, make_parallel, make_settings
    from pams_parallel import MultiProcessAgentParallelRunner
    """


def start_script(tmp_path: Path, body: str, *args: str) -> subprocess.Popen[str]:
    """Start a program of its own, in a process group of its own."""
    script = tmp_path / "program.py"
    script.write_text(textwrap.dedent(HEAD) + textwrap.dedent(body))
    return subprocess.Popen(
        [sys.executable, "-W", "ignore", str(script), *args],
        env={**os.environ, "PYTHONPATH": str(Path(sample_agents.__file__).parent)},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def end_group(process: subprocess.Popen[str]) -> list[str]:
    """Return the processes that the ended program left behind, and kill them."""
    group = []
    for other in psutil.process_iter():
        with contextlib.suppress(psutil.NoSuchProcess, ProcessLookupError):
            if os.getsid(other.pid) == process.pid and not has_ended(other):
                group.append(other)
    services = [other for other in group if is_python_service(other)]
    # the last moments of a process take a moment; Python's own helpers only then see the end
    left = wait_for_end([other for other in group if other not in services], timeout=1)
    left += wait_for_end(services, timeout=5)
    found = [str(other) for other in left]
    for other in left:
        other.kill()
    process.communicate()  # closes the pipes
    return found


UNGUARDED = """
    with open("started", "a") as file:
        file.write("started\\n")
    settings = make_settings({"SampleAgent": 4}, start_method=sys.argv[1])
    runner = make_parallel(settings, SAMPLE_CLASSES, 1)
    runner.main()
    print("finished")
    """


@pytest.mark.parametrize("start_method", ["spawn", "forkserver"])
def test_a_script_without_the_main_guard(start_method: str, tmp_path: Path) -> None:
    """One clear message, no more processes than workers, and a soon end."""
    process = start_script(tmp_path, UNGUARDED, start_method)
    try:
        out, err = process.communicate(timeout=60)
    finally:
        left = end_group(process)
    assert left == []
    assert process.returncode not in (0, None)
    assert "finished" not in out
    assert err.count('if __name__ == "__main__"') == 1
    assert err.count("Traceback (most recent call last)") <= 2  # the error and its cause
    # main, two workers, and the fork server itself, which imports the script too
    assert len((tmp_path / "started").read_text().splitlines()) <= 4


GUARDED = """
    if __name__ == "__main__":
        settings = make_settings({"SampleAgent": 4}, num_parallel=2)
        import multiprocessing
        before = multiprocessing.get_start_method(allow_none=True)
        runner = make_parallel(settings, SAMPLE_CLASSES, 1)
        assert runner.start_method is None
        runner.main()
        assert before is None
        assert multiprocessing.get_start_method(allow_none=True) is None, "it was fixed"
        multiprocessing.set_start_method("spawn")
        runner = make_parallel(settings, SAMPLE_CLASSES, 1)
        assert runner._get_mp_context().get_start_method() == "spawn"
        runner.main()
        print("finished")
    """


def test_the_start_method_of_the_program_is_not_fixed(tmp_path: Path) -> None:
    """Without startMethod multiprocessing's default holds, and may still be set afterwards."""
    process = start_script(tmp_path, GUARDED)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 0, err
    assert "finished" in out
    assert end_group(process) == []


BLOCKING = """
    if __name__ == "__main__":
        settings = make_settings(
            {"BlockingAgent": 4},
            start_method=sys.argv[1],
            options={"busy": sys.argv[2] == "busy"},
            max_normal_orders=4,
        )
        runner = make_parallel(settings, SAMPLE_CLASSES, 1)
        try:
            runner.main()
        finally:
            print("executor is", runner.executor, flush=True)
    """


@pytest.mark.parametrize("receivers", ["main", "all"])
@pytest.mark.parametrize(
    ("start_method", "busy"),
    [("fork", "busy"), ("fork", "waiting"), ("spawn", "waiting"), ("forkserver", "waiting")],
)
def test_ctrl_c_while_agents_run(
    start_method: str, busy: str, receivers: str, tmp_path: Path
) -> None:
    """The program ends within 10 s and leaves no process, also when only main gets the signal."""
    process = start_script(tmp_path, BLOCKING, start_method, busy)
    try:
        assert process.stdout is not None
        lines = {process.stdout.readline(), process.stdout.readline()}
        assert all(line.startswith("asked ") for line in lines), lines
        workers = [psutil.Process(int(line.split()[1])) for line in lines]
        assert len(workers) == 2
        if receivers == "main":
            os.kill(process.pid, signal.SIGINT)
        else:
            os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=10)
        assert [worker for worker in workers if not has_ended(worker)] == []
    finally:
        left = end_group(process)
    assert left == []
    assert process.returncode != 0
    assert "executor is None" in out
    assert err.count("KeyboardInterrupt") == 1, err


EXITING = """
    if __name__ == "__main__":
        settings = make_settings({"SampleAgent": 4}, start_method=sys.argv[1])
        runner = make_parallel(settings, SAMPLE_CLASSES, 1)
        runner._setup()
        print("set up", flush=True)
        if sys.argv[2] == "wait":
            threading.Event().wait()
        if sys.argv[2] == "error":
            raise ValueError("of the program")
    """


@pytest.mark.parametrize("start_method", START_METHODS)
@pytest.mark.parametrize("way", ["end", "error"])
def test_a_program_that_ends_after_the_setup(start_method: str, way: str, tmp_path: Path) -> None:
    """A program that ends with a runner set up and not run ends soon, and leaves no process."""
    process = start_script(tmp_path, EXITING, start_method, way)
    try:
        out, err = process.communicate(timeout=30)
    finally:
        left = end_group(process)
    assert left == []
    assert "set up" in out
    assert process.returncode == (1 if way == "error" else 0), err
    assert ("ValueError: of the program" in err) == (way == "error")


def test_killing_main_ends_the_workers(tmp_path: Path) -> None:
    """When main is killed, idle workers end by themselves."""
    process = start_script(tmp_path, EXITING, "fork", "wait")
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "set up\n"
        workers = psutil.Process(process.pid).children(recursive=True)
        assert len(workers) == 2
        process.kill()
        process.communicate(timeout=10)
        assert wait_for_end(workers, timeout=10) == []
    finally:
        end_group(process)


def test_an_inline_executor_needs_no_process() -> None:
    """A runner with an executor in the calling thread starts no process at all."""
    runner = make_parallel(
        make_settings({"SampleAgent": 4}), SAMPLE_CLASSES, 1, runner_class=InlineRunner
    )
    setup(runner)
    assert child_processes() == []
    runner._run()
