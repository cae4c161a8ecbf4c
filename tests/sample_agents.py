"""Agents for the tests, one habit each, in a module so that workers can import them.

Group settings may hold ``options``: ``victims`` (ids of the agents that misbehave, all by default),
``fromTime`` (the first market time at which they do) and what the class itself reads.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from pams import LIMIT_ORDER, Cancel, Market, Order, Session, Simulator
from pams.agents import Agent
from pams.events import EventABC, EventHook
from pams.logs import CancelLog, ExecutionLog, Log, Logger, OrderLog

from pams_parallel import SyncedAttributesMixin

Orders = list[Order | Cancel]


def unpicklable() -> Iterator[int]:
    """Return a generator: no serializer takes one, dill neither."""
    return iter(i for i in range(3))


def limit(
    agent: Agent,
    market: Market,
    shift: float,
    *,
    is_buy: bool | None = None,
    volume: int = 1,
    ttl: int | None = 4,
) -> Order:
    """Return a limit order at the market price plus ``shift``, on the tick."""
    if is_buy is None:
        is_buy = agent.prng.random() < 0.5
    return Order(
        agent_id=agent.agent_id,
        market_id=market.market_id,
        is_buy=is_buy,
        kind=LIMIT_ORDER,
        volume=volume,
        price=float(max(1, round(market.get_market_price() + shift))),
        ttl=ttl,
    )


def resting_orders(market: Market) -> list[Order]:
    """Return the orders in both books of a market."""
    return [*market.buy_order_book.priority_queue, *market.sell_order_book.priority_queue]


# --------------------------------------------------------------------------------- loggers


class Note(Log):
    """A log record of an agent's own."""

    def __init__(self, text: str) -> None:
        self.text = text


class TranscriptLogger(Logger):
    """Writes one line for each record, of any type, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def process(self, logs: list[Log]) -> None:
        """Write a line for each record; PAMS's own refuses unknown types."""
        self.lines.extend(log_line(log) for log in logs)

    def notes(self) -> list[str]:
        """Return the texts of the agents' own records."""
        return [line.removeprefix("Note ") for line in self.lines if line.startswith("Note ")]


def log_line(log: Log) -> str:
    """Return a record as text: its type and its plain fields."""
    if isinstance(log, Note):
        return f"Note {log.text}"
    plain = {
        name: value
        for name, value in vars(log).items()
        if isinstance(value, (int, float, str, bool, type(None)))
    }
    return f"{type(log).__name__} {plain}"


# -------------------------------------------------------------------------- ordinary agents


