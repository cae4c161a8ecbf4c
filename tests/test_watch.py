"""Which changes of a replica are reported as lost, and which are of no consequence."""

from __future__ import annotations

import enum
import math
import random
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from sample_agents import LastDrawRandom

from pams_parallel._watch import changed_names, generator_states, read_state, state_of_generator


class Thing:
    """An object with attributes."""

    def __init__(self, **attributes: object) -> None:
        vars(self).update(attributes)


class Slotted:
    """Has no dict."""

    __slots__ = ("value",)
    value: int


class Text(str):
    """A str of a class of its own."""

    __slots__ = ()


class Pair(NamedTuple):
    """A tuple of a class of its own."""

    left: int
    right: int


class Mood(enum.Enum):
    """An enum."""

    GOOD = 1
    BAD = 2


def fresh(value: Any) -> Any:
    """Return an equal value that is another object, where Python makes one."""
    if isinstance(value, tuple):
        return tuple(map(fresh, value))
    if isinstance(value, str):
        return "".join([*value]) if len(value) > 1 else value
    if isinstance(value, bytes):
        return bytes(bytearray(value))
    if isinstance(value, (bool, type(None))):
        return value
    return type(value)(str(value))


# ------------------------------------------------------------------- one attribute


SAME: list[Any] = [
    *("some text", "x", "", b"some bytes", b"", 7, 10**30, -(10**30), True, False, None),
    *(0.0, -0.0, 1.5, math.inf, 1e300, 2 + 3j, complex(0.0, -0.0)),
    *((), (1, 2), ("text", 1.5, None, b"b"), ((1, (2.5,)), "nested text"), (-0.0,)),
]


@pytest.mark.parametrize("value", SAME, ids=repr)
def test_equal_value_is_not_reported(value: Any) -> None:
    """A new but equal str, bytes, number, bool, None, or tuple of these is no change."""
    again = fresh(value)
    assert repr(again) == repr(value)
    thing = Thing(a=value)
    before = dict(vars(thing))
    vars(thing)["a"] = again
    assert changed_names(before, vars(thing)) == ()


def test_these_equal_values_are_new_objects() -> None:
    """The table above has equal values of each kind that are other objects."""
    renewed = {type(value) for value in SAME if fresh(value) is not value}
    assert renewed >= {str, bytes, int, float, complex, tuple}


NAN, OTHER_NAN = float("nan"), float("nan")

CHANGED: list[tuple[Any, Any]] = [
    (1, 2),
    ("a", "b"),
    ("a", b"a"),
    (None, 0),
    (None, False),
    *((0.0, -0.0), (-0.0, 0.0), (NAN, OTHER_NAN), (1.0, math.nextafter(1.0, 2.0))),
    *((1, 1.0), (1.0, 1), (1, True), (True, 1), (0, False), (0, 0j), (1.0, 1 + 0j)),
    *((complex(0.0, 0.0), complex(0.0, -0.0)), (complex(NAN, 0.0), complex(OTHER_NAN, 0.0))),
    *((complex(0.0, 0.0), complex(-0.0, 0.0)),),
    *(([], []), ([1], [1]), ({}, {}), ({"a": 1}, {"a": 1}), (set(), set())),
    *((bytearray(b"a"), bytearray(b"a")), (Thing(), Thing()), (Mood.GOOD, Mood.BAD)),
    *(([], ()), ((), []), ((1,), [1])),
    *(((1, 2), (1, 3)), ((1, 2), (1, 2, 3)), ((1,), ()), ((1,), (True,)), ((1,), (1.0,))),
    *(((0.0,), (-0.0,)), ((NAN,), (OTHER_NAN,)), (((0.0,),), ((-0.0,),))),
    *((([],), ([],)), ((1, {}), (1, {})), (((1, []),), ((1, []),))),
    *((Text("a"), Text("a")), ("a", Text("a")), (Pair(1, 2), Pair(1, 2)), ((1, 2), Pair(1, 2))),
    (np.float64(1.0), np.float64(1.0)),
    (frozenset({1000}), frozenset({1000, 1001}) - {1001}),
]


@pytest.mark.parametrize(("before", "after"), CHANGED, ids=repr)
def test_other_value_is_reported(before: Any, after: Any) -> None:
    """Another value is a change, an equal one of another type or of one that can change, too."""
    thing = Thing(a=before)
    before = dict(vars(thing))
    vars(thing)["a"] = after
    assert changed_names(before, vars(thing)) == ("a",)


@pytest.mark.parametrize("value", [NAN, (NAN, 1), complex(NAN, 1.0), [], Mood.GOOD], ids=repr)
def test_same_object_is_not_reported(value: object) -> None:
    """The object that was there is no change, whatever it is equal to."""
    thing = Thing(a=value)
    before = dict(vars(thing))
    vars(thing)["a"] = value
    assert changed_names(before, vars(thing)) == ()


def test_tuple_of_the_same_objects_is_still_another_tuple() -> None:
    """A new tuple of the same list is reported: the worker has made it."""
    items: list[int] = []
    thing = Thing(a=(items,))
    before = dict(vars(thing))
    vars(thing)["a"] = (items,)
    assert changed_names(before, vars(thing)) == ("a",)


# ------------------------------------------------------------------ several attributes


def rename(thing: Thing) -> None:
    """Give the value of an attribute to a new one in its place."""
    vars(thing)["d"] = vars(thing).pop("c")


