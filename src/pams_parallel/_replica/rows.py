"""Rows: what objects hold, and which of them hold something else than they did.

Comparing is the only work that grows with the whole simulation, in every batch, in main as in the
workers. So objects stand in sections, and a section in which nothing has changed costs a few calls
of C functions: some 40 ns for each attribute, where a loop over the objects takes three times that.

Values are compared by identity. A new but equal number counts as a change, which costs a few bytes;
an equal but different object (``-0.0`` for ``0.0``) is never taken for the old one. The one
exception are lists of more than `LONG` atoms, which are compared by ``==``: histories of markets
grow all the time, and ``==`` takes 0.6 ns for each element instead of 16.
"""

from __future__ import annotations

import types
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import is_
from typing import Any, Final

from .kinds import DICT, LIST, RECORD, STATE, is_atom
from .sections import Dicts, Items, Keys, Records, Row, Section

LONG: Final = 1024

ReadState = Callable[[Any], Row]
"""Reads the row of an object that says itself what its state is."""

_SECTION: Final = 16
_KNOWN: Final = 1000


def slots_of(cls: type) -> tuple[tuple[str, Any], ...]:
    """Return the slots of a class with their descriptors, its own first."""
    return tuple(
        (f"{base.__name__}.{name}", slot)
        for base in cls.__mro__
        for name, slot in vars(base).items()
        if isinstance(slot, types.MemberDescriptorType) and base is not object
    )


class Rows:
    """The rows of objects as they were last taken."""

    def __init__(
        self, read_state: ReadState, objects: Mapping[int, Any], kinds: Mapping[int, int]
    ) -> None:
        """Begin with no rows.

        Args:
            read_state: reads rows of ``STATE`` objects.
            objects: all objects by number.
            kinds: their kinds.
        """
        self._read_state = read_state
        self._objects = objects
        self._kinds = kinds
        self._rows: dict[int, Row] = {}
        self._places: dict[int, tuple[Section, int]] = {}
        self._sections: dict[Callable[[], Section], list[Section]] = {}
        # read one by one: slots, states of their own making, dicts with a factory
        self._singles: set[int] = set()
        self._long: set[int] = set()
        self._slots: dict[type, tuple[tuple[str, Any], ...]] = {}
        self._known_keys: dict[Keys, Keys] = {}
        self._blanks = 0

    def of(self, number: int) -> Row | None:
        """Return the row of an object as it was taken; None when it has none."""
        return self._rows.get(number)

    def items(self) -> Iterable[tuple[int, Row]]:
        """Return all rows."""
        return self._rows.items()

    def read(self, number: int) -> Row:
        """Return the row that an object has now."""
        obj, kind = self._objects[number], self._kinds[number]
        if kind == RECORD:
            return self.read_record(obj)
        if kind == STATE:
            return self._read_state(obj)
        if kind == DICT:
            values = [*obj.values()]
            if type(obj) is defaultdict:
                values.append(obj.default_factory)
            return (*obj,), values
        return (), [*obj]

    def read_record(self, obj: Any) -> Row:
        """Return the attributes of an instance, those in its dict first."""
        own = getattr(obj, "__dict__", {})
        keys, values = (*own,), [*own.values()]
        if slots := self.slots(type(obj)):
            found = [(name, slot.__get__(obj)) for name, slot in slots if is_set(slot, obj)]
            # a marker that no attribute can have as its name
            keys = (*keys, None, *(name for name, _ in found))
            values = [*values, None, *(value for _, value in found)]
        return keys, values

    def slots(self, cls: type) -> tuple[tuple[str, Any], ...]:
        """Return the slots of a class with their descriptors."""
        found = self._slots.get(cls)
        if found is None:
            found = self._slots[cls] = slots_of(cls)
        return found

    def take(self, number: int, row: Row) -> None:
        """Remember the row that an object has now, to compare with."""
        keys, values = row
        if keys and self._kinds[number] == RECORD:
            # objects of a class share them; names made up on the way must not fill the memory
            if len(self._known_keys) > _KNOWN:
                self._known_keys.clear()
            row = (self._known_keys.setdefault(keys, keys), values)
        self._rows[number] = row
        place = self._places.get(number)
        if place is not None and self._kinds[number] != LIST:  # the sort of these is settled
            place[0].put(place[1], place[0].entry(self._objects[number], row))
            return
        group = self._group(number, row)
        if place is not None and type(place[0]) is not group:
            self._leave(number)
            place = None
        if group is None:
            return
        entry = group.entry(self._objects[number], row)
        if place is None:
            self._add(group, number, entry)
        else:
            place[0].put(place[1], entry)

    def _group(self, number: int, row: Row) -> type[Records | Dicts | Items] | None:
        """Return the sort of section that an object belongs to, None for none; note the latter."""
        obj, kind = self._objects[number], self._kinds[number]
        self._singles.discard(number)
        self._long.discard(number)
        if kind == RECORD and not self.slots(type(obj)) and hasattr(obj, "__dict__"):
            return Records
        if kind == DICT and type(obj) is dict:
            return Dicts
        if kind in (RECORD, STATE, DICT):
            self._singles.add(number)
            return None
        if type(obj) is list and len(row[1]) > LONG and all(map(is_atom, row[1])):
            self._long.add(number)
            return None
        return Items

    def _add(self, group: Callable[[], Section], number: int, entry: tuple[object, ...]) -> None:
        sections = self._sections.setdefault(group, [])
        if not sections or len(sections[-1].numbers) >= _SECTION:
            sections.append(group())
        self._places[number] = sections[-1], sections[-1].add(number, entry)

    def _leave(self, number: int) -> None:
        section, place = self._places.pop(number)
        section.forget(place)
        self._blanks += 1

    def drop(self, numbers: Iterable[int]) -> None:
        """Forget objects."""
        for number in numbers:
            if number in self._places:
                self._leave(number)
            self._singles.discard(number)
            self._long.discard(number)
            self._rows.pop(number, None)
        if self._blanks > len(self._places):
            self._rebuild()

    def _rebuild(self) -> None:
        """Close the gaps. Rows move as they were taken: their objects may have changed since."""
        places = self._places
        self._places, self._sections, self._blanks = {}, {}, 0
        for number, (section, place) in places.items():
            self._add(type(section), number, section.at(place))

    def changed(self) -> list[int]:
        """Return the objects whose row is not the one that was taken, in the order of numbers."""
        found: list[int] = []
        for sections in self._sections.values():
            for section in sections:
                # where something has changed it will again: agents that trade, say
                if section.restless or not section.is_same():
                    changed = section.changed()
                    section.restless = bool(changed)
                    found.extend(changed)
        found.extend(number for number in self._singles if self.has_changed(number))
        found.extend(number for number in self._long if self.has_changed(number))
        return sorted(found)

    def has_changed(self, number: int) -> bool:
        """Tell whether the row of one object is not the one that was taken."""
        if number in self._long:
            live, values = self._objects[number], self._rows[number][1]
            return not is_same_run(live, values, long=True)
        place = self._places.get(number)
        if place is not None:
            section, index = place
            return not section.same(*section.at(index))
        before = self._rows.get(number)
        if before is None:
            return False
        try:
            return not is_same_row(before, self.read(number))
        except Exception:  # of the object's own making: who reads it next will see
            return True


