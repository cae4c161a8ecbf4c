import random
from typing import Any

from ..logs.base import Logger
from ..market import Market
from ..order import Cancel, Order
from ..simulator import Simulator
from .base import Agent

MARGIN_FIXED: int
MARGIN_NORMAL: int

class FCNAgent(Agent):
    fundamental_weight: float
    chart_weight: float
    margin_type: int
    mean_reversion_time: int
    noise_scale: float
    noise_weight: float
    order_margin: float
    time_window_size: int
    is_chart_following: bool
    def __init__(
        self,
        agent_id: int,
        prng: random.Random,
        simulator: Simulator,
        name: str,
        logger: Logger | None = None,
    ) -> None: ...
    def is_finite(self, x: float) -> bool: ...
    def setup(
        self,
        settings: dict[str, Any],
        accessible_markets_ids: list[int],
        *args: Any,
        **kwargs: Any,
    ) -> None: ...
    def submit_orders(self, markets: list[Market]) -> list[Order | Cancel]: ...
    def submit_orders_by_market(self, market: Market) -> list[Order | Cancel]: ...
    def __repr__(self) -> str: ...
