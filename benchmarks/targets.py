"""What was aimed for, and whether it is reached. Measures nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from .contenders import OURS, OURS_1, OURS_4, SEED_METHOD, SEQUENTIAL
from .suite import EARLY, LATE, Results
from .units import megabytes
from .workloads import HEAVY_ALL, HEAVY_BATCH, IDLE, LIGHT_ALL, LONG, MANY, REMEMBERING, Workload

MEGABYTE: Final = 1_000_000

GROWTH_TOLERANCE: Final = 2 * MEGABYTE
"""The histories of one market take less over 2,000 steps, and pages come whole."""


@dataclass(frozen=True)
class Target:
    """One target.

    Attributes:
        number: which.
        what: the workload.
        claim: what is measured, and the bound.
        figure: what was measured, as text.
        passed: whether it is within the bound.
    """

    number: str
    what: str
    claim: str
    figure: str
    passed: bool

    @property
    def verdict(self) -> str:
        """One word."""
        return "PASS" if self.passed else "FAIL"


def judge(results: Results) -> list[Target]:
    """Return all targets, in order."""
    return [
        _against_seed_method(results, "1", IDLE, 30),
        _against_seed_method(results, "1, listed", REMEMBERING, 30),
        _speed_up(results, "2, all", HEAVY_ALL, 1.8),
        _speed_up(results, "2, batch", HEAVY_BATCH, 1.75),
        _speed_up(results, "3", LIGHT_ALL, 1.3),
        _flat_in_time(results),
        _flat_bytes_in_time(results),
        _flat_in_workers(results),
        _against_seed_method(results, "6", MANY, 100),
        _memory_size(results),
        _memory_growth(results),
    ]


def _against_seed_method(results: Results, number: str, workload: Workload, least: float) -> Target:
    ratio = results.comparisons[workload].ratio(SEED_METHOD, OURS)
    claim = f"a pickle per chunk takes at least {least:g} times as long"
    return Target(number, workload.name, claim, f"{ratio:.1f}", ratio >= least)


def _speed_up(results: Results, number: str, workload: Workload, least: float) -> Target:
    ratio = results.comparisons[workload].ratio(SEQUENTIAL, OURS)
    claim = f"the sequential runner takes at least {least:g} times as long"
    return Target(number, workload.name, claim, f"{ratio:.2f}", ratio >= least)


def _flat_in_time(results: Results) -> Target:
    measured = results.long[OURS]
    ratio = measured.window(*LATE) / measured.window(*EARLY)
    claim = "a collect around step 1,100 takes at most 1.3 times one around 200"
    return Target("4", LONG.name, claim, f"{ratio:.2f}", ratio <= 1.3)


def _flat_bytes_in_time(results: Results) -> Target:
    measured = results.long[OURS]
    early, late = measured.bytes_window(*EARLY), measured.bytes_window(*LATE)
    claim = "a batch there has at most 1.1 times the bytes"
    return Target("4, bytes", LONG.name, claim, f"{late / early:.2f}", late <= 1.1 * early)


def _flat_in_workers(results: Results) -> Target:
    compared = results.comparisons[IDLE]
    one, four = compared[OURS_1].bytes_per_batch, compared[OURS_4].bytes_per_batch
    claim = "bytes that main encodes for a batch grow by less than 10 % from 1 worker to 4"
    growth = four / one - 1
    figure = f"{growth:+.1%} ({one:,.0f} to {four:,.0f})"
    return Target("5", IDLE.name, claim, figure, growth < 0.1)


def _memory_size(results: Results) -> Target:
    report = results.memory_size
    bound = report.simulation + 20 * MEGABYTE
    figure = f"{megabytes(report.held)} for a simulation of {megabytes(report.simulation)}"
    claim = "a worker holds at most the simulation and 20 MB"
    return Target("7", report.workload.name, claim, figure, report.held <= bound)


def _memory_growth(results: Results) -> Target:
    report = results.memory_growth
    start, end = report.growth_from, report.samples[-1][0]
    claim = (
        f"a worker grows by at most {megabytes(GROWTH_TOLERANCE)} from step {start:,} to {end:,}"
    )
    figure, passed = megabytes(report.growth), report.growth <= GROWTH_TOLERANCE
    return Target("7, growth", report.workload.name, claim, figure, passed)
