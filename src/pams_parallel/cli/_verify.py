"""``pams-parallel verify``: run a config twice and compare."""

from __future__ import annotations

from pams.runners import SequentialRunner

from .._runner import MultiProcessAgentParallelRunner
from .._state import first_difference
from ._config import load_job
from ._options import Options
from ._report import file_rows, result_rows, table, time_text, write_run_file
from ._simulate import simulate


def verify(options: Options) -> int:
    """Run a config in worker processes and sequentially, and compare the whole state.

    Returns:
        The exit status: 1 when the states differ.
    """
    job = load_job(options)
    # ours first: what is wrong with its settings shows before anything has run
    parallel = simulate(
        job, MultiProcessAgentParallelRunner, "parallel", options.quiet, options.out
    )
    sequential = simulate(job, SequentialRunner, "sequential", options.quiet)
    if options.out is not None:
        write_run_file(job, parallel, options, options.out)
    difference = first_difference(sequential.state, parallel.state)
    if difference is None:
        print("identical")
        digests = [("digest", parallel.digest)]
    else:
        print(f"different\n{difference}")
        digests = [("seq. digest", sequential.digest), ("par. digest", parallel.digest)]
    ratio = sequential.seconds / parallel.seconds
    rows = [
        *result_rows(job, parallel),
        ("sequential", time_text(sequential)),
        ("parallel", time_text(parallel)),
        ("speed ratio", f"{ratio:.2f} (sequential time / parallel time)"),
        *digests,
        *(file_rows(options.out) if options.out is not None else []),
    ]
    print(table(rows))
    return 0 if difference is None else 1
