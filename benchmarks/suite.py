"""Everything that is measured, and with how much patience."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from .contenders import (
    OURS,
    OURS_1,
    OURS_4,
    PAMS_PROCESSES,
    PAMS_THREADS,
    SEED_METHOD,
    SEED_METHOD_4,
    SEQUENTIAL,
    Contender,
)
from .measure import Comparison, compare
from .memory import MemoryReport, measure_memory
from .sweep import Sweep, measure_sweep
from .workloads import (
    HEAVY_ALL,
    HEAVY_BATCH,
    IDLE,
    LIGHT_ALL,
    LONG,
    MANY,
    MEMORY_GROWTH,
    MEMORY_SIZE,
    REMEMBERING,
    Workload,
)

MIN_STEPS: Final = 5
"""Two to warm up, and three for a median."""

SEED_TASK_BYTES: Final = (2_000_000, 8_000_000)
"""A task of the seed's method for 1,000 FCN agents is about 4 MB."""

EARLY: Final = (150, 250)
LATE: Final = (1050, 1150)
"""Steps around 200 and around 1100."""

COMPARED: Final[Mapping[Workload, Mapping[Contender, int]]] = {
    IDLE: {
        SEQUENTIAL: 30,
        OURS: 30,
        SEED_METHOD: 8,
        OURS_1: 30,
        OURS_4: 30,
        SEED_METHOD_4: 5,
        PAMS_THREADS: 30,
        PAMS_PROCESSES: 5,
    },
    REMEMBERING: {SEQUENTIAL: 30, OURS: 30, SEED_METHOD: 8},
    MANY: {SEQUENTIAL: 12, OURS: 12, SEED_METHOD: 5},
    HEAVY_ALL: {
        SEQUENTIAL: 8,
        OURS: 8,
        SEED_METHOD: 8,
        OURS_1: 8,
        PAMS_THREADS: 5,
        PAMS_PROCESSES: 5,
    },
    HEAVY_BATCH: {SEQUENTIAL: 10, OURS: 10, SEED_METHOD: 8},
    LIGHT_ALL: {SEQUENTIAL: 12, OURS: 12, SEED_METHOD: 8, OURS_1: 12, PAMS_THREADS: 8},
}
"""Steps of each contender. PAMS's process runner is left out where a step takes it minutes."""


ONE_ROUND: Final = (MANY,)
"""A step of the baseline takes seconds, and its ratio to ours is far from any bound."""


@dataclass(frozen=True)
class Effort:
    """How much time to spend.

    Attributes:
        rounds: how often each contender runs, with few exceptions.
        share: of the steps.
        patient: whether runners that take seconds for a step are measured.
        size_steps: steps of many agents, for the memory.
        growth_steps: steps over which the memory must not grow.
        sizes: amounts of work of the plot: paths, and steps of each.
    """

    rounds: int
    share: float
    patient: bool
    size_steps: int
    growth_steps: int
    sizes: tuple[int, ...]


FULL: Final = Effort(3, 1.0, True, 30, 2000, (1, 3, 6, 10, 18, 32, 56, 100, 178, 256))
QUICK: Final = Effort(1, 0.4, False, 8, 300, (1, 10, 32, 100, 178))


@dataclass(frozen=True)
class Results:
    """All that was measured.

    Attributes:
        effort: how much time was spent.
        comparisons: by workload.
        long: the one over many steps.
        sweep: collect time against work per decision.
        memory_size: of a worker against the simulation.
        memory_growth: of a worker over many steps.
    """

    effort: Effort
    comparisons: Mapping[Workload, Comparison]
    long: Comparison
    sweep: Sweep
    memory_size: MemoryReport
    memory_growth: MemoryReport


def measure_all(effort: Effort, say: Callable[[str], None]) -> Results:
    """Measure everything.

    Args:
        effort: how much time to spend.
        say: is told what is measured.

    Raises:
        RuntimeError: what was measured is not what it should be.
    """
    comparisons = {
        workload: compare(
            workload,
            _steps(wanted, effort),
            1 if workload in ONE_ROUND else effort.rounds,
            say,
        )
        for workload, wanted in COMPARED.items()
    }
    _check_seed_method(comparisons[IDLE])
    return Results(
        effort=effort,
        comparisons=comparisons,
        long=compare(LONG, {OURS: LATE[1]}, say=say),
        sweep=measure_sweep(effort.sizes, effort.patient, say),
        memory_size=measure_memory(MEMORY_SIZE, effort.size_steps, 2, say),
        memory_growth=measure_memory(MEMORY_GROWTH, effort.growth_steps, 50, say),
    )


def _steps(wanted: Mapping[Contender, int], effort: Effort) -> dict[Contender, int]:
    return {
        contender: max(MIN_STEPS, round(steps * effort.share))
        for contender, steps in wanted.items()
        if effort.patient or not contender.once
    }


def _check_seed_method(idle: Comparison) -> None:
    """Check that the baseline is the one that the targets speak of."""
    found = idle[SEED_METHOD].task_bytes or 0
    least, most = SEED_TASK_BYTES
    if not least <= found <= most:
        raise RuntimeError(
            f"a task of the seed's method has {found:,} bytes, which should be about 4,000,000: "
            "this is not the baseline that the targets are about"
        )
