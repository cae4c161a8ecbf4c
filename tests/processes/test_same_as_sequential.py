"""Same settings, same seed, same whole state as SequentialRunner."""

from __future__ import annotations

import copy
import io
import itertools
import json
import multiprocessing
import os
import pickle
import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import cloudpickle
import pytest
from configs import (
    SAMPLE_CLASSES,
    ForeignPoolRunner,
    InlineRunner,
    RunnerClass,
    ThreadRunner,
    WitnessRunner,
    assert_same,
    check_same_as_sequential,
    full_settings,
    main,
    make_parallel,
    make_sequential,
    make_settings,
    run_parallel,
    run_sequential,
    session,
    setup,
)
from pams import IndexMarket, Market, SequentialRunner, Session, Simulator
from pams.agents import Agent
from pams.logs import Logger, MarketStepSaver
from sample_agents import ORDINARY, SignatureAgent, TranscriptLogger

from pams_parallel import CodecBackend, MultiProcessAgentParallelRunner

START_METHODS = multiprocessing.get_all_start_methods()

# Idle and busy agents, orders and cancels, state in callbacks and state in listed attributes.
MIXED = {"FCNAgent": 4, "IdleAgent": 3, "AlternatingAgent": 3, "LearnerAgent": 3, "TrackerAgent": 2}


@pytest.mark.parametrize("max_normal_orders", [1, 3, 10, 50])
@pytest.mark.parametrize("num_parallel", [1, 2, 3, 7])
def test_any_number_of_workers_and_orders(num_parallel: int, max_normal_orders: int) -> None:
    """Neither the number of workers nor maxNormalOrders makes a difference."""
    settings = make_settings(
        MIXED, num_parallel=num_parallel, max_normal_orders=max_normal_orders, steps=6
    )
    sequential, parallel = check_same_as_sequential(settings)
    assert parallel.num_parallel == num_parallel
    market = sequential.simulator.markets[0]
    assert sum(market.get_n_buy_orders()) + sum(market.get_n_sell_orders()) > 5


@pytest.mark.parametrize("codec", ["pickle", "dill"])
@pytest.mark.parametrize("start_method", START_METHODS)
def test_any_start_method_and_backend(start_method: str, codec: str) -> None:
    """Neither the start method nor the codec backend makes a difference."""
    settings = make_settings(MIXED, start_method=start_method, codec=codec)
    _, parallel = check_same_as_sequential(settings)
    assert parallel.start_method == start_method


@pytest.mark.parametrize("start_method", START_METHODS)
def test_everything_by_any_start_method(start_method: str) -> None:
    """The simulation with everything is the same by every start method."""
    check_same_as_sequential(full_settings(start_method=start_method), seed=3)


@pytest.mark.parametrize("runner_class", [InlineRunner, ThreadRunner, ForeignPoolRunner])
@pytest.mark.parametrize("codec", ["pickle", "dill"])
@pytest.mark.parametrize("num_parallel", [1, 3])
def test_any_executor(runner_class: RunnerClass, codec: str, num_parallel: int) -> None:
    """Threads, a foreign process pool and an executor in the calling thread will do as well."""
    settings = make_settings(MIXED, num_parallel=num_parallel, max_normal_orders=5)
    check_same_as_sequential(settings, codec=codec, runner_class=runner_class)


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
@pytest.mark.parametrize("codec", ["pickle", "dill"])
def test_everything_that_pams_has(seed: int, codec: str) -> None:
    """An index market, arbitrage, market makers, all events and all kinds of sessions."""
    sequential, _ = check_same_as_sequential(full_settings(codec=codec), seed)
    simulator = sequential.simulator
    assert any(isinstance(market, IndexMarket) for market in simulator.markets)
    assert {type(event).__name__ for event in simulator.events} == {
        "PriceLimitRule",
        "TradingHaltRule",
        "FundamentalPriceShock",
        "OrderMistakeShock",
    }
    assert len(simulator.high_frequency_agents) == 3
    assert len(simulator.markets) == 3
    assert sum(sum(market.get_executed_volumes()) for market in simulator.markets) > 0


