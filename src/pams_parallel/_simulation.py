"""What a simulation consists of: its objects, in one order, and what to call them.

The order is that of the reference tables. It also is the order in which a replica is filled:
markets before the agents that may hold dicts keyed by them, the simulator, which holds all, last.
"""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from pams import Fundamentals, IndexMarket, Market, Order, OrderBook, Session, Simulator
from pams.agents import Agent
from pams.events import EventABC, EventHook
from pams.logs import Logger

from ._codec.diagnose import attributes_of
from ._codec.references import ReferenceTable

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


@dataclass(frozen=True, slots=True)
class SimulationTable:
    """The objects of a simulation at one moment.

    Attributes:
        table: all of them, by number.
        loggers: the loggers among them, in order.
        simulator: number of the simulator.
    """

    table: ReferenceTable
    loggers: tuple[Logger, ...]
    simulator: int

    def index_of(self, obj: object) -> int:
        """Return the number of an object that is in the table."""
        index = self.table.index_of(obj)
        if index is None:
            raise LookupError(f"{describe(obj)} does not belong to the simulation of the runner")
        return index


class _Collection:
    """Objects in the order in which they were added, each once, by identity."""

    def __init__(self) -> None:
        self.objects: list[object] = []
        self._seen: set[int] = set()

    def add(self, *objects: object) -> None:
        for obj in objects:
            if obj is not None and id(obj) not in self._seen:
                self._seen.add(id(obj))
                self.objects.append(obj)


def tabulate(
    simulator: Simulator,
    extra_loggers: Iterable[Logger | None] = (),
    logger_names: Iterable[tuple[int, str]] = (),
) -> SimulationTable:
    """Number all objects of a simulation.

    Two calls for equal simulations number equal objects equally.

    Args:
        simulator: holds the simulation.
        extra_loggers: loggers that the simulation itself may not hold (the runner's).
        logger_names: attributes of loggers (number of the logger, name) that workers read: their
            containers are numbered too.
    """
    parts = _parts(simulator)
    collected = _Collection()
    collected.add(*parts)
    loggers = _Collection()
    loggers.add(simulator.logger, *(getattr(part, "logger", None) for part in parts))
    loggers.add(*extra_loggers)
    found = tuple(logger for logger in loggers.objects if isinstance(logger, Logger))
    collected.add(*_generators(parts))
    for part in parts:
        if not isinstance(part, Agent):
            collected.add(*_containers(part))
    for number, name in logger_names:
        if number < len(found) and _is_container(vars(found[number]).get(name)):
            collected.add(vars(found[number])[name])
    collected.add(*found)
    table = ReferenceTable(collected.objects)
    # by identity: PAMS's orders refuse to be compared with other objects
    return SimulationTable(table, found, len(parts) - 1)


def _parts(simulator: Simulator) -> list[object]:
    """Return the simulation objects proper, in filling order."""
    events = [*simulator.events, *(hook.event for hook in simulator.event_hooks)]
    markets: list[Market] = []
    for market in [*simulator.markets, *simulator.id2market.values()]:
        markets.append(market)
        if isinstance(market, IndexMarket):
            markets.extend(market._components)
    collected = _Collection()
    collected.add(simulator.fundamentals)
    collected.add(*simulator.sessions, simulator.current_session)
    collected.add(*markets)
    books = [book for m in markets for book in (m.buy_order_book, m.sell_order_book)]
    collected.add(*books)
    for book in books:
        collected.add(*book.priority_queue)
    collected.add(*simulator.agents, *simulator.normal_frequency_agents)
    collected.add(*simulator.high_frequency_agents, *events, *simulator.event_hooks)
    collected.add(simulator)
    return collected.objects


def _generators(parts: Iterable[object]) -> Iterable[object]:
    """Yield the random generators that simulation objects own by PAMS's own names."""
    for part in parts:
        for name in ("prng", "_prng", "_np_prng"):
            generator = getattr(part, "__dict__", {}).get(name)
            if isinstance(generator, _GENERATORS):
                yield generator


def _is_container(value: object) -> bool:
    return isinstance(value, (list, dict, set))


def _containers(part: object) -> Iterable[object]:
    return (value for _, value in attributes_of(part) if _is_container(value))


class ForeignObjects:
    """Finds objects that a worker's agents put into the simulation, which main lacks.

    An object of a simulation class that an agent made for itself (an agent that asks inner agents)
    is none: it is an ordinary value.
    """

    def __init__(self, simulator: Simulator, table: ReferenceTable) -> None:
        self._simulator = simulator
        self._table = table
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
            parts = _parts(self._simulator)
            self._foreign = {id(part): part for part in parts if self._table.index_of(part) is None}
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
