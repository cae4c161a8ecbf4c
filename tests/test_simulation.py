"""What a simulation consists of: every kind of object, the same numbers, and what to call them."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from configs import (
    SAMPLE_CLASSES,
    Settings,
    full_settings,
    make_sequential,
    make_settings,
    run_sequential,
    setup,
)
from pams import (
    LIMIT_ORDER,
    Cancel,
    Fundamentals,
    IndexMarket,
    Market,
    Order,
    OrderBook,
    SequentialRunner,
    Session,
    Simulator,
)
from pams.agents import Agent, FCNAgent
from pams.events import EventABC, EventHook, PriceLimitRule
from pams.logs import Logger
from sample_agents import TranscriptLogger, reference_targets

from pams_parallel import ReferenceTable
from pams_parallel._simulation import (
    ForeignObjects,
    describe,
    generate_fundamentals,
    generators_of,
    parts_of_simulation,
    shared_objects,
)


def finished(settings: Settings | None = None, seed: int = 42) -> SequentialRunner:
    """Return a runner after its run, by default of a simulation with all that PAMS has."""
    settings = full_settings() if settings is None else settings
    return run_sequential(settings, SAMPLE_CLASSES, seed, TranscriptLogger())


@pytest.fixture(scope="module")
def simulator() -> Simulator:
    """A simulation after its run."""
    return finished().simulator


def is_shared(simulator: Simulator) -> Callable[[object], bool]:
    """Return what tells whether agents may return references to an object."""
    found = {id(obj) for obj in shared_objects(simulator)}
    found |= {
        id(prng)
        for agent in parts_of_simulation(simulator)
        for prng in generators_of(vars(agent) if hasattr(agent, "__dict__") else {})
    }
    return lambda obj: id(obj) in found


def small() -> Simulator:
    """Return a small simulation, to be changed."""
    settings = make_settings({"FCNAgent": 3}, markets=2, index=True)
    return finished(settings).simulator


def new_order(agent_id: int = 0, *, is_buy: bool = True) -> Order:
    """Return an order that rests in no book."""
    return Order(agent_id, 0, is_buy, LIMIT_ORDER, 1, price=300.0)


# ------------------------------------------------------------------------- what is in it


def test_kinds_of_targets(simulator: Simulator) -> None:
    """One object of every kind that a value may refer to may be returned."""
    targets = reference_targets(simulator, simulator.markets)
    shared = is_shared(simulator)
    absent = [
        name for name, obj in targets.items() if not shared(obj) and not isinstance(obj, Logger)
    ]
    assert absent == []
    assert any(isinstance(obj, Order) for obj in targets.values())


def owned_generators(simulator: Simulator) -> list[Any]:
    """Return the generators of all objects of a simulation, by PAMS's names."""
    return [
        simulator._prng,
        simulator.fundamentals._prng,
        simulator.fundamentals._np_prng,
        *(market._prng for market in simulator.markets),
        *(agent.prng for agent in simulator.agents),
        *(session.prng for session in simulator.sessions),
        *(event.prng for event in simulator.events),
    ]


ALL_OF_A_KIND: dict[str, Callable[[Simulator], list[Any]]] = {
    "markets": lambda simulator: simulator.markets,
    "agents": lambda simulator: simulator.agents,
    "sessions": lambda simulator: simulator.sessions,
    "events": lambda simulator: simulator.events,
    "hooks": lambda simulator: simulator.event_hooks,
    "books": lambda simulator: [
        book for m in simulator.markets for book in (m.buy_order_book, m.sell_order_book)
    ],
    "resting orders": lambda simulator: [
        order
        for m in simulator.markets
        for book in (m.buy_order_book, m.sell_order_book)
        for order in book.priority_queue
    ],
    "generators": owned_generators,
}


@pytest.mark.parametrize("collect", ALL_OF_A_KIND.values(), ids=ALL_OF_A_KIND)
def test_all_of_a_kind(collect: Callable[[Simulator], list[Any]], simulator: Simulator) -> None:
    """All objects of a kind may be returned, not some."""
    objects = collect(simulator)
    assert len(objects) > 1
    assert all(map(is_shared(simulator), objects))


def test_containers(simulator: Simulator) -> None:
    """The lists, dicts and sets that simulation objects hold may be returned; agents' own not."""
    holders = [
        simulator,
        simulator.fundamentals,
        *simulator.markets,
        *simulator.sessions,
        *simulator.events,
        *simulator.event_hooks,
        *(market.buy_order_book for market in simulator.markets),
    ]
    held = [(obj, name, v) for obj in holders for name, v in vars(obj).items() if is_container(v)]
    assert len(held) > 50
    shared = is_shared(simulator)
    assert [name for _, name, v in held if not shared(v)] == []
    own = [v for agent in simulator.agents for v in vars(agent).values() if is_container(v)]
    assert own
    assert not any(map(shared, own))


