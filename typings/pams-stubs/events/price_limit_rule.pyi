import random
from typing import Any

from ..market import Market
from ..order import Order
from ..session import Session
from ..simulator import Simulator
from .base import EventABC, EventHook

class PriceLimitRule(EventABC):
    target_markets: dict[str, Market]
    is_enabled: bool
    activation_count: int
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
    def get_limited_price(self, order: Order, market: Market) -> float | None: ...
    def hooked_before_order(self, simulator: Simulator, order: Order) -> None: ...
