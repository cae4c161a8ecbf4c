"""The CSV files of a run."""

from __future__ import annotations

import csv
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path
from typing import Final, Protocol, TextIO

from pams.logs import CancelLog, ExecutionLog, Log, MarketStepEndLog, OrderLog

from ._errors import CliError

RUN_FILE: Final = "run.json"

MARKET_STEP_COLUMNS: Final = (
    "session_id",
    "market_time",
    "market_id",
    "market_name",
    "market_price",
    "fundamental_price",
)
"""As PAMS's own ``MarketStepSaver`` names them."""

_ORDER: Final = ("order_id", "market_id", "time", "agent_id", "is_buy", "kind", "price", "volume")

FILES: Final[dict[str, tuple[type[Log], tuple[str, ...]]]] = {
    "market_steps.csv": (MarketStepEndLog, MARKET_STEP_COLUMNS),
    "orders.csv": (OrderLog, (*_ORDER, "ttl")),
    "cancels.csv": (
        CancelLog,
        (
            "order_id",
            "market_id",
            "cancel_time",
            "order_time",
            "agent_id",
            "is_buy",
            "kind",
            "price",
            "volume",
            "ttl",
        ),
    ),
    "executions.csv": (
        ExecutionLog,
        (
            "market_id",
            "time",
            "buy_agent_id",
            "sell_agent_id",
            "buy_order_id",
            "sell_order_id",
            "price",
            "volume",
        ),
    ),
}
"""File name -> the class of its logs, and its columns: the names of the log's attributes."""


class _Writer(Protocol):
    def writerow(self, row: Iterable[object], /) -> object: ...


class Tables:
    """Writes the records of a run as they come, into one file per kind of log.

    A ``run.json`` of an earlier run is removed first: its presence says that the run has ended.

    Args:
        folder: where to write; made when it does not exist.

    Raises:
        CliError: the folder or a file cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._stack = ExitStack()
        self._tables: list[tuple[type[Log], tuple[str, ...], _Writer]] = []
        try:
            folder.mkdir(parents=True, exist_ok=True)
            (folder / RUN_FILE).unlink(missing_ok=True)
            for name, (log_class, columns) in FILES.items():
                self._open(folder / name, log_class, columns)
        except OSError as error:
            self.close()
            raise self._error(error) from error

    def write(self, log: Log) -> None:
        """Write a row, if the log is of a kind that has a file."""
        for log_class, columns, writer in self._tables:
            if isinstance(log, log_class):
                writer.writerow(row(log, columns))
                return

    def close(self) -> None:
        """Close the files.

        Raises:
            CliError: the last rows could not be written.
        """
        try:
            self._stack.close()
        except OSError as error:
            raise self._error(error, status=1) from error

    def _error(self, error: OSError, status: int = 2) -> CliError:
        return CliError(f"--out {self._folder}: {error.strerror or error}", status)

    def _open(self, path: Path, log_class: type[Log], columns: tuple[str, ...]) -> None:
        file: TextIO = self._stack.enter_context(path.open("w", encoding="utf-8", newline=""))
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        self._tables.append((log_class, columns, writer))


def row(log: Log, columns: tuple[str, ...]) -> list[object]:
    """Return the values of a log; of a market step, those of the market at this moment."""
    if isinstance(log, MarketStepEndLog):
        market = log.market
        return [
            log.session.session_id,
            market.get_time(),
            market.market_id,
            market.name,
            market.get_market_price(),
            market.get_fundamental_price(),
        ]
    return [getattr(log, column) for column in columns]