def is_container(value: object) -> bool:
    """Tell whether a value is one of the containers that the contract names."""
    return isinstance(value, (list, dict, set))


class SlottedEvent(PriceLimitRule):
    """Keeps containers in a slot and in a set."""

    __slots__ = ("in_slot",)
    in_slot: list[int]


def test_containers_in_slots_and_sets() -> None:
    """A container in a slot, and a set, may be returned, too."""
    simulator = small()
    session = simulator.sessions[0]
    event: Any = SlottedEvent(7, random.Random(1), session, simulator, "slotted")
    event.in_slot, event.members = [1], {2}
    simulator.events.append(event)
    assert all(map(is_shared(simulator), (event.in_slot, event.members)))


def test_each_object_once(simulator: Simulator) -> None:
    """No object stands twice among the parts."""
    numbers = [id(obj) for obj in parts_of_simulation(simulator)]
    assert len(numbers) == len(set(numbers))


def test_component_that_is_no_market_of_the_simulator() -> None:
    """A component of an index market may be returned, with its books, wherever it comes from."""
    simulator = small()
    hidden = Market(7, random.Random(1), simulator, "hidden")
    index = simulator.markets[-1]
    assert isinstance(index, IndexMarket)
    index._components.append(hidden)
    objects = (hidden, hidden._prng, hidden.sell_order_book.priority_queue)
    assert all(map(is_shared(simulator), objects))


def test_agents_and_markets_of_one_list_only() -> None:
    """What stands in one of the simulator's lists may be returned, though the others lack it."""
    simulator = small()
    normal, fast = (FCNAgent(i, random.Random(1), simulator, "hidden") for i in (7, 8))
    market = Market(7, random.Random(1), simulator, "hidden")
    simulator.normal_frequency_agents.append(normal)
    simulator.high_frequency_agents.append(fast)
    simulator.id2market[7] = market
    assert all(map(is_shared(simulator), (normal, fast, market)))


def test_before_the_first_session() -> None:
    """A simulation that has only been set up consists of objects only."""
    runner = make_sequential(make_settings({"FCNAgent": 2}), (), 1)
    setup(runner)
    assert runner.simulator.current_session is None
    assert all(obj is not None for obj in shared_objects(runner.simulator))


def test_event_that_only_a_hook_has() -> None:
    """An event that the simulator knows through a hook only may be returned."""
    simulator = small()
    event = PriceLimitRule(7, random.Random(1), simulator.sessions[0], simulator, "hidden")
    hook = EventHook(event, "market", is_before=True)
    simulator.event_hooks.append(hook)
    assert all(map(is_shared(simulator), (event, hook, event.prng, event.target_markets)))


def test_objects_that_are_no_longer_in_the_simulation() -> None:
    """An order that has left the book is none of the simulation's objects any more."""
    simulator = small()
    book = simulator.markets[0].buy_order_book
    order = new_order()
    order.order_id = 10**6
    book.add(order)
    assert is_shared(simulator)(order)
    book._remove(order)
    assert not is_shared(simulator)(order)


# --------------------------------------------------------------------------- describing


def test_descriptions(simulator: Simulator) -> None:
    """An object is called by its kind, number, class and name."""
    settings = simulator.sessions[1]
    market, index = simulator.markets[0], simulator.markets[-1]
    order = new_order(agent_id=3)
    order.order_id = 12
    assert describe(simulator.agents[4]) == "agent 4 (FCNAgent)"
    assert describe(market) == "market 0 (Market 'Market0')"
    assert describe(index) == "market 2 (IndexMarket 'Index')"
    assert describe(settings) == "session 1 (Session 'continuous')"
    assert describe(simulator.events[0]) == "event 0 (PriceLimitRule 'PriceLimit')"
    assert describe(order) == "order 12 of agent 3 (Order)"
    assert describe(simulator) == "the simulator (Simulator)"
    assert describe(simulator.fundamentals) == "the fundamentals (Fundamentals)"
    assert describe(market.buy_order_book) == "the order book (OrderBook)"
    assert describe(simulator.event_hooks[0]) == "the event hook (EventHook)"
    assert describe(simulator.logger) == "the logger (TranscriptLogger)"
    assert describe(simulator.markets) == "a list of the simulation"


def empty(cls: Any) -> object:
    """Return an object whose constructor has not been called."""
    return cls.__new__(cls)


class Hostile(FCNAgent):
    """An agent that answers no question."""

    def __getattr__(self, name: str) -> Any:
        raise LookupError(name)

    def __repr__(self) -> str:
        raise LookupError("of the repr")


