"""Loggers in main: which of their attributes workers are told, and what of it is new."""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, field

from .._codec.diagnose import attributes_of


@dataclass(slots=True)
class Wanted:
    """What workers read of loggers; outlives the numbers of objects.

    Attributes:
        names: by class of the logger, the attributes.
        unreadable: by class and name, why an attribute cannot be sent.
    """

    names: dict[type, set[str]] = field(default_factory=dict)
    unreadable: dict[tuple[type, str], str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, eq=False)
class Look:
    """What is to be told of a logger.

    Attributes:
        names: the attributes that it has.
        sent: those whose values are sent.
        values: these.
        unreadable: those that were wanted and cannot be sent, with the reason.
    """

    names: tuple[str, ...] = ()
    sent: tuple[str, ...] = ()
    values: tuple[object, ...] = ()
    unreadable: tuple[tuple[str, str], ...] = ()

    def is_like(self, other: Look) -> bool:
        """Tell whether another says the same, of the same objects."""
        return (self.names, self.sent, self.unreadable) == (
            other.names,
            other.sent,
            other.unreadable,
        ) and all(one is two for one, two in zip(self.values, other.values, strict=True))


def look_at(logger: object, wanted: Wanted, known: Container[int]) -> Look:
    """Return what is to be told of a logger: what is read of it, and what costs nothing.

    Args:
        logger: in main.
        wanted: what is read.
        known: the ``id()`` of the objects that workers know: a reference costs two bytes.
    """
    cls = type(logger)
    attributes = dict(attributes_of(logger))
    read = wanted.names.get(cls, ())
    sent = {
        name: value
        for name, value in attributes.items()
        if (cls, name) not in wanted.unreadable and (name in read or id(value) in known)
    }
    reasons = ((name, wanted.unreadable.get((cls, name))) for name in attributes)
    return Look(
        names=tuple(attributes),
        sent=tuple(sent),
        values=tuple(sent.values()),
        unreadable=tuple((name, reason) for name, reason in reasons if reason is not None),
    )


def read_parts(logger: object, look: Look, wanted: Wanted) -> Iterable[tuple[str, object]]:
    """Return the attributes of a logger that were sent because they are read."""
    read = wanted.names.get(type(logger), ())
    return [
        (name, value) for name, value in zip(look.sent, look.values, strict=True) if name in read
    ]
