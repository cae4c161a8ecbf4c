"""Settings of small simulations, and how to run them."""

from __future__ import annotations

import contextlib
import copy
import random
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

import psutil
import sample_agents
from pams import SequentialRunner
from pams.agents import Agent
from pams.events import EventABC
from pams.logs import Logger

from pams_parallel import CodecBackend, MultiProcessAgentParallelRunner
from pams_parallel._state import State, capture_state, digest, first_difference

P = ParamSpec("P")
T = TypeVar("T")

Settings = dict[str, Any]
Classes = Iterable[type]
RunnerClass = type[MultiProcessAgentParallelRunner]

SAMPLE_CLASSES: tuple[type, ...] = tuple(
    cls
    for cls in vars(sample_agents).values()
    if isinstance(cls, type)
    and cls.__module__ == sample_agents.__name__
    and issubclass(cls, (Agent, EventABC))
)
"""All agent and event classes of `sample_agents`."""


# ------------------------------------------------------------------------------ settings


def session(
    steps: int = 6,
    max_normal_orders: int = 3,
    *,
    name: str = "day",
    placement: bool = True,
    execution: bool = True,
    events: Sequence[str] = (),
) -> Settings:
    """Return the settings of a session."""
    return {
        "sessionName": name,
        "iterationSteps": steps,
        "withOrderPlacement": placement,
        "withOrderExecution": execution,
        "withPrint": True,
        "maxNormalOrders": max_normal_orders,
        "maxHighFrequencyOrders": 2,
        "highFrequencySubmitRate": 0.7,
        "events": list(events),
    }


def agent_group(
    agent_class: str, number: int, markets: Sequence[str], options: Mapping[str, Any] | None = None
) -> Settings:
    """Return the settings of agents of one class, of PAMS or of `sample_agents`."""
    return {
        "class": agent_class,
        "numAgents": number,
        "markets": list(markets),
        "cashAmount": [9000, 10000],
        "assetVolume": 50,
        "fundamentalWeight": {"expon": [1.0]},
        "chartWeight": {"expon": [0.2]},
        "noiseWeight": {"expon": [1.0]},
        "noiseScale": 0.005,
        "timeWindowSize": [3, 8],
        "orderMargin": [0.0, 0.02],
        "options": dict(options or {}),
    }


EVENTS: dict[str, Callable[[Sequence[str]], Settings]] = {
    "PriceLimit": lambda markets: {
        "class": "PriceLimitRule",
        "targetMarkets": list(markets),
        "triggerChangeRate": 0.015,
    },
    "TradingHalt": lambda markets: {
        "class": "TradingHaltRule",
        "targetMarkets": list(markets[:1]),
        "triggerChangeRate": 0.005,
        "haltingTimeLength": 2,
    },
    "FundamentalShock": lambda markets: {
        "class": "FundamentalPriceShock",
        "target": markets[0],
        "triggerTime": 2,
        "priceChangeRate": -0.05,
        "shockTimeLength": 2,
    },
    "OrderMistake": lambda markets: {
        "class": "OrderMistakeShock",
        "target": markets[0],
        "triggerTime": 3,
        "priceChangeRate": -0.03,
        "orderVolume": 20,
        "orderTimeLength": 5,
    },
    "Tax": lambda markets: {"class": "TaxEvent"},
}
"""Event name -> its settings for the markets of a simulation."""


