"""The state: all of it is there, and a difference is found, digested and named."""

from __future__ import annotations

import collections
import copy
import datetime
import decimal
import enum
import functools
import itertools
import math
import os
import random
import struct
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
import pytest
from configs import SAMPLE_CLASSES, full_settings, make_sequential, make_settings
from pams import MARKET_ORDER, Market, Order, SequentialRunner
from pams.logs import Log, Logger, MarketStepSaver
from sample_agents import Note

from pams_parallel._state import (
    Difference,
    RecordingLogger,
    State,
    capture_state,
    digest,
    first_difference,
)
from pams_parallel._state.names import Names
from pams_parallel._state.plain import Describer
from pams_parallel._state.tree import Branch, Node, one_line

Change = Callable[[SequentialRunner], None]


# --------------------------------------------------------------------------- a simulation


class Helper:
    """An object that an agent of the user might hold."""

    def __init__(self, **attributes: object) -> None:
        vars(self).update(attributes)


class Slotted:
    """An object without a dict."""

    __slots__ = ("__private", "value")

    def __init__(self, value: object, private: object) -> None:
        self.value = value
        self.__private = private


class Colour(enum.Enum):
    """An enum of the user."""

    RED = 1
    BLUE = 2


def finished_runner(logger: Logger | None = None) -> SequentialRunner:
    """Return a runner after a run that left orders in the books, with an agent full of things."""
    runner = make_sequential(
        full_settings(), SAMPLE_CLASSES, 1, RecordingLogger() if logger is None else logger
    )
    runner._setup()
    runner._run()
    shared = [1, 2]
    simulator = runner.simulator
    vars(simulator.agents[0]).update(
        zero=0.0,
        nan=math.nan,
        one=1,
        history=[1.0, 2.0, 3.0],
        first_name=shared,
        second_name=shared,
        weights=np.arange(6, dtype=np.float32).reshape(2, 3),
        long_weights=np.zeros(10_000),
        generator=np.random.default_rng(3),
        helper=Helper(rule={"a": (1, 2)}),
        tags={"x", "y"},
        by_market=dict.fromkeys(simulator.markets, 0),
        market=simulator.markets[0],
        resting=book(runner).priority_queue[0],
        slotted=Slotted(1, 2),
    )
    return runner


def book(runner: SequentialRunner) -> Any:
    """Return a book that holds several orders."""
    books = [
        one
        for market in runner.simulator.markets
        for one in (market.buy_order_book, market.sell_order_book)
    ]
    fullest = max(books, key=len)
    assert len(fullest) > 2
    return fullest


def agent(runner: SequentialRunner) -> Any:
    """Return the agent that is full of things."""
    return runner.simulator.agents[0]


def market(runner: SequentialRunner) -> Any:
    """Return the first market."""
    return runner.simulator.markets[0]


def index(runner: SequentialRunner) -> Any:
    """Return the index market."""
    return runner.simulator.name2market["Index"]


def order(runner: SequentialRunner) -> Any:
    """Return a resting order that is not the first of its book."""
    return book(runner).priority_queue[1]


def event(runner: SequentialRunner) -> Any:
    """Return an event."""
    return runner.simulator.events[0]


def records(runner: SequentialRunner) -> list[str]:
    """Return the log records."""
    assert isinstance(runner.logger, RecordingLogger)
    return runner.logger.records


def sets(owner: Callable[[SequentialRunner], Any], name: str, value: object) -> Change:
    """Return the change that sets an attribute of an object to another value."""

    def change(runner: SequentialRunner) -> None:
        assert getattr(owner(runner), name, None) is not value
        setattr(owner(runner), name, value)

    return change


def draws(owner: Callable[[SequentialRunner], Any], name: str) -> Change:
    """Return the change that draws from a generator."""

    def change(runner: SequentialRunner) -> None:
        getattr(owner(runner), name).random()

    return change


def history(name: str, value: object) -> Change:
    """Return the change of a value in the past of a market."""

    def change(runner: SequentialRunner) -> None:
        getattr(market(runner), name)[2] = value

    return change


