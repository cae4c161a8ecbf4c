"""Sees which changes of a replica do not come back to main.

Only assigned and deleted attributes are looked at: comparing identities costs a microsecond per
object. Changes inside a value are not seen here.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Iterable, Mapping
from operator import is_
from typing import Any, Final

import numpy as np

# Kept by the runner, or the same object in every worker by construction.
_MANAGED: Final = frozenset({"simulator", "logger", "prng"})

_MISSING: Final = object()


class Watch:
    """Remembers the attributes of a replica's objects, and says what has changed since."""

    def __init__(
        self,
        objects: Iterable[tuple[int, object]],
        written_by_getters: Mapping[int, Collection[str]],
    ) -> None:
        """Remember the attributes of all numbered objects that keep them in a dict.

        Args:
            objects: the objects of a replica with their numbers.
            written_by_getters: attributes, by number of the object, that PAMS's own getters write.
        """
        self._written_by_getters = written_by_getters
        self._objects = [(index, obj) for index, obj in objects if _is_watched(obj)]
        self._before = {index: dict(vars(obj)) for index, obj in self._objects}

    def accept(self, index: int, obj: object) -> None:
        """Take the present attributes of an object as those to compare with."""
        if index in self._before:
            self._before[index] = dict(vars(obj))

    def changed(self, index: int, obj: object, listed: Collection[str] = ()) -> tuple[str, ...]:
        """Return the names that were assigned or deleted, sorted, without the listed ones."""
        before = self._before.get(index)
        if before is None:
            return ()
        quiet = _MANAGED.union(listed, self._written_by_getters.get(index, ()))
        return _changed_names(before, vars(obj), quiet)

    def changed_objects(self) -> list[tuple[int, tuple[str, ...]]]:
        """Return the objects that have changed since they were last accepted, and how."""
        found: list[tuple[int, tuple[str, ...]]] = []
        for index, obj in self._objects:
            before, after = self._before[index], vars(obj)
            # Nearly always nothing has changed, and this is the fast way to see it.
            if (
                len(before) == len(after)
                and all(map(is_, before.values(), after.values()))
                and all(map(is_, before, after))
            ):
                continue
            names = self.changed(index, obj)
            if names:
                found.append((index, names))
        return found


def _is_watched(obj: object) -> bool:
    return hasattr(obj, "__dict__") and not isinstance(obj, (list, dict, set, random.Random))


def _changed_names(
    before: Mapping[str, object], after: Mapping[str, object], skipped: Collection[str]
) -> tuple[str, ...]:
    changed = {
        name
        for name, value in after.items()
        if value is not (old := before.get(name, _MISSING)) and not _equal_atoms(old, value)
    }
    changed.update(name for name in before if name not in after)
    return tuple(sorted(changed.difference(skipped)))


def _equal_atoms(left: object, right: object) -> bool:
    """Return whether a new object is of no consequence: an equal value that cannot change."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float) and type(left) is float:
        return _equal_floats(left, right)
    if isinstance(left, complex) and isinstance(right, complex) and type(left) is complex:
        return _equal_floats(left.real, right.real) and _equal_floats(left.imag, right.imag)
    if isinstance(left, tuple) and isinstance(right, tuple) and type(left) is tuple:
        return len(left) == len(right) and all(map(_equal_atoms, left, right))
    return type(left) in (str, bytes, int, bool, type(None)) and left == right


def _equal_floats(left: float, right: object) -> bool:
    """Return whether two floats are the same number with the same sign; NaN is none."""
    return (
        isinstance(right, float)
        and left == right
        and math.copysign(1.0, left) == math.copysign(1.0, right)
    )


def generator_states(agent: Any, listed: Collection[str]) -> dict[str, object]:
    """Return the states of an agent's own generators that do not come back, by attribute.

    A generator that is also the agent's ``prng``, or the value of a listed attribute, comes back
    through that.
    """
    attributes = vars(agent) if hasattr(agent, "__dict__") else {}
    returning = {id(attributes.get(name)) for name in (*listed, "prng")}
    return {
        name: state_of_generator(value)
        for name, value in attributes.items()
        if isinstance(value, (random.Random, np.random.Generator, np.random.RandomState))
        and id(value) not in returning
    }


def state_of_generator(generator: object) -> object:
    """Return a generator's state as plain data that ``==`` compares as a whole."""
    if isinstance(generator, np.random.Generator):
        return _plain(generator.bit_generator.state)
    if isinstance(generator, np.random.RandomState):
        return _plain(generator.get_state(legacy=False))
    return read_state(generator)


def read_state(prng: Any) -> Any:
    """Return what ``getstate`` gives, or None for a generator that has no state (SystemRandom)."""
    try:
        return prng.getstate() if hasattr(prng, "getstate") else None
    except NotImplementedError:
        return None


def _plain(value: object) -> object:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value.tobytes() if isinstance(value, np.ndarray) else value