def test_the_events_of_that_simulation_happen() -> None:
    """The simulation with everything really limits, halts, shocks and mistakes (self-check)."""
    happened: dict[str, int] = {"limit": 0, "halt": 0, "mistake": 0, "fundamental": 0}
    for seed in (1, 2, 3, 4):
        simulator = run_sequential(full_settings(), SAMPLE_CLASSES, seed).simulator
        events: dict[str, Any] = dict(simulator.name2event)
        happened["limit"] += events["PriceLimit"].activation_count
        happened["halt"] += events["TradingHalt"].activation_count
        happened["mistake"] += events["OrderMistake"].triggerd
        prices = simulator.markets[0].get_fundamental_prices()
        happened["fundamental"] += min(b / a for a, b in itertools.pairwise(prices)) < 0.96
    assert all(happened.values()), happened


@pytest.mark.parametrize("event", ["PriceLimit", "TradingHalt", "FundamentalShock", "OrderMistake"])
def test_each_event_alone(event: str) -> None:
    """Each PAMS event gives the same alone, with two markets."""
    settings = make_settings(
        {"FCNAgent": 5, "LearnerAgent": 3}, markets=2, events=[event], steps=10
    )
    check_same_as_sequential(settings, runner_class=ThreadRunner)
    check_same_as_sequential(settings)


def test_an_event_of_the_user() -> None:
    """An event with an own generator and counter, which changes agents, gives the same."""
    settings = make_settings({"ReaderAgent": 4, "LearnerAgent": 2}, markets=2, events=["Tax"])
    check_same_as_sequential(settings)


@pytest.mark.parametrize("agent_class", ORDINARY, ids=lambda cls: str(cls.__name__))
@pytest.mark.parametrize("codec", ["pickle", "dill"])
def test_each_sample_agent(agent_class: type[Agent], codec: str) -> None:
    """Each of the sample agents alone gives the same, with two markets and an event."""
    settings = make_settings(
        {agent_class.__name__: 6}, markets=2, events=["PriceLimit"], steps=8, max_normal_orders=4
    )
    check_same_as_sequential(settings, codec=codec)


@pytest.mark.parametrize("seed", range(3))
def test_all_sample_agents_together(seed: int) -> None:
    """All sample agents in one simulation give the same."""
    settings = make_settings(
        {cls.__name__: 2 for cls in ORDINARY if cls.__name__ != "ReaderAgent"},
        markets=2,
        index=True,
        events=["PriceLimit", "Tax"],
        steps=8,
        max_normal_orders=12,
        num_parallel=3,
    )
    check_same_as_sequential(settings, seed)


def test_sessions_without_placement_and_execution() -> None:
    """Sessions in which nothing is placed, or nothing is executed, give the same."""
    sessions = [
        session(2, name="closed", placement=False, execution=False),
        session(3, 4, name="collecting", execution=False),
        session(2, name="only execution", placement=False),
        session(3, 50, name="open"),
        session(2, 0, name="nobody is asked"),
    ]
    settings = make_settings(MIXED, markets=2, sessions=sessions)
    check_same_as_sequential(settings)


@pytest.mark.parametrize("logger", [None, MarketStepSaver, TranscriptLogger])
def test_any_logger(logger: type[Logger] | None) -> None:
    """No logger, one of PAMS and one of the user: the same simulation and the same records."""
    settings = make_settings({"FCNAgent": 6, "LearnerAgent": 2}, markets=2)
    sequential = run_sequential(settings, SAMPLE_CLASSES, 5, logger() if logger else None)
    parallel = run_parallel(settings, SAMPLE_CLASSES, 5, logger=logger() if logger else None)
    assert_same(sequential, parallel)
    if logger is MarketStepSaver:
        assert isinstance(sequential.logger, MarketStepSaver)
        assert len(sequential.logger.market_step_logs) == 12
        assert sequential.logger.market_step_logs == parallel.logger.market_step_logs


def test_fundamentals_that_agents_read_ahead() -> None:
    """Agents that make the fundamental prices be generated leave the same prices and generators."""
    settings = make_settings(
        {"FutureReaderAgent": 4, "FCNAgent": 2}, markets=2, events=["FundamentalShock"], steps=8
    )
    check_same_as_sequential(settings)


def test_fundamentals_that_one_agent_of_a_batch_reads_further_ahead() -> None:
    """Fundamental prices are generated in as many pieces as in a sequential run."""
    settings = make_settings(
        {"FutureReaderAgent": 3, "IdleAgent": 3},
        options={"ahead": 99},
        max_normal_orders=6,
        num_parallel=3,
    )
    check_same_as_sequential(settings, runner_class=InlineRunner)


