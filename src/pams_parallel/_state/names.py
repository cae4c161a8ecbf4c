"""What the objects of a simulation are called in its state.

A reference to a market is compared as ``<market 0>``, and only where it *is* that market: names go
by identity. A copy has no name, is written out with all that it holds, and so is a difference. The
names are made without the runner's own reference tables, whose mistakes they are to find.
"""

from __future__ import annotations

import random

import numpy as np
from pams import Simulator
from pams.agents import Agent
from pams.logs import Logger

_GENERATORS = (random.Random, np.random.Generator, np.random.RandomState)


class Names:
    """The names of all objects of one simulation at one moment.

    Attributes:
        owners: every simulation object proper, by its name.
    """

    def __init__(self, simulator: Simulator, logger: Logger | None = None) -> None:
        self.owners: dict[str, object] = {}
        self._names: dict[int, str] = {}
        self._add_owners(simulator, logger)
        for name, owner in self.owners.items():
            for attribute, value in vars(owner).items():
                if _is_named_part(owner, value):
                    # the first holder names it: the simulator's own list of markets remains that
                    # when an event holds it too
                    self._names.setdefault(id(value), part_name(name, attribute))

    def of(self, obj: object) -> str | None:
        """Return the name of an object, such as ``<market 0>``, or None when it has none."""
        return self._names.get(id(obj))

    def _add_owners(self, simulator: Simulator, logger: Logger | None) -> None:
        self._add("simulator", simulator)
        self._add("logger", logger)
        self._add("fundamentals", simulator.fundamentals)
        for market in simulator.markets:
            name = f"market {market.market_id}"
            self._add(name, market)
            for side, book in (("buy", market.buy_order_book), ("sell", market.sell_order_book)):
                self._add(f"{side} order book of {name}", book)
                for place, order in enumerate(book.priority_queue):
                    number = order.order_id
                    self._add(f"order {place if number is None else number} of {name}", order)
        for agent in simulator.agents:
            self._add(f"agent {agent.agent_id}", agent)
        for session in simulator.sessions:
            self._add(f"session {session.session_id}", session)
        for event in simulator.events:
            self._add(f"event {event.event_id}", event)
        for number, hook in enumerate(simulator.event_hooks):
            self._add(f"event hook {number}", hook)

    def _add(self, name: str, obj: object | None) -> None:
        if obj is not None and id(obj) not in self._names:
            self._names[id(obj)] = f"<{name}>"
            self.owners[name] = obj


def part_name(owner: str, attribute: str) -> str:
    """Return the name of a container or generator that a simulation object holds."""
    return f"<{attribute} of {owner}>"


def _is_named_part(owner: object, value: object) -> bool:
    """Tell which attributes have names; an agent's own containers are its own affair."""
    if isinstance(value, _GENERATORS):
        return True
    return isinstance(value, (list, dict, set)) and not isinstance(owner, Agent)
