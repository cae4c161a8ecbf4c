"""What batches took: bytes and times, measured by the runner itself."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Final

MAX_BATCHES: Final = 10_000
"""Batches that are kept one by one; all are in the total."""


@dataclass(slots=True)
class BatchStats:
    """What one batch took, or several together.

    The times are wall times of the main process and add up to nearly all that the batch took. Of
    the workers, which work at the same time, the one that took longest counts.

    Attributes:
        agents: number of agents asked.
        tasks: number of tasks; more than the chunks where a chunk was asked again.
        encoded_bytes: what the main process encoded: the update, once, and the tasks.
        received_bytes: what workers answered.
        encode_seconds: finding out what has changed, and turning it and the tasks to bytes.
        send_seconds: bytes on their way and workers waking up: what is left of the waiting.
        decode_seconds: a worker bringing its replica up to date.
        ask_seconds: a worker asking its agents, and turning what they return to bytes.
        return_seconds: turning the answers to objects, and checking the orders.
        apply_seconds: bringing them to the agents.
    """

    agents: int = 0
    tasks: int = 0
    encoded_bytes: int = 0
    received_bytes: int = 0
    encode_seconds: float = 0.0
    send_seconds: float = 0.0
    decode_seconds: float = 0.0
    ask_seconds: float = 0.0
    return_seconds: float = 0.0
    apply_seconds: float = 0.0

    @property
    def seconds(self) -> float:
        """All the times together."""
        return sum(self.times().values())

    def times(self) -> dict[str, float]:
        """Return the times in seconds by what they are for, in the order of a batch."""
        return {name.removesuffix("_seconds"): getattr(self, name) for name in _TIMES}

    def add(self, other: BatchStats) -> None:
        """Add the figures of another."""
        for name in _NAMES:
            setattr(self, name, getattr(self, name) + getattr(other, name))


_NAMES: Final = tuple(field.name for field in fields(BatchStats))
_TIMES: Final = tuple(name for name in _NAMES if name.endswith("_seconds"))


class RunnerStats:
    """What the batches of a runner took since it was set up.

    Attributes:
        num_batches: how many there were.
        total: all of them together.
    """

    def __init__(self) -> None:
        """Begin with none."""
        self.num_batches = 0
        self.total = BatchStats()
        self._batches: deque[BatchStats] = deque(maxlen=MAX_BATCHES)

    @property
    def batches(self) -> Sequence[BatchStats]:
        """The last 10,000 batches, one by one, the latest at the end."""
        return tuple(self._batches)

    def record(self, batch: BatchStats) -> None:
        """Add a batch."""
        self.num_batches += 1
        self.total.add(batch)
        self._batches.append(batch)
