"""A replica is the simulation again, object by object, whatever happens on either side."""

from __future__ import annotations

import contextlib
import copyreg
import enum
import random
import types
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from configs import (
    SAMPLE_CLASSES,
    full_settings,
    make_sequential,
    make_settings,
    run_sequential,
    setup,
)
from isomorphism import find_difference
from pams import Order, SequentialRunner, Simulator
from pams.agents import Agent
from pams.logs import Logger
from sample_agents import LastDrawRandom, TranscriptLogger, unpicklable

from pams_parallel import CodecBackend, DillBackend, PayloadError, PickleBackend
from pams_parallel._replica import CannotSendError, Replica, Tracker, Wanted
from pams_parallel._replica_logger import LoggerTraffic, LoggerView

BACKENDS: list[CodecBackend] = [PickleBackend(), DillBackend()]

both = pytest.mark.parametrize("backend", BACKENDS, ids=["pickle", "dill"])


class Pair:
    """A simulation in main, and a worker's replica of it; the root may be any object."""

    def __init__(self, root: Any, backend: CodecBackend, **wanted: str) -> None:
        self.root = root
        self.wanted = Wanted({FileLogger: set(wanted.get("names", "").split())})
        self.tracker = Tracker(backend, is_logger, is_agent, self.wanted)
        self.traffic = LoggerTraffic()
        self.replica = Replica(backend, self.traffic)

    def update(self, *loggers: object) -> Any:
        """Tell the worker what has changed, and return the replica's root."""
        self.replica.apply(self.tracker.update(self.root, loggers))
        return self.copy

    @property
    def copy(self) -> Any:
        """The replica's root."""
        return self.replica.objects[self.replica.simulator]

    def difference(self) -> str | None:
        """Return the first difference of the two, loggers apart."""
        pairs = [
            (obj, self.replica.objects[number])
            for number, obj in self.tracker.objects.items()
            if isinstance(obj, Logger)
        ]
        return find_difference(self.root, self.copy, pairs)


def is_logger(cls: type) -> bool:
    """Tell the classes of loggers."""
    return issubclass(cls, Logger)


def is_agent(cls: type) -> bool:
    """Tell the classes of agents."""
    return issubclass(cls, Agent)


def replica_of(
    objects: list[Any], backend: CodecBackend, names: str = "", *loggers: object
) -> list[Any]:
    """Return the objects that a worker has for these."""
    copies: list[Any] = Pair(objects, backend, names=names).update(*loggers)
    return copies


def set_up(settings: dict[str, Any], logger: Logger | None = None) -> SequentialRunner:
    """Return a simulation that has been set up."""
    runner = make_sequential(settings, SAMPLE_CLASSES, 42, logger)
    setup(runner)
    return runner


@pytest.fixture(scope="module")
def finished() -> Simulator:
    """A simulation with all that PAMS has, after a run: with histories, orders and log records."""
    return run_sequential(full_settings(), SAMPLE_CLASSES, 42, TranscriptLogger()).simulator


# ----------------------------------------------------------------------- a simulation


@both
def test_replica_is_the_simulation_again(finished: Simulator, backend: CodecBackend) -> None:
    """The replica has the same content and aliases; only the loggers are stand-ins."""
    pair = Pair(finished, backend)
    pair.update()
    assert any(isinstance(obj, Order) for obj in pair.tracker.objects.values())
    assert pair.difference() is None
    classes = (type, types.FunctionType, types.BuiltinFunctionType, enum.Enum)
    shared = set(pair.tracker.numbers) & set(pair.replica.numbers)
    found = [pair.tracker.objects[pair.tracker.numbers[one]] for one in shared]
    assert [obj for obj in found if not isinstance(obj, classes)] == []


@both
def test_nothing_new_costs_nothing(finished: Simulator, backend: CodecBackend) -> None:
    """An update of a simulation in which nothing has happened says nothing."""
    pair = Pair(finished, backend)
    pair.update()
    update = pair.tracker.update(finished, ())
    assert len(update) < 1000
    pair.replica.apply(update)
    assert pair.difference() is None