def test_batches_of_one_agent_see_all_that_came_before() -> None:
    """With maxNormalOrders 1 even agents that read others' listed attributes give the same."""
    settings = make_settings({"GossipAgent": 6}, max_normal_orders=1, num_parallel=1)
    sequential, _ = check_same_as_sequential(settings)
    assert sum(agent.n_asked for agent in sequential.simulator.agents) > 6


@pytest.mark.parametrize("max_normal_orders", [1, 3, 7, 50])
@pytest.mark.parametrize("num_parallel", [1, 4])
def test_exactly_those_are_asked(num_parallel: int, max_normal_orders: int) -> None:
    """The same agents in the same order, in batches of exactly as many as are missing."""
    settings = make_settings(
        {"SignatureAgent": 10}, num_parallel=num_parallel, max_normal_orders=max_normal_orders
    )
    sequential, parallel = check_same_as_sequential(settings, runner_class=WitnessRunner)
    signatures = [note.split() for note in sequential.logger.notes()]
    assert [int(agent) for agent, _ in signatures] == [i for b in parallel.batches for i in b]
    busy = iter(word == "busy" for _, word in signatures)
    expected = []
    for _ in range(6):
        asked = placed = 0
        while asked < 10 and placed < max_normal_orders:
            size = min(max_normal_orders - placed, 10 - asked)
            expected.append(size)
            asked += size
            placed += sum(next(busy) for _ in range(size))
    assert [len(batch) for batch in parallel.batches] == expected


def test_agents_that_never_answer_are_asked_once_a_step() -> None:
    """When nobody places an order, everybody is asked exactly once in each step."""
    settings = make_settings({"NeverAgent": 7}, steps=4, max_normal_orders=3)
    sequential, parallel = check_same_as_sequential(settings)
    for runner in (sequential, parallel):
        assert [agent.n_asked for agent in runner.simulator.agents] == [4] * 7


class OddlySplitRunner(MultiProcessAgentParallelRunner):
    """Splits into chunks of one, two, none, and the rest."""

    def _split_agents_into_chunks(self, agents: list[Agent]) -> list[list[Agent]]:
        return [agents[:1], agents[1:3], [], agents[3:]]


def test_any_chunking() -> None:
    """An overridden split, with empty chunks and chunks of unlike sizes, makes no difference."""
    settings = make_settings(MIXED, max_normal_orders=9)
    check_same_as_sequential(settings, runner_class=OddlySplitRunner)


class ChunkNotingRunner(MultiProcessAgentParallelRunner):
    """Notes the chunks of the default split."""

    chunks: list[list[list[int]]]

    def _split_agents_into_chunks(self, agents: list[Agent]) -> list[list[Agent]]:
        chunks = super()._split_agents_into_chunks(agents=agents)
        assert [agent for chunk in chunks for agent in chunk] == agents
        self.chunks.append([[agent.agent_id for agent in chunk] for chunk in chunks])
        return chunks


@pytest.mark.parametrize(
    ("number", "num_parallel", "sizes"),
    [(10, 3, [4, 3, 3]), (3, 7, [1, 1, 1]), (8, 2, [4, 4]), (5, 1, [5])],
)
def test_the_default_chunks(number: int, num_parallel: int, sizes: list[int]) -> None:
    """At most num_parallel consecutive chunks, none empty, sizes differing by at most one."""
    settings = make_settings(
        {"SampleAgent": number}, max_normal_orders=number, num_parallel=num_parallel, steps=2
    )
    runner = make_parallel(settings, SAMPLE_CLASSES, 1, runner_class=ChunkNotingRunner)
    runner.chunks = []
    main(runner)
    assert [[len(chunk) for chunk in batch] for batch in runner.chunks] == [sizes] * 2


class KeywordRunner(MultiProcessAgentParallelRunner):
    """Takes the arguments of all hooks by keyword only."""

    def _split_agents_into_chunks(self, *, agents: Any) -> Any:  # type: ignore[override]
        return super()._split_agents_into_chunks(agents=agents)

    def _receive_synced_attributes_from_worker(  # type: ignore[override]
        self, *, agent: Any, attributes: Any
    ) -> None:
        super()._receive_synced_attributes_from_worker(agent=agent, attributes=attributes)

    def _receive_orders_from_worker(  # type: ignore[override]
        self, *, agent: Any, orders: Any, prng_state: Any
    ) -> Any:
        return super()._receive_orders_from_worker(
            agent=agent, orders=orders, prng_state=prng_state
        )