def does(action: Callable[[Any], object], owner: Callable[[SequentialRunner], Any]) -> Change:
    """Return the change that an action makes to an object."""

    def change(runner: SequentialRunner) -> None:
        action(owner(runner))

    return change


def swap(items: list[Any]) -> None:
    """Exchange the last two items."""
    items[-1], items[-2] = items[-2], items[-1]


def replace_by_copy(name: str) -> Change:
    """Return the change that puts an equal copy in the place of a simulation object."""

    def change(runner: SequentialRunner) -> None:
        setattr(agent(runner), name, copy.copy(getattr(agent(runner), name)))

    return change


AGENT = "agent 0 (FCNAgents-0): "
CHANGES: dict[str, tuple[Change, str]] = {
    "market time": (sets(market, "time", 7), "market 'Market0': time"),
    "market price": (history("_market_prices", 1.5), "market 'Market0': market price at time 2"),
    "fundamental price": (
        history("_fundamental_prices", 1.5),
        "market 'Market0': fundamental price at time 2",
    ),
    "mid price": (history("_mid_prices", 1.5), "market 'Market0': mid price at time 2"),
    "last executed price": (
        history("_last_executed_prices", 1.5),
        "market 'Market0': last executed price at time 2",
    ),
    "executed volume": (
        history("_executed_volumes", 99),
        "market 'Market0': executed volume at time 2",
    ),
    "executed total": (
        history("_executed_total_prices", 1.5),
        "market 'Market0': executed total price at time 2",
    ),
    "number of buys": (
        history("_n_buy_orders", 99),
        "market 'Market0': number of buy orders at time 2",
    ),
    "number of sells": (
        history("_n_sell_orders", 99),
        "market 'Market0': number of sell orders at time 2",
    ),
    "history length": (does(list.pop, lambda r: market(r)._mid_prices), "mid price at time"),
    "market running": (sets(market, "_is_running", None), "market 'Market0': _is_running"),
    "next order id": (sets(market, "_next_order_id", 0), "market 'Market0': _next_order_id"),
    "tick size": (sets(market, "tick_size", 7.0), "market 'Market0': tick_size"),
    "market's own": (sets(market, "mine", 7.0), "market 'Market0': mine"),
    "index components": (
        does(list.pop, lambda r: index(r).get_components()),
        "market 'Index': _components[1]",
    ),
    "order price": (sets(order, "price", 7.0), "order at place 1: price"),
    "order volume": (sets(order, "volume", 7), "order at place 1: volume"),
    "order time": (sets(order, "placed_at", 1), "order at place 1: placed_at"),
    "order life": (sets(order, "ttl", 77), "order at place 1: ttl"),
    "order agent": (sets(order, "agent_id", 77), "order at place 1: agent_id"),
    "order market": (sets(order, "market_id", 77), "order at place 1: market_id"),
    "order kind": (sets(order, "kind", MARKET_ORDER), "order at place 1: kind"),
    "order canceled": (sets(order, "is_canceled", True), "order at place 1: is_canceled"),
    "order side": (sets(order, "is_buy", None), "order at place 1: is_buy"),
    "order id": (sets(order, "order_id", -1), "order at place 1: order_id"),
    "heap order": (does(swap, lambda r: book(r).priority_queue), "order at place"),
    "heap length": (does(list.pop, lambda r: book(r).priority_queue), "order at place"),
    "expire list": (does(dict.clear, lambda r: book(r).expire_time_list), "expire_time_list["),
    "book time": (sets(book, "time", 7), "order book of market 0: time"),
    "cash": (sets(agent, "cash_amount", 7.0), AGENT + "cash_amount"),
    "asset volume": (
        does(lambda volumes: volumes.update({0: -7}), lambda r: agent(r).asset_volumes),
        AGENT + "asset_volumes[0]",
    ),
    "agent's generator": (draws(agent, "prng"), AGENT + "prng.position"),
    "pending gauss value": (
        does(lambda prng: prng.gauss(0, 1), lambda r: agent(r).prng),
        AGENT + "prng.gauss_next",
    ),
    "seed": (does(lambda prng: prng.seed(7), lambda r: agent(r).prng), AGENT + "prng."),
    "negative zero": (sets(agent, "zero", -0.0), AGENT + "zero"),
    "other nan": (
        sets(agent, "nan", struct.unpack(">d", bytes.fromhex("7ff8000000000001"))[0]),
        AGENT + "nan",
    ),
    "bool for int": (sets(agent, "one", True), AGENT + "one"),
    "float for int": (sets(agent, "one", 1.0), AGENT + "one"),
    "list item": (does(swap, lambda r: agent(r).history), AGENT + "history[1]"),
    "longer list": (does(lambda one: one.append(4.0), lambda r: agent(r).history), "history[3]"),
    "tuple for list": (sets(agent, "history", (1.0, 2.0, 3.0)), AGENT + "history"),
    "two lists for one": (sets(agent, "second_name", [1, 2]), AGENT + "second_name"),
    "one list for two": (
        does(lambda one: vars(one).update(history=one.first_name), agent),
        AGENT + "history",
    ),
    "new attribute": (sets(agent, "new", 1), AGENT + "new"),
    "deleted attribute": (does(lambda one: delattr(one, "one"), agent), AGENT + "one"),
    "array element": (
        does(lambda array: array.__setitem__((1, 2), 7.0), lambda r: agent(r).weights),
        AGENT + "weights[1, 2]",
    ),
    "array type": (
        does(lambda one: vars(one).update(weights=one.weights.astype(np.float64)), agent),
        AGENT + "weights.dtype",
    ),
    "array shape": (
        does(lambda one: vars(one).update(weights=one.weights.reshape(3, 2)), agent),
        AGENT + "weights.shape[0]",
    ),
    "element of a long array": (
        does(lambda array: array.__setitem__(9_000, -0.0), lambda r: agent(r).long_weights),
        AGENT + "long_weights[elements 8192 to 9999, sha256]",
    ),
    "numpy generator": (draws(agent, "generator"), AGENT + "generator.state.state"),
    "deep inside an object": (
        does(lambda helper: helper.rule.update(a=(1, 3)), lambda r: agent(r).helper),
        AGENT + "helper.rule['a'][1]",
    ),
    "in a slot": (sets(lambda r: agent(r).slotted, "value", 5), AGENT + "slotted.value"),
    "in a private slot": (
        sets(lambda r: agent(r).slotted, "_Slotted__private", 5),
        AGENT + "slotted.__private",
    ),
    "set member": (does(lambda tags: tags.add("z"), lambda r: agent(r).tags), AGENT + "tags[2]"),
    "value by market": (
        does(lambda one: one.by_market.update({one.market: 9}), agent),
        AGENT + "by_market[<market 0>]",
    ),
    "copy of a market": (replace_by_copy("market"), AGENT + "market"),
    "copy of a resting order": (replace_by_copy("resting"), AGENT + "resting"),
    "runner's generator": (
        does(lambda prng: prng.random(), lambda r: r._prng),
        "runner: PRNG.position",
    ),
    "simulator's generator": (
        draws(lambda r: r.simulator, "_prng"),
        "simulator: _prng.position",
    ),
    "fundamentals' generator": (
        draws(lambda r: r.simulator.fundamentals, "_prng"),
        "fundamentals: _prng.position",
    ),
    "fundamentals' numpy generator": (
        draws(lambda r: r.simulator.fundamentals, "_np_prng"),
        "fundamentals: _np_prng.state.state",
    ),
    "fundamentals' future": (
        does(list.pop, lambda r: r.simulator.fundamentals.prices[0]),
        "fundamentals: prices[0][",
    ),
    "market's generator": (draws(market, "_prng"), "market 'Market0': _prng.position"),
    "session's generator": (
        draws(lambda r: r.simulator.sessions[1], "prng"),
        "session 1 (continuous): prng.position",
    ),
    "session": (
        sets(lambda r: r.simulator.sessions[1], "max_normal_orders", 77),
        "session 1 (continuous): max_normal_orders",
    ),
    "event's generator": (draws(event, "prng"), "event 0 (PriceLimit): prng.position"),
    "event": (sets(event, "activation_count", 77), "event 0 (PriceLimit): activation_count"),
    "event's markets": (
        does(dict.clear, lambda r: event(r).target_markets),
        "event 0 (PriceLimit): target_markets['Market0']",
    ),
    "event hook": (
        sets(lambda r: r.simulator.event_hooks[0], "time", [77]),
        "event hook 0: time",
    ),
    "current session": (
        sets(lambda r: r.simulator, "current_session", None),
        "simulator: current_session",
    ),
    "simulator's own": (sets(lambda r: r.simulator, "mine", 7.0), "simulator: mine"),
    "log record": (does(lambda all_: all_.__setitem__(5, "?"), records), "log record 5"),
    "last log record": (does(list.pop, records), "log record "),
}
"""Name of a part of the state -> what changes it, and words of where the difference is found."""


