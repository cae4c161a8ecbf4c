"""What crosses the process boundary: frozen values of bytes, numbers and names.

```
Task ──▶ worker ──▶ ChunkReport
```

A task is a pure function of what it is sent: everything in it was turned to bytes in main, in the
calling thread, before it was submitted. User objects are only inside the ``bytes`` fields, which
the codec made, so that a message itself can always be loaded.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from .exceptions import PamsParallelError


class Ask(NamedTuple):
    """One agent to ask.

    Attributes:
        number: of the agent.
        names: its listed attributes, as read in main for this call.
        prng: the packed state of its generator; None where that is in the update.
    """

    number: int
    names: tuple[str, ...]
    prng: bytes | None


@dataclass(frozen=True, slots=True)
class WorkerSetup:
    """What a worker needs before the first task of a runner.

    Attributes:
        token: identifies the runner.
        backend: the codec backend, pickled; None when it cannot be.
        initializer: the initializer with its arguments, pickled; None when there is none, or
            when it cannot be pickled.
        problem: why ``backend`` or ``initializer`` cannot be pickled, or ``""``.
        has_initializer: whether the runner has one.
    """

    token: str
    backend: bytes | None
    initializer: bytes | None
    problem: str
    has_initializer: bool


@dataclass(frozen=True, slots=True)
class Refresh:
    """What brings a worker up to date; every worker of ours gets each.

    Attributes:
        setup: what the worker needs once; None when it has it.
        update: a pickled ``Update`` of its replica.
    """

    setup: WorkerSetup | None
    update: bytes


@dataclass(frozen=True, slots=True)
class Task:
    """One chunk: the agents to ask, in this order.

    Attributes:
        asks: the agents.
        refresh: makes a replica for this task alone; None for a worker that keeps one.
    """

    asks: tuple[Ask, ...]
    refresh: Refresh | None = None


@dataclass(frozen=True, slots=True)
class ExceptionImage:
    """An exception on its way.

    Attributes:
        type_name: qualified name of its class.
        text: ``str`` of it.
        traceback: the formatted traceback, causes included.
        data: the encoded exception; None when it cannot be encoded.
        problem: why not, or ``""``.
    """

    type_name: str
    text: str
    traceback: str
    data: bytes | None
    problem: str = ""


class FailureKind(Enum):
    """What went wrong with a chunk."""

    AGENT = "the agent's submit_orders raised"
    ENCODE = "a value of the agent cannot be encoded"
    DECODE = "the replica cannot take an update"
    SETUP = "the backend or the initializer cannot be loaded, or the initializer raised"


@dataclass(frozen=True, slots=True)
class Failure:
    """Why a chunk ended early.

    Attributes:
        kind: what went wrong.
        position: of the agent in the chunk; for ``DECODE`` the number of the object.
        cause: what was raised.
        error: the error to raise in main; None where main makes it from the cause.
    """

    kind: FailureKind
    position: int
    cause: ExceptionImage
    error: PamsParallelError | None = None


class LostChanges(NamedTuple):
    """Attributes that were assigned or deleted in a worker and do not come back.

    Attributes:
        number: of the changed object.
        names: the attributes, sorted.
    """

    number: int
    names: tuple[str, ...]


class AgentReport(NamedTuple):
    """What came of asking one agent, beside the encoded values.

    Attributes:
        prng: the packed state of its generator; None when it is among the values, or when the
            agent has none.
        present: listed attributes whose values are among the values, in listed order.
        deleted: listed attributes that the agent does not have.
        lost: changes that do not come back.
        fundamentals_until: how far the agent made the fundamental prices be generated; None when
            it did not.
    """

    prng: bytes | None
    present: tuple[str, ...]
    deleted: tuple[str, ...]
    lost: tuple[LostChanges, ...]
    fundamentals_until: int | None

    def nouns(self) -> list[str]:
        """Return what the values of the agent are, in the order in which they are encoded."""
        listed = [f"attribute '{name}'" for name in self.present]
        return ["its orders", "its log calls", "the state of its prng", *listed]


@dataclass(frozen=True, slots=True)
class ChunkReport:
    """What came of a task.

    Attributes:
        agents: the agents that were asked without a failure, in asked order.
        values: their encoded values, in one piece: what they share stays shared.
        failure: why the agents after these were not asked.
        logger_needs: parts of loggers (number of the logger, attribute) that an agent wanted to
            read and that were not sent: the task must be repeated with them.
        earlier: changes that were found after the answer before, and do not come back.
        decode_seconds: how long bringing the replica up to date took.
        ask_seconds: how long the rest took.
    """

    agents: tuple[AgentReport, ...] = ()
    values: bytes = b""
    failure: Failure | None = None
    logger_needs: tuple[tuple[int, str], ...] = field(default=())
    earlier: tuple[LostChanges, ...] = ()
    decode_seconds: float = 0.0
    ask_seconds: float = 0.0