def test_hooks_are_called_with_keywords() -> None:
    """Overrides may take their arguments by keyword only, and make no difference."""
    check_same_as_sequential(make_settings(MIXED), runner_class=KeywordRunner)


class ReferringPickler(cloudpickle.CloudPickler):  # type: ignore[misc]  # it has no types
    """Asks the references for every object."""

    def __init__(self, file: io.BytesIO, references: Any) -> None:
        super().__init__(file, protocol=5)
        self.references = references

    def persistent_id(self, obj: object) -> object:
        """Ask."""
        return self.references.persistent_id(obj)


class ReferringUnpickler(pickle.Unpickler):
    """Asks the references for every id."""

    def __init__(self, file: io.BytesIO, references: Any) -> None:
        super().__init__(file)
        self.references = references

    def persistent_load(self, pid: Any) -> object:
        """Ask."""
        return self.references.persistent_load(pid)


class CloudpickleBackend:
    """A foreign backend: nothing but the three members of the protocol."""

    name = "cloudpickle"

    def dumps(self, obj: object, references: Any) -> bytes:
        """Write with cloudpickle."""
        file = io.BytesIO()
        ReferringPickler(file, references).dump(obj)
        return file.getvalue()

    def loads(self, data: bytes, references: Any) -> object:
        """Read with pickle."""
        loaded: object = ReferringUnpickler(io.BytesIO(data), references).load()
        return loaded


@pytest.mark.parametrize("start_method", START_METHODS)
def test_a_backend_of_the_user(start_method: str) -> None:
    """An object that satisfies the protocol works without being registered."""
    backend = CloudpickleBackend()
    assert isinstance(backend, CodecBackend)
    settings = full_settings(start_method=start_method)
    check_same_as_sequential(settings, codec=backend)


class CountingBackend(CloudpickleBackend):
    """Counts its calls in this process."""

    def __init__(self) -> None:
        self.n_dumps = 0

    def dumps(self, obj: object, references: Any) -> bytes:
        """Count."""
        self.n_dumps += 1
        return super().dumps(obj, references)


def test_the_codec_argument_wins_over_the_config() -> None:
    """codec= of the constructor is used, whatever simulation.codec says."""
    backend = CountingBackend()
    settings = make_settings({"SampleAgent": 4}, codec="dill")
    check_same_as_sequential(settings, codec=backend)
    assert backend.n_dumps > 0


def test_the_default_number_of_workers() -> None:
    """Without numParallel it is the number of CPUs minus one, at least one."""
    settings = make_settings({"SampleAgent": 4}, num_parallel=None)
    _, parallel = check_same_as_sequential(settings, runner_class=InlineRunner)
    assert parallel.num_parallel == max((os.cpu_count() or 1) - 1, 1)


def test_the_default_start_method_of_a_class() -> None:
    """startMethod wins over the default of the class, and that over the default of Python."""

    class SpawningRunner(MultiProcessAgentParallelRunner):
        default_start_method = "spawn"

    assert MultiProcessAgentParallelRunner.default_start_method is None
    for configured in (None, "forkserver"):
        settings = make_settings({"SampleAgent": 4}, start_method=configured)
        runner = make_parallel(settings, SAMPLE_CLASSES, 1, runner_class=SpawningRunner)
        with runner:
            setup(runner)
            assert runner.start_method == (configured or "spawn")
            context = runner._get_mp_context()
            assert context.get_start_method() == (configured or "spawn")


def test_construction_says_that_it_is_experimental() -> None:
    """It warns with the name of the actual class."""
    settings = make_settings({"SampleAgent": 4})
    with pytest.warns(UserWarning, match="KeywordRunner is experimental"):
        KeywordRunner(settings)


class NosySimulator(Simulator):
    """A simulator of the user's."""


def test_the_arguments_of_other_runners_by_position() -> None:
    """Settings, prng, logger and simulator class are taken by position."""
    settings = make_settings({"FCNAgent": 5})
    runners = []
    for cls in (SequentialRunner, MultiProcessAgentParallelRunner):
        runner = cls(copy.deepcopy(settings), random.Random(3), TranscriptLogger(), NosySimulator)
        runner.main()
        runners.append(runner)
    assert type(runners[1].simulator) is NosySimulator
    assert_same(runners[0], runners[1])


