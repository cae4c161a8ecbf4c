"""Reference tables: one numbering of the simulation's objects, known on both sides.

The table of main and that of a worker's replica hold corresponding objects at the same index, and
the index is the persistent id. It is the same in both directions: what a worker receives refers to
its replica, what main receives refers to main.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..exceptions import UnknownReferenceError


class ReferenceTable:
    """Objects by number, and numbers by identity; the numbers need not be consecutive.

    Identity is what counts: an order of PAMS has no hash, and refuses some comparisons. The table
    keeps its objects alive, so an ``id()`` in it cannot come to mean another object.

    Attributes:
        objects: the objects, by number.
        numbers: the numbers, by ``id()`` of the object.
    """

    def __init__(self, objects: Iterable[object] = ()) -> None:
        """Number the objects in their order."""
        self.objects = dict(enumerate(objects))
        self.numbers = {id(obj): index for index, obj in self.objects.items()}

    def __len__(self) -> int:
        return len(self.objects)

    def index_of(self, obj: object) -> int | None:
        """Return the number of an object, or None when it is not in the table."""
        return self.numbers.get(id(obj))

    def persistent_id(self, obj: object, /) -> int | None:
        """Return the number that stands for the object, or None."""
        return self.numbers.get(id(obj))

    def persistent_load(self, pid: object, /) -> object:
        """Return the object with this number.

        Raises:
            UnknownReferenceError: the table has no such number.
        """
        if type(pid) is int and pid in self.objects:
            return self.objects[pid]
        raise UnknownReferenceError("", "", f"simulation object number {pid!r}")