def make_settings(
    population: Mapping[str, int],
    *,
    markets: int = 1,
    index: bool = False,
    steps: int = 6,
    max_normal_orders: int = 3,
    sessions: Sequence[Settings] | None = None,
    events: Sequence[str] = (),
    num_parallel: int | None = 2,
    start_method: str | None = None,
    codec: str | None = None,
    options: Mapping[str, Any] | None = None,
    market_makers: int = 0,
) -> Settings:
    """Return the settings of a simulation.

    Args:
        population: agent class -> number of agents.
        markets: number of spot markets.
        index: whether there is an index market of all of them, with two arbitrage agents.
        steps: of the only session, unless ``sessions`` are given.
        max_normal_orders: of the only session.
        sessions: settings of the sessions.
        events: names of `EVENTS` that the first session has.
        num_parallel: ``simulation.numParallel``; None leaves it out.
        start_method: ``simulation.startMethod``; None leaves it out.
        codec: ``simulation.codec``; None leaves it out.
        options: options of all agents of `sample_agents`.
        market_makers: number of PAMS's market makers, on the first market.
    """
    spots = [f"Market{i}" for i in range(markets)]
    names = [*spots, "Index"] if index else spots
    chosen = (
        copy.deepcopy(list(sessions))
        if sessions is not None
        else [session(steps, max_normal_orders)]
    )
    chosen[0]["events"] = [*chosen[0]["events"], *events]
    settings: Settings = {}
    for i, name in enumerate(spots):
        settings[name] = {
            "class": "Market",
            "tickSize": 1.0,
            "marketPrice": 300.0 + i,
            "fundamentalVolatility": 0.001,
            "outstandingShares": 1000,
        }
    if index:
        settings["Index"] = {
            "class": "IndexMarket",
            "tickSize": 1.0,
            "marketPrice": 300.0,
            "markets": spots,
            "outstandingShares": 1000,
        }
    groups: dict[str, Settings] = {
        f"{agent_class}s": agent_group(agent_class, number, names, options)
        for agent_class, number in population.items()
    }
    if index:
        groups["Arbitrage"] = {
            **agent_group("ArbitrageAgent", 2, names),
            "orderVolume": 1,
            "orderThresholdPrice": 0.5,
            "orderTimeLength": 3,
        }
    if market_makers:
        groups["Makers"] = {
            **agent_group("MarketMakerAgent", market_makers, spots[:1]),
            "targetMarket": spots[0],
            "netInterestSpread": 0.02,
            "orderTimeLength": 4,
        }
    for event in {name: None for one in chosen for name in one["events"]}:
        settings[event] = EVENTS[event](names)
    simulation: Settings = {"markets": names, "agents": list(groups), "sessions": chosen}
    for key, value in (
        ("numParallel", num_parallel),
        ("startMethod", start_method),
        ("codec", codec),
    ):
        if value is not None:
            simulation[key] = value
    return {"simulation": simulation, **settings, **groups}


def full_settings(**overrides: Any) -> Settings:
    """Return a simulation with everything that PAMS has: markets, agents, events, sessions."""
    arguments: dict[str, Any] = {
        "population": {"FCNAgent": 6, "MarketShareFCNAgent": 3, "LearnerAgent": 3, "IdleAgent": 3},
        "markets": 2,
        "index": True,
        "market_makers": 1,
        "sessions": [
            session(3, name="placement only", execution=False),
            session(
                12,
                5,
                name="continuous",
                events=["PriceLimit", "TradingHalt", "FundamentalShock", "OrderMistake"],
            ),
            session(2, name="closed", placement=False, execution=False),
            session(5, 4, name="afternoon"),
        ],
        **overrides,
    }
    return make_settings(**arguments)


# --------------------------------------------------------------------------- executors


class InlineExecutor(Executor):
    """Runs a call at once, in the calling thread."""

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run the call and return a future that is done."""
        future: Future[T] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except BaseException as error:
            future.set_exception(error)
        return future


class InlineRunner(MultiProcessAgentParallelRunner):
    """Does all that the runner does, bytes included, in one thread."""

    def _create_executor(self) -> Executor:
        return InlineExecutor()


class ThreadRunner(MultiProcessAgentParallelRunner):
    """Runs the tasks in threads."""

    def _create_executor(self) -> Executor:
        return ThreadPoolExecutor(self.num_parallel)


class ForeignPoolRunner(MultiProcessAgentParallelRunner):
    """Runs the tasks in Python's own process pool."""

    def _create_executor(self) -> Executor:
        return ProcessPoolExecutor(self.num_parallel, mp_context=self._get_mp_context())


class WitnessRunner(MultiProcessAgentParallelRunner):
    """Remembers the agents of every batch, and the state before the last one was sent."""

    batches: list[list[int]]
    before: State

    def _split_agents_into_chunks(self, agents: list[Agent]) -> list[list[Agent]]:
        if not hasattr(self, "batches"):
            self.batches = []
        self.batches.append([agent.agent_id for agent in agents])
        self.before = capture_state(self)
        return super()._split_agents_into_chunks(agents=agents)


class InlineWitnessRunner(WitnessRunner):
    """The same in one thread."""

    def _create_executor(self) -> Executor:
        return InlineExecutor()


# ----------------------------------------------------------------------------- running


def make_sequential(
    settings: Settings,
    classes: Classes,
    seed: int,
    logger: Logger | None = None,
    *,
    runner_class: type[SequentialRunner] = SequentialRunner,
) -> SequentialRunner:
    """Return PAMS's runner, not run."""
    runner = runner_class(copy.deepcopy(settings), random.Random(seed), logger)
    for cls in classes:
        runner.class_register(cls)
    return runner


