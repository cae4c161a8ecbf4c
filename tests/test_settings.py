"""The keys under `simulation`: every good and bad value."""

from __future__ import annotations

import math
import multiprocessing
from typing import Any

import pytest

from pams_parallel import SettingsError
from pams_parallel._settings import ParallelSettings, read_settings

CODECS = ("pickle", "dill")

BAD_VALUES: dict[str, list[Any]] = {
    "numParallel": [0, -1, 1.5, 2.0, "2", "", True, False, None, [2], {}, math.nan, 2j],
    "startMethod": ["invalid", "", "SPAWN", " spawn", 1, 0, None, False, ["spawn"], b"spawn"],
    "codec": ["invalid", "", "PICKLE", "dill ", 1, 0, None, False, ["dill"], b"dill"],
}
BAD = [(key, value) for key, values in BAD_VALUES.items() for value in values]

GOOD: list[tuple[str, Any, ParallelSettings]] = [
    *(("numParallel", value, ParallelSettings(num_parallel=value)) for value in (1, 2, 10**6)),
    *(
        ("startMethod", value, ParallelSettings(start_method=value))
        for value in multiprocessing.get_all_start_methods()
    ),
    *(("codec", value, ParallelSettings(codec=value)) for value in CODECS),
]


@pytest.mark.parametrize(("key", "value"), BAD, ids=repr)
def test_bad_value(key: str, value: Any) -> None:
    """A bad value, an explicit null included, is an error that names the key and the value."""
    good = {"numParallel": 1, "startMethod": "spawn", "codec": "dill"}
    with pytest.raises(SettingsError) as caught:
        read_settings({**good, key: value}, CODECS)
    assert (caught.value.key, caught.value.value) == (f"simulation.{key}", repr(value))
    assert f"simulation.{key} must be " in str(caught.value)
    assert repr(value) in str(caught.value)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize(("key", "value", "settings"), GOOD, ids=repr)
def test_good_value(key: str, value: Any, settings: ParallelSettings) -> None:
    """A good value is taken as it is, and nothing is said about the other keys."""
    assert read_settings({key: value}, CODECS) == settings


def test_all_keys_together() -> None:
    """The three keys are read independently of each other."""
    simulation = {"codec": "dill", "startMethod": "spawn", "numParallel": 3}
    assert read_settings(simulation, CODECS) == ParallelSettings(3, "spawn", "dill")


def test_absent_keys() -> None:
    """A config that says nothing of ours, among other keys, gives None for all three."""
    simulation = {"markets": ["Market"], "numparallel": 2, "start_method": "spawn"}
    assert read_settings(simulation, CODECS) == ParallelSettings(None, None, None)


def test_start_methods_are_those_of_the_platform(monkeypatch: pytest.MonkeyPatch) -> None:
    """A start method that the platform lacks is refused, and the error lists those it has."""
    monkeypatch.setattr(multiprocessing, "get_all_start_methods", lambda: ["spawn", "walk"])
    assert read_settings({"startMethod": "walk"}, CODECS).start_method == "walk"
    with pytest.raises(SettingsError, match=r"one of 'spawn', 'walk', but 'fork' is given"):
        read_settings({"startMethod": "fork"}, CODECS)


def test_error_lists_the_codecs() -> None:
    """The error about a codec lists the names that it may have."""
    with pytest.raises(SettingsError, match=r"one of 'one', 'two', but 'three' is given"):
        read_settings({"codec": "three"}, ("one", "two"))
