"""The default backend: the standard library's pickle."""

from __future__ import annotations

import io
import pickle

from .protocol import References
from .reducers import registered_reducers

# Fixed, not HIGHEST: main and workers may be started from different interpreters one day.
PROTOCOL = 5


class PickleBackend:
    """Pickle, with the reducers that are registered for multiprocessing and in ``copyreg``.

    Fast, and able to carry what has an importable name. Classes and functions defined in a
    function or a notebook need [`DillBackend`][pams_parallel.DillBackend].
    """

    name = "pickle"

    def dumps(self, obj: object, references: References) -> bytes:
        """Turn an object graph to bytes."""
        buffer = io.BytesIO()
        _Pickler(buffer, references).dump(obj)
        return buffer.getvalue()

    def loads(self, data: bytes, references: References) -> object:
        """Turn bytes back to an object graph."""
        return _Unpickler(io.BytesIO(data), references).load()


class _Pickler(pickle.Pickler):
    def __init__(self, buffer: io.BytesIO, references: References) -> None:
        # Called for every object, ints included: a method in between would double what it costs.
        self.persistent_id = references.persistent_id  # type: ignore[method-assign]
        super().__init__(buffer, PROTOCOL)
        self.dispatch_table = registered_reducers()


class _Unpickler(pickle.Unpickler):
    def __init__(self, buffer: io.BytesIO, references: References) -> None:
        self.persistent_load = references.persistent_load  # type: ignore[method-assign]
        super().__init__(buffer)
