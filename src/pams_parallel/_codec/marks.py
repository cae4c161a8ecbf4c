"""Marks in a payload: they tell which part was being encoded or decoded when it failed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from .protocol import References

ForeignTest = Callable[[object], str | None]
"""Returns what an object is if it belongs to a simulation but to no reference table, else None."""


class Mark:
    """Stands before a part of a payload. It is never written itself, only its negative id is."""

    __slots__ = ("index",)

    def __init__(self, index: int) -> None:
        self.index = index


class ForeignObjectError(Exception):
    """A simulation object that is in no table was about to be written.

    Attributes:
        target: what it is.
        culprit: the object.
    """

    def __init__(self, target: str, culprit: object) -> None:
        super().__init__(target)
        self.target = target
        self.culprit = culprit


class MarkedReferences:
    """A reference table that also keeps count of the marks that went by.

    Attributes:
        position: number of the part that is being written or read; -1 before the first.
    """

    def __init__(
        self,
        references: References,
        foreign: ForeignTest | None = None,
        numbers: Mapping[int, int] | None = None,
    ) -> None:
        """Wrap a table.

        Args:
            references: the table.
            foreign: names simulation objects that are in no table.
            numbers: by ``id()`` all objects for which ``references`` may have an id; of others it
                is not asked, which is much faster.
        """
        self._references = references
        self._foreign = foreign
        self.position = -1
        if numbers is not None and foreign is None:
            self.persistent_id = self._fast(numbers.get)  # type: ignore[method-assign]

    def _fast(self, get: Callable[[int], int | None]) -> Callable[[object], object | None]:
        """Return ``persistent_id`` with a single call for what has no id: nearly everything."""
        ask = self._references.persistent_id

        def persistent_id(obj: object, /) -> object | None:
            if get(id(obj)) is not None:
                return ask(obj)
            if type(obj) is Mark:
                self.position = obj.index
                return -1 - obj.index
            return None

        return persistent_id

    def persistent_id(self, obj: object, /) -> object | None:
        """Return the id of a mark or of an object of the table."""
        if type(obj) is Mark:
            self.position = obj.index
            return -1 - obj.index
        pid = self._references.persistent_id(obj)
        if pid is None and self._foreign is not None:
            target = self._foreign(obj)
            if target is not None:
                raise ForeignObjectError(target, obj)
        return pid

    def persistent_load(self, pid: object, /) -> object:
        """Return the object of the table, or None for a mark."""
        if type(pid) is int and pid < 0:
            self.position = -1 - pid
            return None
        return self._references.persistent_load(pid)


def interleave(parts: Sequence[tuple[int, object]]) -> list[object]:
    """Return the parts with a mark before each."""
    return [item for index, part in parts for item in (Mark(index), part)]


def parts_of(payload: object) -> list[object]:
    """Return the parts of an interleaved payload."""
    if not isinstance(payload, list):
        raise TypeError(f"expected a list of parts, not {type(payload).__name__}")
    return payload[1::2]
