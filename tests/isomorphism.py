"""Are two object graphs the same, aliasing and cycles included?

It walks both at once and pairs their objects: the graphs are the same when the pairing is one to
one, and paired objects have the same type and the same parts.
"""

from __future__ import annotations

import enum
import random
import struct
import types
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np

ATOMS = (
    *(type(None), bool, int, float, complex, str, bytes, range, type, enum.Enum),
    *(types.FunctionType, types.BuiltinFunctionType, types.ModuleType),
)
"""Compared by value, or are the same object everywhere in a process; they have no aliases."""


def find_difference(
    left: object, right: object, pairs: Sequence[tuple[object, object]] = ()
) -> str | None:
    """Return the path to the first difference of two graphs, or None when they are the same.

    Args:
        left: the one graph.
        right: the other.
        pairs: objects that stand for each other, whatever they consist of.
    """
    # what is paired stays alive, or its id could come to mean another object
    seen: list[object] = [*pairs]
    to_right = {id(one): other for one, other in pairs}
    to_left = {id(other): one for one, other in pairs}
    todo: list[tuple[str, object, object]] = [("", left, right)]
    while todo:
        path, one, other = todo.pop()
        if isinstance(one, ATOMS):
            if not _same_atom(one, other):
                return f"{path}: {one!r:.60} is not {other!r:.60}"
            continue
        if id(one) in to_right or id(other) in to_left:
            if to_right.get(id(one)) is not other or to_left.get(id(other)) is not one:
                return f"{path}: one object on the one side is two on the other"
            continue
        if type(one) is not type(other):
            return f"{path}: {type(one)} is not {type(other)}"
        to_right[id(one)], to_left[id(other)] = other, one
        parts, other_parts = _parts(one), _parts(other)
        if [name for name, _ in parts] != [name for name, _ in other_parts]:
            return f"{path}: {type(one).__name__} has other parts"
        seen += [one, other, parts, other_parts]
        todo += [
            (f"{path}{name}", part, other_part)
            for (name, part), (_, other_part) in zip(parts, other_parts, strict=True)
        ]
    return None


def is_same(left: object, right: object, pairs: Sequence[tuple[object, object]] = ()) -> bool:
    """Tell whether two graphs are the same."""
    return find_difference(left, right, pairs) is None


def _same_atom(one: object, other: object) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, float):
        return struct.pack("d", one) == struct.pack("d", other)  # -0.0 and NaN, too
    if isinstance(one, complex) and isinstance(other, complex):
        return _same_atom(one.real, other.real) and _same_atom(one.imag, other.imag)
    if isinstance(one, (str, bytes, int, range)) and not isinstance(one, enum.Enum):
        return one == other
    return one is other


def _parts(obj: Any) -> list[tuple[str, object]]:
    """Return what an object consists of, with the words that lead there."""
    parts: list[tuple[str, object]] = []
    if isinstance(obj, dict):
        for number, (key, value) in enumerate(obj.items()):
            parts += [(f".keys[{number}]", key), (f"[{number}]", value)]
    elif isinstance(obj, (list, tuple, deque)):
        parts += [(f"[{number}]", item) for number, item in enumerate(obj)]
    elif isinstance(obj, (set, frozenset)):
        parts += [(f"{{{_sort_key(item)}}}", item) for item in sorted(obj, key=_sort_key)]
    elif isinstance(obj, random.Random):
        parts += [(".getstate()", obj.getstate())]
    elif isinstance(obj, np.random.Generator):
        parts += [(".state", obj.bit_generator.state)]
    elif isinstance(obj, np.random.RandomState):
        parts += [(".state", obj.get_state(legacy=False))]
    elif isinstance(obj, np.ndarray):
        content = [*obj.flat] if obj.dtype.hasobject else obj.tobytes()
        parts += [(".array", (obj.dtype.str, obj.shape, obj.flags.writeable, content))]
    elif isinstance(obj, types.MethodType):
        parts += [(".__func__", obj.__func__), (".__self__", obj.__self__)]
    parts += [(f".{name}", value) for name, value in getattr(obj, "__dict__", {}).items()]
    for cls in type(obj).__mro__:
        for name, slot in vars(cls).items():
            if isinstance(slot, types.MemberDescriptorType) and hasattr(obj, name):
                # asked of the descriptor: a private name is mangled, the descriptor knows
                parts.append((f".{cls.__name__}.{name}", slot.__get__(obj)))
    return parts


def _sort_key(item: Any) -> str:
    """Return what tells an item of a set from the others, on both sides."""
    if isinstance(item, ATOMS):
        return f"{type(item).__name__} {item!r}"
    if isinstance(item, tuple):
        return f"tuple {[_sort_key(part) for part in item]}"
    if isinstance(item, frozenset):
        return f"frozenset {sorted(map(_sort_key, item))}"
    return f"{type(item).__name__} {item.label}"
