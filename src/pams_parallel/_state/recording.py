"""A logger that keeps everything written to it as text, at the moment of writing."""

from __future__ import annotations

from pams import Market, Session, Simulator
from pams.logs import Log, Logger, MarketStepBeginLog, MarketStepEndLog

from .leaves import class_name, leaf_text
from .names import Names
from .plain import Describer
from .tree import one_line


class RecordingLogger(Logger):
    """Records every log, in the order of the calls, with the call that brought it.

    As text and at once: a log of a market step refers to the market, which has moved on when the
    run has ended. Otherwise it does what PAMS's logger does.

    Attributes:
        records: one line per log.
    """

    def __init__(self) -> None:
        super().__init__()
        self.records: list[str] = []

    def write(self, log: Log) -> None:
        """Record a log and keep it pending."""
        self.record("write", log)
        super().write(log)

    def bulk_write(self, logs: list[Log]) -> None:
        """Record some logs and keep them pending."""
        self._record_all("bulk_write", logs)
        super().bulk_write(logs)

    def write_and_direct_process(self, log: Log) -> None:
        """Record a log and process it."""
        self.record("write_and_direct_process", log)
        super().write_and_direct_process(log)

    def bulk_write_and_direct_process(self, logs: list[Log]) -> None:
        """Record some logs and process them."""
        self._record_all("bulk_write_and_direct_process", logs)
        super().bulk_write_and_direct_process(logs)

    def record(self, call: str, log: Log) -> None:
        """Record one log; subclasses add what they do with each.

        Args:
            call: name of the logger's method that was called.
            log: the log that it was given.
        """
        self.records.append(f"{call}: {self._text(log)}")

    def _record_all(self, call: str, logs: list[Log]) -> None:
        for number, log in enumerate(logs):
            self.record(f"{call} ({number + 1} of {len(logs)})", log)

    def _text(self, log: Log) -> str:
        simulator: Simulator | None = getattr(self, "simulator", None)
        fields = []
        for name, value in sorted(vars(log).items()):
            text = leaf_text(value) or _reference(value, simulator)
            if text is None:
                return self._rare_text(log, simulator)
            fields.append(f"{name}={text}")
        if isinstance(log, (MarketStepBeginLog, MarketStepEndLog)):
            market: Market = log.market
            fields.append(f"market_time={leaf_text(market.get_time())}")
            fields.append(f"market_price={leaf_text(market.get_market_price())}")
            fields.append(f"fundamental_price={leaf_text(market.get_fundamental_price())}")
        return f"{class_name(type(log))}({', '.join(fields)})"

    def _rare_text(self, log: Log, simulator: Simulator | None) -> str:
        """Return the text of a user's log that holds more than numbers, texts and markets."""
        if simulator is None:
            return f"{class_name(type(log))}(<no simulator>)"
        # the table of all names, made for one log: only logs of users' own classes come here
        return one_line(Describer(Names(simulator, self)).node(log, "log"))


def _reference(value: object, simulator: Simulator | None) -> str | None:
    """Return the name of what PAMS's own logs refer to; only the simulation's own objects."""
    if simulator is None:
        return None
    if value is simulator:
        return "<simulator>"
    if isinstance(value, Market) and simulator.id2market.get(value.market_id) is value:
        return f"<market {value.market_id}>"
    if isinstance(value, Session) and simulator.id2session.get(value.session_id) is value:
        return f"<session {value.session_id}>"
    return None
