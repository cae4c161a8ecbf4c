"""Laws of replicas: whatever changes on either side, the worker has what main has.

The world is a root with objects of every kind that a replica tells apart, each of which may hold
any other. Actions change it in main, as events, callbacks and markets do, or in the worker, as
agents do; the latter are undone.
"""

from __future__ import annotations

import collections
import functools
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from isomorphism import find_difference
from sample_agents import LastDrawRandom

from pams_parallel import CodecBackend, DillBackend, PickleBackend
from pams_parallel._replica import Replica, Tracker, Wanted
from pams_parallel._replica.rows import LONG
from pams_parallel._replica_logger import LoggerTraffic


class Thing:
    """Keeps its attributes in a dict."""

    def __init__(self, **attributes: Any) -> None:
        vars(self).update(attributes)


class Other(Thing):
    """Another class of the same layout."""


class Slotted:
    """Keeps two of its attributes in slots."""

    __slots__ = ("__dict__", "left", "right")
    left: Any


class Stateful(Thing):
    """Says itself what is sent, and makes something anew."""

    __slots__ = ("cache",)

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.cache: list[object] = ["made anew"]

    def __getstate__(self) -> dict[str, Any]:
        return dict(vars(self))

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.cache = ["made anew"]


class Listed(Thing):
    """Has a state that is no dict."""

    def __getstate__(self) -> list[Any]:
        return [*vars(self).items()]

    def __setstate__(self, state: list[Any]) -> None:
        vars(self).update(state)


@dataclass(frozen=True)
class Valued:
    """Is hashed by what it holds."""

    label: str
    more: Any = None

    def __hash__(self) -> int:
        return hash(self.label)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Valued) and other.label == self.label


class Couple(NamedTuple):
    """A tuple with names."""

    one: Any
    two: Any


class Growing(list[Any]):
    """A list of a class of its own: only the backend can write it."""


MAKERS: dict[str, Callable[[Any], Any]] = {
    "record": lambda held: Thing(a=held, b=2.5),
    "empty record": lambda held: Thing(),
    "object": lambda held: object(),
    "slots": lambda held: slotted(held),
    "state": lambda held: Stateful(a=held),
    "odd state": lambda held: Listed(a=held),
    "hashed": lambda held: Valued(f"name {id(held) % 7}", held),
    "dict": lambda held: {"a": held, 1: 2, 2.5: None},
    "dict by object": lambda held: {Thing(): held, Valued("key"): held},
    "default dict": lambda held: collections.defaultdict(list, a=held),
    "ordered dict": lambda held: collections.OrderedDict(a=held, b=1, c=2),
    "list": lambda held: [held, 1, 2.5],
    "long list": lambda held: [number + 0.25 for number in range(1500)],
    "list of forty": lambda held: [*range(39), held],
    "own list": lambda held: Growing([held, 1]),
    "queue": lambda held: collections.deque([held, 1], maxlen=5),
    "set": lambda held: {1, 2, Valued("member")},
    # a tuple of atoms alone has no identity of interest
    "tuple": lambda held: (held, 1, (held, "x", []), {}),
    "named tuple": lambda held: Couple(held, []),
    "partial": lambda held: functools.partial(print, held, key=held),
    "generator": lambda held: random.Random(5),
    "own generator": lambda held: LastDrawRandom(5),
    "numpy generator": lambda held: np.random.default_rng(5),
    "array": lambda held: np.arange(6.0).reshape(2, 3),
    "fortran array": lambda held: np.asfortranarray(np.arange(6).reshape(2, 3)),
    "object array": lambda held: np.array([held, 1], dtype=object),
    "class": lambda held: Thing,
    "function": lambda held: slotted,
}
"""What may be in the world: a name -> how it is made, of something that it holds."""


def slotted(held: Any) -> Slotted:
    """Make an object with a slot that is set, and one that is not."""
    made = Slotted()
    made.left = held
    made.extra = 1  # type: ignore[attr-defined]  # in its dict
    return made


ATOMS: list[Any] = [0, 1, True, None, -0.0, 0.0, 2.5, "x", b"x", 10**30, np.float64(2)]


