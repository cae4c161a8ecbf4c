"""``pams-parallel run``: run a config once."""

from __future__ import annotations

from .._runner import MultiProcessAgentParallelRunner
from ._config import load_job
from ._options import Options
from ._report import file_rows, result_rows, table, time_text, timing_rows, write_run_file
from ._simulate import simulate


def run(options: Options) -> int:
    """Run a config in worker processes, write its records, print a table.

    Returns:
        The exit status.
    """
    job = load_job(options)
    outcome = simulate(job, MultiProcessAgentParallelRunner, "run", options.quiet, options.out)
    if options.out is not None:
        write_run_file(job, outcome, options, options.out)
    rows = [
        *result_rows(job, outcome),
        ("time", time_text(outcome)),
        ("digest", outcome.digest),
        *file_rows(options.out),
    ]
    print(table(rows))
    if options.timing:
        print()
        print(table(timing_rows(outcome)))
    return 0
