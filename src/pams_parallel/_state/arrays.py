"""Arrays as plain data: element by element when short, by hashes of pieces when long."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Final

import numpy as np

_MAX_ELEMENTS: Final = 4096


def array_of(value: Any) -> np.ndarray[Any, Any] | None:
    """Return an array, or what offers itself as one (a tensor), as a numpy array, else None."""
    if isinstance(value, np.ndarray):
        return value
    if not callable(getattr(type(value), "__array__", None)):
        return None
    try:
        # a tensor that takes part in a gradient refuses to be seen as an array
        return np.asarray(value.detach().cpu() if hasattr(value, "detach") else value)
    except Exception:
        # it belongs to a library: its attributes are compared all the same
        return None


def array_items(array: np.ndarray[Any, Any]) -> Iterator[tuple[str, object]]:
    """Yield dtype, shape and elements of an array, by label."""
    # in the same byte order wherever it was made
    plain = array.astype(array.dtype.newbyteorder("<"), copy=False)
    yield ".dtype", str(plain.dtype.descr) if plain.dtype.names else plain.dtype.str
    yield ".shape", array.shape
    if array.size <= _MAX_ELEMENTS or array.dtype.hasobject:
        for index, element in zip(np.ndindex(array.shape), array.ravel().tolist(), strict=True):
            yield f"[{', '.join(map(str, index))}]", element
        return
    flat = plain.ravel()
    for start in range(0, flat.size, _MAX_ELEMENTS):
        piece = flat[start : start + _MAX_ELEMENTS]
        label = f"[elements {start} to {start + piece.size - 1}, sha256]"
        yield label, hashlib.sha256(piece.tobytes()).hexdigest()
