"""What is said about changes that do not come back: once for each class and name."""

from __future__ import annotations

import warnings

import pytest

from pams_parallel._lost_changes import PREFIX, LostChangesWarner


class Thing:
    """Loses changes."""


def test_each_name_is_said_once() -> None:
    """A name is said once for its class; new ones are said by themselves."""
    warner = LostChangesWarner("Runner")
    with pytest.warns(UserWarning, match="Thing 'a', 'b' in submit_orders under Runner"):
        warner.warn([(Thing(), ("b", "a"), False), (Thing(), ("a",), False)])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warner.warn([(Thing(), ("a",), False)])
    with pytest.warns(UserWarning, match="Thing 'c' in"):
        warner.warn([(Thing(), ("a", "c"), False)])


def test_warning_made_an_error_is_said_again() -> None:
    """A filter that makes the warning an error does not use it up."""
    warner = LostChangesWarner("Runner")
    for _ in range(2):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(UserWarning, match="Thing 'a'"):
                warner.warn([(Thing(), ("a",), False)])


def test_advice() -> None:
    """The agent that was asked can list names; another object, be it an agent, cannot."""
    warner = LostChangesWarner("Runner")
    mixed = [(Thing(), ("a",), True), (Thing(), ("b",), False)]
    # what has been said of one is not said of another of its class
    same = [(Thing(), ("c",), True), (Thing(), ("c",), False)]
    with pytest.warns(UserWarning, match=PREFIX) as caught:
        warner.warn([*mixed, *same])
    own, other = [str(one.message) for one in caught]
    assert "'a', 'c'" in own
    assert "List them in synced_attributes of Thing" in own
    assert "'b' in" in other
    assert "A worker has only a copy" in other
