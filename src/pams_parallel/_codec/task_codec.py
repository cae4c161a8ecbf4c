"""Values and exceptions of a task to bytes and back, with errors that say whose value it was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .._messages import ExceptionImage
from ..exceptions import EncodeError, PamsParallelError, PayloadError, UnknownReferenceError
from . import exception_codec
from .diagnose import find_culprit
from .marks import (
    ForeignObjectError,
    ForeignTest,
    MarkedReferences,
    interleave,
    parts_of,
)
from .protocol import CodecBackend, References
from .registry import resolve_codec


class TaskCodec:
    """Encodes what agents return together, through any backend.

    All values of one call share one payload: what is one object before is one object after, within
    a value and between values, and objects of the reference table come back as the other side's.

    Attributes:
        backend: the serializer.
    """

    def __init__(self, backend: str | CodecBackend = "pickle") -> None:
        """Take a backend, or the name of one.

        Raises:
            SettingsError: there is no such backend, or it is not installed.
        """
        self.backend = resolve_codec(backend)

    def encode(
        self,
        values: Sequence[object],
        references: References,
        foreign: ForeignTest | None = None,
        numbers: Mapping[int, int] | None = None,
    ) -> bytes:
        """Turn values to bytes.

        Args:
            values: anything the backend can carry.
            references: objects to be written as references.
            foreign: names simulation objects that are in no table; they are refused.
            numbers: by ``id()`` all objects that ``references`` may know.

        Raises:
            PayloadError: with the position of the first value that failed; its cause says why.
        """
        marked = MarkedReferences(references, foreign, numbers)
        try:
            return self.backend.dumps(interleave(list(enumerate(values))), marked)
        except Exception as error:
            raise PayloadError(marked.position) from error

    def decode(self, data: bytes, references: References) -> list[object]:
        """Turn bytes of ``encode`` back to the values.

        Raises:
            PayloadError: with the position of the value that was being loaded; its cause says why.
        """
        marked = MarkedReferences(references)
        try:
            return parts_of(self.backend.loads(data, marked))
        except Exception as error:
            raise PayloadError(marked.position) from error

    def explain(
        self,
        value: object,
        owner: str,
        noun: str,
        references: References,
        foreign: ForeignTest | None = None,
        error: BaseException | None = None,
    ) -> PamsParallelError:
        """Return the error for a value that could not be encoded, with the path to the culprit.

        Args:
            value: what failed.
            owner: who holds it, such as ``agent 12 (MyAgent)``.
            noun: what the value is to the owner, such as ``attribute 'policy'``.
            references: as given to ``encode``.
            foreign: as given to ``encode``.
            error: what encoding raised, for values that fail only in company.
        """

        def encode(part: object) -> bytes:
            return self.backend.dumps(part, MarkedReferences(references, foreign))

        path, culprit, found = find_culprit(value, encode)
        cause = found if found is not None else error
        # "attribute 'policy'" and ".rule" read as "attribute 'policy.rule'"
        where = f"{noun[:-1]}{path}'" if noun.endswith("'") else f"{noun}{path}"
        if isinstance(cause, ForeignObjectError):
            return UnknownReferenceError(owner, where, cause.target)
        reason = f"{type(cause).__name__}: {cause}" if cause is not None else "it failed once"
        made = EncodeError(owner, where, type(culprit).__qualname__, self.backend.name, reason)
        made.__cause__ = cause
        return made

    def encode_exception(self, error: BaseException, references: References) -> ExceptionImage:
        """Describe an exception, with the exception itself where it can be encoded."""
        return exception_codec.encode_exception(self.backend, error, references)

    def decode_exception(
        self, image: ExceptionImage, agent: str, references: References
    ) -> BaseException:
        """Return the exception itself, else a ``RemoteAgentError`` that says all about it."""
        return exception_codec.decode_exception(self.backend, image, agent, references)
