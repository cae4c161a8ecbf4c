import random
from typing import Any

from ..logs import Logger
from ..market import Market
from ..order import Cancel, Order
from ..simulator import Simulator
from .high_frequency_agent import HighFrequencyAgent

class ArbitrageAgent(HighFrequencyAgent):
    order_volume: int
    order_threshold_price: float
    order_time_length: int
    def __init__(
        self,
        agent_id: int,
        prng: random.Random,
        simulator: Simulator,
        name: str,
        logger: Logger | None = None,
    ) -> None: ...
    def setup(
        self,
        settings: dict[str, Any],
        accessible_markets_ids: list[int],
        *args: Any,
        **kwargs: Any,
    ) -> None: ...
    def _submit_orders(self, market: Market) -> list[Order | Cancel]: ...
    def submit_orders(self, markets: list[Market]) -> list[Order | Cancel]: ...
    def __repr__(self) -> str: ...
