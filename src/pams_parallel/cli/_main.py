"""The entry point: from arguments to an exit status, without tracebacks."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence

from ._bench import bench
from ._errors import CliError
from ._options import Options, parse
from ._run import run
from ._terminal import report, warnings_as_lines
from ._verify import verify

_COMMANDS: dict[str, Callable[[Options], int]] = {"run": run, "verify": verify, "bench": bench}
_INTERRUPTED = 130


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command ``pams-parallel``.

    Args:
        argv: arguments without the program's name; None for those of this process.

    Returns:
        The exit status: 0 done, 1 the simulation failed or its results differ, 2 bad input,
        130 interrupted.
    """
    try:
        options = parse(argv)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    with warnings_as_lines():
        try:
            return _COMMANDS[options.command](options)
        except CliError as error:
            if options.traceback and error.__cause__ is not None:
                traceback.print_exception(error.__cause__)
            report(f"error: {error.text}")
            return error.status
        except KeyboardInterrupt:
            report("interrupted")
            return _INTERRUPTED
