from typing import Any

from pams.agents.high_frequency_agent import HighFrequencyAgent
from pams.market import Market
from pams.order import Cancel, Order

class MarketMakerAgent(HighFrequencyAgent):
    target_market: Market
    net_interest_spread: float
    order_time_length: int
    def setup(
        self,
        settings: dict[str, Any],
        accessible_markets_ids: list[int],
        *args: Any,
        **kwargs: Any,
    ) -> None: ...
    def submit_orders(self, markets: list[Market]) -> list[Order | Cancel]: ...
    def get_base_price(self, markets: list[Market]) -> float | None: ...
