"""The results as text: lines for a terminal, and the page of the documentation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from .contenders import OURS, SEQUENTIAL, Contender
from .machine import describe_machine
from .measure import Comparison
from .memory import MemoryReport
from .suite import EARLY, LATE, Results
from .sweep import Sweep
from .targets import Target, judge
from .units import factor, kilobytes, megabytes, milliseconds

PICTURE: Final = "benchmarks.svg"

INTRODUCTION: Final = """\
# Benchmarks

<!-- written by the benchmarks: change those, not this page -->

What the runner costs, and from where on it pays off. This page is written by `make bench`.

A *collect* is what a step spends on asking the normal agents for their orders. It is all that the
runner makes parallel: handling the orders is PAMS's part, the same in every runner, and not counted
here.

The runners:

- *sequential*: PAMS's `SequentialRunner`;
- *pams-parallel*: `MultiProcessAgentParallelRunner`;
- *pickle per chunk*: the plain way to do it, as a baseline. Agents and markets, and hence all that
  they refer to, are pickled for each chunk; orders and states of generators come back;
- *PAMS, processes* and *PAMS, threads*: the parallel runners of PAMS. The first pickles the whole
  simulation for each agent that is asked.
"""

METHOD: Final = """\
## Method

- All runners of a table run in one process, one after another, in {rounds}. All get the same
  seed, and it is checked that all arrive at the same prices.
- A figure is the median over the steps of all rounds. The first two steps of each are left out:
  workers start in them, and get what they keep. PAMS's process runner takes seconds for a step: it
  runs in one round only, and where a step would take it minutes, not at all. 10,000 agents and the
  plot are measured in one round.
- Wall time, from the call of `_collect_orders_from_normal_agents` to its end. Shuffling the agents,
  which every runner must do, is part of it: 10,000 take some milliseconds.
- *FCN agents* are PAMS's `FCNAgent`, which decides within microseconds. *NxN steps* are agents
  that simulate N price paths of N steps in Python before they decide. The time per decision is
  that of single calls of `submit_orders`, after a run of the sequential runner.
- Steps {early} and {late} stand for 200 and 1,100 in the target about time.
- Bytes are those that the main process encodes for a batch, for all workers together.
- Memory is measured in processes of their own. A simulation is what a process grows by that runs it
  sequentially. A worker is what it holds and shares with no other process, between two batches,
  beyond what it held before its first task. The workers are forked: the modules that main has
  imported are not copied.
"""


def target_lines(targets: Iterable[Target]) -> str:
    """Return the targets for a terminal."""
    return "\n".join(
        f"{one.verdict:<8}{one.number:<10} {one.claim}: {one.figure}  ({one.what})"
        for one in targets
    )


def page(results: Results) -> str:
    """Return the page of the documentation."""
    return "\n".join(
        [
            INTRODUCTION,
            *_when_it_pays_off(results.sweep),
            *_targets(judge(results)),
            "## The workloads\n",
            *(line for one in results.comparisons.values() for line in _comparison(one)),
            *_memory([results.memory_size, results.memory_growth]),
            _method(results),
            "## Machine\n",
            *_table(("", ""), describe_machine()),
        ]
    )


def _when_it_pays_off(sweep: Sweep) -> list[str]:
    text = (
        f"The plot has {sweep.agents:,} agents, of which {sweep.asked} are asked in a step. It "
        "shows how long a\ncollect takes, by how long a single agent takes to decide. A ring marks "
        "the break-even point: from\nthere on a runner is faster than the sequential one."
    )
    decisions = [
        (
            contender.label,
            _break_even(sweep, contender),
            factor(max(_speed_ups(sweep, contender))),
        )
        for contender in sweep.contenders
        if contender != SEQUENTIAL
    ]
    return [
        "## When it pays off\n",
        text + "\n",
        f"![Collect time against work per decision]({PICTURE})\n",
        *_table(("runner", "faster than sequential", "best speed-up"), decisions),
        *_sweep_table(sweep),
    ]


def _speed_ups(sweep: Sweep, contender: Contender) -> list[float]:
    """Return how many times as long the sequential runner takes, wherever both were measured."""
    sequential = dict(sweep.line(SEQUENTIAL))
    return [sequential[decision] / collect for decision, collect in sweep.line(contender)]


def _break_even(sweep: Sweep, contender: Contender) -> str:
    found = sweep.break_even(contender)
    if found is None:
        return f"not up to {milliseconds(sweep.points[-1].decision)} per decision"
    if not found.exact:
        return f"already at {milliseconds(found.decision)} per decision"
    return f"from {milliseconds(found.decision)} per decision"


def _sweep_table(sweep: Sweep) -> list[str]:
    header = ("work", "per decision", *(one.label for one in sweep.contenders))
    rows = [
        (
            f"{point.size}x{point.size} steps",
            milliseconds(point.decision),
            *(
                milliseconds(point.collects[one]) if one in point.collects else "-"
                for one in sweep.contenders
            ),
        )
        for point in sweep.points
    ]
    return _table(header, rows)


def _targets(targets: Sequence[Target]) -> list[str]:
    rows = [(one.number, one.what, one.claim, one.figure, one.verdict) for one in targets]
    return [
        "## Targets\n",
        f"All with {OURS.workers} workers, unless something else is said.\n",
        *_table(("", "workload", "target", "measured", ""), rows),
    ]


def _comparison(comparison: Comparison) -> list[str]:
    sequential = comparison[SEQUENTIAL].seconds
    rows = [
        (
            contender.label,
            milliseconds(measured.seconds),
            factor(sequential / measured.seconds),
            kilobytes(measured.bytes_per_batch) if measured.batch_bytes else "-",
        )
        for contender, measured in comparison.measurements.items()
    ]
    work = milliseconds(comparison.decision)
    name = comparison.workload.name
    return [
        f"### {name[0].upper()}{name[1:]}\n",
        f"A decision takes {work}.\n",
        *_table(("runner", "collect", "speed-up", "encoded for a batch"), rows),
    ]


def _memory(reports: Iterable[MemoryReport]) -> list[str]:
    rows = [
        (
            report.workload.name,
            megabytes(report.simulation),
            megabytes(report.held),
            f"{megabytes(report.growth)} after step {report.growth_from:,}",
            megabytes(max(one.resident for one in report.samples[-1][1])),
        )
        for report in reports
    ]
    header = ("workload", "simulation", "worker, at most", "growth", "worker, resident set")
    return ["## Memory\n", *_table(header, rows)]


def _method(results: Results) -> str:
    rounds = results.effort.rounds
    return METHOD.format(
        rounds="one round" if rounds == 1 else f"{rounds} rounds",
        early=f"{EARLY[0]} to {EARLY[1]}",
        late=f"{LATE[0]:,} to {LATE[1]:,}",
    )


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """Return a table, and an empty line."""
    lines = [header, ["---"] * len(header), *rows]
    return [*("| " + " | ".join(cells) + " |" for cells in lines), ""]
