"""What any Python object holds: its attributes, and what a C type says of itself to pickle."""

from __future__ import annotations

import contextlib
import types
import warnings
from typing import Final

_REDUCERS: Final = ("__reduce_ex__", "__reduce__", "__getnewargs_ex__", "__getnewargs__")


def attributes_of(owner: object) -> list[tuple[str, object]]:
    """Return the instance attributes of an object by name, those in slots too.

    Sorted: in which order attributes were first set is not part of the state.
    """
    found: dict[str, object] = {}
    for cls in type(owner).__mro__:
        slots = vars(cls).get("__slots__", ())
        for slot in (slots,) if isinstance(slots, str) else tuple(slots):
            member = vars(cls).get(_mangled(cls, slot))
            if isinstance(member, types.MemberDescriptorType):
                try:
                    found[slot] = member.__get__(owner, type(owner))
                except AttributeError:
                    continue
    with contextlib.suppress(AttributeError):
        # not vars(): proxies answer that for the object that they stand for
        found.update(object.__getattribute__(owner, "__dict__"))
    return sorted(found.items(), key=lambda item: str(item[0]))


def reduction_of(value: object) -> list[tuple[str, object]]:
    """Return the parts of what an object says of itself to pickle, by label.

    That is how the content of a C type (a date, a ``partial``, an iterator) comes to light. Nothing
    for objects that refuse: of a lock or an open file, the class is all that can be compared.
    """
    with warnings.catch_warnings():
        # some iterators answer, and warn that they will not for ever
        warnings.simplefilter("ignore")
        try:
            reduced = value.__reduce_ex__(4)
        except Exception:
            return []
    if isinstance(reduced, str):
        return [(".name", reduced)]
    parts = list(reduced)
    # the items of a list or dict come as iterators made for this call
    parts[3:5] = [None if part is None else [*part] for part in parts[3:5]]
    return [(f".reduced[{i}]", part) for i, part in enumerate(parts)]


def hides_content(cls: type) -> bool:
    """Tell whether instances hold more than their attributes, in C.

    A reducer written in Python is not asked: it is the user's, and may have effects.
    """
    for name in _REDUCERS:
        reducer = getattr(cls, name, None)
        if reducer is None or reducer is getattr(object, name, None):
            continue
        if not isinstance(reducer, types.FunctionType):
            return True
    return False


def has_identity(value: object) -> bool:
    """Tell whether a copy of the value would be another value: it does not hash by value."""
    hashing = getattr(type(value), "__hash__", None)
    return hashing is None or hashing is object.__hash__


def _mangled(cls: type, name: str) -> str:
    """Return the name under which a class keeps a slot: Python renames private ones."""
    if name.startswith("__") and not name.endswith("__"):
        return f"_{cls.__name__.lstrip('_')}{name}"
    return name
