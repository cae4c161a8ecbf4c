"""Laws of whole simulations: any config, any chunking, any agents - as SequentialRunner."""

from __future__ import annotations

import random
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import pytest
from configs import (
    SAMPLE_CLASSES,
    InlineExecutor,
    Settings,
    assert_same,
    assert_unchanged,
    main,
    make_parallel,
    make_sequential,
    make_settings,
    session,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pams.agents import Agent
from sample_agents import ORDINARY, TranscriptLogger

from pams_parallel import MultiProcessAgentParallelRunner
from pams_parallel._state import State, capture_state

AGENT_CLASSES = sorted(
    {cls.__name__ for cls in ORDINARY} | {"FutureReaderAgent", "FCNAgent", "MarketShareFCNAgent"}
)
# Within a batch an agent that reads the logger does not see what others just write there, and
# results that depend on that are not guaranteed to be the same: the two never meet.
LOG_READER, LOG_WRITER = "ReaderAgent", "LogWriterAgent"


@dataclass(frozen=True)
class Case:
    """A simulation, and how to run it.

    Attributes:
        settings: of the simulation.
        seed: of the simulation.
        codec: the backend.
        threads: whether the tasks run in threads; in the calling thread otherwise.
        splits: seed of the chunking.
    """

    settings: Settings
    seed: int
    codec: str
    threads: bool
    splits: int


@st.composite
def sessions(draw: st.DrawFn) -> list[Settings]:
    """Draw up to three sessions."""
    return [
        session(
            draw(st.integers(1, 4)),
            draw(st.integers(0, 9)),
            name=f"session {number}",
            placement=draw(st.booleans()) or number == 0,
            execution=draw(st.booleans()) or number == 0,
        )
        for number in range(draw(st.integers(1, 3)))
    ]


@st.composite
def populations(draw: st.DrawFn) -> dict[str, int]:
    """Draw up to four classes of agents."""
    classes = draw(st.lists(st.sampled_from(AGENT_CLASSES), min_size=1, max_size=4, unique=True))
    if LOG_READER in classes and LOG_WRITER in classes:
        classes.remove(LOG_READER)
    return {name: draw(st.integers(1, 4)) for name in classes}


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Draw a simulation and how to run it."""
    events = ["PriceLimit", "TradingHalt", "FundamentalShock", "OrderMistake", "Tax"]
    return Case(
        settings=make_settings(
            draw(populations()),
            markets=draw(st.integers(1, 3)),
            index=draw(st.booleans()),
            market_makers=draw(st.integers(0, 1)),
            sessions=draw(sessions()),
            events=draw(st.lists(st.sampled_from(events), max_size=3, unique=True)),
            num_parallel=draw(st.integers(1, 5)),
        ),
        seed=draw(st.integers(0, 2**31)),
        codec=draw(st.sampled_from(["pickle", "dill"])),
        threads=draw(st.booleans()),
        splits=draw(st.integers(0, 2**31)),
    )


class RandomlySplitRunner(MultiProcessAgentParallelRunner):
    """Splits every batch at random places, empty chunks included."""

    splitter: random.Random
    before: State | None = None

    def _split_agents_into_chunks(self, agents: list[Agent]) -> list[list[Agent]]:
        if self.before is not None:
            self.before = capture_state(self)
        cuts = sorted(self.splitter.randint(0, len(agents)) for _ in range(self.num_parallel))
        return [
            agents[start:end] for start, end in zip([0, *cuts], [*cuts, len(agents)], strict=True)
        ]


class InlineSplitRunner(RandomlySplitRunner):
    """The same in the calling thread."""

    def _create_executor(self) -> Executor:
        return InlineExecutor()


class ThreadSplitRunner(RandomlySplitRunner):
    """The same in threads."""

    def _create_executor(self) -> Executor:
        return ThreadPoolExecutor(2)


def make_case(case: Case, runner_class: type[RandomlySplitRunner]) -> Any:
    """Return the runner of a case, not run."""
    runner = make_parallel(
        case.settings,
        SAMPLE_CLASSES,
        case.seed,
        codec=case.codec,
        runner_class=runner_class,
        logger=TranscriptLogger(),
    )
    runner.splitter = random.Random(case.splits)
    return runner


def check(case: Case, runner_class: type[RandomlySplitRunner]) -> None:
    """Run a case with both runners and compare."""
    sequential = make_sequential(case.settings, SAMPLE_CLASSES, case.seed, TranscriptLogger())
    sequential.main()
    parallel = make_case(case, runner_class)
    main(parallel)
    assert_same(sequential, parallel)


@given(case=cases())
@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_simulation_is_as_the_sequential_one(case: Case) -> None:
    """Whatever the config, the chunking, the agents and the backend: the same whole state."""
    check(case, ThreadSplitRunner if case.threads else InlineSplitRunner)


@given(case=cases(), start_method=st.sampled_from(["fork", "fork", "forkserver"]))
@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_simulation_in_processes(case: Case, start_method: str) -> None:
    """The same with worker processes."""
    case.settings["simulation"]["startMethod"] = start_method
    check(case, RandomlySplitRunner)


@given(
    errors=st.lists(
        st.sampled_from(
            ["", "own", "value", "none", "generator", "spoof", "exit", "stop", "chained"]
        ),
        min_size=2,
        max_size=7,
    ),
    from_time=st.integers(0, 3),
    max_normal_orders=st.integers(1, 7),
    num_parallel=st.integers(1, 4),
    seed=st.integers(0, 2**31),
    splits=st.integers(0, 2**31),
)
@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_any_failure_is_the_sequential_one(
    errors: list[str],
    from_time: int,
    max_normal_orders: int,
    num_parallel: int,
    seed: int,
    splits: int,
) -> None:
    """Whoever fails in whatever chunks: the error of SequentialRunner, and nothing applied."""
    options = {
        "victims": [number for number, error in enumerate(errors) if error],
        "error": {str(number): error for number, error in enumerate(errors)},
        "fromTime": from_time,
    }
    config = make_settings(
        {"RaisingAgent": len(errors)},
        options=options,
        steps=4,
        max_normal_orders=max_normal_orders,
        num_parallel=num_parallel,
    )
    case = Case(config, seed, "pickle", threads=False, splits=splits)
    sequential = make_sequential(config, SAMPLE_CLASSES, seed, TranscriptLogger())
    parallel = make_case(case, InlineSplitRunner)
    parallel.before = capture_state(parallel)
    try:
        sequential.main()
    except (Exception, SystemExit) as error:
        expected = error
    else:
        main(parallel)
        assert_same(sequential, parallel)
        return
    with pytest.raises(type(expected)) as caught:
        main(parallel)
    assert type(caught.value) is type(expected)
    assert str(caught.value) == str(expected)
    assert vars(caught.value) == vars(expected)
    assert parallel.executor is None
    assert_unchanged(parallel.before, parallel)