@both
def test_histories_cost_nothing(backend: CodecBackend) -> None:
    """An update does not grow with the length of a list that grows at its end."""
    histories: list[list[Any]] = [[], [], []]
    pair = Pair(histories, backend)
    sizes: list[int] = []
    for time in range(1500):
        histories[0].append(300.0 + time)
        histories[1].append((time, 1.5))
        histories[2].append([time])
        update = pair.tracker.update(histories, ())
        pair.replica.apply(update)
        sizes.append(len(update))
    assert pair.copy == histories
    assert max(sizes[100:500]) <= 1.1 * sizes[60]
    assert max(sizes[1100:]) <= 1.1 * max(sizes[500:1000])


@both
def test_what_agents_share_stays_shared(backend: CodecBackend) -> None:
    """An object that two agents hold, in whatever attributes, is one object in the replica."""
    runner = set_up(make_settings({"IdleAgent": 3}))
    first, second, third = agents = runner.simulator.agents
    board: list[object] = [1]
    vars(first)["board"] = board
    vars(second)["notes"] = {"board": board}
    vars(third)["box"] = (board, agents)
    copies = Pair(runner.simulator, backend).update().agents
    shared = copies[0].board
    assert shared == [1]
    assert shared is copies[1].notes["board"] is copies[2].box[0]
    assert shared is not board
    assert copies[2].box[1] is copies


@both
def test_long_chain_of_agents(backend: CodecBackend) -> None:
    """5,000 agents that each know the next are no problem: an update does not recurse into them."""
    runner = set_up(make_settings({"IdleAgent": 5000}))
    agents = runner.simulator.agents
    for agent, friend in pairwise(agents):
        vars(agent)["friend"] = friend
        vars(friend)["admirers"] = [agent]
    copies = Pair(runner.simulator, backend).update().agents
    assert len(copies) == 5000
    assert all(one.friend is other for one, other in pairwise(copies))
    assert all(two.admirers[0] is one for one, two in pairwise(copies))


# ------------------------------------------------------------- classes with a say in it


class Plain:
    """An object with attributes."""

    def __init__(self, **attributes: object) -> None:
        vars(self).update(attributes)


class Slotted:
    """Has slots, one of them private, and one that is not set."""

    __slots__ = ("__secret", "peer", "unset")
    peer: object
    unset: object

    def __init__(self, secret: object, peer: object) -> None:
        self.__secret = secret
        self.peer = peer


class SlottedChild(Slotted):
    """Has slots and a dict."""

    __slots__ = ("__dict__", "extra")
    extra: object


class Getstate:
    """Leaves out what cannot be pickled, and makes it anew."""

    def __init__(self, peer: object) -> None:
        self.peer = peer
        self.cache: object = unpicklable()

    def __getstate__(self) -> dict[str, object]:
        return {"peer": self.peer}

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)
        self.cache = ["made anew"]


class TupleState:
    """Has a state that is no dict."""

    def __init__(self, *items: object) -> None:
        self.items = items

    def __getstate__(self) -> tuple[object, ...]:
        return ("state", *self.items)

    def __setstate__(self, state: tuple[object, ...]) -> None:
        word, *items = state
        assert word == "state"
        self.items = tuple(items)


class OnlyGetstate:
    """Drops an attribute and has no way to get it back."""

    def __init__(self) -> None:
        self.kept, self.dropped = 1, unpicklable()

    def __getstate__(self) -> dict[str, object]:
        return {"kept": self.kept}


class OnlySetstate:
    """Notes that it was loaded."""

    def __init__(self, peer: object) -> None:
        self.peer = peer

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state, loaded=True)


