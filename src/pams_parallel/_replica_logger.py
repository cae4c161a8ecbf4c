"""The stand-in for main's logger in a worker.

Writing to it is recorded, and done on main's logger when the agent's result is applied. Reading
it gives main's values, but only what agents really read is sent: the first read of a part ends
the agent's call, the task is repeated with that part, and from then on it is always sent. So a
logger costs nothing, however much it has collected, as long as nobody reads it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

from .exceptions import LoggerStateError

WRITE_METHODS: Final = (
    "write",
    "bulk_write",
    "write_and_direct_process",
    "bulk_write_and_direct_process",
)


class LoggerCall(NamedTuple):
    """A call of one of ``WRITE_METHODS``, as made."""

    logger: object
    method: str
    args: tuple[object, ...]
    kwargs: dict[str, object]


@dataclass(slots=True)
class LoggerView:
    """What a worker knows of a logger.

    Attributes:
        class_name: name of its class in main.
        is_own_class: whether the stand-in has that class, not only the nearest base of it that
            can be sent.
        names: the attributes that main's logger has.
        sent: values of some of these.
        unreadable: why others cannot be sent.
    """

    class_name: str
    is_own_class: bool
    names: tuple[str, ...] = ()
    sent: dict[str, object] = field(default_factory=dict)
    unreadable: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class LoggerTraffic:
    """What agents did with the stand-ins of one replica.

    Attributes:
        calls: writes of the agent that is being asked.
        needs: parts (number of the logger, attribute) that were read and not sent.
        changed: attributes that were set or deleted, by number of the logger.
    """

    calls: list[LoggerCall] = field(default_factory=list)
    needs: set[tuple[int, str]] = field(default_factory=set)
    changed: dict[int, set[str]] = field(default_factory=dict)


class LoggerPartMissing(BaseException):
    """Ends an agent's call that cannot go on without a part of the logger.

    Not an Exception, so that an agent's ``except Exception`` lets it pass; one that catches
    everything is caught by ``LoggerTraffic.needs``.
    """


def make_replica_logger(number: int, view: LoggerView, cls: Any, traffic: LoggerTraffic) -> object:
    """Make the stand-in for a logger.

    Args:
        number: of the logger.
        view: what is known of it; may change while no agent is asked.
        cls: its class, or the nearest base that could be sent. The stand-in is an instance of a
            subclass, so that its methods work and ``isinstance`` holds.
        traffic: where to record what agents do.
    """

    def read(name: str) -> object:
        """Return main's value of an attribute that main's logger has in its instance."""
        if name in view.sent:
            return view.sent[name]
        if name in view.unreadable:
            raise LoggerStateError(view.class_name, name, view.unreadable[name])
        traffic.needs.add((number, name))
        raise LoggerPartMissing

    class ReplicaLogger(_NoSubclassHook, cls):  # type: ignore[misc]  # a class of the user
        __slots__ = ()

        def __getattribute__(self, name: str) -> Any:
            if name in WRITE_METHODS:
                return _recorder(self, name, traffic)
            if name == "__class__":
                return cls
            local = object.__getattribute__(self, "__dict__")
            if name == "__dict__":
                known = view.sent.keys() | view.unreadable.keys()
                if missing := [key for key in view.names if key not in known]:
                    traffic.needs.update((number, key) for key in missing)
                    raise LoggerPartMissing
                gone = traffic.changed.get(number, ())
                return {key: read(key) for key in view.names if key not in gone} | local
            if name in local:
                return local[name]
            if name in view.names and name not in traffic.changed.get(number, ()):
                return read(name)
            try:
                return super().__getattribute__(name)
            except AttributeError:
                if view.is_own_class or name.startswith("__"):
                    raise
                reason = "its class cannot be sent to a worker"
                raise LoggerStateError(view.class_name, name, reason) from None

        def __setattr__(self, name: str, value: object) -> None:
            traffic.changed.setdefault(number, set()).add(name)
            object.__getattribute__(self, "__dict__")[name] = value

        def __delattr__(self, name: str) -> None:
            getattr(self, name)  # deleting what is not there is an AttributeError here too
            traffic.changed.setdefault(number, set()).add(name)
            object.__getattribute__(self, "__dict__").pop(name, None)

    ReplicaLogger.__name__ = ReplicaLogger.__qualname__ = view.class_name
    return object.__new__(ReplicaLogger)


class _NoSubclassHook:
    """Comes first among the bases, so that the user's ``__init_subclass__`` is not run."""

    __slots__ = ()

    def __init_subclass__(cls, **kwargs: object) -> None:
        pass


def _recorder(logger: object, method: str, traffic: LoggerTraffic) -> Any:
    def record(*args: object, **kwargs: object) -> None:
        traffic.calls.append(LoggerCall(logger, method, args, kwargs))

    def record_many(*args: Any, **kwargs: Any) -> None:
        # PAMS takes the records out of the list at once: what the agent does to it later is not
        # to be seen, a buffer that is emptied say
        if args:
            args = (_taken(args[0]), *args[1:])
        elif "logs" in kwargs:
            kwargs = {**kwargs, "logs": _taken(kwargs["logs"])}
        record(*args, **kwargs)

    return record_many if method.startswith("bulk_") else record


def _taken(logs: Iterable[object]) -> tuple[object, ...] | list[object]:
    return logs if isinstance(logs, tuple) else list(logs)
