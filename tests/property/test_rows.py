"""Laws of rows: what has changed in a list is found, and only that."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pams_parallel._replica.rows import changed_span

items = st.lists(st.sampled_from(["a", "b", "c", None, 1, 2]), max_size=40)


@given(old=items, new=items, long=st.booleans())
def test_a_splice_makes_the_new_list(old: list[Any], new: list[Any], long: bool) -> None:
    """The items between the common start and the common end make the new list of the old."""
    start, end = changed_span(old, new, long)
    assert 0 <= start <= start + end <= min(len(old), len(new))
    spliced = [*old]
    spliced[start : len(old) - end] = new[start : len(new) - end]
    assert spliced == new


@given(old=items, added=items, long=st.booleans())
def test_what_is_appended_is_all_that_is_sent(old: list[Any], added: list[Any], long: bool) -> None:
    """Of a list that has grown at its end only the end is sent."""
    new = [*old, *added]
    start, end = changed_span(old, new, long)
    assert len(new) - end - start <= len(added)


@pytest.mark.parametrize("long", [False, True])
def test_other_objects_are_changes(long: bool) -> None:
    """Equal lists are changes, too, in lists that are not long; long ones hold atoms only."""
    start, end = changed_span([[1]], [[1]], long)
    assert start + end == (1 if long else 0)
