"""What a simulation consists of, and what to call its objects."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Final, cast

import numpy as np
from pams import Fundamentals, IndexMarket, Market, Order, OrderBook, Session, Simulator
from pams.agents import Agent
from pams.events import EventABC, EventHook
from pams.logs import Logger

from ._codec.diagnose import attributes_of
from ._codec.protocol import References

_SIMULATION_TYPES: Final = (
    Simulator,
    Fundamentals,
    Session,
    Market,
    OrderBook,
    Agent,
    EventABC,
    EventHook,
)

_GENERATORS: Final = (random.Random, np.random.Generator, np.random.RandomState)


class View:
    """How the objects of a simulation are looked at: as they are."""

    def attributes(self, obj: object) -> Mapping[str, object]:
        """Return the attributes of an object."""
        return dict(attributes_of(obj))

    def items(self, container: object) -> Iterable[object]:
        """Return the items of a list, or the values of a dict."""
        return (
            container.values() if isinstance(container, dict) else cast("list[object]", container)
        )


_LIVE: Final = View()


def parts_of_simulation(
    simulator: object, view: View = _LIVE, *, only_few: bool = False
) -> list[object]:
    """Return the simulation objects proper, orders in the books among them.

    Args:
        simulator: holds them.
        view: how to look at them.
        only_few: leave out agents and orders.
    """

    def listed(obj: object, *names: str) -> list[object]:
        attributes = view.attributes(obj)
        return [
            item
            for name in names
            if attributes.get(name) is not None
            for item in view.items(attributes[name])
        ]

    def held(obj: object, *names: str) -> list[object]:
        attributes = view.attributes(obj)
        return [attributes[name] for name in names if attributes.get(name) is not None]

    markets: list[object] = []
    for market in listed(simulator, "markets", "id2market"):
        markets.append(market)
        if isinstance(market, IndexMarket):
            markets.extend(listed(market, "_components"))
    hooks = listed(simulator, "event_hooks")
    books = [book for m in markets for book in held(m, "buy_order_book", "sell_order_book")]
    found = [
        *held(simulator, "fundamentals"),
        *listed(simulator, "sessions"),
        *held(simulator, "current_session"),
        *markets,
        *books,
        *listed(simulator, "events"),
        *(event for hook in hooks for event in held(hook, "event")),
        *hooks,
        simulator,
    ]
    if not only_few:
        found += [order for book in books for order in listed(book, "priority_queue")]
        names = ("agents", "normal_frequency_agents", "high_frequency_agents")
        found += listed(simulator, *names)
    return list(dict(zip(map(id, found), found, strict=True)).values())


def shared_objects(
    simulator: object, view: View = _LIVE, *, only_few: bool = False
) -> list[object]:
    """Return what agents may return references to, the generators of agents excepted.

    The simulation objects, their generators, and the lists, dicts and sets that they, agents
    excepted, hold.
    """
    found = parts_of_simulation(simulator, view, only_few=only_few)
    for part in [*found]:
        if type(part) is not Order and not isinstance(part, Agent):
            attributes = view.attributes(part)
            found.extend(generators_of(attributes))
            found.extend(filter(_is_container, attributes.values()))
    return found


def generators_of(attributes: Mapping[str, object]) -> list[object]:
    """Return the random generators that an object owns by PAMS's own names."""
    names = ("prng", "_prng", "_np_prng")
    return [attributes[name] for name in names if isinstance(attributes.get(name), _GENERATORS)]


def _is_container(value: object) -> bool:
    return isinstance(value, (list, dict, set))


class ForeignObjects:
    """Finds objects that a worker's agents put into the simulation, which main lacks.

    An object of a simulation class that an agent made for itself (an agent that asks inner agents)
    is none: it is an ordinary value.
    """

    def __init__(self, simulator: Simulator, references: References) -> None:
        """Take the simulator of a replica, and what has numbers in it."""
        self._simulator = simulator
        self._references = references
        self._foreign: dict[int, object] | None = None
        self._suspicious: dict[type, bool] = {}

    def name(self, obj: object) -> str | None:
        """Return what the object is called when main lacks it, else None."""
        cls = type(obj)
        suspicious = self._suspicious.get(cls)
        if suspicious is None:
            suspicious = issubclass(cls, (*_SIMULATION_TYPES, Order))
            self._suspicious[cls] = suspicious
        if not suspicious:
            return None
        if self._foreign is None:
            # all that the simulation holds now, and main does not
            self._foreign = {
                id(part): part
                for part in parts_of_simulation(self._simulator)
                if self._references.persistent_id(part) is None
            }
        return describe(obj) if id(obj) in self._foreign else None


def describe(obj: object) -> str:
    """Return what to call an object in a message, such as ``agent 12 (MyAgent)``."""
    cls = type(obj).__name__
    known = getattr(obj, "__dict__", {})
    if isinstance(obj, Agent):
        return f"agent {known.get('agent_id', '?')} ({cls})"
    if isinstance(obj, Market):
        return f"market {known.get('market_id', '?')} ({cls} {known.get('name', '?')!r})"
    if isinstance(obj, Session):
        return f"session {known.get('session_id', '?')} ({cls} {known.get('name', '?')!r})"
    if isinstance(obj, EventABC):
        return f"event {known.get('event_id', '?')} ({cls} {known.get('name', '?')!r})"
    if isinstance(obj, Order):
        return f"order {known.get('order_id', '?')} of agent {known.get('agent_id', '?')} ({cls})"
    for base, word in (
        (Simulator, "simulator"),
        (Fundamentals, "fundamentals"),
        (OrderBook, "order book"),
        (EventHook, "event hook"),
        (Logger, "logger"),
    ):
        if isinstance(obj, base):
            return f"the {word} ({cls})"
    return f"a {cls} of the simulation"


def generate_fundamentals(simulator: Simulator, until: int) -> None:
    """Generate fundamental prices as far as an agent in a worker has had them generated.

    Asking for a later price draws from the generator of the fundamentals, which must happen in
    main as it would in a sequential run.
    """
    fundamentals = simulator.fundamentals
    while fundamentals._generated_until < until:
        fundamentals._generate_next()