@pytest.mark.parametrize("name", CHANGES)
def test_every_part_of_the_state_counts(name: str) -> None:
    """Changing a part changes the digest, and the first difference names that part."""
    change, words = CHANGES[name]
    runner = finished_runner()
    before = capture_state(runner)
    change(runner)
    after = capture_state(runner)
    assert before != after
    assert digest(before) != digest(after)
    difference = first_difference(before, after)
    assert difference is not None
    assert words in difference.where
    assert difference.left != difference.right


def test_equal_runs_have_equal_states() -> None:
    """Two runs with the same seed have equal states, equal digests and no difference."""
    left, right = capture_state(finished_runner()), capture_state(finished_runner())
    assert left == right
    assert digest(left) == digest(right)
    assert first_difference(left, right) is None


def test_capturing_changes_nothing() -> None:
    """To capture the state twice gives the same: it is only read."""
    runner = finished_runner()
    assert capture_state(runner) == capture_state(runner)


def test_order_of_first_assignment_does_not_count() -> None:
    """When an attribute was set first is not part of the state."""
    runner = finished_runner()
    before = capture_state(runner)
    history = vars(agent(runner)).pop("history")
    agent(runner).history = history
    assert capture_state(runner) == before


def test_own_logger_is_part_of_the_state() -> None:
    """What a logger that does not record keeps is compared like other attributes."""
    runner = finished_runner(MarketStepSaver())
    before = capture_state(runner)
    assert isinstance(runner.logger, MarketStepSaver)
    runner.logger.market_step_logs[3]["market_price"] = 7.0
    difference = first_difference(before, capture_state(runner))
    assert difference is not None
    assert difference.where == "logger: market_step_logs[3]['market_price']"


