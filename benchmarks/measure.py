"""How a figure comes about.

All contenders of a workload run in this process, one after another, round by round, so that a slow
minute of the machine hits them all. The same seed gives all of them the same simulation; that they
arrive at the same prices is checked. A figure is the median of a contender's steps over all rounds,
the first two steps of each left out: workers start in them, and get what they keep.
"""

from __future__ import annotations

import gc
import io
import random
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout
from dataclasses import dataclass, field
from itertools import pairwise
from statistics import median
from time import perf_counter
from typing import Final, TypeVar

import pams.agents
from pams.logs import MarketStepSaver
from pams.runners import SequentialRunner

from pams_parallel import MultiProcessAgentParallelRunner

from .contenders import SEQUENTIAL, Contender, TimedRunner
from .seed_method import SeedMethodRunner
from .workloads import Workload

RunnerT = TypeVar("RunnerT", bound=SequentialRunner)

SEED: Final = 42
WARM_UP_STEPS: Final = 2
DECISIONS: Final = 40


@dataclass
class Measurement:
    """What a contender took for a workload.

    Attributes:
        rounds: seconds of each collect, by round and step.
        batch_bytes: bytes that main encoded for each batch of the last round; empty for those that
            do not count them.
        task_bytes: the largest task of the last round, where the contender is the seed's method.
        decisions: seconds of single decisions, asked after the run, in the sequential runner.
    """

    rounds: list[list[float]] = field(default_factory=list)
    batch_bytes: list[int] = field(default_factory=list)
    task_bytes: int | None = None
    decisions: list[float] = field(default_factory=list)

    @property
    def seconds(self) -> float:
        """The median collect."""
        return median(one for steps in self.rounds for one in steps[WARM_UP_STEPS:])

    @property
    def bytes_per_batch(self) -> float:
        """The median bytes that main encoded for a batch."""
        return median(self.batch_bytes[WARM_UP_STEPS:])

    def window(self, start: int, stop: int) -> float:
        """Return the median collect of some steps."""
        return median(one for steps in self.rounds for one in steps[start:stop])

    def bytes_window(self, start: int, stop: int) -> float:
        """Return the median bytes of the batches of some steps, if a step is one batch."""
        return median(self.batch_bytes[start:stop])


@dataclass(frozen=True)
class Comparison:
    """What the contenders took for one workload."""

    workload: Workload
    measurements: Mapping[Contender, Measurement]

    def __getitem__(self, contender: Contender) -> Measurement:
        return self.measurements[contender]

    def ratio(self, slow: Contender, fast: Contender) -> float:
        """Return how many times as long one takes as the other."""
        return self[slow].seconds / self[fast].seconds

    @property
    def decision(self) -> float:
        """The median seconds of one decision."""
        return median(self[SEQUENTIAL].decisions)


def compare(
    workload: Workload,
    steps: Mapping[Contender, int],
    rounds: int = 1,
    say: Callable[[str], None] = lambda text: None,
) -> Comparison:
    """Measure contenders on a workload.

    Args:
        workload: what they run.
        steps: how many steps each of them runs.
        rounds: how often each of them runs.
        say: is told what is measured.

    Raises:
        RuntimeError: two contenders did not arrive at the same prices.
    """
    measurements = {contender: Measurement() for contender in steps}
    prices: dict[Contender, list[float]] = {}
    for number in range(rounds):
        for contender, count in steps.items():
            if contender.once and number > 0:
                continue
            say(f"{workload.name}: {contender.label}")
            runner = run(workload, contender, count)
            _note(measurements[contender], runner)
            prices[contender] = runner.simulator.markets[0].get_market_prices(range(count))
            if contender == SEQUENTIAL:
                measurements[contender].decisions += _decision_seconds(runner)
    _check_same_prices(workload, prices)
    return Comparison(workload, measurements)


def run(workload: Workload, contender: Contender, steps: int) -> TimedRunner:
    """Run a simulation to its end; return the finished runner."""
    # what earlier runs left behind would be copied into workers, and be collected under the clock
    gc.collect()
    runner = make_runner(workload, contender.runner_class, steps, contender.workers)
    with quiet():
        runner.main()
    return runner


def make_runner(
    workload: Workload, runner_class: type[RunnerT], steps: int, workers: int
) -> RunnerT:
    """Return a runner that knows the agents of a workload."""
    with quiet():
        runner = runner_class(
            workload.settings(steps, workers),
            random.Random(SEED),
            MarketStepSaver() if workload.saves_steps else None,
        )
    if workload.agent_class not in vars(pams.agents).values():  # PAMS finds its own
        runner.class_register(workload.agent_class)
    return runner


@contextmanager
def quiet() -> Iterator[None]:
    """Do not show the times that PAMS prints, nor what is warned of at every run or order."""
    with warnings.catch_warnings(), redirect_stdout(io.StringIO()):
        for message in (
            ".*is experimental",
            ".*is set to a larger value",
            "order price does not accord to the tick size",
        ):
            warnings.filterwarnings("ignore", message, UserWarning)
        yield


def _note(measurement: Measurement, runner: TimedRunner) -> None:
    measurement.rounds.append(runner.collect_seconds)
    if isinstance(runner, SeedMethodRunner):
        measurement.batch_bytes = [sum(sizes) for sizes in runner.task_sizes]
        measurement.task_bytes = max(max(sizes) for sizes in runner.task_sizes)
    elif isinstance(runner, MultiProcessAgentParallelRunner):
        measurement.batch_bytes = [batch.encoded_bytes for batch in runner.stats.batches]


def _decision_seconds(runner: TimedRunner) -> list[float]:
    """Return how long agents take to decide.

    A collect divided by the agents asked would not tell: it holds the shuffling of all agents,
    which takes longer than 50 light decisions.
    """
    markets = runner.simulator.markets
    seconds: list[float] = []
    for agent in runner.simulator.normal_frequency_agents[:DECISIONS]:
        start = perf_counter()
        agent.submit_orders(markets)
        seconds.append(perf_counter() - start)
    return seconds


def _check_same_prices(workload: Workload, prices: Mapping[Contender, list[float]]) -> None:
    for (one, left), (other, right) in pairwise(prices.items()):
        common = min(len(left), len(right))
        if left[:common] != right[:common]:
            raise RuntimeError(f"{workload.name}: {one.label} and {other.label} differ in prices")
