"""The example's own agents: they learn, and list what they learn."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Final

from pams import Cancel, Market, Order
from pams.agents import FCNAgent

_STEP: Final = 1.1
_MAX_WEIGHT: Final = 10.0
_MEMORY: Final = 20


class TrendLearner(FCNAgent):
    """An FCN agent that learns how far to trust the trend.

    Whenever it is asked, it looks at what it forecast the last time, by going on along the trend.
    If the price went that way, its chart weight grows, if it went the other way, it shrinks.

    All that it learns is set in ``submit_orders``, thus in a worker process: it is listed, so that
    it comes back.
    """

    synced_attributes: ClassVar[tuple[str, ...]] = (
        "chart_weight",
        "errors",
        "forecasts",
        "times_asked",
    )

    def setup(
        self,
        settings: dict[str, Any],
        accessible_markets_ids: list[int],
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Begin without experience.

        Args:
            settings: the agent's part of the config.
            accessible_markets_ids: the markets that it trades in.
            *args: passed on.
            **kwargs: passed on.
        """
        super().setup(settings, accessible_markets_ids, *args, **kwargs)
        self.times_asked = 0
        # by market id: the price when the forecast was made, and the forecast
        self.forecasts: dict[int, tuple[float, float]] = {}
        # log errors of the last forecasts, the newest at the end
        self.errors: list[float] = []

    def submit_orders(self, markets: list[Market]) -> list[Order | Cancel]:
        """Learn from the last forecasts, order as an FCN agent, and make new forecasts.

        Args:
            markets: all markets.
        """
        self.times_asked += 1
        mine = [market for market in markets if self.is_market_accessible(market.market_id)]
        for market in mine:
            self._learn(market)
        orders: list[Order | Cancel] = super().submit_orders(markets)
        for market in mine:
            price = market.get_market_price()
            self.forecasts[market.market_id] = (price, price * self._trend(market))
        return orders

    def _learn(self, market: Market) -> None:
        if market.market_id not in self.forecasts:
            return
        before, forecast = self.forecasts.pop(market.market_id)
        now = market.get_market_price()
        self.errors.append(math.log(now / forecast))
        del self.errors[:-_MEMORY]
        agreement = (forecast - before) * (now - before)
        if agreement > 0:
            self.chart_weight = min(self.chart_weight * _STEP, _MAX_WEIGHT)
        elif agreement < 0:
            self.chart_weight /= _STEP

    def _trend(self, market: Market) -> float:
        """Return by what factor the price changed over the agent's time window."""
        time = market.get_time()
        start = max(0, time - self.time_window_size)
        return market.get_market_price() / market.get_market_price(start)