ODD: list[object] = [
    *map(
        empty,
        [
            *(FCNAgent, Market, IndexMarket, Session, Simulator, Fundamentals, OrderBook),
            *(EventHook, Logger, PriceLimitRule, Order, Cancel, Hostile),
        ],
    ),
    *(None, 3, "text", [], int, Agent, describe, random.Random(1), np.random.default_rng(1)),
]


@pytest.mark.parametrize("obj", ODD, ids=lambda obj: type(obj).__name__)
def test_describing_never_fails(obj: object) -> None:
    """Whatever is described has a description with the name of its class, half-made objects too."""
    assert type(obj).__name__ in describe(obj)


# ---------------------------------------------------------------------- foreign objects


def add_market(simulator: Simulator) -> object:
    """Add a market."""
    simulator.markets.append(Market(99, random.Random(1), simulator, "new"))
    return simulator.markets[-1]


def add_order(simulator: Simulator) -> object:
    """Add an order to a book."""
    order = new_order()
    simulator.markets[0]._is_running = True
    simulator.markets[0]._add_order(order)
    return order


def add_agent(simulator: Simulator) -> object:
    """Add an agent."""
    agent = FCNAgent(99, random.Random(1), simulator, "new")
    simulator._add_agent(agent)
    return agent


def add_session(simulator: Simulator) -> object:
    """Make another session the current one."""
    simulator.current_session = Session(99, random.Random(1), 0, simulator, "new")
    return simulator.current_session


def replace_fundamentals(simulator: Simulator) -> object:
    """Put other fundamentals in the place of the old ones."""
    simulator.fundamentals = Fundamentals(random.Random(1))
    return simulator.fundamentals


FOREIGN: dict[str, tuple[Callable[[Simulator], object], str]] = {
    "market": (add_market, "market 99 (Market 'new')"),
    "order": (add_order, "order"),
    "agent": (add_agent, "agent 99 (FCNAgent)"),
    "session": (add_session, "session 99 (Session 'new')"),
    "fundamentals": (replace_fundamentals, "the fundamentals (Fundamentals)"),
}


@pytest.mark.parametrize(("change", "name"), FOREIGN.values(), ids=FOREIGN)
def test_foreign_object(change: Callable[[Simulator], object], name: str) -> None:
    """What was put into the simulation after it was numbered is foreign, and is named."""
    simulator = small()
    known = ReferenceTable(shared_objects(simulator))
    foreign = change(simulator)
    found = ForeignObjects(simulator, known).name(foreign)
    assert found is not None
    assert found.startswith(name)


def test_agents_own_objects_are_not_foreign() -> None:
    """An order, an agent or a market that an agent keeps for itself is an ordinary value."""
    simulator = small()
    names = ForeignObjects(simulator, ReferenceTable(shared_objects(simulator)))
    own: list[object] = [
        new_order(),
        FCNAgent(99, random.Random(1), simulator, "inner"),
        Market(99, random.Random(1), simulator, "inner"),
        *([], {}, None, 3, random.Random(1)),
    ]
    assert [names.name(obj) for obj in own] == [None] * len(own)


def test_known_objects_are_not_foreign() -> None:
    """What has a number is not foreign, whatever else has been put into the simulation."""
    simulator = small()
    known = ReferenceTable(shared_objects(simulator))
    add_market(simulator)
    names = ForeignObjects(simulator, known)
    assert [obj for obj in known.objects.values() if names.name(obj) is not None] == []


# ------------------------------------------------------------------------ fundamentals


def test_fundamentals_are_generated_as_asked_for() -> None:
    """Generating as far as an agent has asked gives what asking would have given."""
    asked, told = small().fundamentals, small()
    asked.get_fundamental_price(0, 350)
    until = asked._generated_until
    assert until > told.fundamentals._generated_until
    generate_fundamentals(told, until)
    assert told.fundamentals._generated_until == until
    assert told.fundamentals.prices == asked.prices
    assert told.fundamentals._np_prng.bit_generator.state == asked._np_prng.bit_generator.state


def test_fundamentals_that_are_there_are_not_generated_again() -> None:
    """Generating no further than they are draws nothing."""
    simulator = small()
    before = repr(simulator.fundamentals._np_prng.bit_generator.state)
    generate_fundamentals(simulator, simulator.fundamentals._generated_until)
    generate_fundamentals(simulator, 0)
    assert repr(simulator.fundamentals._np_prng.bit_generator.state) == before


def test_simulation_of_these_tests(simulator: Simulator) -> None:
    """The simulation of these tests has several classes of agents, markets and events."""
    for base, number in ((Agent, 5), (Market, 2), (EventABC, 4)):
        classes = {type(obj) for obj in parts_of_simulation(simulator) if isinstance(obj, base)}
        assert len(classes) >= number