def change(thing: Any, how: int, value: Any) -> None:
    """Change an object in one of the ways that its class offers."""
    if isinstance(thing, random.Random):
        thing.gauss(0.0, 1.0)
    elif isinstance(thing, np.random.Generator):
        thing.random()
    elif isinstance(thing, np.ndarray):
        change_array(thing, how, value)
    elif isinstance(thing, (list, collections.deque)):
        change_list(thing, how, value)
    elif isinstance(thing, dict):
        change_dict(thing, how, value)
    elif isinstance(thing, set):
        thing.discard(1) if how % 2 else thing.add(how)
    elif isinstance(thing, Slotted):
        change_slots(thing, how, value)
    elif isinstance(thing, Thing):
        change_record(thing, how, value)


def change_array(array: Any, how: int, value: Any) -> None:
    if array.dtype == object:
        array[0] = value
    elif how % 4 == 3:
        array.flags.writeable = False  # and stays so: such arrays are not looked at again
    elif array.flags.writeable:
        array.flat[how % array.size] += 1


def change_list(items: Any, how: int, value: Any) -> None:
    if len(items) > LONG and isinstance(value, (int, float)):
        value = repr(value)  # a known limit: 0 in the place of 0.0 is not seen there
    changes: list[Callable[[], object]] = [
        lambda: items.append(value),
        lambda: items.pop() if items else None,
        lambda: items.clear(),
        lambda: items.reverse(),
        lambda: items.insert(how % (len(items) + 1), value) if len(items) != 5 else None,
        lambda: items.__setitem__(how % len(items), value) if items else None,
        lambda: items.__delitem__(how % len(items)) if items else None,
        lambda: items.extend([value, 1, value]),
    ]
    changes[how % len(changes)]()


def change_dict(items: Any, how: int, value: Any) -> None:
    key: Any = next(iter(items), 0)
    changes: list[Callable[[], object]] = [
        lambda: items.update({how: value}),
        lambda: items.pop(key, None),
        lambda: items.clear(),
        lambda: items.update({key: value}),
        lambda: items.update({key: items.pop(key, 1)}),
        lambda: items.update({Valued(f"new {how}"): value}),
        lambda: items.move_to_end(key) if hasattr(items, "move_to_end") and items else None,
        lambda: setattr(items, "default_factory", dict) if hasattr(items, "default_factory") else 0,
    ]
    changes[how % len(changes)]()


def change_slots(thing: Any, how: int, value: Any) -> None:
    changes: list[Callable[[], object]] = [
        lambda: setattr(thing, "left", value),
        lambda: setattr(thing, "right", value),
        lambda: delattr(thing, "left") if hasattr(thing, "left") else None,
        lambda: vars(thing).update(extra=value),
        lambda: vars(thing).clear(),
    ]
    changes[how % len(changes)]()


def change_record(thing: Any, how: int, value: Any) -> None:
    own = vars(thing)
    changes: list[Callable[[], object]] = [
        lambda: own.update(a=value),
        lambda: own.update({f"new {how}": value}),
        lambda: own.pop("a", None),
        lambda: own.update(b=own.pop("a")) if "a" in own else None,
        lambda: setattr(thing, "__class__", Other) if type(thing) is Thing else None,
        lambda: setattr(thing, "__dict__", dict(own)),
    ]
    changes[how % len(changes)]()


Action = tuple[str, int, int, int]
"""Where (main, worker, a new object in main), which object, how, and with what."""

actions: st.SearchStrategy[list[Action]] = st.lists(
    st.tuples(
        st.sampled_from(["main", "worker", "new", "update"]),
        st.integers(0, 99),
        st.integers(0, 99),
        st.integers(0, 99),
    ),
    max_size=30,
)


def pick(world: list[Any], number: int) -> Any:
    """Return an atom, or an object of the world."""
    choices = [*ATOMS, *world]
    return choices[number % len(choices)]


class Sweeping(Tracker):
    """Forgets at once what nothing holds; otherwise that takes hundreds of objects."""

    def _is_due(self) -> bool:
        return bool(self.objects)


