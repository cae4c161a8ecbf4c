import random
from typing import Any

from ..market import Market
from ..session import Session
from ..simulator import Simulator
from .base import EventABC, EventHook

class FundamentalPriceShock(EventABC):
    target_market_name: str
    target_market: Market
    trigger_time: int
    price_change_rate: float
    is_enabled: bool
    shock_time_length: int
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
    def hooked_before_step_for_market(self, simulator: Simulator, market: Market) -> None: ...
