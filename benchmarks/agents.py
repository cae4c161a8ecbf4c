"""Agents of known cost per decision.

Agents without work of their own are PAMS's ``FCNAgent``.
"""

from __future__ import annotations

from math import exp
from typing import Any, TypeAlias

from pams import LIMIT_ORDER, Cancel, Market, Order
from pams.agents import Agent, FCNAgent

from pams_parallel import SyncedAttributesMixin

Orders: TypeAlias = list[Order | Cancel]

HISTORY_LENGTH = 50

LADDER_RUNGS = 150
LADDER_SPACING = 0.02
STEP_VOLATILITY = 0.0005
PULL_TO_FUNDAMENTAL = 0.01


class RememberingAgent(FCNAgent, SyncedAttributesMixin):
    """An FCN agent that lists a counter and a history of prices, both changed at every decision."""

    synced_attributes = ("decisions", "history")
    decisions: int
    history: list[float]

    def setup(
        self, settings: dict[str, Any], accessible_markets_ids: list[int], *args: Any, **kwargs: Any
    ) -> None:
        super().setup(settings, accessible_markets_ids, *args, **kwargs)
        self.decisions = 0
        self.history = [self.prng.uniform(290.0, 310.0) for _ in range(HISTORY_LENGTH)]

    def submit_orders(self, markets: list[Market]) -> Orders:
        self.decisions += 1
        # in place: the attribute is never assigned, so a check of identities does not see it
        del self.history[0]
        self.history.append(markets[0].get_market_price())
        return super().submit_orders(markets)


class MonteCarloAgent(Agent):
    """Simulates price paths, and bids or asks the price nearest to where they end.

    Settings: ``paths`` and ``steps`` of each (0 paths: no work, it orders at the market price),
    ``orderProbability``, and ``timeToLive`` of its orders.
    """

    paths: int
    steps: int
    order_probability: float
    time_to_live: int

    def setup(
        self, settings: dict[str, Any], accessible_markets_ids: list[int], *args: Any, **kwargs: Any
    ) -> None:
        super().setup(settings, accessible_markets_ids, *args, **kwargs)
        self.paths = settings["paths"]
        self.steps = settings["steps"]
        self.order_probability = settings["orderProbability"]
        self.time_to_live = settings["timeToLive"]

    def submit_orders(self, markets: list[Market]) -> Orders:
        market = markets[0]
        target = self._target_price(market)
        # Drawn from the agent's own generator, so that the next decision depends on the state that
        # came back: a runner that loses it gives other prices, and is found out.
        if self.prng.random() >= self.order_probability:
            return []
        return [
            Order(
                agent_id=self.agent_id,
                market_id=market.market_id,
                is_buy=self.prng.random() < 0.5,
                kind=LIMIT_ORDER,
                volume=1,
                price=target,
                ttl=self.time_to_live,
            )
        ]

    def _target_price(self, market: Market) -> float:
        """Return the rung of a ladder of prices with the least mean distance to the paths' ends."""
        start, fundamental = market.get_market_price(), market.get_fundamental_price()
        lowest = start - LADDER_RUNGS // 2 * LADDER_SPACING
        ladder = [lowest + rung * LADDER_SPACING for rung in range(LADDER_RUNGS)]
        distances = [0.0] * LADDER_RUNGS
        gauss = self.prng.gauss
        for _ in range(self.paths):
            price = start
            for _ in range(self.steps):
                price += PULL_TO_FUNDAMENTAL * (fundamental - price)
                price *= exp(STEP_VOLATILITY * gauss(0.0, 1.0))
            distances = [
                distance + abs(price - rung)
                for distance, rung in zip(distances, ladder, strict=True)
            ]
        if self.paths == 0:
            return start
        return max(LADDER_SPACING, ladder[distances.index(min(distances))])