def test_runner_without_logger() -> None:
    """A runner without a logger has a state too."""
    runner = make_sequential(make_settings({"FCNAgent": 2}), (), 1)
    runner._setup()
    assert len(digest(capture_state(runner))) == 64


_DIGEST_SCRIPT = """
from pams_parallel._state import capture_state, digest
from test_state import finished_runner
print(digest(capture_state(finished_runner())))
"""


def test_digest_is_the_same_in_every_process() -> None:
    """The digest does not depend on the process nor on its string hashes."""
    found = {digest(capture_state(finished_runner()))}
    for seed in ("1", "2"):
        environment = {
            **os.environ,
            "PYTHONHASHSEED": seed,
            "PYTHONPATH": str(Path(__file__).parent),
        }
        done = subprocess.run(
            [sys.executable, "-W", "ignore", "-c", _DIGEST_SCRIPT],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        found.add(done.stdout.strip())
    assert len(found) == 1


def state_of(*items: tuple[str, Node]) -> State:
    """Return a state of given parts."""
    return State(Branch("state", items))


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ((("a", "bc"),), (("ab", "c"),)),
        ((("a", "1"), ("b", "2")), (("b", "2"), ("a", "1"))),
        ((("a", Branch("list", ())),), (("a", Branch("tuple", ())),)),
        ((("a", Branch("list", (("[0]", "1"),))),), (("a", Branch("list", ())), ("[0]", "1"))),
        ((("a", "leaf"),), (("a", Branch("leaf", ())),)),
    ],
)
def test_digest_keeps_trees_apart(
    left: tuple[tuple[str, Node], ...], right: tuple[tuple[str, Node], ...]
) -> None:
    """Unlike trees have unlike digests, also when their texts put together are alike."""
    assert digest(state_of(*left)) != digest(state_of(*right))