def make_parallel(
    settings: Settings,
    classes: Classes,
    seed: int,
    *,
    codec: str | CodecBackend | None = None,
    runner_class: RunnerClass = MultiProcessAgentParallelRunner,
    logger: Logger | None = None,
) -> Any:
    """Return our runner, not run. Typed loosely: tests look at attributes of subclasses."""
    runner = runner_class(copy.deepcopy(settings), random.Random(seed), logger, codec=codec)
    for cls in classes:
        runner.class_register(cls)
    return runner


def main(runner: SequentialRunner) -> None:
    """Run it all, without the warning that there are more workers than agents asked."""
    with more_workers_than_orders_allowed():
        runner.main()


def setup(runner: SequentialRunner) -> None:
    """Set it up, without the warning that there are more workers than agents asked."""
    with more_workers_than_orders_allowed():
        runner._setup()


class more_workers_than_orders_allowed(warnings.catch_warnings):  # noqa: N801 - reads as a word
    """Ignores the warning that numParallel is above maxNormalOrders."""

    def __enter__(self) -> None:
        super().__enter__()
        warnings.filterwarnings("ignore", ".*is set to a larger value", UserWarning)


def run_sequential(
    settings: Settings, classes: Classes, seed: int, logger: Logger | None = None
) -> SequentialRunner:
    """Run with PAMS's runner; return the finished runner."""
    runner = make_sequential(settings, classes, seed, logger)
    runner.main()
    return runner


def run_parallel(
    settings: Settings,
    classes: Classes,
    seed: int,
    *,
    codec: str | CodecBackend | None = None,
    runner_class: RunnerClass = MultiProcessAgentParallelRunner,
    logger: Logger | None = None,
) -> Any:
    """Run with ours; return the finished runner."""
    runner = make_parallel(
        settings, classes, seed, codec=codec, runner_class=runner_class, logger=logger
    )
    main(runner)
    assert runner.executor is None
    return runner


def assert_same(sequential: SequentialRunner, parallel: SequentialRunner) -> None:
    """Fail with the first difference of the whole states, if there is one."""
    left, right = capture_state(sequential), capture_state(parallel)
    difference = first_difference(left, right)
    assert difference is None, str(difference)
    assert digest(left) == digest(right)


def assert_unchanged(before: State, runner: SequentialRunner) -> None:
    """Fail if the state of the runner is not the given one."""
    difference = first_difference(before, capture_state(runner))
    assert difference is None, str(difference)


def check_same_as_sequential(
    settings: Settings,
    seed: int = 42,
    *,
    classes: Classes = SAMPLE_CLASSES,
    codec: str | CodecBackend | None = None,
    runner_class: RunnerClass = MultiProcessAgentParallelRunner,
    logger: Callable[[], Logger] = sample_agents.TranscriptLogger,
) -> tuple[Any, Any]:
    """Run with both, compare, and return both. Typed loosely, as `make_parallel` is."""
    sequential = run_sequential(settings, classes, seed, logger())
    parallel = run_parallel(
        settings, classes, seed, codec=codec, runner_class=runner_class, logger=logger()
    )
    assert_same(sequential, parallel)
    return sequential, parallel


# ----------------------------------------------------------------------------- processes


def child_processes() -> list[psutil.Process]:
    """Return the processes that this one started, and theirs.

    Python's resource tracker and fork server are left out: they live as long as this process. A
    process that the fork server made is not, unless it has ended and only waits to be collected.
    """
    found = []
    for child in psutil.Process().children():
        with contextlib.suppress(psutil.NoSuchProcess):
            descendants = child.children(recursive=True)
            if not is_python_service(child):
                found += [child, *descendants]
            else:
                found += [process for process in descendants if not has_ended(process)]
    return found


def is_python_service(process: psutil.Process) -> bool:
    """Tell whether a process is Python's own resource tracker or fork server, or forked by it."""
    try:
        command = " ".join(process.cmdline())
    except psutil.NoSuchProcess:  # has ended meanwhile
        return False
    return "multiprocessing.resource_tracker" in command or "multiprocessing.forkserver" in command


def has_ended(process: psutil.Process) -> bool:
    """Tell whether a process does not run any more; whether its parent knows is another matter."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def wait_for_end(processes: Iterable[psutil.Process], timeout: float) -> list[psutil.Process]:
    """Wait for processes to end; return those that still run after ``timeout`` seconds."""
    deadline = time.monotonic() + timeout
    alive = list(processes)
    while alive := [process for process in alive if not has_ended(process)]:
        if time.monotonic() > deadline:
            break
        psutil.wait_procs(alive, timeout=0.02)
    return alive
