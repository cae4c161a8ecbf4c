"""What a worker holds, against what the simulation takes.

Both are measured in processes of their own, which have imported everything and run a small
simulation first: memory that an allocator got back from earlier runs would hide what is taken now.

- The simulation: by how much the resident memory of a process grows that builds it and runs it
  sequentially.
- A worker: by how much the memory that it alone holds (its unique set) grows from before its first
  task. Workers are forked, so that imported modules do not blur the picture; but a page that a
  worker shares with main is counted from the moment that it writes to it, so that what it was born
  with is not free.
"""

from __future__ import annotations

import gc
import multiprocessing
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Final, TypeVar

import psutil
from pams import Session
from pams.runners import SequentialRunner

from pams_parallel import MultiProcessAgentParallelRunner

from .contenders import OURS, SEQUENTIAL
from .measure import make_runner, quiet
from .workloads import IDLE, Workload

T = TypeVar("T")

SETTLE_SECONDS: Final = 0.5
"""New processes need a moment before they wait for their first task."""

WARM_UP: Final = replace(IDLE, agents=10, max_normal_orders=5)


@dataclass(frozen=True)
class WorkerMemory:
    """Bytes of one worker at one time.

    Attributes:
        unique: what no other process shares.
        resident: its resident set, with what it shares.
    """

    unique: int
    resident: int


@dataclass(frozen=True)
class MemoryReport:
    """Memory of workers in a run.

    Attributes:
        workload: what was run.
        simulation: bytes of the simulation in a sequential run of as many steps.
        idle: of each worker before its first task.
        samples: step -> of each worker after that step.
    """

    workload: Workload
    simulation: int
    idle: Sequence[WorkerMemory]
    samples: Sequence[tuple[int, Sequence[WorkerMemory]]]

    @property
    def held(self) -> int:
        """The most that a worker has held between two batches, beyond what it began with."""
        start = max(one.unique for one in self.idle)
        return max(one.unique for _, workers in self.samples for one in workers) - start

    @property
    def growth(self) -> int:
        """By how much the workers have grown from a quarter of the run to its end."""
        return self._largest(self.samples[-1]) - self._largest(self._quarter)

    @property
    def growth_from(self) -> int:
        """The step from which the growth counts."""
        return self._quarter[0]

    @property
    def _quarter(self) -> tuple[int, Sequence[WorkerMemory]]:
        return self.samples[max(len(self.samples) // 4 - 1, 0)]

    @staticmethod
    def _largest(sample: tuple[int, Sequence[WorkerMemory]]) -> int:
        return max(one.unique for one in sample[1])


class SampledRunner(MultiProcessAgentParallelRunner):
    """Looks at its workers before the first step, and after every so many.

    Attributes:
        every: after how many steps.
        idle: of each worker before its first task.
        samples: step -> of each worker after that step.
    """

    default_start_method = "fork"
    every: int = 1
    idle: Sequence[WorkerMemory] = ()
    samples: Sequence[tuple[int, Sequence[WorkerMemory]]] = ()

    def _setup(self) -> None:
        super()._setup()
        time.sleep(SETTLE_SECONDS)
        self.idle = look_at_workers()

    def _update_markets(self, session: Session) -> None:
        super()._update_markets(session)
        step = self.simulator.markets[0].get_time() + 1
        if step % self.every == 0:
            self.samples = [*self.samples, (step, look_at_workers())]


def look_at_workers() -> list[WorkerMemory]:
    """Return the memory of the worker processes of this process.

    Python's resource tracker is none of them.
    """
    found: list[WorkerMemory] = []
    for process in psutil.Process().children():
        if "resource_tracker" in " ".join(process.cmdline()):
            continue
        info = process.memory_full_info()
        found.append(WorkerMemory(info.uss, info.rss))
    return found


def measure_memory(
    workload: Workload, steps: int, every: int, say: Callable[[str], None]
) -> MemoryReport:
    """Measure the memory of workers.

    Args:
        workload: what to run.
        steps: how many.
        every: after how many steps to look.
        say: is told what is measured.
    """
    say(f"memory: {workload.name}")
    simulation = _in_fresh_process(_simulation_size, workload, steps)
    runner_idle, samples = _in_fresh_process(_worker_samples, workload, steps, every)
    return MemoryReport(workload, simulation, runner_idle, samples)


def _in_fresh_process(function: Callable[..., T], *args: object) -> T:
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=context) as executor:
        return executor.submit(function, *args).result()


def _simulation_size(workload: Workload, steps: int) -> int:
    """Return by how much this process grows when it runs a simulation sequentially."""
    _warm_up(SequentialRunner, SEQUENTIAL.workers)
    before = psutil.Process().memory_info().rss
    runner = make_runner(workload, SequentialRunner, steps, SEQUENTIAL.workers)
    with quiet():
        runner.main()
    gc.collect()
    return psutil.Process().memory_info().rss - before


def _worker_samples(
    workload: Workload, steps: int, every: int
) -> tuple[Sequence[WorkerMemory], Sequence[tuple[int, Sequence[WorkerMemory]]]]:
    """Run a simulation with workers; return their memory before and during the run."""
    _warm_up(SampledRunner, OURS.workers)
    runner = make_runner(workload, SampledRunner, steps, OURS.workers)
    runner.every = every
    with quiet():
        runner.main()
    return runner.idle, runner.samples


def _warm_up(runner_class: type[SequentialRunner], workers: int) -> None:
    """Import what is imported late, so that it does not count."""
    runner = make_runner(WARM_UP, runner_class, 3, workers)
    with quiet():
        runner.main()
    del runner
    gc.collect()
