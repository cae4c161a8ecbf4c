"""The logger of the command line: counts, shows progress, writes tables."""

from __future__ import annotations

from typing import Any

from pams.logs import CancelLog, ExecutionLog, Log, MarketStepEndLog, OrderLog

from .._state import RecordingLogger
from ._tables import Tables
from ._terminal import Progress


class Recorder(RecordingLogger):
    """Records a run.

    Attributes:
        steps: steps that have ended.
        orders: orders that markets accepted.
        cancels: cancels that markets accepted.
        executions: executions.
        tables: where records are written as well, if anywhere.
        progress: what shows the steps, once their number is known.
    """

    def __init__(self, tables: Tables | None = None) -> None:
        super().__init__()
        self.steps = self.orders = self.cancels = self.executions = 0
        self.tables = tables
        self.progress: Progress | None = None
        self._market_steps = 0

    def record(self, call: str, log: Log) -> None:
        """Record a log and count it."""
        super().record(call, log)
        if isinstance(log, OrderLog):
            self.orders += 1
        elif isinstance(log, CancelLog):
            self.cancels += 1
        elif isinstance(log, ExecutionLog):
            self.executions += 1
        elif isinstance(log, MarketStepEndLog):
            self._count_market_step(log)
        if self.tables is not None:
            self.tables.write(log)

    def process(self, logs: list[Log]) -> None:
        """Do nothing more: logs of users' own classes, which PAMS's logger refuses, are welcome."""

    def __getstate__(self) -> dict[str, Any]:
        """Leave files and terminal behind: users copy simulations, and the logger with them."""
        return {**vars(self), "tables": None, "progress": None}

    def _count_market_step(self, log: MarketStepEndLog) -> None:
        self._market_steps += 1
        if self._market_steps % len(log.simulator.markets) == 0:
            self.steps += 1
            if self.progress is not None:
                self.progress.step()