def is_set(slot: Any, obj: object) -> bool:
    """Tell whether a slot has a value."""
    try:
        slot.__get__(obj)
    except AttributeError:
        return False
    return True


def is_same_row(left: Row, right: Row) -> bool:
    """Tell whether two rows hold the same objects."""
    return (
        len(left[0]) == len(right[0])
        and len(left[1]) == len(right[1])
        and all(map(is_, left[0], right[0]))
        and all(map(is_, left[1], right[1]))
    )


def is_same_run(left: Sequence[object], right: Sequence[object], long: bool) -> bool:
    """Tell whether two lists hold the same objects, or equal ones if they are long."""
    if len(left) != len(right):
        return False
    if not long:
        return all(map(is_, left, right))
    try:
        return bool(left == right)
    except Exception:  # something that refuses to be compared is new there
        return False


def changed_span(old: list[object], new: list[object], long: bool) -> tuple[int, int]:
    """Return how long the common start and the common end of two lists are.

    It halves what it looks at, so that it takes no longer than comparing the lists once or twice.
    """
    shorter = min(len(old), len(new))
    low, high = 0, shorter
    while low < high:
        middle = (low + high + 1) // 2
        if is_same_run(old[low:middle], new[low:middle], long):
            low = middle
        else:
            high = middle - 1
    start = low
    low, high = 0, shorter - start
    while low < high:
        middle = (low + high + 1) // 2
        if is_same_run(
            old[len(old) - middle : len(old) - low], new[len(new) - middle : len(new) - low], long
        ):
            low = middle
        else:
            high = middle - 1
    return start, low
