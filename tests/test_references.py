"""The reference table: numbers by identity, and back."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pytest
from pams import LIMIT_ORDER, Order

from pams_parallel import References, ReferenceTable, UnknownReferenceError


class Thing:
    """Something to refer to."""


class Hostile:
    """Has no hash and cannot be compared, as an order of PAMS with one of the other side."""

    __hash__ = None  # type: ignore[assignment]  # that is the point

    def __eq__(self, other: object) -> bool:
        raise AssertionError("compared by equality")


def order(*, is_buy: bool) -> Order:
    """Return an order; two of one side are equal."""
    return Order(
        agent_id=0, market_id=0, is_buy=is_buy, kind=LIMIT_ORDER, volume=1, price=1.0, placed_at=0
    )


def test_there_and_back() -> None:
    """The object that an id stands for is the object that has this id."""
    objects = [
        Thing(),
        [],
        [],
        {},
        {1},
        Hostile(),
        order(is_buy=True),
        order(is_buy=False),
        7,
        None,
    ]
    table = ReferenceTable(objects)
    assert len(table) == len(objects)
    for obj in objects:
        pid = table.persistent_id(obj)
        assert pid is not None
        assert table.index_of(obj) == pid
        assert table.persistent_load(pid) is obj


def test_numbers_are_those_of_the_given_order() -> None:
    """Two tables of corresponding objects give corresponding objects the same number."""
    left, right = [Thing(), [], Thing()], [Thing(), [], Thing()]
    here, there = ReferenceTable(left), ReferenceTable(right)
    for one, other in zip(left, right, strict=True):
        assert there.persistent_load(here.persistent_id(one)) is other


def test_identity_counts_not_equality() -> None:
    """An equal object that is not the one in the table has no number."""
    table = ReferenceTable([[], order(is_buy=True), {}])
    assert order(is_buy=True) == table.objects[1]
    others: list[object] = [[], order(is_buy=True), {}]
    for other in others:
        assert table.persistent_id(other) is None
        assert table.index_of(other) is None


@pytest.mark.parametrize(
    "pid", [2, -1, 10**9, True, 0.0, 1.0, "0", None, (0,), [0], b"\0"], ids=repr
)
def test_unknown_id(pid: Any) -> None:
    """What is no number of the table is refused, True and negative numbers included."""
    table = ReferenceTable([Thing(), Thing()])
    with pytest.raises(UnknownReferenceError) as caught:
        table.persistent_load(pid)
    assert repr(pid) in str(caught.value)


def test_empty_table_knows_nothing() -> None:
    """A table of nothing gives no number and knows none."""
    table = ReferenceTable(())
    assert len(table) == 0
    assert table.persistent_id(table) is None
    with pytest.raises(UnknownReferenceError):
        table.persistent_load(0)


def test_later_changes_of_the_given_list_do_not_matter() -> None:
    """The table is as of the moment at which it was made."""
    first = Thing()
    objects = [first]
    table = ReferenceTable(objects)
    objects.insert(0, Thing())
    assert len(table) == 1
    assert table.persistent_load(0) is first


def test_keeps_its_objects_alive() -> None:
    """An object lives as long as the table, so that its number cannot come to mean another."""
    thing = Thing()
    seen = weakref.ref(thing)
    table = ReferenceTable([thing])
    del thing
    gc.collect()
    assert seen() is table.objects[0]
    del table
    gc.collect()
    assert seen() is None


def test_is_what_backends_are_offered() -> None:
    """The table satisfies the protocol of backends, in types and in fact."""
    references: References = ReferenceTable(["one"])
    assert references.persistent_id("another") is None
    assert references.persistent_load(0) == "one"
