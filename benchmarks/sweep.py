"""Collect time against work per decision, and where a runner begins to pay off."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import exp, log
from typing import Final

from .contenders import OURS, PAMS_PROCESSES, SEED_METHOD, SEQUENTIAL, Contender
from .measure import compare
from .workloads import at_size

CHEAP_SIZE: Final = 32
"""Up to here a step takes less than 50 ms, and more of them are run."""

PATIENT_SIZES: Final = (1, 256)
"""Where PAMS's process runner is measured: pickling is all of its time, and is the same."""


@dataclass(frozen=True)
class Point:
    """One amount of work.

    Attributes:
        size: number of paths, and of steps of each.
        decision: seconds of one decision, measured in the sequential runner.
        collects: seconds of a collect.
    """

    size: int
    decision: float
    collects: Mapping[Contender, float]


@dataclass(frozen=True)
class BreakEven:
    """From where on a runner is faster than the sequential one.

    Attributes:
        decision: seconds of one decision.
        collect: seconds of a collect there.
        exact: False if it is faster at the least work that was measured, and maybe below.
    """

    decision: float
    collect: float
    exact: bool


@dataclass(frozen=True)
class Sweep:
    """Collect times by work.

    Attributes:
        asked: agents asked in a step.
        agents: agents of the simulation.
        points: by rising work.
    """

    asked: int
    agents: int
    points: Sequence[Point]

    @property
    def contenders(self) -> list[Contender]:
        """All that were measured, each once."""
        return list(dict.fromkeys(one for point in self.points for one in point.collects))

    def line(self, contender: Contender) -> list[tuple[float, float]]:
        """Return seconds of a decision and of a collect, where the contender was measured."""
        return [
            (point.decision, point.collects[contender])
            for point in self.points
            if contender in point.collects
        ]

    def break_even(self, contender: Contender) -> BreakEven | None:
        """Return from where on the contender is faster; None if not within the sweep.

        Between two measured points both runners are taken for straight lines on the logarithmic
        scales of the plot.
        """
        measured = [
            (point.decision, point.collects[contender], point.collects[SEQUENTIAL])
            for point in self.points
            if contender in point.collects
        ]
        if not measured or measured[-1][1] >= measured[-1][2]:
            return None
        for left, right in reversed(list(pairwise(measured))):
            lag, lead = log(left[1] / left[2]), log(right[2] / right[1])
            if lag >= 0:
                share = lag / (lag + lead)
                return BreakEven(
                    _between(left[0], right[0], share), _between(left[1], right[1], share), True
                )
        return BreakEven(measured[0][0], measured[0][1], False)


def measure_sweep(sizes: Sequence[int], patient: bool, say: Callable[[str], None]) -> Sweep:
    """Measure the runners at several amounts of work.

    Args:
        sizes: numbers of paths, and of steps of each.
        patient: whether PAMS's process runner is measured too.
        say: is told what is measured.
    """
    points: list[Point] = []
    for size in sizes:
        workload = at_size(size)
        count = 16 if size <= CHEAP_SIZE else 8
        steps = {SEQUENTIAL: count, OURS: count, SEED_METHOD: 6}
        if patient and size in PATIENT_SIZES:
            steps[PAMS_PROCESSES] = 4
        compared = compare(workload, steps, say=say)
        collects = {one: found.seconds for one, found in compared.measurements.items()}
        points.append(Point(size, compared.decision, collects))
    return Sweep(workload.asked, workload.agents, points)


def _between(left: float, right: float, share: float) -> float:
    return exp(log(left) + share * (log(right) - log(left)))
