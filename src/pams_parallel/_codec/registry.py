"""Backends by name."""

from __future__ import annotations

from typing import Final

from ..exceptions import CodecNotInstalledError, SettingsError
from .dill_backend import DillBackend
from .pickle_backend import PickleBackend
from .protocol import CodecBackend

_BACKENDS: Final[dict[str, type[CodecBackend]]] = {"pickle": PickleBackend, "dill": DillBackend}

CODEC_NAMES: Final = tuple(_BACKENDS)


def resolve_codec(codec: str | CodecBackend, key: str = "codec") -> CodecBackend:
    """Return the backend with this name, or the object itself when it is one.

    Args:
        codec: a name of ``CODEC_NAMES`` or a backend.
        key: what the value is called in an error.

    Raises:
        CodecNotInstalledError: the name is known, the library behind it is missing.
        SettingsError: neither a known name nor a backend.
    """
    if isinstance(codec, str):
        if codec in _BACKENDS:
            try:
                return _BACKENDS[codec]()
            except CodecNotInstalledError as error:
                error.key = key  # where the user has written it
                error.args = (key, *error.args[1:])
                raise
    elif not isinstance(codec, type) and isinstance(codec, CodecBackend):
        return codec
    names = ", ".join(map(repr, CODEC_NAMES))
    expected = f"one of {names}, or an object with name, dumps and loads (CodecBackend)"
    raise SettingsError(key, repr(codec), expected)
