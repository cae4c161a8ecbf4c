"""What the command shows while it works: a progress bar, warnings and errors, all on stderr."""

from __future__ import annotations

import sys
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tqdm import tqdm

from ._options import PROGRAM

if TYPE_CHECKING:
    _Tqdm = tqdm[Any]
else:
    _Tqdm = tqdm


class Progress:
    """Counts steps on stderr; does nothing when that is no terminal.

    Args:
        label: stands before the bar.
        total: number of steps.
        quiet: never show it.
    """

    def __init__(self, label: str, total: int, quiet: bool) -> None:
        self._bar: _Bar | None = None
        if not quiet and sys.stderr.isatty():
            self._bar = _Bar(desc=label, total=total, unit="step", leave=False)

    def step(self) -> None:
        """Count one step."""
        if self._bar is not None:
            self._bar.update()

    def close(self) -> None:
        """Take the bar away."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None


class _Bar(_Tqdm):
    # a watching thread would live in the process that forks the workers
    monitor_interval = 0


# tqdm's own lock is one for processes: to make it would settle the start method of multiprocessing
_Bar.set_lock(threading.RLock())


def report(message: str) -> None:
    """Write one line about the command to stderr, above a bar that is there."""
    _Bar.write(f"{PROGRAM}: {' '.join(message.split())}", file=sys.stderr)


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Show warnings as lines of the command, without the source line that caused them."""
    with warnings.catch_warnings():
        # who types the command has chosen the experimental runner
        warnings.filterwarnings(
            "ignore", r"MultiProcessAgentParallelRunner is experimental", UserWarning
        )
        warnings.showwarning = _show_warning
        yield


def _show_warning(message: Warning | str, *_: object, **__: object) -> None:
    report(f"warning: {message}")
