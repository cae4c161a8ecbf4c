"""What the runner says about itself, where it does: ``runner.stats``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, cast


class BatchStats(Protocol):
    """Figures of one batch."""

    @property
    def encoded_bytes(self) -> int:
        """All bytes that main encoded."""


def encoded_bytes(runner: object) -> list[int] | None:
    """Return the bytes that main encoded, by batch; None if the runner does not tell."""
    batches = getattr(getattr(runner, "stats", None), "batches", None)
    if batches is None:
        return None
    return [batch.encoded_bytes for batch in cast("Sequence[BatchStats]", batches)]