class LookingAround:
    """Looks at another object of the table while it is loaded."""

    def __init__(self, peer: Plain) -> None:
        self.peer = peer

    def __getstate__(self) -> dict[str, object]:
        return {"peer": self.peer}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.peer = state["peer"]
        self.seen = dict(vars(self.peer))


class Reduce:
    """Is made by its constructor."""

    def __init__(self, number: int, way: str = "constructor") -> None:
        self.number = number
        self.way = way

    def __reduce__(self) -> tuple[Any, ...]:
        return Reduce, (self.number, "reduced")


class Newargs:
    """Needs an argument to be made at all."""

    def __new__(cls, number: int) -> Newargs:
        made = super().__new__(cls)
        made.doubled = 2 * number
        return made

    doubled: int

    def __getnewargs__(self) -> tuple[int]:
        return (self.doubled // 2,)


class Forwarding:
    """Forwards what it lacks to a field, as a wrapper does."""

    def __init__(self, inner: object) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


class Valued:
    """Has an equality and a hash by an attribute."""

    def __init__(self, name: str, **more: object) -> None:
        self.name = name
        vars(self).update(more)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Valued) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


class ValuedByTuple(Valued):
    """The same by a tuple that it keeps."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.key = (name, 1)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ValuedByTuple) and other.key == self.key

    def __hash__(self) -> int:
        return hash(self.key)


class ValuedBySlot:
    """The same by a slot."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ValuedBySlot) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)


class ValuedWithSetstate(Valued):
    """The same, and loads itself."""

    def __setstate__(self, state: dict[str, object]) -> None:
        vars(self).update(state)


class Growing(list[object]):
    """A list with attributes."""


class Picky:
    """Has a `__setattr__` that refuses, and an attribute that is set all the same."""

    def __init__(self) -> None:
        vars(self)["value"] = 1

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError("read only")


@both
def test_attributes_keep_their_order(backend: CodecBackend) -> None:
    """The attributes of a replica's object stand in main's order."""
    thing = Plain(zebra=[1], ant=2, bear="x")
    copy = replica_of([thing], backend)[0]
    assert list(vars(copy).items()) == [("zebra", [1]), ("ant", 2), ("bear", "x")]
    key = Valued("a", items=[1])
    vars(key)["name"] = vars(key).pop("name")  # what it is hashed by comes last now
    copy = replica_of([key], backend)[0]
    assert list(vars(copy).items()) == [("items", [1]), ("name", "a")]


@both
def test_slots(backend: CodecBackend) -> None:
    """Slots are sent, private ones and those of bases too; one that is not set stays so."""
    peer = Plain()
    child = SlottedChild([1], peer)
    child.extra = 2
    vars(child)["more"] = 3
    objects = [Slotted([1], peer), child, peer]
    copies = replica_of(objects, backend)
    assert find_difference(objects, copies) is None
    assert copies[0].peer is copies[2]
    assert not hasattr(copies[0], "unset")
    assert (copies[1].extra, copies[1].more) == (2, 3)


@both
def test_getstate_and_setstate(backend: CodecBackend) -> None:
    """A class that says itself what is sent is heard, and hears it again."""
    peer = Plain()
    objects = [Getstate(peer), TupleState(peer, 1), OnlyGetstate(), OnlySetstate(peer), peer]
    first, second, third, fourth, other = replica_of(objects, backend)
    assert (first.peer, first.cache) == (other, ["made anew"])
    assert second.items == (other, 1)
    assert vars(third) == {"kept": 1}
    assert vars(fourth) == {"peer": other, "loaded": True}


@both
def test_setstate_may_look_at_others(backend: CodecBackend) -> None:
    """Objects that load themselves do so when the others are filled, wherever in the table."""
    peer = Plain(value=[7])
    looking, other = replica_of([LookingAround(peer), peer], backend)
    assert looking.peer is other
    assert looking.seen == {"value": [7]}


