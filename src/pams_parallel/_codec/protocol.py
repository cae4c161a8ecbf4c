"""What a serializer must offer to be a backend, and what it is offered."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable


class References(Protocol):
    """The reference table of one payload, as a backend sees it.

    It stands for the objects that are not in the bytes: main and worker each have their own, and
    the bytes only name them.
    """

    def persistent_id(self, obj: object, /) -> object | None:
        """Return the id that stands for ``obj`` in the bytes, or None to write ``obj`` itself.

        A backend must ask for every object that it is about to write, containers included, in
        the order in which it writes them. Ids are small ints; a backend passes on any.
        """
        ...

    def persistent_load(self, pid: Any, /) -> object:
        """Return the object that an id stands for on this side.

        Raises:
            UnknownReferenceError: there is none.
        """
        ...


@runtime_checkable
class CodecBackend(Protocol):
    """A serializer: ``codec=`` of the runner takes any object with these three members.

    A backend guarantees that ``loads(dumps(obj, a), b)`` rebuilds ``obj`` with the aliasing and
    cycles within it kept, in this or another process of the same program, and that every object
    for which ``a.persistent_id`` gave an id is what ``b.persistent_load`` returns for that id.
    It need not be deterministic, nor keep anything between calls. It is pickled once to reach the
    workers, where it may be called from several threads.

    Attributes:
        name: shown in error messages.
    """

    @property
    def name(self) -> str:
        """The name shown in error messages."""
        ...

    def dumps(self, obj: object, references: References) -> bytes:
        """Turn an object graph to bytes. May raise anything; the runner says what it was about."""
        ...

    def loads(self, data: bytes, references: References) -> object:
        """Turn bytes of ``dumps`` back to an object graph. May raise anything."""
        ...
