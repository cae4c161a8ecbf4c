from typing import Any

from .base import Logger, MarketStepEndLog

class MarketStepPrintLogger(Logger):
    def process_market_step_end_log(self, log: MarketStepEndLog) -> None: ...

class MarketStepSaver(Logger):
    market_step_logs: list[dict[str, Any]]
    def __init__(self) -> None: ...
    def process_market_step_end_log(self, log: MarketStepEndLog) -> None: ...