@both
def test_reduce(backend: CodecBackend) -> None:
    """Classes that say how they are made are made so, each object once."""
    reduced, made = Reduce(7), Newargs(3)
    holder = Plain(one=reduced, other=[reduced, made])
    copies = replica_of([reduced, made, holder], backend)
    assert (copies[0].number, copies[0].way) == (7, "reduced")
    assert copies[1].doubled == 6
    assert copies[2].one is copies[2].other[0] is copies[0]
    assert copies[2].other[1] is copies[1]


@both
def test_containers_of_the_table(backend: CodecBackend) -> None:
    """Lists, dicts and sets of the table are one object each, wherever they are held."""
    items, index, members = Growing([1]), {"a": 1}, {1}
    vars(items)["of"] = index
    holders = [Plain(x=items, y=index), Plain(z=members, x=items)]
    objects: list[Any] = [*holders, items, index, members]
    copies = replica_of(objects, backend)
    assert find_difference(objects, copies) is None
    assert copies[0].x is copies[1].x is copies[2]
    assert copies[2].of is copies[3]


@both
def test_container_that_nothing_holds(backend: CodecBackend) -> None:
    """What only the table itself holds is sent, too."""
    assert replica_of([[1, 2], {"a": [3]}], backend) == [[1, 2], {"a": [3]}]


@both
def test_empty_object(backend: CodecBackend) -> None:
    """An object without any state is made empty."""
    copy = replica_of([Plain()], backend)[0]
    assert type(copy) is Plain
    assert vars(copy) == {}


@both
def test_wrapper_and_picky_class(backend: CodecBackend) -> None:
    """`__getattr__` and `__setattr__` of a class are not asked while its objects are filled."""
    inner = Plain(size=3)
    wrapper, picky, copy = replica_of([Forwarding(inner), Picky(), inner], backend)
    assert wrapper.size == 3
    assert wrapper.inner is copy
    assert vars(picky) == {"value": 1}


@both
@pytest.mark.parametrize("first", [True, False], ids=["key first", "holder first"])
def test_hash_of_a_class_of_its_own(backend: CodecBackend, first: bool) -> None:
    """Objects that are hashed by an attribute are keys of dicts and sets, also in a cycle."""
    key, other = Valued("a"), Valued("b")
    holder = Plain(notes={key: [1], other: key}, members={other, key})
    vars(key)["holder"] = holder
    objects = [key, other, holder] if first else [holder, key, other]
    copies = replica_of(objects, backend)
    if not first:
        copies = [*copies[1:], copies[0]]
    copy, other_copy, held = copies
    assert held.notes == {Valued("a"): [1], Valued("b"): Valued("a")}
    assert held.notes[other_copy] is copy
    assert held.members == {copy, other_copy}
    assert copy.holder is held


@both
@pytest.mark.parametrize("cls", [ValuedByTuple, ValuedBySlot, ValuedWithSetstate])
@pytest.mark.parametrize("first", [True, False], ids=["key first", "holder first"])
def test_other_hashes(backend: CodecBackend, cls: Callable[[str], Any], first: bool) -> None:
    """What the hash is made of may be a tuple, in a slot, or come through `__setstate__`."""
    key = cls("a")
    holder = Plain(notes={key: 1})
    copies = replica_of([key, holder] if first else [holder, key], backend)
    copy, held = copies if first else reversed(copies)
    assert held.notes[copy] == 1


@both
def test_keys_of_an_object_that_loads_itself(backend: CodecBackend) -> None:
    """An object with a hash and a `__setstate__` may have others with a hash as keys."""
    key = Valued("key")
    holder = ValuedWithSetstate("holder")
    vars(holder)["notes"] = {key: 1}
    held, copy = replica_of([holder, key], backend)
    assert held.notes[copy] == 1