CHANGES: dict[str, tuple[Callable[[Thing], object], tuple[str, ...]]] = {
    "nothing": (lambda thing: None, ()),
    "assigned": (lambda thing: vars(thing).update(b=9), ("b",)),
    "new": (lambda thing: vars(thing).update(d=None), ("d",)),
    "deleted": (lambda thing: vars(thing).pop("b"), ("b",)),
    "all deleted": (lambda thing: vars(thing).clear(), ("a", "b", "c")),
    "several, sorted": (lambda thing: vars(thing).update(c=9, z=1, a=9), ("a", "c", "z")),
    "exchanged": (lambda thing: vars(thing).update(a=thing.b, b=thing.a), ("a", "b")),  # type: ignore[attr-defined]
    "renamed": (rename, ("c", "d")),
    "deleted and set again": (lambda thing: vars(thing).update(a=vars(thing).pop("a")), ()),
    "in place": (lambda thing: vars(thing)["c"].append(1), ()),
    "managed": (lambda thing: vars(thing).update(prng=1, logger=2, simulator=3), ()),
    "managed, deleted": (lambda thing: vars(thing).pop("prng"), ()),
}


@pytest.mark.parametrize(("change", "names"), CHANGES.values(), ids=CHANGES)
def test_names(change: Callable[[Thing], object], names: tuple[str, ...]) -> None:
    """The names that were assigned or deleted are reported, sorted; what the runner keeps is not.

    Changes inside of a value are not seen.
    """
    thing = Thing(prng=0, a=1, b=2, c=[3])
    before = dict(vars(thing))
    change(thing)
    assert changed_names(before, vars(thing)) == names


def test_listed_names_are_not_reported() -> None:
    """Names that come back are no loss; a listed name that did not change is none either."""
    thing = Thing(a=1, b=2, c=3)
    before = dict(vars(thing))
    vars(thing).update(a=9, b=9, d=9)
    assert changed_names(before, vars(thing), ("a", "c", "d")) == ("b",)
    assert changed_names(before, vars(thing), ["a", "b", "d"]) == ()


# ------------------------------------------------------------------------- generators


def make_generators() -> dict[str, Any]:
    """Return one generator of each kind, in a known state."""
    return {
        "python": random.Random(1),
        "own class": LastDrawRandom(1),
        "numpy": np.random.default_rng(1),
        "numpy, other bits": np.random.Generator(np.random.MT19937(1)),
        "numpy, old": np.random.RandomState(1),
    }


DRAWS: dict[str, Callable[[Any], object]] = {
    "python": lambda prng: prng.random(),
    "own class": lambda prng: prng.random(),
    "numpy": lambda prng: prng.random(),
    "numpy, other bits": lambda prng: prng.standard_normal(),
    "numpy, old": lambda prng: prng.standard_normal(),
}


@pytest.mark.parametrize("kind", DRAWS)
def test_state_of_a_generator(kind: str) -> None:
    """The state of a generator is equal for equal generators, and another after each draw."""
    prng, twin = make_generators()[kind], make_generators()[kind]
    states = [state_of_generator(prng)]
    assert (states[0] == state_of_generator(twin)) is True
    for _ in range(3):
        DRAWS[kind](prng)
        states.append(state_of_generator(prng))
        assert (states[-1] == states[-2]) is False
        DRAWS[kind](twin)
        assert (states[-1] == state_of_generator(twin)) is True


@pytest.mark.parametrize("draw", [lambda p: p.gauss(0, 1), lambda p: p.getrandbits(1)])
def test_pending_gauss_is_part_of_the_state(draw: Callable[[random.Random], object]) -> None:
    """A gauss that leaves a pending value, or uses it up, is a change."""
    prng = random.Random(1)
    prng.gauss(0, 1)
    before = state_of_generator(prng)
    draw(prng)
    assert state_of_generator(prng) != before


def test_state_does_not_change_with_the_generator() -> None:
    """A state that has been read stays as it was."""
    for kind, prng in make_generators().items():
        state = state_of_generator(prng)
        before = repr(state)
        DRAWS[kind](prng)
        assert repr(state) == before


def test_own_generators_of_an_agent() -> None:
    """All generators in an agent's dict are looked at, and nothing else."""
    generators = make_generators()
    agent = Thing(**generators, a=1, listed=[random.Random(1)], module=random)
    states = generator_states(agent, ())
    assert list(states) == list(generators)
    assert states["python"] == random.Random(1).getstate()


def test_generators_that_come_back() -> None:
    """The agent's `prng` and listed generators come back, under whatever other name they stand."""
    prng, listed, other = random.Random(1), random.Random(2), random.Random(3)
    agent = Thing(prng=prng, same=prng, listed=listed, same_listed=listed, other=other)
    assert list(generator_states(agent, ("listed",))) == ["other"]
    assert list(generator_states(agent, ("absent",))) == ["listed", "same_listed", "other"]


def test_agent_without_a_dict() -> None:
    """An object without a dict has no generators of its own."""
    assert generator_states(Slotted(), ()) == {}


def test_generator_without_a_state() -> None:
    """A generator that draws from the operating system has no state, and stops nothing."""
    assert read_state(random.SystemRandom()) is None
    assert read_state(object()) is None
    assert generator_states(Thing(own=random.SystemRandom()), ()) == {"own": None}


def test_read_state() -> None:
    """The state of a generator is what its own `getstate` gives."""
    prng = LastDrawRandom(1)
    prng.random()
    assert read_state(prng) == prng.getstate()
    assert read_state(prng)[0] == 1
