"""The private names of PAMS that are used: the installed PAMS has them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
from configs import make_sequential, make_settings, setup
from pams import IndexMarket

import pams_parallel
from pams_parallel._pams import PRIVATE_NAMES


def check_names(objects: Mapping[str, object], names: Mapping[str, tuple[str, ...]]) -> None:
    """Fail with the names that objects lack; absent classes are told, too."""
    absent = [cls for cls in names if cls not in objects]
    missing = [
        f"{cls}.{name}"
        for cls, obj in objects.items()
        for name in names.get(cls, ())
        if not hasattr(obj, name)
    ]
    assert not absent + missing, f"PAMS has no more: {', '.join(absent + missing)}"


def pams_objects() -> dict[str, object]:
    """Return one object of each class of PAMS, as a simulation makes them."""
    runner = make_sequential(make_settings({"FCNAgent": 1}, index=True), (), 1)
    setup(runner)
    simulator = runner.simulator
    index = next(market for market in simulator.markets if isinstance(market, IndexMarket))
    return {
        "SequentialRunner": runner,
        "Simulator": simulator,
        "Fundamentals": simulator.fundamentals,
        "Market": simulator.markets[0],
        "IndexMarket": index,
    }


def test_installed_pams_has_all_names() -> None:
    """Every private name that this package uses is there, on the object that it is used on."""
    check_names(pams_objects(), PRIVATE_NAMES)


def test_objects_are_of_the_classes_in_the_table() -> None:
    """The objects that are looked at are instances of what the table names, not of subclasses."""
    assert {name: type(obj).__name__ for name, obj in pams_objects().items()} == {
        name: name for name in PRIVATE_NAMES
    }


class Renamed:
    """A class of PAMS after a change of it."""

    _kept = 1


def test_failure_names_what_is_missing() -> None:
    """The message says which names are gone, of which class, and no others."""
    names = {"Renamed": ("_kept", "_prng", "_other"), "Gone": ("_x",)}
    with pytest.raises(AssertionError) as caught:
        check_names({"Renamed": Renamed()}, names)
    assert str(caught.value).startswith("PAMS has no more: Gone, Renamed._prng, Renamed._other")
    assert "_kept" not in str(caught.value).splitlines()[0]


def test_table_has_no_name_that_is_not_used() -> None:
    """Every name of the table is used in a module of the package."""
    sources = Path(pams_parallel.__file__).parent.rglob("*.py")
    text = "\n".join(file.read_text() for file in sources if file.name != "_pams.py")
    names = {name for names in PRIVATE_NAMES.values() for name in names}
    unused = {name for name in names if not re.search(rf"(\.|def |\"){name}\b", text)}
    assert unused == set()