@both
def test_market_as_key(backend: CodecBackend) -> None:
    """A dict of an agent that is keyed by markets finds them in the replica."""
    runner = set_up(make_settings({"MarketNotesAgent": 1}, markets=3))
    agent: Any = runner.simulator.agents[0]
    agent.notes = {market: number for number, market in enumerate(runner.simulator.markets)}
    simulator = Pair(runner.simulator, backend).update()
    assert [simulator.agents[0].notes[market] for market in simulator.markets] == [0, 1, 2]


@contextlib.contextmanager
def reducer_registered(cls: type, reduce: Callable[[Any], Any]) -> Iterator[None]:
    """Register a reducer for a while."""
    copyreg.pickle(cls, reduce)
    try:
        yield
    finally:
        copyreg.dispatch_table.pop(cls)


def reduce_plain(thing: Plain) -> tuple[Any, ...]:
    """Rebuild it by name, without its state."""
    return Plain, (), {"by": "reducer"}


@both
def test_registered_reducer_of_a_table_object(backend: CodecBackend) -> None:
    """A reducer that is registered for the class of a simulation object is used."""
    thing = Plain(never=unpicklable())
    with reducer_registered(Plain, reduce_plain):
        copies = replica_of([thing, Valued("x", of=thing)], backend)
    assert vars(copies[0]) == {"by": "reducer"}
    assert copies[1].of is copies[0]


def test_local_classes_under_dill() -> None:
    """Objects of the table may be of classes that cannot be imported."""

    class Local:
        def __init__(self, peer: object) -> None:
            self.peer = peer

    peer = Plain()
    local, other = replica_of([Local(peer), peer], DillBackend())
    assert type(local) is Local
    assert local.peer is other


# ------------------------------------------------------------------------- generators


def generator_with(gauss: float | None) -> random.Random:
    """Return a generator with a pending gauss value."""
    prng = random.Random(5)
    prng.random()
    version, words, _ = prng.getstate()
    prng.setstate((version, words, gauss))
    return prng


@both
@pytest.mark.parametrize("gauss", [None, 0.0, -0.0, 1.25, -1e-300], ids=repr)
def test_generator(backend: CodecBackend, gauss: float | None) -> None:
    """A generator of the table goes on where main's is, the pending gauss to the sign of zero."""
    prng = generator_with(gauss)
    holders = [Plain(prng=prng), Plain(prng=prng)]
    copies = replica_of([*holders, prng], backend)
    assert copies[0].prng is copies[1].prng is copies[2]
    assert find_difference(prng, copies[2]) is None
    drawn = [copies[2].gauss(0.0, 1.0), copies[2].random()]
    assert drawn == [prng.gauss(0.0, 1.0), prng.random()]


@both
def test_generator_that_is_in_no_table(backend: CodecBackend) -> None:
    """An agent's second generator travels with the agent, to the sign of zero, too."""
    thing = Plain(own=generator_with(-0.0))
    copy = replica_of([thing], backend)[0]
    assert find_difference(thing, copy) is None


@both
def test_many_generators(backend: CodecBackend) -> None:
    """Each generator of the table gets its own state."""
    prngs = [random.Random(seed) for seed in range(5)]
    copies = replica_of([Plain(), *prngs, Plain()], backend)
    assert [prng.getstate() for prng in copies[1:6]] == [prng.getstate() for prng in prngs]


@both
def test_generator_with_more_state(backend: CodecBackend) -> None:
    """A subclass of `random.Random` travels through its own `getstate`."""
    prng = LastDrawRandom(3)
    prng.random()
    holder = Plain(prng=prng)
    copies = replica_of([holder, prng], backend)
    assert type(copies[1]) is LastDrawRandom
    assert copies[1].n_draws == 1
    assert copies[0].prng is copies[1]
    assert copies[1].random() == prng.random()


