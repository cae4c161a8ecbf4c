"""What main tells a replica: one message for all workers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

Coded = tuple[Sequence[object], Sequence[int], Sequence[int]]
"""Values, with None where an object stands; the positions of these; their numbers."""


CodedRow = tuple[int, Coded, Coded]
"""An object, its keys and its values."""


@dataclass(slots=True)
class LoggerUpdate:
    """A logger as far as workers know it.

    Attributes:
        class_name: name of its class in main.
        is_own_class: whether its class there is that class, not the nearest base of it that can
            be sent.
        names: the attributes that it has.
        sent: those whose values are sent.
        values: these.
        unreadable: those that were wanted and cannot be sent, with the reason.
    """

    class_name: str
    is_own_class: bool
    names: tuple[str, ...]
    sent: tuple[str, ...]
    values: Coded
    unreadable: tuple[tuple[str, str], ...]


@dataclass(slots=True)
class Update:
    """What has changed since the last update. Objects are numbers; only atoms are written out.

    Attributes:
        first: whether a new replica begins with it.
        simulator: number of the simulator.
        dropped: objects that nothing holds any more.
        constants: classes, functions and members of enums, encoded.
        new: objects with their kind, and what is needed to make an empty one: the number of the
            class of a record, the longest length of a deque, the sort of a dict.
        tuples: classes (or None) and items.
        hashed: rows of records that are hashed by what they hold.
        rows: all rows, some at a time, pickled, in the order in which to fill objects.
        splices: first and last replaced position of a list, and the new items.
        prngs: generators, and their packed states one after the other.
        arrays: type, shape, order, whether it can be written to, and content.
        opaques: objects, what they refer to, and the encoded list of them.
        order: the tuples and opaques (by their first number) in the order in which to make them.
        loggers: the loggers that have changed.
    """

    first: bool
    simulator: int = -1
    dropped: list[int] = field(default_factory=list)
    constants: list[tuple[int, bytes]] = field(default_factory=list)
    new: list[tuple[int, int, Any]] = field(default_factory=list)
    tuples: dict[int, tuple[int | None, Coded]] = field(default_factory=dict)
    hashed: list[CodedRow] = field(default_factory=list)
    rows: list[bytes] = field(default_factory=list)
    splices: list[tuple[int, int, int, Coded]] = field(default_factory=list)
    prngs: tuple[list[int], bytes] = ([], b"")
    arrays: list[tuple[int, str, tuple[int, ...], str, bool, bytes]] = field(default_factory=list)
    opaques: dict[int, tuple[tuple[int, ...], tuple[int, ...], bytes]] = field(default_factory=dict)
    order: list[int] = field(default_factory=list)
    loggers: list[tuple[int, int, LoggerUpdate]] = field(default_factory=list)
