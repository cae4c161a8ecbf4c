"""The simulations that are run: which agents, how many, and how many of them are asked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from pams.agents import Agent, FCNAgent

from .agents import MonteCarloAgent, RememberingAgent

UNLIMITED: Final = 10**9

FCN_OPTIONS: Final[Mapping[str, Any]] = {
    "fundamentalWeight": {"expon": [1.0]},
    "chartWeight": {"expon": [0.0]},
    "noiseWeight": {"expon": [1.0]},
    "noiseScale": 0.001,
    "timeWindowSize": [100, 200],
    "orderMargin": [0.0, 0.1],
}

SHORT_LIVED: Final[Mapping[str, Any]] = {**FCN_OPTIONS, "timeWindowSize": [10, 20]}
"""Orders that expire soon: the books stop growing long before the first window of time."""


@dataclass(frozen=True, eq=False)
class Workload:
    """One simulation on one market.

    Attributes:
        name: how it is called in tables.
        agent_class: class of all agents.
        agents: how many there are.
        max_normal_orders: ``maxNormalOrders`` of the only session.
        asked: agents asked in a step, in one batch.
        options: settings of the agents.
        saves_steps: whether the logger is a ``MarketStepSaver``; otherwise there is none.
    """

    name: str
    agent_class: type[Agent]
    agents: int
    max_normal_orders: int
    asked: int
    options: Mapping[str, Any] = field(default_factory=dict)
    saves_steps: bool = False

    def settings(self, steps: int, workers: int) -> dict[str, Any]:
        """Return the config for a number of steps, fresh: runners write into it."""
        simulation: dict[str, Any] = {
            "markets": ["Market"],
            "agents": ["Agents"],
            "sessions": [
                {
                    "sessionName": "day",
                    "iterationSteps": steps,
                    "withOrderPlacement": True,
                    "withOrderExecution": True,
                    "withPrint": True,
                    "maxNormalOrders": self.max_normal_orders,
                    "events": [],
                }
            ],
        }
        if workers > 0:
            simulation["numParallel"] = workers
        return {
            "simulation": simulation,
            "Market": {"class": "Market", "tickSize": 0.01, "marketPrice": 300.0},
            "Agents": {
                "class": self.agent_class.__name__,
                "numAgents": self.agents,
                "markets": ["Market"],
                "cashAmount": 10000,
                "assetVolume": 50,
                **self.options,
            },
        }


def monte_carlo(
    name: str,
    agents: int,
    max_normal_orders: int,
    *,
    size: int,
    probability: float,
) -> Workload:
    """Return a workload of agents that simulate ``size`` paths of ``size`` steps."""
    options = {
        "paths": size,
        "steps": size,
        "orderProbability": probability,
        "timeToLive": 2,  # shallow books: PAMS takes long to handle orders on deep ones
    }
    asked = min(agents, max_normal_orders)
    return Workload(name, MonteCarloAgent, agents, max_normal_orders, asked, options)


IDLE = Workload("1,000 FCN agents, 50 asked", FCNAgent, 1000, 50, 50, FCN_OPTIONS)
REMEMBERING = replace(
    IDLE,
    name="the same, listing a counter and 50 prices",
    agent_class=RememberingAgent,
)
MANY = replace(IDLE, name="10,000 FCN agents, 50 asked", agents=10_000)

HEAVY_ALL = monte_carlo(
    "100 agents, all asked, 100x100 steps", 100, UNLIMITED, size=100, probability=0.1
)
HEAVY_BATCH = monte_carlo(
    "1,000 agents, 40 asked, 100x100 steps", 1000, 40, size=100, probability=1.0
)
LIGHT_ALL = monte_carlo(
    "1,000 agents, all asked, 10x10 steps", 1000, UNLIMITED, size=10, probability=0.1
)

LONG = Workload(
    "100 FCN agents, 10 asked, a MarketStepSaver",
    FCNAgent,
    100,
    10,
    10,
    SHORT_LIVED,
    saves_steps=True,
)

MEMORY_SIZE = replace(MANY, name="10,000 FCN agents, 50 asked", options=SHORT_LIVED)
MEMORY_GROWTH = Workload("1,000 FCN agents, 10 asked", FCNAgent, 1000, 10, 10, SHORT_LIVED)


def at_size(size: int) -> Workload:
    """Return the workload of the plot for one amount of work per decision."""
    return monte_carlo(f"{size}x{size} steps", 1000, 40, size=size, probability=1.0)