@both
def test_numpy_generators(backend: CodecBackend) -> None:
    """Generators of numpy go on where main's are, and stay shared."""
    new, old = np.random.default_rng(5), np.random.RandomState(5)
    new.random()
    old.standard_normal()  # leaves a pending value
    objects = [Plain(a=new, b=old), Plain(c=[new, old]), new, old]
    copies = replica_of(objects, backend)
    assert find_difference(objects, copies) is None
    assert copies[0].a is copies[1].c[0] is copies[2]
    assert copies[2].random() == new.random()
    assert copies[3].standard_normal() == old.standard_normal()


# --------------------------------------------------------------------------- loggers


class FileLogger(Logger):
    """Holds something that cannot be pickled."""

    def __init__(self) -> None:
        super().__init__()
        self.file = unpicklable()
        self.lines = ["a", "b"]


def view_of(pair: Pair, logger: object) -> LoggerView:
    """Return what a worker knows of a logger."""
    number = pair.tracker.index_of(logger)
    assert number is not None
    return pair.replica.views[number]


@both
def test_logger_is_a_stand_in(backend: CodecBackend) -> None:
    """Of a logger only the class and the names of its attributes are sent, whatever it holds."""
    logger = FileLogger()
    pair = Pair([logger], backend)
    (copy,) = pair.update()
    assert isinstance(copy, FileLogger)
    assert type(copy) is not FileLogger
    view = view_of(pair, logger)
    assert (view.class_name, view.is_own_class) == ("FileLogger", True)
    assert view.names == ("pending_logs", "file", "lines")
    assert view.sent == {}


@both
def test_logger_costs_nothing(backend: CodecBackend) -> None:
    """The bytes do not grow with what a logger has collected."""
    logger = FileLogger()
    pair = Pair([logger], backend)
    pair.update()
    before = len(pair.tracker.update(pair.root, ()))
    logger.lines *= 1000
    assert len(pair.tracker.update(pair.root, ())) == before


@both
def test_wanted_parts_of_a_logger(backend: CodecBackend) -> None:
    """What agents read is sent, and kept up to date."""
    logger = FileLogger()
    pair = Pair([logger], backend, names="lines")
    pair.update()
    view = view_of(pair, logger)
    assert view.sent == {"lines": ["a", "b"]}
    logger.lines.append("c")
    pair.update()
    assert view.sent == {"lines": ["a", "b", "c"]}
    logger.lines = ["d"]
    pair.update()
    assert view.sent == {"lines": ["d"]}
    del logger.lines
    pair.update()
    assert view.sent == {}
    assert view.names == ("pending_logs", "file")


@both
def test_part_of_a_logger_that_cannot_be_sent(backend: CodecBackend) -> None:
    """A wanted part that cannot be sent is named, with the reason, and the rest is sent."""
    logger = FileLogger()
    pair = Pair([logger], backend, names="lines file")
    with pytest.raises(CannotSendError) as caught:
        pair.update()
    assert pair.tracker.holder_path(caught.value.number, [pair.root]) is None
    assert pair.tracker.refuse_logger_part(caught.value.number, caught.value.__cause__)
    pair.tracker = Tracker(backend, is_logger, is_agent, pair.wanted)
    pair.update()
    view = view_of(pair, logger)
    assert view.sent == {"lines": ["a", "b"]}
    assert list(view.unreadable) == ["file"]
    assert "cannot pickle" in view.unreadable["file"]


@both
def test_references_of_a_logger(backend: CodecBackend) -> None:
    """An attribute of a logger that the simulation holds is sent always, as a reference."""
    logger = Logger()
    simulator = Plain(logger=logger)
    logger.simulator = simulator  # type: ignore[assignment]  # stands for a simulator
    pair = Pair([simulator, logger], backend)
    copies = pair.update()
    assert view_of(pair, logger).sent == {"simulator": copies[0]}
    assert copies[0].logger is copies[1]


@both
def test_logger_shares_with_agents(backend: CodecBackend) -> None:
    """A part of a logger that an agent holds, too, stays shared with it."""
    logger = FileLogger()
    pair = Pair([Plain(reads=logger.lines), logger], backend)
    copies = pair.update()
    assert view_of(pair, logger).sent["lines"] is copies[0].reads


