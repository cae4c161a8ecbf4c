import random
from typing import Any

from ..logs import ExecutionLog
from ..market import Market
from ..session import Session
from ..simulator import Simulator
from .base import EventABC, EventHook

class TradingHaltRule(EventABC):
    is_enabled: bool
    halting_time_length: int
    halting_time_started: int
    activation_count: int
    is_halting: bool
    halted_markets: list[Market]
    target_markets: dict[str, Market]
    trigger_change_rate: float
    def __init__(
        self,
        event_id: int,
        prng: random.Random,
        session: Session,
        simulator: Simulator,
        name: str,
    ) -> None: ...
    def setup(self, settings: dict[str, Any], *args: Any, **kwargs: Any) -> None: ...
    def hook_registration(self) -> list[EventHook]: ...
    def hooked_after_execution(self, simulator: Simulator, execution_log: ExecutionLog) -> None: ...
    def hooked_before_step_for_market(self, simulator: Simulator, market: Market) -> None: ...
