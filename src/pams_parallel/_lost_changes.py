"""What is said about changes in a worker that do not come back."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Final

# Stable: users filter warnings by it.
PREFIX: Final = "Changes to attributes not listed in synced_attributes are lost"


class LostChangesWarner:
    """Warns of each attribute of a class once."""

    def __init__(self, runner: str) -> None:
        """Take the name of the runner's class, which the warnings mention."""
        self._runner = runner
        self._warned: set[tuple[type, str]] = set()

    def warn(self, changes: Iterable[tuple[object, tuple[str, ...], bool]]) -> None:
        """Warn of what has not been warned of before.

        Args:
            changes: changed objects with the names of their attributes, and whether the object is
                the agent that was asked, which can list them.
        """
        lost: dict[tuple[type, bool], set[str]] = {}
        for obj, changed, is_asked in changes:
            if changed:
                lost.setdefault((type(obj), is_asked), set()).update(changed)
        for (cls, is_asked), names in lost.items():
            new = {name for name in names if (cls, name) not in self._warned}
            if not new:
                continue
            quoted = ", ".join(repr(name) for name in sorted(new))
            advice = (
                f"List them in synced_attributes of {cls.__name__} to bring them back."
                if is_asked
                else "A worker has only a copy of the simulation: keep such state in the agent, "
                "listed in its synced_attributes."
            )
            warnings.warn(
                f"{PREFIX}: {cls.__name__} {quoted} in submit_orders under {self._runner}. "
                f"{advice}",
                stacklevel=2,
            )
            # only now: a filter may have made the warning an error, and then nothing was said
            self._warned.update((cls, name) for name in new)