class Sides:
    """Main's world and the worker's."""

    def __init__(
        self, backend: CodecBackend, kinds: list[str], tracker: type[Tracker] = Tracker
    ) -> None:
        self.main: list[Any] = []
        for kind in kinds:
            self.main.append(MAKERS[kind](self.main[-1] if self.main else None))
        self.tracker = tracker(backend, lambda cls: False, lambda cls: False, Wanted())
        self.replica = Replica(backend, LoggerTraffic())

    def update(self) -> None:
        """Tell the worker, and compare."""
        self.replica.apply(self.tracker.update(self.main, ()))
        self.compare()

    @property
    def worker(self) -> list[Any]:
        """The worker's world."""
        world: Any = self.replica.objects[self.replica.simulator]
        return list(world)

    def compare(self) -> None:
        """Find no difference."""
        copy = self.replica.objects[self.replica.simulator]
        assert find_difference(self.main, copy) is None

    def act(self, action: Action) -> None:
        """Do something, and see that the worker has what it should have."""
        where, which, how, value = action
        if where == "update":
            self.update()
        elif where == "new":
            kinds = list(MAKERS)
            made = MAKERS[kinds[how % len(kinds)]](pick(self.main, value))
            self.main[which % len(self.main)] = made
        elif where == "main":
            change(self.main[which % len(self.main)], how, pick(self.main, value))
        else:
            self.update()
            world = self.worker
            thing = world[which % len(world)]
            change(thing, how, pick(world, value))
            if isinstance(thing, Stateful):
                thing.cache.append(1)  # nothing that main has sent
            self.replica.restore(self.replica.rows.changed())
            self.compare()


@pytest.mark.parametrize("backend", [PickleBackend(), DillBackend()], ids=["pickle", "dill"])
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(
    kinds=st.lists(st.sampled_from(list(MAKERS)), min_size=1, max_size=12),
    doings=actions,
    tracker=st.sampled_from([Tracker, Sweeping]),
)
def test_a_worker_has_what_main_has(
    backend: CodecBackend, kinds: list[str], doings: list[Action], tracker: type[Tracker]
) -> None:
    """After every update and after every undoing the two worlds are the same, aliases included."""
    sides = Sides(backend, kinds, tracker)
    sides.update()
    for action in doings:
        sides.act(action)
    sides.update()


@pytest.mark.parametrize("backend", [PickleBackend(), DillBackend()], ids=["pickle", "dill"])
@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("where", ["main", "worker"])
def test_every_change_of_every_kind(where: str, kind: str, backend: CodecBackend) -> None:
    """Each way to change an object of each kind is seen or undone."""
    for how in range(8):
        sides = Sides(backend, ["record", kind, "list", "tuple", "partial"])
        sides.main[0].of = sides.main[1]
        sides.update()
        for value in (3, 6, len(ATOMS), len(ATOMS) + 1, len(ATOMS) + 2):
            sides.act((where, 1, how, value))
        sides.update()


@pytest.mark.parametrize("backend", [PickleBackend(), DillBackend()], ids=["pickle", "dill"])
def test_what_nothing_holds_is_forgotten(backend: CodecBackend) -> None:
    """Neither side grows with what has come and gone."""
    sides = Sides(backend, ["record", *MAKERS], Sweeping)
    sides.update()
    sides.update()
    sizes = len(sides.tracker.objects), len(sides.replica.objects), len(sides.replica.numbers)
    for _ in range(5):
        for number, kind in enumerate(MAKERS, start=1):
            sides.main[number] = MAKERS[kind](sides.main[number - 1])
        sides.update()
    sides.update()
    sides.update()
    assert sizes == (
        len(sides.tracker.objects),
        len(sides.replica.objects),
        len(sides.replica.numbers),
    )


def test_attributes_with_made_up_names() -> None:
    """The names that an object has had do not fill the memory."""
    sides = Sides(PickleBackend(), ["record"])
    sides.update()
    for number in range(1500):
        vars(sides.main[0]).clear()
        vars(sides.main[0])[f"name {number}"] = number
        sides.update()
    assert len(sides.tracker._rows._known_keys) <= 1001


@pytest.mark.parametrize("change", ["class", "dict"])
def test_changes_while_gaps_are_closed(change: str) -> None:
    """Forgetting objects does not hide what has happened to those that stay."""
    sides = Sides(PickleBackend(), ["record"] * 8, Sweeping)
    sides.update()
    sides.main[1:] = []
    sides.update()  # the others are forgotten when the next one is made
    if change == "class":
        sides.main[0].__class__ = Other
    else:
        sides.main[0].__dict__ = {"other": 1}
    sides.update()