class SampleAgent(Agent):
    """Places one order near the market price. Base of the others."""

    options: dict[str, Any]

    def setup(
        self,
        settings: dict[str, Any],
        accessible_markets_ids: list[int],
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Read the options."""
        super().setup(settings, accessible_markets_ids)
        self.options = dict(settings.get("options", {}))

    def pick(self, markets: list[Market]) -> Market:
        """Return one of the accessible markets."""
        return self.prng.choice([m for m in markets if self.is_market_accessible(m.market_id)])

    def is_due(self, markets: list[Market]) -> bool:
        """Tell whether this agent is to misbehave now."""
        victims = self.options.get("victims")
        chosen = victims is None or self.agent_id in victims
        return chosen and markets[0].get_time() >= self.options.get("fromTime", 0)

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Place one order."""
        return [limit(self, self.pick(markets), self.prng.randint(-5, 5))]


class IdleAgent(SampleAgent):
    """Returns no orders half of the time."""

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Place an order, or nothing."""
        if self.prng.random() < 0.5:
            return []
        return super().submit_orders(markets)


class NeverAgent(SampleAgent):
    """Never places an order; counts its calls."""

    synced_attributes = ("n_asked",)
    n_asked = 0

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Count."""
        self.n_asked += 1
        return []


class CountingAgent(SampleAgent):
    """Counts its calls in a listed attribute; idle half of the time."""

    synced_attributes: tuple[str, ...] | list[str] = ("n_asked", "asked_at")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.n_asked = 0
        self.asked_at: list[int] = []

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Count, and place an order or nothing."""
        self.n_asked += 1
        self.asked_at.append(markets[0].get_time())
        if self.prng.random() < 0.5:
            return []
        return super().submit_orders(markets)


class AlternatingAgent(SampleAgent):
    """Places an order and cancels it at the next call; learns its order id in a callback."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.placed: tuple[int, int] | None = None

    def submitted_order(self, log: OrderLog) -> None:
        """Remember the order (in the main process)."""
        self.placed = (log.market_id, log.order_id)

    def canceled_order(self, log: CancelLog) -> None:
        """Forget the order (in the main process)."""
        self.placed = None

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Cancel the resting order, else place one."""
        if self.placed is not None:
            market_id, order_id = self.placed
            for order in resting_orders(self.simulator.id2market[market_id]):
                if order.order_id == order_id:
                    return [Cancel(order)]
        return [limit(self, self.pick(markets), self.prng.choice([-9, 9]), ttl=None)]


class LearnerAgent(SampleAgent):
    """Lists six names, and its prices depend on all of them.

    A counter, an appended list, a value that is None at times, one that is created late and
    deleted at times, and two names for one list.
    """

    synced_attributes = ("n_asked", "history", "signal", "mood", "draws", "same_draws")
    mood: int

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.n_asked = 0
        self.history: list[float] = []
        self.signal: float | None = None
        self.draws: list[int] = []
        self.same_draws = self.draws

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Learn, then place an order or nothing."""
        market = self.pick(markets)
        draw = self.prng.randint(0, 5)
        self.n_asked += 1
        self.history.append(market.get_market_price())
        self.signal = None if draw == 0 else self.prng.gauss(0.0, 2.0)
        if draw >= 3:
            self.mood = getattr(self, "mood", 0) + 1
        elif draw == 1 and hasattr(self, "mood"):
            del self.mood
        self.draws.append(draw)
        if self.same_draws is not self.draws:
            raise AssertionError("the two names are two lists now")
        if draw == 2:
            return []
        shift = (
            self.n_asked % 3
            + 0.01 * (sum(self.history) % 100)
            + (self.signal or 0.5)
            + getattr(self, "mood", -1)
            - sum(self.same_draws) % 7
        )
        return [limit(self, market, shift)]


class MixinAgent(SyncedAttributesMixin, SampleAgent):
    """Lists a counter through the typed mixin."""

    synced_attributes = ["n_asked"]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.n_asked = 0

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Place an order at a price that depends on the counter."""
        self.n_asked += 1
        return [limit(self, self.pick(markets), self.n_asked % 5 - 2)]


class TrackerAgent(SampleAgent):
    """Finds its resting orders by ``is`` in the books, and cancels the oldest."""

    synced_attributes = ("mine", "n_lost")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.mine: list[Order] = []
        self.n_lost = 0

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Cancel the oldest of two resting orders, else place one."""
        resting = [order for market in markets for order in resting_orders(market)]
        found = [mine for mine in self.mine if any(mine is order for order in resting)]
        self.n_lost += len(self.mine) - len(found)
        self.mine = found
        if len(found) >= 2:
            return [Cancel(found.pop(0))]
        order = limit(self, self.pick(markets), self.n_lost % 3 - 6, is_buy=True, ttl=None)
        self.mine.append(order)
        return [order]


class KeeperAgent(SampleAgent):
    """Keeps every order that it returned, and reads what the market wrote there."""

    synced_attributes = ("kept", "seen", "n_resting")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.kept: list[Order] = []
        self.seen: list[list[tuple[int | None, int | None, int, bool]]] = []
        self.n_resting = 0

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Note the fields of all kept orders, then place one or cancel one."""
        resting = [order for market in markets for order in resting_orders(market)]
        self.seen.append([(o.order_id, o.placed_at, o.volume, o.is_canceled) for o in self.kept])
        alive = [kept for kept in self.kept if any(kept is order for order in resting)]
        self.n_resting += len(alive)
        if len(alive) > 1:
            return [Cancel(alive[-1])]
        order = limit(self, self.pick(markets), self.prng.randint(-3, 3), volume=3, ttl=None)
        self.kept.append(order)
        return [order]


class Helper:
    """Decides for an agent, and refers back to it."""

    def __init__(self, agent: HelperAgent) -> None:
        self.agent = agent
        self.n_chosen = 0
        self.moods = [agent.agent_id]

    def choose(self) -> int:
        """Return a shift of the price."""
        self.n_chosen += 1
        self.moods.append(self.agent.prng.randint(-3, 3))
        return self.moods[-1] + self.n_chosen % 2


class HelperAgent(SampleAgent):
    """Has a helper object that refers back to it."""

    synced_attributes = ("helper",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.helper = Helper(self)

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Ask the helper."""
        if self.helper.agent is not self:
            raise AssertionError("the helper refers to another agent now")
        return [limit(self, self.pick(markets), self.helper.choose())]


class MarketNotesAgent(SampleAgent):
    """Keeps a dict keyed by markets."""

    synced_attributes = ("notes",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.notes: dict[Market, int] = {}

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Take the market of which there are the fewest notes."""
        for market in markets:
            self.notes.setdefault(market, 0)
        if len(self.notes) != len(markets):
            raise AssertionError("a market of the notes is no market of the simulation")
        market = min(markets, key=lambda m: (self.notes[m], m.market_id))
        self.notes[market] += 1
        return [limit(self, market, self.notes[market] % 5 - 2)]


class ReaderAgent(SampleAgent):
    """Reads others' cash, assets, sessions, events, fundamentals, books and the logger."""

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Place an order whose price depends on all that it read."""
        simulator = self.simulator
        if markets is not simulator.markets:
            raise AssertionError("the markets are not those of the simulator")
        session = simulator.current_session
        assert session is not None
        time = markets[0].get_time()
        read = [
            sum(agent.cash_amount for agent in simulator.agents),
            simulator.agents[0].cash_amount,
            sum(sum(agent.asset_volumes.values()) for agent in simulator.agents[:3]),
            session.session_id,
            session.iteration_steps,
            len(simulator.sessions),
            simulator.n_events,
            sum(getattr(event, "activation_count", 0) for event in simulator.events),
            sum(event.session.session_id for event in simulator.events),
            simulator.fundamentals.get_fundamental_price(0, time),
            sum(order.volume for market in markets for order in resting_orders(market)),
            sum(market.get_market_price(t) for market in markets for t in range(time + 1)),
        ]
        if isinstance(self.logger, TranscriptLogger):
            read.append(len(self.logger.lines))
            read.append(len(self.logger.pending_logs))
        return [limit(self, self.pick(markets), sum(read) % 11 - 5)]


class FutureReaderAgent(SampleAgent):
    """Reads fundamental prices that are not generated yet."""

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Place an order whose price depends on a later fundamental price."""
        later = self.options.get("ahead", 150) + self.agent_id
        future = self.simulator.fundamentals.get_fundamental_price(0, later)
        return [limit(self, self.pick(markets), future % 7 - 3)]


class GossipAgent(SampleAgent):
    """Reads what other agents listed, so that it sees when their changes arrive."""

    synced_attributes = ("n_asked",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.n_asked = 0

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Place an order, or nothing, by the counters of all agents."""
        self.n_asked += 1
        total = sum(getattr(agent, "n_asked", 0) for agent in self.simulator.agents)
        if total % 2:
            return []
        return [limit(self, self.pick(markets), total % 9 - 4)]


class LogWriterAgent(SampleAgent):
    """Writes to the logger in all four ways, and through the record's own methods."""

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Write, then place an order or nothing."""
        if self.logger is not None:
            name = f"{self.agent_id} at {markets[0].get_time()}"
            way = self.prng.randint(0, 5)
            if way == 0:
                self.logger.write(Note(f"write {name}"))
            elif way == 1:
                self.logger.bulk_write([Note(f"bulk {name}"), Note(f"bulk again {name}")])
            elif way == 2:
                self.logger.write_and_direct_process(log=Note(f"direct {name}"))
            elif way == 3:
                self.logger.bulk_write_and_direct_process(logs=[Note(f"direct bulk {name}")])
            elif way == 4:
                Note(f"own {name}").read_and_write(self.logger)
            else:
                Note(f"own direct {name}").read_and_write_with_direct_process(self.logger)
        if self.prng.random() < 0.3:
            return []
        return super().submit_orders(markets)


class SignatureAgent(SampleAgent):
    """Writes its id to the log when it is asked; idle half of the time."""

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Write, then place an order or nothing."""
        idle = self.prng.random() < 0.5
        word = "idle" if idle else "busy"
        assert self.logger is not None
        Note(f"{self.agent_id} {word}").read_and_write_with_direct_process(self.logger)
        return [] if idle else super().submit_orders(markets)


class LastOrdersAgent(SampleAgent):
    """Keeps its last orders in a listed attribute, as PAMS's tutorial does."""

    synced_attributes: tuple[str, ...] | list[str] = ("last_orders",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.last_orders: list[Order] = []

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Cancel the last orders that still rest, and place new ones."""
        resting = [order for market in markets for order in resting_orders(market)]
        cancels = [Cancel(o) for o in self.last_orders if any(o is r for r in resting)]
        self.last_orders = [
            limit(self, market, self.prng.choice([-4, 4]), ttl=None) for market in markets[:2]
        ]
        return [*cancels, *self.last_orders]


class UnlistedLastOrdersAgent(SampleAgent):
    """Keeps its last orders in an attribute that it does not list, and never reads it."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.last_orders: list[Order] = []

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Keep what is returned."""
        self.last_orders = [limit(self, self.pick(markets), self.prng.randint(-5, 5))]
        return [*self.last_orders]


class QueueAgent(SampleAgent):
    """Returns a listed list, and pops from it in a callback while it is being placed."""

    synced_attributes = ("waiting",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.waiting: Orders = []

    def submitted_order(self, log: OrderLog) -> None:
        """Drop the last order: it is not placed any more."""
        if log.order_id % 2 and self.waiting:
            self.waiting.pop()

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Return the agent's own list."""
        self.waiting.clear()
        self.waiting.extend(limit(self, self.pick(markets), shift) for shift in (-3, 0, 3, 6))
        return self.waiting


class CancelAtOnceAgent(SampleAgent):
    """Places an order and cancels it in the same call."""

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Return an order and its cancel."""
        order = limit(self, self.pick(markets), self.prng.randint(-5, 5))
        return [order, Cancel(order)]


class CallbackAgent(SampleAgent):
    """Reads in its callbacks what its call has just set."""

    synced_attributes = ("plan",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.plan = 0
        self.plans_at_submission: list[int] = []
        self.plans_at_execution: list[int] = []

    def submitted_order(self, log: OrderLog) -> None:
        """Note the plan (in the main process)."""
        self.plans_at_submission.append(self.plan)

    def executed_order(self, log: ExecutionLog) -> None:
        """Note the plan (in the main process)."""
        self.plans_at_execution.append(self.plan)

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Make a plan."""
        self.plan = self.prng.randint(0, 1000) + len(self.plans_at_submission)
        return [limit(self, self.pick(markets), self.plan % 9 - 4)]


# ----------------------------------------------------------- agents that travel in other ways


class GetstateAgent(SampleAgent):
    """Drops what cannot be pickled in ``__getstate__`` and makes it anew in ``__setstate__``."""

    synced_attributes = ("n_asked",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.n_asked = 0
        self.cache: Iterator[int] | None = unpicklable()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "cache"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.cache = unpicklable()

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Use the cache."""
        assert self.cache is not None
        self.n_asked += 1
        return [limit(self, self.pick(markets), self.n_asked % 4)]


class DroppingAgent(SampleAgent):
    """Lists a name that its ``__getstate__`` drops."""

    synced_attributes = ("scratch",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.scratch = "of main"

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "scratch"}


def rebuild_agent(cls: type[ReduceAgent]) -> ReduceAgent:
    """Make the agent that ``__reduce__`` promised."""
    agent = cls.__new__(cls)
    agent.is_rebuilt = True
    return agent


class ReduceAgent(SampleAgent):
    """Travels through ``__reduce__``, which it can tell."""

    synced_attributes = ("was_rebuilt", "n_asked")
    is_rebuilt = False
    was_rebuilt = False
    n_asked = 0

    def __reduce__(self) -> tuple[Any, ...]:
        state = {name: value for name, value in vars(self).items() if name != "is_rebuilt"}
        return rebuild_agent, (type(self),), state

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Tell how it came here."""
        self.was_rebuilt = self.is_rebuilt
        self.n_asked += 1
        return [limit(self, self.pick(markets), self.n_asked % 4)]


class SetstateAgent(SampleAgent):
    """Travels through ``__setstate__``, which it can tell."""

    synced_attributes = ("was_loaded",)
    is_loaded = False
    was_loaded = False

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.is_loaded = True

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Tell how it came here."""
        self.was_loaded = self.is_loaded
        return super().submit_orders(markets)


class SlottedAgent(SampleAgent):
    """Keeps a listed value in a slot."""

    __slots__ = ("level",)
    synced_attributes = ("level",)
    level: int

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.level = 0

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Place an order at a price that depends on the slot."""
        self.level += 1
        return [limit(self, self.pick(markets), self.level % 5)]


class PropertyAgent(SampleAgent):
    """Has a property, and lists its backing attribute."""

    synced_attributes = ("_level",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._level = 0

    @property
    def level(self) -> int:
        """Return the level."""
        return self._level

    @level.setter
    def level(self, value: int) -> None:
        self._level = value

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Place an order at a price that depends on the property."""
        self.level += 1
        return [limit(self, self.pick(markets), self.level % 5)]


class SetattrAgent(SampleAgent):
    """Has a ``__setattr__`` that counts how often the level was set."""

    synced_attributes = ("level",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.level = 0

    def __setattr__(self, name: str, value: object) -> None:
        if name == "level":
            self.__dict__["n_set"] = self.__dict__.get("n_set", 0) + 1
        super().__setattr__(name, value)

    @property
    def times_set(self) -> int:
        """Return how often the level was set."""
        return int(self.__dict__["n_set"])

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Change the level."""
        self.__dict__["level"] = self.level + 1
        return [limit(self, self.pick(markets), self.level % 5)]


class LastDrawRandom(random.Random):
    """A generator with a state of its own: it remembers how often it was asked."""

    def __init__(self, seed: int = 0) -> None:
        self.n_draws = 0
        super().__init__(seed)

    def random(self) -> float:
        """Count, and draw."""
        self.n_draws += 1
        return super().random()

    def getstate(self) -> tuple[Any, ...]:
        """Return the count and the state."""
        return (self.n_draws, super().getstate())

    def setstate(self, state: tuple[Any, ...]) -> None:
        """Set both."""
        self.n_draws, inner = state
        super().setstate(inner)


class OwnRandomAgent(SampleAgent):
    """Has a ``random.Random`` of a class of its own as its ``prng``."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.prng: random.Random = LastDrawRandom(self.prng.randint(0, 2**31))

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Place an order at a price that depends on the count."""
        draws = self.prng.n_draws if isinstance(self.prng, LastDrawRandom) else -99
        return [limit(self, self.pick(markets), draws % 5 + self.prng.gauss(0.0, 1.0))]


# ----------------------------------------------------------------------- what comes back


class FalsyAgent(SampleAgent):
    """Sets listed attributes to falsy values."""

    FALSY: ClassVar[dict[str, object]] = {
        "nothing": None,
        "zero": 0,
        "minus_zero": -0.0,
        "empty": "",
        "no": False,
        "none_in": [],
    }
    synced_attributes = tuple(FALSY)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name in self.FALSY:
            setattr(self, name, "of main")

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Set them all."""
        for name, value in self.FALSY.items():
            setattr(self, name, value)
        return []


class DeletingAgent(SampleAgent):
    """Deletes a listed attribute; lists one that nobody ever sets and one of the class only."""

    synced_attributes = ("gone", "never", "of_class")
    of_class = "class"

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.gone = "of main"

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Delete."""
        if hasattr(self, "gone"):
            del self.gone
        return []


class BoardAgent(SampleAgent):
    """Writes to a list that is shared with other agents, and lists it."""

    synced_attributes = ("board", "n_seen")
    board: list[int]
    n_seen = 0

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Write, and note how much was there."""
        self.n_seen = len(self.board)
        self.board.append(self.agent_id)
        return []


class CollectorAgent(SampleAgent):
    """Lists references to all kinds of simulation objects, as it finds them in the worker."""

    synced_attributes = ("found",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.found: dict[str, object] = {}

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Collect."""
        self.found = reference_targets(self.simulator, markets)
        return []


def reference_targets(simulator: Simulator, markets: list[Market]) -> dict[str, object]:
    """Return one object of each kind that is to come back as main's."""
    market = markets[0]
    event, hook = simulator.events[0], simulator.event_hooks[0]
    session = simulator.sessions[0]
    targets: dict[str, object] = {
        "simulator": simulator,
        "logger": simulator.logger,
        "fundamentals": simulator.fundamentals,
        "current session": simulator.current_session,
        "session": session,
        "event": event,
        "hook": hook,
        "market": market,
        "index market": markets[-1],
        "buy book": market.buy_order_book,
        "sell book": market.sell_order_book,
        "agent": simulator.agents[0],
        "prng of simulator": simulator._prng,
        "prng of fundamentals": simulator.fundamentals._prng,
        "numpy prng of fundamentals": simulator.fundamentals._np_prng,
        "prng of market": market._prng,
        "prng of agent": simulator.agents[0].prng,
        "prng of session": session.prng,
        "prng of event": event.prng,
        "markets": markets,
        "agents": simulator.agents,
        "normal agents": simulator.normal_frequency_agents,
        "fast agents": simulator.high_frequency_agents,
        "sessions": simulator.sessions,
        "events": simulator.events,
        "hooks": simulator.event_hooks,
        "hooks by time": simulator.events_dict,
        "markets by id": simulator.id2market,
        "markets by name": simulator.name2market,
        "agents by id": simulator.id2agent,
        "prices of fundamentals": simulator.fundamentals.prices,
        "market prices": market._market_prices,
        "volumes": market._executed_volumes,
        "queue": market.buy_order_book.priority_queue,
        "expirations": market.sell_order_book.expire_time_list,
        "components": getattr(markets[-1], "_components", None),
        "targets of event": getattr(event, "target_markets", None),
    }
    for number, order in enumerate(resting_orders(market)):
        targets[f"resting order {number}"] = order
    return targets


class ForeignReferenceAgent(SampleAgent):
    """Changes the simulation in the worker and keeps a reference to the new object."""

    synced_attributes = ("reference",)
    reference: object = None

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Add something to the simulation's copy."""
        if not self.is_due(markets):
            return super().submit_orders(markets)
        what = self.options["what"]
        if what == "market":
            market = Market(99, random.Random(1), self.simulator, "new")
            self.simulator.markets.append(market)
            self.reference = market
            return []
        order = limit(self, markets[0], -9, is_buy=True)
        markets[0]._add_order(order)
        return [Cancel(order)]


# ------------------------------------------------------------------ what workers keep

worker_memory: dict[str, int] = {}
"""Kept by the worker's copy of this module."""

remembered_classes: list[type] = []
"""Kept by the worker's copy of this module."""


class CachingAgent(SampleAgent):
    """Keeps something in its module, as an agent that loads a model once does."""

    synced_attributes = ("n_hits", "n_asked", "pids")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.n_hits = 0
        self.n_asked = 0
        self.pids: set[int] = set()

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Look into the memory of this process."""
        self.n_asked += 1
        self.pids.add(os.getpid())
        self.n_hits += "model" in worker_memory
        worker_memory["model"] = os.getpid()
        return []


class ForgetfulAgent(SampleAgent):
    """Changes what it does not list, in place and by assignment, and lists what it saw there."""

    synced_attributes = ("seen",)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.seen: list[tuple[object, ...]] = []
        self.counter = 0
        self.scratch: list[int] = []

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Note what is there, then change it."""
        market = markets[0]
        other = self.simulator.agents[0]
        self.seen.append(
            (
                self.counter,
                len(self.scratch),
                market.tick_size,
                market._market_prices[0],
                len(self.simulator.name2agent),
                getattr(other, "mark", None),
                self.simulator.sessions[0].name,
            )
        )
        self.counter += 1
        self.scratch.append(1)
        market.tick_size = 7.0
        market._market_prices[0] = -1.0
        self.simulator.name2agent[f"new {self.agent_id}"] = self
        other.mark = self.agent_id  # type: ignore[attr-defined]  # that is the point
        self.simulator.sessions[0].name = "changed"
        return []


class TunedAgent(SampleAgent):
    """Reads what user code put on the simulator, on another agent and on itself."""

    synced_attributes = ("seen",)
    offset = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.seen: list[tuple[object, ...]] = []

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Place an order at a price that depends on all that user code set."""
        tuning: dict[str, int] = getattr(self.simulator, "tuning", {})
        leader = getattr(self.simulator.agents[0], "offset", 0)
        read = (tuning.get("shift", 0), leader, self.offset)
        self.seen.append(read)
        return [limit(self, self.pick(markets), sum(read) % 9 - 4)]


class RenamingAgent(SampleAgent):
    """Changes two attributes; which of them it lists is set from outside, on the instance."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.left = 0
        self.right = 0

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Change both."""
        self.left += 1
        self.right += 1
        return []


class StealthAgent(SampleAgent):
    """Reads the state of the logger, if told to; always writes to it."""

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Write, and read the attribute that the options name."""
        assert self.logger is not None
        Note(str(self.agent_id)).read_and_write_with_direct_process(self.logger)
        if "reads" in self.options and self.is_due(markets):
            getattr(self.logger, self.options["reads"])
        return []


# -------------------------------------------------------------------------- lost changes


@dataclass(frozen=True)
class Change:
    """An assignment to an unlisted attribute.

    Attributes:
        before: makes the value in main.
        after: makes the value that the agent assigns.
        is_reported: whether that is a lost change.
    """

    before: Callable[[], object]
    after: Callable[[], object]
    is_reported: bool


def _text(*parts: str) -> str:
    return "".join(parts)


CHANGES: dict[str, Change] = {
    "equal str": Change(lambda: "price up", lambda: _text("price", " up"), False),
    "equal bytes": Change(lambda: b"price", lambda: bytes([112, 114, 105, 99, 101]), False),
    "equal int": Change(lambda: 10**30, lambda: int("1" + "0" * 30), False),
    "equal float": Change(lambda: 1.5, lambda: float("1.5"), False),
    "equal complex": Change(lambda: 1.5j, lambda: complex("1.5j"), False),
    "equal bool": Change(lambda: True, lambda: bool(1), False),
    "None": Change(lambda: None, lambda: None, False),
    "equal tuple": Change(lambda: (1, ("a", 2.5)), lambda: (1, (_text("a"), float("2.5"))), False),
    "other str": Change(lambda: "a", lambda: "b", True),
    "other int": Change(lambda: 1, lambda: 2, True),
    "zero to minus zero": Change(lambda: 0.0, lambda: -0.0, True),
    "complex minus zero": Change(lambda: complex(0.0, 0.0), lambda: complex(0.0, -0.0), True),
    "other NaN": Change(lambda: float("nan"), lambda: float("nan"), True),
    "1 to 1.0": Change(lambda: 1, lambda: 1.0, True),
    "1 to True": Change(lambda: 1, lambda: True, True),
    "minus zero in a tuple": Change(lambda: (0.0,), lambda: (-0.0,), True),
    "1.0 in a tuple": Change(lambda: (1,), lambda: (1.0,), True),
    "list in a tuple": Change(lambda: ([1],), lambda: ([1],), True),
    "equal list": Change(lambda: [1], lambda: [1], True),
    "equal dict": Change(dict, dict, True),
    "None to 0": Change(lambda: None, lambda: 0, True),
}


class ChangingAgent(SampleAgent):
    """Assigns to the unlisted attribute ``value`` as the options say."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.value: object = None

    def setup(
        self,
        settings: dict[str, Any],
        accessible_markets_ids: list[int],
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Set the value that main has."""
        super().setup(settings, accessible_markets_ids)
        self.value = CHANGES[self.options["change"]].before()

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Assign."""
        self.value = CHANGES[self.options["change"]].after()
        return []


class UnlistedAgent(SampleAgent):
    """Assigns two unlisted attributes, deletes a third, and makes a fourth."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.zeta = 0
        self.alpha = 0
        self.victim = 0

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Change them."""
        if self.is_due(markets):
            self.zeta += 1
            self.alpha += 1
            del self.victim
            self.fresh = 1
        return []


class OwnGeneratorAgent(SampleAgent):
    """Draws from a generator of its own, which it lists or not."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.generator: random.Random | np.random.Generator | np.random.RandomState
        self.generator = random.Random(7)
        self.synced_attributes: tuple[str, ...] = ()

    def setup(
        self,
        settings: dict[str, Any],
        accessible_markets_ids: list[int],
        *args: Any,
        **kwargs: Any,
    ) -> None:
        """Make the generator that the options name."""
        super().setup(settings, accessible_markets_ids)
        if self.options["kind"] == "generator":
            self.generator = np.random.default_rng(7)
        elif self.options["kind"] == "random state":
            self.generator = np.random.RandomState(7)
        if self.options.get("listed"):
            self.synced_attributes = ("generator",)

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Draw, unless the options say not to."""
        if not self.options.get("draws", True):
            return []
        draw = (
            self.generator.normalvariate(0.0, 1.0)
            if isinstance(self.generator, random.Random)
            else float(self.generator.normal())
        )
        return [limit(self, self.pick(markets), draw * 3)]


class MeddlingAgent(SampleAgent):
    """Assigns or deletes an attribute of a simulation object that is not itself."""

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Meddle with what the options name."""
        target: object = {
            "simulator": self.simulator,
            "market": markets[0],
            "agent": self.simulator.agents[-1],
            "event": self.simulator.events[0],
            "session": self.simulator.sessions[0],
        }[self.options["target"]]
        if self.options.get("deletes"):
            delattr(target, self.options["deletes"])
        else:
            target.influence = self.agent_id  # type: ignore[attr-defined]  # that is the point
        return []


# --------------------------------------------------------------------------- misbehaviour


class OwnError(Exception):
    """An exception with fields, that pickles as it should."""

    def __init__(self, code: int, place: str) -> None:
        super().__init__(code, place)
        self.code = code
        self.place = place

    def __str__(self) -> str:
        return f"{self.place} failed with {self.code}"


class KeywordError(Exception):
    """An exception that can be pickled and cannot be rebuilt."""

    def __init__(self, *, code: int) -> None:
        super().__init__(f"the code is {code}")
        self.code = code


class HoldingError(Exception):
    """An exception that cannot be pickled."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.held = unpicklable()


class HostileError(Exception):
    """An exception whose ``__reduce__`` and text raise."""

    def __reduce__(self) -> tuple[Any, ...]:
        raise RuntimeError("no way")

    def __str__(self) -> str:
        raise RuntimeError("no text")


def refuse_to_load() -> None:
    """Raise, as an exception's own loading may."""
    raise RuntimeError("not here")


class UnloadableError(Exception):
    """An exception that pickles well and raises when it is loaded."""

    def __reduce__(self) -> tuple[Any, ...]:
        return refuse_to_load, ()


class RaisingAgent(CountingAgent):
    """Raises what the options name, or returns what no agent may return."""

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Raise if this agent is due."""
        self.n_asked += 1
        assert self.logger is None or isinstance(self.logger, Logger)
        if self.logger is not None:
            Note(f"{self.agent_id} asked").read_and_write_with_direct_process(self.logger)
        orders: Orders = [limit(self, self.pick(markets), self.prng.randint(-5, 5))]
        if not self.is_due(markets):
            return orders
        errors = self.options["error"]
        error = errors if isinstance(errors, str) else errors[str(self.agent_id)]
        return misbehave(self, error, orders)


def misbehave(agent: Agent, error: str, orders: Orders) -> Orders:
    """Do what no agent should."""
    if error == "own":
        failure = OwnError(40 + agent.agent_id, "the model")
        failure.hint = ["late", "field"]  # type: ignore[attr-defined]  # attributes travel
        raise failure
    if error == "value":
        raise ValueError(f"agent {agent.agent_id} has a bad value")
    if error == "keyword":
        raise KeywordError(code=41)
    if error == "holding":
        raise HoldingError("it holds on")
    if error == "hostile":
        raise HostileError
    if error == "unloadable":
        raise UnloadableError("cannot come back")
    if error == "exit":
        raise SystemExit(42)
    if error == "stop":
        raise StopIteration(43)
    if error == "chained":
        try:
            raise KeyError("inner")
        except KeyError as inner:
            raise OwnError(44, "the outer") from inner
    if error == "none":
        return None  # type: ignore[return-value]  # that is the point
    if error == "generator":
        return (order for order in orders)  # type: ignore[return-value]  # that is the point
    if error == "spoof":
        order: Any = orders[0]
        order.agent_id = agent.agent_id + 1
        return orders
    if error == "unpicklable order":
        orders[0].note = unpicklable()  # type: ignore[union-attr]  # that is the point
        return orders
    if error == "unpicklable value":
        agent.asked_at = {"deep": [unpicklable()]}  # type: ignore[attr-defined]  # the point
        return orders
    if error == "unlisted":
        agent.forgotten = 1  # type: ignore[attr-defined]  # that is the point
        return orders
    if error == "die":
        os._exit(7)
    raise AssertionError(f"unknown error {error!r}")


class Unloadable:
    """Pickles well, and raises when it is loaded."""

    def __init__(self) -> None:
        self.content = "content"

    def __setstate__(self, state: dict[str, Any]) -> None:
        raise OwnError(45, "the loading")


class UnloadableAgent(SampleAgent):
    """Lists a value that raises when main loads it."""

    synced_attributes = ("value",)
    value: object = None

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Keep such a value."""
        if self.is_due(markets):
            self.value = Unloadable()
        return super().submit_orders(markets)


class EqualAgent(SampleAgent):
    """Claims to be equal to every agent."""

    def __eq__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return 1


class BlockingAgent(SampleAgent):
    """Says that it was asked, and never returns."""

    def submit_orders(self, markets: list[Market]) -> Orders:
        """Block for ever."""
        os.write(1, f"asked {os.getpid()}\n".encode())
        if self.options.get("busy"):
            while True:
                pass
        threading.Event().wait()
        return []


class BallastAgent(SampleAgent):
    """Carries 50 MB to the worker at every call."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.ballast = os.urandom(1_000_000) * 50


# --------------------------------------------------------------------------------- events


class TaxEvent(EventABC):
    """Changes agents' cash and an own counter before every step of every market."""

    def __init__(
        self, event_id: int, prng: random.Random, session: Session, simulator: Simulator, name: str
    ) -> None:
        super().__init__(event_id, prng, session, simulator, name)
        self.activation_count = 0

    def hook_registration(self) -> list[EventHook]:
        """Register for every step."""
        return [EventHook(self, "market", is_before=True)]

    def hooked_before_step_for_market(self, simulator: Simulator, market: Market) -> None:
        """Take a tax from a random agent."""
        self.activation_count += 1
        agent = self.prng.choice(simulator.agents)
        agent.cash_amount -= self.prng.randint(1, 5)


ORDINARY: tuple[type[Agent], ...] = (
    SampleAgent,
    IdleAgent,
    NeverAgent,
    CountingAgent,
    AlternatingAgent,
    LearnerAgent,
    MixinAgent,
    TrackerAgent,
    KeeperAgent,
    HelperAgent,
    MarketNotesAgent,
    ReaderAgent,
    LogWriterAgent,
    LastOrdersAgent,
    QueueAgent,
    CancelAtOnceAgent,
    CallbackAgent,
    GetstateAgent,
    SlottedAgent,
    PropertyAgent,
    OwnRandomAgent,
)
"""Agents that run the same with any runner, in any mixture."""