# --------------------------------------------------------------------------------- values


def plain(value: object) -> Node:
    """Return a value as plain data, without a simulation around it."""
    runner = make_sequential(make_settings({"FCNAgent": 1}), (), 1)
    return Describer(Names(runner.simulator)).node(value, "value")


class Price(float):
    """A float of the user."""

    tag: str


def tagged(value: float, tag: str) -> Price:
    """Return a float with an attribute."""
    price = Price(value)
    price.tag = tag
    return price


def closure(value: object) -> Callable[[], object]:
    """Return a function that holds a value."""
    return lambda: value


def itself() -> list[object]:
    """Return a list that holds itself."""
    cycle: list[object] = [1]
    cycle.append(cycle)
    return cycle


def twin_objects(same: bool) -> set[Helper]:
    """Return a set of objects that share a list, or hold equal ones."""
    one: list[int] = []
    return {Helper(name=i, data=one if same else []) for i in range(5)}


UNLIKE: list[tuple[object, object]] = [
    (0.0, -0.0),
    (1, 1.0),
    (1, True),
    (0, False),
    (None, "None"),
    (b"a", "a"),
    (bytearray(b"a"), b"a"),
    (complex(0.0, 0.0), complex(-0.0, 0.0)),
    (10**5000, 10**5000 + 1),
    (np.float64(1), 1.0),
    (np.float64(1), np.float32(1)),
    (np.array([0.0]), np.array([-0.0])),
    (np.array([[1]]), np.array([1])),
    (np.array([1, "a"], dtype=object), np.array([1, "b"], dtype=object)),
    (np.array([(1, 2.0)], dtype="i4,f8"), np.array([(1, 3.0)], dtype="i4,f8")),
    (np.datetime64("2020-01-01"), np.datetime64("2020-01-02")),
    ([1, 2], [2, 1]),
    ([1], (1,)),
    ({1}, frozenset({1})),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    (collections.deque([1]), [1]),
    (collections.OrderedDict(a=1), {"a": 1}),
    (Colour.RED, Colour.BLUE),
    (int, float),
    (math.sin, math.cos),
    ([].append, [1].append),
    (functools.partial(int, base=2), functools.partial(int, base=8)),
    (closure(1), closure(2)),
    (Helper(a=1).__init__, Helper(a=2).__init__),  # type: ignore[misc]
    (Price(1.0), Price(2.0)),
    (tagged(1.0, "a"), tagged(2.0, "a")),
    (tagged(1.0, "a"), tagged(1.0, "b")),
    (decimal.Decimal("1.0"), decimal.Decimal("1.00")),
    (datetime.date(2020, 1, 1), datetime.date(2020, 1, 2)),
    (PurePosixPath("/a"), PurePosixPath("/b")),
    (ValueError("a"), ValueError("b")),
    (iter([1, 2]), iter([1, 3])),
    (range(1, 3), range(1, 4)),
    (np.random.RandomState(1), np.random.RandomState(2)),
    (random.Random(1), random.Random(2)),
    (Helper(a=1), Helper(b=1)),
    (Slotted(1, 2), Slotted(1, 3)),
    (itself(), [1, [1]]),
    (twin_objects(same=True), twin_objects(same=False)),
]
"""Values that are not the same bit for bit, in pairs."""


def _type_name(value: object) -> str:
    # the values themselves have addresses in their texts, or no text at all
    return type(value).__name__


@pytest.mark.parametrize(("left", "right"), UNLIKE, ids=_type_name)
def test_unlike_values_differ(left: object, right: object) -> None:
    """Values that are not the same bit for bit, of the same type and structure, differ."""
    assert plain(left) != plain(right)


@pytest.mark.parametrize("value", [*itertools.chain(*UNLIKE)], ids=_type_name)
def test_copies_are_alike(value: object) -> None:
    """A copy of a value, which all that comes back from a worker is, is plainly the same."""
    assert plain(copy.deepcopy(value)) == plain(value)


