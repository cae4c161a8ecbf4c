import random
from typing import Any

from ..market import Market
from ..order import Order
from ..session import Session
from ..simulator import Simulator
from .base import EventABC, EventHook

class OrderMistakeShock(EventABC):
    target_market: Market
    trigger_time: int
    price_change_rate: float
    order_volume: int
    is_enabled: bool
    order_time_length: int
    triggerd: bool
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
    def hooked_before_order(self, simulator: Simulator, order: Order) -> None: ...
