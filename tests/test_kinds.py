"""What objects are to a replica: a table of classes."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import functools
import random
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest
from pams import Order, Session
from pams.agents import FCNAgent
from pams.logs import Logger
from sample_agents import LastDrawRandom

from pams_parallel._replica.kinds import (
    ARRAY,
    ATOM,
    CONSTANT,
    DICT,
    LIST,
    LOGGER,
    OPAQUE,
    PRNG,
    RECORD,
    SET,
    STATE,
    TUPLE,
    Kinds,
)


class Mood(enum.Enum):
    """An enum."""

    GOOD = 1


class Couple(NamedTuple):
    """A named tuple."""

    one: Any


class OddTuple(tuple[Any, ...]):
    """A tuple that can have attributes."""


class Number(int):
    """An int that can have attributes."""


class WithState:
    """Says itself what its state is."""

    def __getstate__(self) -> dict[str, Any]:
        return {}


class WithReduce:
    """Says itself how it is made."""

    def __reduce__(self) -> tuple[Any, ...]:
        return WithReduce, ()


class WithNew:
    """Is made with an argument."""

    def __new__(cls, number: int) -> WithNew:
        return super().__new__(cls)

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (1,)


class OwnDict(dict[str, Any]):
    """A dict of its own class."""


KINDS: dict[int, list[Callable[[], object]]] = {
    ATOM: [
        *(lambda: 1, lambda: 2.5, lambda: None, lambda: True, lambda: "x", lambda: b"x"),
        *(lambda: 1j, lambda: (), lambda: (1, ("x", 2.5)), lambda: range(3), lambda: ...),
        *(lambda: np.float64(1), lambda: np.int32(1), lambda: np.bool_(True)),
        *(lambda: decimal.Decimal(1), lambda: datetime.date(2024, 1, 1)),
    ],
    RECORD: [
        *(object, lambda: FCNAgent.__new__(FCNAgent), lambda: Order.__new__(Order)),
        lambda: Session.__new__(Session),
    ],
    STATE: [WithState],
    DICT: [dict, lambda: collections.defaultdict(list)],
    LIST: [list, lambda: collections.deque([1], 5)],
    SET: [set],
    TUPLE: [lambda: ([],), lambda: (1, (object(),)), lambda: Couple(1)],
    PRNG: [lambda: random.Random(1)],
    ARRAY: [lambda: np.zeros(3), lambda: np.zeros((2, 2), order="F"), lambda: np.array("x")],
    CONSTANT: [lambda: Mood, lambda: Mood.GOOD, lambda: int, lambda: len],
    LOGGER: [Logger],
    OPAQUE: [
        *(lambda: lambda: None, lambda: functools.partial(len), lambda: [].append),
        *(collections.OrderedDict, OwnDict, lambda: OddTuple((1,)), lambda: Number(1)),
        *(lambda: frozenset({1}), lambda: bytearray(b"x"), lambda: LastDrawRandom(1)),
        *(lambda: np.random.default_rng(1), lambda: np.zeros(3)[1:], threading.Lock),
        *(lambda: np.array([None]), lambda: np.zeros(1, dtype=[("a", "f8")])),
        *(WithReduce, lambda: WithNew(1), lambda: ValueError(1)),
    ],
}
"""Kind -> what makes objects of it."""


@pytest.mark.parametrize(
    ("kind", "make"), [(kind, make) for kind, makers in KINDS.items() for make in makers]
)
def test_kinds(kind: int, make: Callable[[], object]) -> None:
    """What an object is follows from its class and, where that does not suffice, its content."""
    kinds = Kinds(lambda cls: issubclass(cls, Logger))
    obj = make()
    assert kinds.of(obj) == kind
    assert kinds.of(obj) == kind  # also when the class is known