@pytest.mark.parametrize(
    "make",
    [
        threading.Lock,
        object,
        lambda: (i for i in range(3)),
        lambda: sys.stdin,
        random.SystemRandom,
        lambda: super(Price, Price(1.0)),
        lambda: sys.modules[__name__],
    ],
)
def test_objects_that_say_nothing_are_told_by_class(make: Callable[[], object]) -> None:
    """Locks, files and generators are part of a state without being an error."""
    assert plain(make()) == plain(make())


def test_sets_have_no_order() -> None:
    """A set is the same whatever the order of its members, also of objects that share one."""
    names = [f"name{i}" for i in range(50)]
    backwards = [*reversed(names)]
    assert plain(set(names)) == plain(set(backwards))
    assert plain(twin_objects(same=True)) == plain(twin_objects(same=True))


def test_shared_constants_are_values() -> None:
    """Whether an immutable value is one object or two does not count: copying may change it."""
    pair = (1, 2)
    assert plain([pair, pair]) == plain([(1, 2), (1, 1 + 1)])
    assert plain([MARKET_ORDER, MARKET_ORDER]) == plain([MARKET_ORDER, copy.copy(MARKET_ORDER)])


def test_byte_order_does_not_count() -> None:
    """Arrays are compared in one byte order, so that platforms agree."""
    for size in (3, 5000):
        array = np.arange(size, dtype="<f8")
        assert plain(array) == plain(array.astype(">f8"))


class TensorLike:
    """Offers itself as an array, as tensors do."""

    def __init__(self, data: list[float], broken: bool = False) -> None:
        self._data = (data, broken)

    def __array__(self, *_: object, **__: object) -> Any:
        data, broken = self._data
        if broken:
            raise RuntimeError("not on this device")
        return np.array(data)


def test_tensors_are_arrays() -> None:
    """What offers itself as an array is compared as one; one that refuses does no harm."""
    node = plain(TensorLike([1.0, 2.0]))
    assert isinstance(node, Branch)
    assert dict(node.items)["[1]"] == "2.0"
    assert plain(TensorLike([1.0], broken=True)) == plain(TensorLike([1.0], broken=True))


def test_one_line_reads_like_python() -> None:
    """The one-line form of plain values is their Python literal."""
    value = {"a": [1, 2.5, None], "b": (True, "x"), 3: {"y"}}
    assert one_line(plain(value)) == "{'a': [1, 2.5, None], 'b': (True, 'x'), 3: {'y'}}"


# ----------------------------------------------------------------------------- differences


def test_difference_in_words() -> None:
    """A difference says where, both values, and which is whose."""
    left = state_of(("market 'SpotMarket-0': market price at time 17", "300.0"))
    right = state_of(("market 'SpotMarket-0': market price at time 17", "301.0"))
    assert str(first_difference(left, right)) == (
        "market 'SpotMarket-0': market price at time 17: "
        "300.0 (sequential) against 301.0 (parallel)"
    )


def test_long_values_are_shortened_around_the_difference() -> None:
    """Of long values, the surroundings of the first different character are shown."""
    text = str(Difference("here", "x" * 500 + "LEFT" + "y" * 500, "x" * 500 + "RIGHT"))
    assert len(text) < 250
    assert "xLEFTy" in text
    assert "xRIGHT" in text
    assert "..." in text


def test_missing_parts_are_nothing() -> None:
    """A part that one side lacks is nothing against the value of the other."""
    short = state_of(("a", Branch("list", (("[0]", "1"),))))
    long = state_of(("a", Branch("list", (("[0]", "1"), ("[1]", "2")))))
    assert first_difference(short, long) == Difference("a[1]", "nothing", "2")
    assert first_difference(long, short) == Difference("a[1]", "2", "nothing")
    without = state_of(("b", "2"))
    both = state_of(("a", "1"), ("b", "2"))
    assert first_difference(without, both) == Difference("a", "nothing", "1")
    assert first_difference(both, without) == Difference("a", "1", "nothing")


