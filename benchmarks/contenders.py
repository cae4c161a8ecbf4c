"""The runners that are compared, each with a clock around what is compared."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import TypeAlias

from pams import Cancel, Order, Session
from pams.runners import MultiProcessAgentParallelRunner as PamsProcessRunner
from pams.runners import MultiThreadAgentParallelRunner as PamsThreadRunner
from pams.runners import SequentialRunner

from pams_parallel import MultiProcessAgentParallelRunner

from .seed_method import SeedMethodRunner

Orders: TypeAlias = list[Order | Cancel]


class TimedRunner(SequentialRunner):
    """Notes the wall time of every collect: asking the normal agents of a step for their orders.

    Attributes:
        collect_seconds: by step.
    """

    collect_seconds: list[float]

    def _setup(self) -> None:
        self.collect_seconds = []
        super()._setup()

    def _collect_orders_from_normal_agents(self, session: Session) -> list[Orders]:
        start = perf_counter()
        orders = super()._collect_orders_from_normal_agents(session)
        self.collect_seconds.append(perf_counter() - start)
        return orders


class TimedSequential(TimedRunner, SequentialRunner): ...


class TimedParallel(TimedRunner, MultiProcessAgentParallelRunner): ...


class TimedSeedMethod(TimedRunner, SeedMethodRunner): ...


class TimedPamsProcesses(TimedRunner, PamsProcessRunner): ...


class TimedPamsThreads(TimedRunner, PamsThreadRunner): ...


@dataclass(frozen=True)
class Contender:
    """A runner with a number of workers.

    Attributes:
        name: how it is called in tables and plots.
        runner_class: the runner.
        workers: its ``numParallel``; 0 for the one that has none.
        once: it takes seconds for a step, and is measured in the first round only.
    """

    name: str
    runner_class: type[TimedRunner]
    workers: int
    once: bool = False

    @property
    def label(self) -> str:
        """Name and number of workers."""
        if self.workers == 0:
            return self.name
        return f"{self.name}, {self.workers} worker{'s' if self.workers > 1 else ''}"


SEQUENTIAL = Contender("sequential", TimedSequential, 0)
OURS_1 = Contender("pams-parallel", TimedParallel, 1)
OURS = Contender("pams-parallel", TimedParallel, 2)
OURS_4 = Contender("pams-parallel", TimedParallel, 4)
SEED_METHOD = Contender("pickle per chunk", TimedSeedMethod, 2)
SEED_METHOD_4 = Contender("pickle per chunk", TimedSeedMethod, 4)
PAMS_PROCESSES = Contender("PAMS, processes", TimedPamsProcesses, 2, once=True)
PAMS_THREADS = Contender("PAMS, threads", TimedPamsThreads, 2)
