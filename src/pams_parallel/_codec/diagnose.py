"""Where in a value is the thing that cannot be encoded? Asked only after it failed."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator

# Deep enough for what people build; a deeper culprit is named by the path down to here.
_MAX_DEPTH = 20

Encode = Callable[[object], object]


def find_culprit(value: object, encode: Encode) -> tuple[str, object, BaseException | None]:
    """Follow the failing parts of a value down to the smallest.

    Args:
        value: what could not be encoded.
        encode: encodes a value, or raises.

    Returns:
        The path from the value (such as ``.rule['x'][3]``), the object there, and what encoding
        it raises; None when the value alone can be encoded after all.
    """
    error = _failure(value, encode)
    path = ""
    seen: set[int] = set()
    while error is not None and len(seen) < _MAX_DEPTH:
        seen.add(id(value))
        if getattr(error, "culprit", None) is value:
            break  # what is refused is refused whole, whatever it consists of
        for step, part in _parts(value):
            part_error = None if id(part) in seen else _failure(part, encode)
            if part_error is not None:
                path, value, error = path + step, part, part_error
                break
        else:
            break
    return path, value, error


def _failure(value: object, encode: Encode) -> BaseException | None:
    try:
        encode(value)
    except Exception as error:  # whatever a user's reducer raises is what we want to show
        return error
    return None


def _parts(value: object) -> Iterator[tuple[str, object]]:
    """Yield what a value is made of, with the words that lead there."""
    if isinstance(value, dict):
        for key, item in list(value.items()):
            yield f"[{key!r:.40}]", item
            yield f".keys()[{key!r:.40}]", key
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield f"[{index}]", item
    elif isinstance(value, (set, frozenset)):
        for item in value:
            yield f"{{{item!r:.40}}}", item
    if not isinstance(value, type):
        for name, item in attributes_of(value):
            yield f".{name}", item


def attributes_of(value: object) -> list[tuple[str, object]]:
    """Return the attributes of an instance, in its dict and in its slots."""
    found = list(getattr(value, "__dict__", {}).items())
    for name in _slot_names(type(value)):
        if hasattr(value, name):
            found.append((name, getattr(value, name)))
    return found


_known_slots: weakref.WeakKeyDictionary[type, tuple[str, ...]] = weakref.WeakKeyDictionary()


def _slot_names(cls: type) -> tuple[str, ...]:
    known = _known_slots.get(cls)
    if known is not None:
        return known
    names: list[str] = []
    for base in cls.__mro__:
        slots = base.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            mangled = f"_{base.__name__.lstrip('_')}{name}" if _is_private(name) else name
            if mangled not in ("__dict__", "__weakref__"):
                names.append(mangled)
    _known_slots[cls] = tuple(names)
    return tuple(names)


def _is_private(name: str) -> bool:
    return name.startswith("__") and not name.endswith("__")