def test_order_of_keys_is_named() -> None:
    """Dicts that differ in their order only are said to differ in that."""
    left = state_of(("a", Branch("dict", (("['x']", "1"), ("['y']", "2")))))
    right = state_of(("a", Branch("dict", (("['y']", "2"), ("['x']", "1")))))
    difference = first_difference(left, right)
    assert difference == Difference("a: order of the keys", "['x'], ['y']", "['y'], ['x']")


def test_earliest_difference_comes_first() -> None:
    """Of two differences in prices, that of the earlier time is told, whatever the market."""
    runner = finished_runner()
    before = capture_state(runner)
    markets: list[Any] = list(runner.simulator.markets)
    markets[0]._market_prices[5] = 7.0
    markets[1]._market_prices[4] = 7.0
    difference = first_difference(before, capture_state(runner))
    assert difference is not None
    assert difference.where == "market 'Market1': market price at time 4"


# ------------------------------------------------------------------------------- recording


class Holder(Log):
    """A log of the user that holds more than numbers and texts."""

    def __init__(self, data: object) -> None:
        self.data = data


class Tolerant(RecordingLogger):
    """Does not mind logs that PAMS does not know."""

    def process(self, logs: list[Log]) -> None:
        """Do nothing."""


def test_recording_keeps_calls_in_order() -> None:
    """Every log is recorded with the call that brought it, in the order of the calls."""
    logger = Tolerant()
    logger.write(Note("a"))
    logger.bulk_write([Note("b"), Note("c")])
    logger.write_and_direct_process(Note("d"))
    logger.bulk_write_and_direct_process([Note("e")])
    assert logger.records == [
        "write: sample_agents.Note(text='a')",
        "bulk_write (1 of 2): sample_agents.Note(text='b')",
        "bulk_write (2 of 2): sample_agents.Note(text='c')",
        "write_and_direct_process: sample_agents.Note(text='d')",
        "bulk_write_and_direct_process (1 of 1): sample_agents.Note(text='e')",
    ]
    assert [vars(log)["text"] for log in logger.pending_logs] == ["a", "b", "c"]


def test_recording_is_at_the_moment_of_writing() -> None:
    """A log is recorded as it was when written, though its objects change afterwards."""
    logger = Tolerant()
    runner = make_sequential(make_settings({"FCNAgent": 1}), (), 1, logger)
    runner._setup()
    data = [1, runner.simulator.markets[0]]
    logger.write(Holder(data))
    data.append(2)
    assert logger.records == ["write: test_state.Holder(data=[1, <market 0>])"]


def test_recorded_market_steps_hold_prices() -> None:
    """The record of a market step holds the prices of that time."""
    runner = finished_runner()
    market: Market = runner.simulator.markets[0]
    ends = [r for r in records(runner) if "MarketStepEndLog" in r and "<market 0>" in r]
    for time, record in enumerate(ends):
        assert f"market_time={time}," in record
        assert f"market_price={market.get_market_price(time)!r}," in record


def test_logs_that_refer_to_copies_differ() -> None:
    """A log that refers to a copy of a market is not recorded as one that refers to the market."""
    texts = []
    for copied in (False, True):
        logger = Tolerant()
        runner = make_sequential(make_settings({"FCNAgent": 1}), (), 1, logger)
        runner._setup()
        market = runner.simulator.markets[0]
        logger.write(Holder(copy.copy(market) if copied else market))
        texts.append(logger.records[0])
    assert texts[0] == "write: test_state.Holder(data=<market 0>)"
    assert texts[1] != texts[0]


def test_log_without_simulation() -> None:
    """A logger without a simulator records the class of what it cannot name."""
    logger = Tolerant()
    logger.write(Holder([1]))
    assert logger.records == ["write: test_state.Holder(<no simulator>)"]


def test_executed_orders_are_written_out() -> None:
    """An order that rests in no book is compared field by field."""
    gone = Order(1, 0, True, MARKET_ORDER, 5)
    node = plain(gone)
    assert isinstance(node, Branch)
    assert dict(node.items)[".volume"] == "5"
