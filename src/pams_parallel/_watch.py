"""Sees which changes of a replica do not come back to main.

Only assigned and deleted attributes are looked at: comparing identities costs a microsecond per
object. Changes inside a value are not seen here.
"""

from __future__ import annotations

import math
import random
from collections.abc import Collection, Mapping
from operator import is_
from typing import Any, Final

import numpy as np

# Kept by the runner, or the same object in every worker by construction.
_MANAGED: Final = frozenset({"simulator", "logger", "prng"})

_MISSING: Final = object()


def changed_names(
    before: Mapping[str, object], after: Mapping[str, object], quiet: Collection[str] = ()
) -> tuple[str, ...]:
    """Return the attributes that were assigned or deleted, sorted.

    Args:
        before: the attributes.
        after: the same later.
        quiet: names of no interest, beside those that the runner manages.
    """
    if (
        len(before) == len(after)
        and all(map(is_, before.values(), after.values()))
        and all(map(is_, before, after))
    ):
        return ()  # nearly always
    changed = {
        name
        for name, value in after.items()
        if value is not (old := before.get(name, _MISSING)) and not _equal_atoms(old, value)
    }
    changed.update(name for name in before if name not in after)
    return tuple(sorted(changed.difference(_MANAGED, quiet)))


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
    found = {
        name: value
        for name, value in attributes.items()
        if _generator_types.get(type(value), True) and _is_generator(value)
    }
    returning = {id(attributes.get(name)) for name in (*listed, "prng")} if found else set()
    return {
        name: state_of_generator(value)
        for name, value in found.items()
        if id(value) not in returning
    }


_generator_types: dict[type, bool] = {}


def _is_generator(value: object) -> bool:
    kinds = (random.Random, np.random.Generator, np.random.RandomState)
    return _generator_types.setdefault(type(value), isinstance(value, kinds))


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
