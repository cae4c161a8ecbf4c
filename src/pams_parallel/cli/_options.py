"""What the user typed, as one typed object."""

from __future__ import annotations

import argparse
import multiprocessing
import platform
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import NoReturn

PROGRAM = "pams-parallel"

_EPILOG = """\
Exit status: 0 done (verify: identical), 1 the simulation failed or the results differ, 2 bad
arguments or a bad config, 130 interrupted.
"""


@dataclass(frozen=True, slots=True)
class Options:
    """The arguments of a command; None where the user said nothing.

    Attributes:
        command: ``run``, ``verify`` or ``bench``.
        config: the config file; None for the example.
        seed: seed of the runner's generator.
        workers: number of worker processes, instead of ``simulation.numParallel``.
        start_method: instead of ``simulation.startMethod``.
        codec: instead of ``simulation.codec``.
        classes: own classes, as ``MODULE:CLASS``.
        out: folder for the results.
        timing: show where the time went.
        quiet: no progress bar.
        traceback: show where an error came from.
    """

    command: str
    config: Path | None
    seed: int | None
    workers: int | None
    start_method: str | None
    codec: str | None
    classes: tuple[str, ...]
    out: Path | None
    timing: bool
    quiet: bool
    traceback: bool


class _Parser(argparse.ArgumentParser):
    """Reports a mistake in one line, like every other error of the command."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{PROGRAM}: error: {message} (see {self.prog} --help)\n")


def parse(argv: Sequence[str] | None) -> Options:
    """Return the options.

    Args:
        argv: arguments without the program's name; None for those of this process.

    Raises:
        SystemExit: with status 0 after ``--help`` and ``--version``, 2 after a mistake.
    """
    found = vars(_parser().parse_args(argv))
    return Options(**{**found, "classes": tuple(found["classes"])})


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog=PROGRAM,
        description="Run PAMS simulations with agents in worker processes.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=version_line())
    commands = parser.add_subparsers(dest="command", required=True, metavar="run | verify | bench")
    run = _add_command(commands, "run", "Run a config; write its records with --out.")
    run.add_argument("--timing", action="store_true", help="show where the time went")
    verify = _add_command(
        commands,
        "verify",
        "Run a config here and in worker processes, and compare the whole state of both.",
    )
    for command in (run, verify):
        command.add_argument(
            "--out",
            metavar="DIR",
            type=Path,
            help="write market_steps.csv, orders.csv, cancels.csv, executions.csv and run.json "
            "here",
        )
    bench = _add_command(
        commands,
        "bench",
        "Run a config sequentially and with 1, 2, ... workers, and compare the times.",
    )
    verify.set_defaults(timing=False)
    bench.set_defaults(timing=False, out=None)
    return parser


def _add_command(
    commands: argparse._SubParsersAction[_Parser], name: str, description: str
) -> _Parser:
    command = commands.add_parser(
        name,
        help=description,
        description=description,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = command.add_argument
    add(
        "config",
        metavar="CONFIG",
        nargs="?",
        type=Path,
        help="PAMS config (JSON), or the run.json of an earlier run to repeat it; "
        "the shipped example when left out",
    )
    workers = "number of workers (simulation.numParallel)"
    if name == "bench":
        workers = (
            "largest number of workers; simulation.numParallel or that of the CPUs when left out"
        )
    add("-s", "--seed", type=int, help="seed; drawn and shown when left out")
    add("-n", "--workers", type=int, help=workers)
    add(
        "--start-method",
        metavar="METHOD",
        help=f"one of {', '.join(multiprocessing.get_all_start_methods())} "
        "(simulation.startMethod)",
    )
    add("--codec", help="pickle or dill (simulation.codec)")
    add(
        "--classes",
        metavar="MODULE:CLASS",
        nargs="+",
        action="extend",
        default=[],
        help="own classes that the config names, from modules of the current folder",
    )
    add("--quiet", action="store_true", help="no progress bar")
    add("--traceback", action="store_true", help="after an error, show where it came from")
    return command


def version_line() -> str:
    """Return the versions that matter, in one line."""
    python = platform.python_version()
    return f"{PROGRAM} {version(PROGRAM)} (pams {version('pams')}, Python {python})"
