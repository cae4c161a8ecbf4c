"""What an object is to a replica: how it is compared, sent and put back."""

from __future__ import annotations

import datetime
import decimal
import enum
import fractions
import random
import sys
import types
from collections import defaultdict, deque
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from .._codec.reducers import registered_reducers

ATOM: Final = 0
"""Cannot change, has no identity of interest, is written where it is met."""
RECORD: Final = 1
"""An instance of a class: its row are its attributes."""
STATE: Final = 2
"""An instance that says itself what its state is (``__getstate__``, ``__setstate__``)."""
DICT: Final = 3
LIST: Final = 4
SET: Final = 5
TUPLE: Final = 6
"""Holds something that is no atom, or has names. Cannot change, but what it holds can."""
PRNG: Final = 7
"""A ``random.Random`` itself, no subclass."""
ARRAY: Final = 8
"""A numpy array of plain numbers that owns its memory."""
CONSTANT: Final = 9
"""A class, an importable function, a member of an enum: sent once."""
LOGGER: Final = 10
"""Replaced by a stand-in."""
OPAQUE: Final = 11
"""All else: written whole by the backend every time, and sent when the bytes differ."""

ATOM_TYPES: Final[frozenset[type]] = frozenset(
    {
        *(
            type(None),
            bool,
            int,
            float,
            complex,
            str,
            bytes,
            range,
            type(...),
            type(NotImplemented),
        ),
        *(decimal.Decimal, fractions.Fraction),
        *(datetime.date, datetime.datetime, datetime.time, datetime.timedelta, datetime.timezone),
        *(kind for kind in np.sctypeDict.values() if issubclass(kind, (np.number, np.bool_))),
    }
)
"""Exact types; a subclass may carry anything."""

_FUNCTIONS: Final = (types.FunctionType, types.BuiltinFunctionType)
_HEAP_TYPE: Final = 1 << 9

# not OrderedDict: move_to_end is not seen by the methods of dict
DICT_TYPES: Final = (dict, defaultdict)
LIST_TYPES: Final = (list, deque)
MUTABLE_ROWS: Final = frozenset({RECORD, STATE, DICT, LIST, SET})


_PHASES: Final = {RECORD: 1, LIST: 2, DICT: 4, SET: 4, STATE: 5}


def phase_of(kind: int, cls: type | None) -> int:
    """Return when to fill an object: those that others are hashed by come first.

    Args:
        kind: of the object.
        cls: its class, where it has one of a user.
    """
    if cls is not None and has_own_hash(cls):
        return 0 if kind == RECORD else 3
    return _PHASES[kind]


class Kinds:
    """Tells the kinds of objects; remembers those of types."""

    def __init__(self, is_logger: Callable[[type], bool]) -> None:
        """Take what tells the classes of loggers."""
        self._is_logger = is_logger
        self._of_type: dict[type, int] = dict.fromkeys(ATOM_TYPES, ATOM)

    def of(self, obj: object) -> int:
        """Return the kind of an object."""
        cls = type(obj)
        kind = self._of_type.get(cls)
        if kind is None:
            kind = self._of_type[cls] = self._of_class(cls, obj)
        if kind == TUPLE:
            return ATOM if cls is tuple and is_atom(obj) else TUPLE
        if kind == ARRAY:
            return ARRAY if _is_plain_array(obj) else OPAQUE
        if kind == CONSTANT and cls in _FUNCTIONS:
            return CONSTANT if _is_importable(obj) else OPAQUE
        return kind

    def _of_class(self, cls: type, obj: object) -> int:
        if issubclass(cls, (type, enum.Enum)) or cls in _FUNCTIONS:
            return CONSTANT
        if self._is_logger(cls):
            return LOGGER
        if cls in registered_reducers() and cls not in (random.Random,):
            return OPAQUE
        if cls in DICT_TYPES:
            return DICT
        if cls in LIST_TYPES:
            return LIST
        if cls in (set, tuple, random.Random, np.ndarray):
            return {set: SET, tuple: TUPLE, random.Random: PRNG, np.ndarray: ARRAY}[cls]
        if is_named_tuple(cls):
            return TUPLE
        if not is_plain(cls):
            return OPAQUE
        if has_own_state(cls):
            return STATE
        return RECORD if _shows_all(obj) else OPAQUE


def is_atom(value: object) -> bool:
    """Tell whether a value, or all of a tuple, cannot change."""
    if type(value) is tuple:
        return all(map(is_atom, value))
    return type(value) in ATOM_TYPES


def is_named_tuple(cls: type) -> bool:
    """Tell whether a class is a named tuple that holds its items and nothing else."""
    reduce_ex: object = cls.__reduce_ex__
    return (
        issubclass(cls, tuple)
        and hasattr(cls, "_fields")
        and reduce_ex is object.__reduce_ex__
        and cls.__reduce__ is object.__reduce__
        and not cls.__dictoffset__
        and not has_own_state(cls)
    )


def is_plain(cls: type) -> bool:
    """Tell whether instances are rebuilt by ``cls.__new__(cls)`` and a state."""
    reduce_ex: object = cls.__reduce_ex__
    reduce: object = cls.__reduce__
    return (
        reduce_ex is object.__reduce_ex__
        and reduce is object.__reduce__
        and not hasattr(cls, "__getnewargs__")
        and not hasattr(cls, "__getnewargs_ex__")
        # a builtin base brings content of its own (a dict's items)
        and all(base is object or bool(base.__flags__ & _HEAP_TYPE) for base in cls.__mro__)
    )


def has_own_state(cls: type) -> bool:
    """Tell whether a class defines how its state is taken or set."""
    getter: Any = getattr(cls, "__getstate__", None)  # of object itself since Python 3.11
    own_getter = getter is not None and getter is not getattr(object, "__getstate__", None)
    return own_getter or hasattr(cls, "__setstate__")


def _shows_all(obj: object) -> bool:
    """Tell whether the attributes of an object are all that it holds; a lock has more, in C."""
    try:
        obj.__reduce_ex__(4)
    except TypeError:
        return False
    return True


def has_own_hash(cls: type) -> bool:
    """Tell whether a hash may depend on what an instance holds."""
    own: object = cls.__hash__
    return own is not object.__hash__ and own is not None


def _is_importable(function: Any) -> bool:
    """Tell whether a function is found by its name, and is no method bound to an object."""
    module = getattr(function, "__module__", None)
    if module is None or module in ("__main__", "__mp_main__"):
        return False
    found: object = sys.modules.get(module)
    for name in function.__qualname__.split("."):
        found = getattr(found, name, None)
    return found is function


def _is_plain_array(array: Any) -> bool:
    dtype = array.dtype
    return (
        array.base is None
        and not dtype.hasobject
        and dtype.fields is None
        and dtype.metadata is None
    )
