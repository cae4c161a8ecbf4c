"""``pams-parallel bench``: how long a config takes, sequentially and with 1, 2, ... workers."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any, Final

from pams.runners import SequentialRunner

from .._runner import MultiProcessAgentParallelRunner
from ._config import Job, load_job
from ._options import Options
from ._report import ParallelOutcome, table
from ._simulate import Outcome, simulate

_PAYS_FROM: Final = 1.05
"""Less than that may be chance."""


@dataclass(frozen=True, slots=True)
class _Line:
    """One run of the comparison.

    Attributes:
        label: what it is called.
        workers: how many there were; 0 for the sequential runner.
        seconds: wall time of its steps.
        digest: of the state at the end.
    """

    label: str
    workers: int
    seconds: float
    digest: str


def bench(options: Options) -> int:
    """Run a config sequentially and with every number of workers up to the one asked for.

    Returns:
        The exit status: 1 when the results differ.
    """
    job = load_job(options)
    largest = job.settings["simulation"].get("numParallel", os.cpu_count() or 1)
    # the largest number first: what is wrong with it, or with the config, shows before all else
    parallel = [_simulate(job, largest, options)]
    for workers in range(parallel[0].runner.num_parallel - 1, 0, -1):
        parallel.insert(0, _simulate(job, workers, options))
    sequential = simulate(job, SequentialRunner, "sequential", options.quiet)
    lines = [
        _line("sequential", 0, sequential),
        *(_line(_label(number), number, one) for number, one in enumerate(parallel, start=1)),
    ]
    print(table([("config", job.source), ("seed", str(job.seed))]))
    print()
    print("\n".join(_rows(lines)))
    print()
    different = [line.label for line in lines if line.digest != sequential.digest]
    if different:
        print(f"The results differ from the sequential ones: {', '.join(different)}.")
        print("pams-parallel verify shows where.")
        return 1
    print(_verdict(lines, parallel))
    return 0


def _simulate(job: Job, workers: object, options: Options) -> ParallelOutcome:
    simulation = {**job.settings["simulation"], "numParallel": workers}
    job = replace(job, settings={**job.settings, "simulation": simulation})
    return simulate(job, MultiProcessAgentParallelRunner, f"{workers} workers", options.quiet)


def _label(workers: int) -> str:
    return f"{workers} worker{'s' if workers > 1 else ''}"


def _line(label: str, workers: int, outcome: Outcome[Any]) -> _Line:
    return _Line(label, workers, outcome.run_seconds, outcome.digest)


def _rows(lines: list[_Line]) -> list[str]:
    rows = [f"{'':<14}{'time':>10}{'speed-up':>11}{'efficiency':>12}"]
    for line in lines:
        row = f"{line.label:<14}{line.seconds:>8.2f} s"
        if line.workers:
            speedup = lines[0].seconds / line.seconds
            row += f"{speedup:>10.2f}x{speedup / line.workers:>11.0%}"
        rows.append(row)
    return rows


def _verdict(lines: list[_Line], parallel: list[ParallelOutcome]) -> str:
    """Return in a sentence whether workers pay off, and in a second one why."""
    best = min(lines[1:], key=lambda line: line.seconds)
    ratio = lines[0].seconds / best.seconds
    if ratio >= _PAYS_FROM:
        first = f"It pays off: with {best.label} the run is {ratio:.2f} times as fast."
    else:
        first = "It does not pay off: the sequential runner is as fast or faster."
    stats = parallel[0].runner.stats
    total, batches = stats.total, stats.num_batches
    if batches == 0 or total.agents == 0:
        return f"{first}\nNo agent was asked in a worker."
    decision = total.ask_seconds / total.agents
    around = (total.seconds - total.ask_seconds) / batches
    return (
        f"{first}\nAn agent takes {_time(decision)} to decide, and {total.agents / batches:.0f} "
        f"are asked at a time;\nwhat goes on around them takes {_time(around)} each time."
    )


def _time(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms" if seconds >= 1e-4 else f"{seconds * 1e6:.0f} us"