def test_logger_of_a_local_class_under_pickle() -> None:
    """A logger whose class cannot be sent is known by the nearest base that can."""

    class Local(FileLogger):
        pass

    logger = Local()
    pair = Pair([logger], PickleBackend())
    (copy,) = pair.update()
    assert isinstance(copy, FileLogger)
    assert not view_of(pair, logger).is_own_class
    assert view_of(pair, logger).class_name == "Local"


@both
def test_two_loggers(backend: CodecBackend) -> None:
    """A logger that only the runner has is known, too; each has its own values."""
    first, second = FileLogger(), FileLogger()
    second.lines = ["c"]
    pair = Pair([first], backend, names="lines")
    pair.update(second)
    sent = [view_of(pair, logger).sent for logger in (first, second)]
    assert sent == [{"lines": ["a", "b"]}, {"lines": ["c"]}]


# ------------------------------------------------------------------------------ errors


def fail_to_send(objects: list[Any], backend: CodecBackend) -> tuple[int, str, BaseException]:
    """Return which of the objects holds what cannot be sent, where, and why it cannot."""
    pair = Pair(objects, backend)
    with pytest.raises(CannotSendError) as caught:
        pair.update()
    found = pair.tracker.holder_path(caught.value.number, objects)
    assert found is not None
    assert caught.value.__cause__ is not None
    position = next(i for i, obj in enumerate(objects) if obj is found[0])
    return position, found[1], caught.value.__cause__


@both
@pytest.mark.parametrize("position", [0, 1, 3])
def test_object_that_cannot_be_sent(backend: CodecBackend, position: int) -> None:
    """The error tells what failed and where it is, with the serializer's error as its cause."""
    objects: list[Any] = [Plain(number=number, other=[number]) for number in range(4)]
    objects[position].never = {"deep": [1, unpicklable()]}
    found, path, cause = fail_to_send(objects, backend)
    assert (found, path) == (position, ".never['deep'][1]")
    assert isinstance(cause, TypeError)


class BrokenGetstate:
    """Fails to say what is sent."""

    def __getstate__(self) -> object:
        raise LookupError("of the getstate")


class BrokenSetstate:
    """Fails to load itself."""

    def __init__(self) -> None:
        self.value = 1

    def __setstate__(self, state: object) -> None:
        raise LookupError("of the setstate")


def break_load() -> Plain:
    """Fail to make an object."""
    raise LookupError("of the loader")


class BrokenLoad:
    """Can be written, and not be read."""

    def __reduce__(self) -> tuple[Any, ...]:
        return break_load, ()


@both
def test_getstate_that_fails(backend: CodecBackend) -> None:
    """An error of an object's own `__getstate__` is that object's."""
    found, path, cause = fail_to_send([Plain(), BrokenGetstate()], backend)
    assert (found, path) == (1, "")
    assert isinstance(cause, LookupError)


@both
@pytest.mark.parametrize("bad", [BrokenSetstate(), Plain(x=[BrokenLoad()])], ids=["own", "part"])
def test_object_that_cannot_be_loaded(backend: CodecBackend, bad: object) -> None:
    """The error of building the replica says which object failed."""
    objects = [Plain(), Plain(), bad, Plain()]
    pair = Pair(objects, backend)
    with pytest.raises(PayloadError) as caught:
        pair.update()
    found = pair.tracker.holder_path(caught.value.position, objects)
    assert found is not None
    assert found[0] is bad
    assert isinstance(caught.value.__cause__, LookupError)


def test_class_that_cannot_be_sent() -> None:
    """A class that pickle cannot write is the fault of the first object that has it."""

    class Local:
        def __init__(self) -> None:
            self.value = 1

    found, path, _ = fail_to_send([Plain(), Plain(), Local(), Local()], PickleBackend())
    assert (found, path) == (2, "")
