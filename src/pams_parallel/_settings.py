"""The keys under ``simulation`` that are ours, read once into one validated object."""

from __future__ import annotations

import multiprocessing
from collections.abc import Mapping
from dataclasses import dataclass

from .exceptions import SettingsError


@dataclass(frozen=True, slots=True)
class ParallelSettings:
    """What the config says about running in parallel; None where it says nothing."""

    num_parallel: int | None = None
    start_method: str | None = None
    codec: str | None = None


def read_settings(simulation: Mapping[str, object], codecs: tuple[str, ...]) -> ParallelSettings:
    """Read and check our keys of the config.

    A key that is there must have a good value: an explicit null is refused too.

    Args:
        simulation: the ``simulation`` part of the config.
        codecs: names that ``codec`` may have.

    Raises:
        SettingsError: names the key and the value.
    """
    num_parallel = start_method = codec = None
    if "numParallel" in simulation:
        num_parallel = check_num_parallel(simulation["numParallel"])
    if "startMethod" in simulation:
        start_method = check_start_method(simulation["startMethod"], "simulation.startMethod")
    if "codec" in simulation:
        codec = check_codec_name(simulation["codec"], codecs, "simulation.codec")
    return ParallelSettings(num_parallel, start_method, codec)


def check_num_parallel(value: object) -> int:
    """Return the number of workers. A bool is an int in Python, but not a number of workers."""
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise SettingsError("simulation.numParallel", repr(value), "an integer of at least 1")
    return value


def check_start_method(value: object, key: str) -> str:
    """Return the name of a start method that this platform has."""
    methods = multiprocessing.get_all_start_methods()
    if not isinstance(value, str) or value not in methods:
        raise SettingsError(key, repr(value), f"one of {', '.join(map(repr, methods))}")
    return value


def check_codec_name(value: object, codecs: tuple[str, ...], key: str) -> str:
    """Return the name of a codec that comes with the package."""
    if not isinstance(value, str) or value not in codecs:
        raise SettingsError(key, repr(value), f"one of {', '.join(map(repr, codecs))}")
    return value