def test_settings_from_a_file(tmp_path: Path) -> None:
    """A path to a JSON file gives the same as the dict."""
    settings = make_settings({"FCNAgent": 5})
    path = tmp_path / "config.json"
    path.write_text(json.dumps(settings))
    parallel = MultiProcessAgentParallelRunner(path, random.Random(3))
    parallel.main()
    assert_same(run_sequential(settings, (), 3), parallel)


class RecordingRunner(MultiProcessAgentParallelRunner):
    """Notes which of the methods that users time are gone through."""

    calls: list[str]

    def _update_markets(self, session: Any) -> None:
        self.calls.append("_update_markets")
        super()._update_markets(session=session)

    def _collect_orders_from_normal_agents(self, session: Any) -> Any:
        self.calls.append("_collect_orders_from_normal_agents")
        return super()._collect_orders_from_normal_agents(session=session)

    def _handle_orders(self, session: Any, local_orders: Any) -> Any:
        self.calls.append("_handle_orders")
        return super()._handle_orders(session=session, local_orders=local_orders)


def test_a_step_goes_through_the_methods_that_users_time() -> None:
    """Each step calls _update_markets, which collects orders and handles them."""
    runner = make_parallel(
        make_settings({"FCNAgent": 5}, steps=2), (), 3, runner_class=RecordingRunner
    )
    runner.calls = []
    main(runner)
    assert runner.calls == 2 * [
        "_update_markets",
        "_collect_orders_from_normal_agents",
        "_handle_orders",
    ]


def test_running_twice_after_one_setup() -> None:
    """A second run continues as that of SequentialRunner does, with new workers."""
    settings = make_settings(MIXED, steps=4, events=["PriceLimit"])
    sequential = make_sequential(settings, SAMPLE_CLASSES, 8, TranscriptLogger())
    parallel = make_parallel(settings, SAMPLE_CLASSES, 8, logger=TranscriptLogger())
    for runner in (sequential, parallel):
        setup(runner)
        runner._run()
        runner._run()
    assert parallel.executor is None
    assert_same(sequential, parallel)


def test_a_simulation_in_single_steps() -> None:
    """User code that calls the steps itself gets the same."""
    settings = make_settings(MIXED, steps=4)
    sequential = make_sequential(settings, SAMPLE_CLASSES, 8)
    parallel = make_parallel(settings, SAMPLE_CLASSES, 8)
    for runner in (sequential, parallel):
        setup(runner)
        simulator = runner.simulator
        simulator._update_times_on_markets(simulator.markets)
        simulator.current_session = simulator.sessions[0]
        for market in simulator.markets:
            market._is_running = True
        for _ in range(3):
            runner._update_markets(session=simulator.sessions[0])
            simulator._update_times_on_markets(simulator.markets)
    assert parallel.executor is not None
    parallel.close()
    assert_same(sequential, parallel)


class RestlessRunner(MultiProcessAgentParallelRunner):
    """Has other workers before every step, of our own or of a foreign pool in turn."""

    def _update_markets(self, session: Session) -> None:
        executor, self.executor = self.executor, None
        if executor is not None:
            executor.shutdown()
        if self.simulator.markets[0].get_time() % 3 == 2:
            self.executor = ThreadPoolExecutor(2)
        super()._update_markets(session)


def test_other_workers_in_the_midst_of_a_run() -> None:
    """New workers know nothing, and are told all: whoever puts them in the runner's `executor`."""
    settings = make_settings(MIXED, steps=6)
    check_same_as_sequential(settings, runner_class=RestlessRunner)


class QuietMarket(Market):
    """A market of the user's, with an own attribute and no difference otherwise."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.visitors: set[int] = set()


def test_a_market_class_of_the_user() -> None:
    """A registered market class gives the same."""
    settings = make_settings({"FCNAgent": 5, "TrackerAgent": 2})
    settings["Market0"]["class"] = "QuietMarket"
    _, parallel = check_same_as_sequential(settings, classes=(*SAMPLE_CLASSES, QuietMarket))
    assert type(parallel.simulator.markets[0]) is QuietMarket


def test_the_comparison_sees_a_difference() -> None:
    """Another seed is a difference: the equality of all tests here means something."""
    settings = make_settings({"SignatureAgent": 4})
    one = run_sequential(settings, [SignatureAgent], 1, TranscriptLogger())
    two = run_sequential(settings, [SignatureAgent], 2, TranscriptLogger())
    with pytest.raises(AssertionError):
        assert_same(one, two)
