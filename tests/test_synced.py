"""`synced_attributes`: how names are read, and which are refused."""

from __future__ import annotations

from collections import UserList
from typing import Any, NamedTuple

import pytest
from pams.agents import Agent

from pams_parallel import SyncedAttributesError, SyncedAttributesMixin
from pams_parallel._synced import read_synced_names


class Plain:
    """Lists nothing."""


class Listing:
    """Lists two names."""

    synced_attributes: Any = ("b", "a")


def listing(names: object) -> Listing:
    """Return an instance that lists names of its own."""
    agent = Listing()
    agent.synced_attributes = names
    return agent


def test_absent() -> None:
    """An agent without the attribute, as PAMS's own are, lists nothing."""
    assert not hasattr(Agent, "synced_attributes")
    assert read_synced_names(Plain()) == ()


def test_of_the_class() -> None:
    """Names of the class count for all its instances, in their order."""
    assert read_synced_names(Listing()) == ("b", "a")


def test_of_the_instance() -> None:
    """Names of an instance replace those of its class."""
    assert read_synced_names(listing(["c"])) == ("c",)
    assert read_synced_names(listing(())) == ()


def test_read_every_time() -> None:
    """Names are what they are when they are read: nothing is remembered."""
    names = ["a"]
    agent = listing(names)
    assert read_synced_names(agent) == ("a",)
    names.append("b")
    assert read_synced_names(agent) == ("a", "b")
    del agent.synced_attributes
    assert read_synced_names(agent) == ("b", "a")


def test_of_a_property() -> None:
    """Names may be computed."""

    class Computing:
        size = 2

        @property
        def synced_attributes(self) -> list[str]:
            return [f"layer_{number}" for number in range(self.size)]

    assert read_synced_names(Computing()) == ("layer_0", "layer_1")


class Names(NamedTuple):
    """A tuple of a class of its own."""

    first: str
    second: str


GOOD: list[tuple[object, tuple[str, ...]]] = [
    ((), ()),
    ([], ()),
    (["z", "y", "x"], ("z", "y", "x")),
    (("a", "b", "a", "b"), ("a", "b")),
    (Names("a", "b"), ("a", "b")),
    (("_private", "not an identifier", ""), ("_private", "not an identifier", "")),
]


@pytest.mark.parametrize(("names", "read"), GOOD, ids=repr)
def test_good_names(names: object, read: tuple[str, ...]) -> None:
    """A tuple or list of str is read in its order, each name once."""
    assert read_synced_names(listing(names)) == read


BAD: list[tuple[object, str]] = [
    *(
        (names, "must be a tuple or list of str")
        for names in (
            "name",
            "",
            b"ab",
            None,
            0,
            {"a"},
            set(),
            frozenset("a"),
            {"a": 1},
            {},
            iter(["a"]),
            UserList(["a"]),
        )
    ),
    *(
        (names, "must hold str only")
        for names in (("a", 1), [None], [b"a"], (("a",),), ["a", ["b"]], [True])
    ),
    *(
        (names, f"must not list '{name}'")
        for name in ("simulator", "logger", "prng", "__dict__")
        for names in ((name,), ["a", name])
    ),
]


@pytest.mark.parametrize(("names", "problem"), BAD, ids=repr)
def test_bad_names(names: object, problem: str) -> None:
    """What is no tuple or list of allowed str is an error that names the class."""
    with pytest.raises(SyncedAttributesError, match=problem) as caught:
        read_synced_names(listing(names))
    assert str(caught.value).startswith("synced_attributes of Listing ")
    assert isinstance(caught.value, ValueError)


def test_error_shows_what_is_wrong() -> None:
    """The error shows the value, or the one name, that is not as it must be."""
    with pytest.raises(SyncedAttributesError, match="the str 'cash_amount'"):
        read_synced_names(listing("cash_amount"))
    with pytest.raises(SyncedAttributesError, match="holds 7 of type int"):
        read_synced_names(listing(["a", 7]))


def test_mixin_lists_nothing_by_itself() -> None:
    """The mixin declares the attribute, empty."""

    class Mixed(SyncedAttributesMixin):
        pass

    assert Mixed.synced_attributes == ()
    assert read_synced_names(Mixed()) == ()


def test_mixin_leaves_the_names_to_the_class() -> None:
    """A class with the mixin, on either side of its bases, lists what it says itself."""

    class Before(SyncedAttributesMixin, Plain):
        synced_attributes = ["a"]

    class After(Plain, SyncedAttributesMixin):
        synced_attributes = ("b",)

    assert read_synced_names(Before()) == ("a",)
    assert read_synced_names(After()) == ("b",)
