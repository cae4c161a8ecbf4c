"""The laws of the codec: any graph of objects comes back as it was, whatever the backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from isomorphism import find_difference, is_same

from pams_parallel import ReferenceTable, TaskCodec


class Node:
    """An object of a user, with attributes."""

    def __init__(self, label: int) -> None:
        self.label = label


class Slotted:
    """The same with slots, one of them private."""

    __slots__ = ("__secret", "label", "link")
    label: int
    link: object

    def __init__(self, label: int) -> None:
        self.label = label

    def hide(self, secret: object) -> None:
        """Keep something in the private slot."""
        self.__secret = secret


class Valued:
    """An object with an equality and a hash of its own, both of its label."""

    def __init__(self, label: int) -> None:
        self.label = label

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Valued) and other.label == self.label

    def __hash__(self) -> int:
        return hash(self.label)


class Growing(list[object]):
    """A list with attributes."""

    label: int


class Graph(NamedTuple):
    """Values to send, and the objects of the reference table."""

    values: list[object]
    table: list[object]


atoms = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats()
    | st.text(max_size=5)
    | st.binary(max_size=5)
    | st.complex_numbers(allow_nan=False)
    | st.sampled_from([int, Node, len, float("nan"), -0.0])
)

EMPTY: dict[str, Callable[[int], object]] = {
    "list": lambda label: [],
    "dict": lambda label: {},
    "set": lambda label: set(),
    "node": Node,
    "slotted": Slotted,
    "growing": lambda label: Growing(),
}
"""Kinds that are made empty and then filled, so that cycles go through them."""

IMMUTABLE = ("tuple", "frozenset", "atom", "valued")


def is_hashable(obj: object) -> bool:
    """Tell whether an object can be in a set, whatever it will be filled with."""
    if isinstance(obj, tuple):
        return all(map(is_hashable, obj))
    return not isinstance(obj, (list, dict, set))


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Draw objects that refer to each other in any way, some of them in the table."""
    kinds = draw(st.lists(st.sampled_from([*EMPTY, *IMMUTABLE]), min_size=1, max_size=12))
    nodes: list[Any] = []
    for label, kind in enumerate(kinds):
        earlier = st.sampled_from(nodes) if nodes else st.none()
        hashable = st.sampled_from([node for node in nodes if is_hashable(node)] or [label])
        if kind == "tuple":
            nodes.append(tuple(draw(st.lists(earlier, max_size=3))))
        elif kind == "frozenset":
            nodes.append(frozenset(draw(st.lists(hashable, max_size=3))))
        elif kind == "atom":
            nodes.append(draw(atoms))
        else:
            nodes.append(Valued(label) if kind == "valued" else EMPTY[kind](label))
    anything = st.sampled_from(nodes)
    keys = st.sampled_from([node for node in nodes if is_hashable(node)] or [0])
    for label, node in enumerate(nodes):
        if isinstance(node, Slotted):
            node.hide(draw(anything))
            if draw(st.booleans()):
                node.link = draw(anything)
        elif isinstance(node, Node):
            vars(node).update(draw(st.dictionaries(st.sampled_from("abc"), anything, max_size=3)))
        elif isinstance(node, list):
            node.extend(draw(st.lists(anything, max_size=3)))
            if isinstance(node, Growing):
                node.label = label
        elif isinstance(node, set):
            node.update(draw(st.lists(keys, max_size=3)))
        elif isinstance(node, dict):
            items = draw(st.lists(st.tuples(keys, anything), max_size=3))
            node.update(items)
    in_table = draw(st.sets(st.integers(0, len(nodes) - 1), max_size=3))
    table = [nodes[number] for number in sorted(in_table) if kinds[number] in EMPTY]
    return Graph(draw(st.lists(anything, min_size=1, max_size=4)), table)


def counterpart(table: list[Any]) -> list[object]:
    """Return the objects that the other side has under the same numbers."""
    return [
        type(obj)(obj.label) if isinstance(obj, (Node, Slotted)) else type(obj)() for obj in table
    ]


both_backends = pytest.mark.parametrize("backend", ["pickle", "dill"])
patiently = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


@both_backends
@patiently
@given(graph=graphs())
def test_decode_after_encode_is_identity(backend: str, graph: Graph) -> None:
    """Values come back with their types, aliases and cycles, table objects as themselves."""
    codec, table = TaskCodec(backend), ReferenceTable(graph.table)
    decoded = codec.decode(codec.encode(graph.values, table), table)
    same = list(zip(graph.table, graph.table, strict=True))
    assert find_difference(graph.values, decoded, same) is None


@both_backends
@patiently
@given(graph=graphs())
def test_there_and_back_through_another_table(backend: str, graph: Graph) -> None:
    """In between, table objects are the other side's under the same numbers."""
    codec, here = TaskCodec(backend), ReferenceTable(graph.table)
    there = ReferenceTable(counterpart(graph.table))
    abroad = codec.decode(codec.encode(graph.values, here), there)
    corresponding = list(zip(here.objects.values(), there.objects.values(), strict=True))
    assert find_difference(graph.values, abroad, corresponding) is None
    returned = codec.decode(codec.encode(abroad, there), here)
    same = list(zip(graph.table, graph.table, strict=True))
    assert find_difference(graph.values, returned, same) is None


@both_backends
@patiently
@given(graph=graphs())
def test_without_a_table_nothing_is_shared(backend: str, graph: Graph) -> None:
    """What is in no table is a copy: no list, dict, set or user object is the same object."""
    codec, nothing = TaskCodec(backend), ReferenceTable(())
    decoded = codec.decode(codec.encode(graph.values, nothing), nothing)
    for value, copy in zip(graph.values, decoded, strict=True):
        assert find_difference(value, copy) is None
        if isinstance(value, (list, dict, set, Node, Slotted, Valued)):
            assert copy is not value


def cycle(length: int) -> list[object]:
    """Return a list that holds itself after so many others."""
    first: list[object] = []
    last = first
    for _ in range(length - 1):
        last.append([])
        last = last[0]  # type: ignore[assignment]  # the list just added
    last.append(first)
    return first


def labelled(**attributes: object) -> Node:
    """Return a node with attributes."""
    node = Node(0)
    vars(node).update(attributes)
    return node


def slotted(secret: object) -> Slotted:
    """Return a node with a secret."""
    node = Slotted(0)
    node.hide(secret)
    return node


A, B = Node(1), Node(1)
DIFFERENT: list[tuple[object, object]] = [
    ([A, A], [A, B]),
    ([A, B], [A, A]),
    ([[], []], [[]] * 2),
    (([], []), ([[]] * 2)),
    (cycle(1), cycle(2)),
    (cycle(3), cycle(2)),
    (0.0, -0.0),
    (1, True),
    (1, 1.0),
    ([1], (1,)),
    ({1}, frozenset({1})),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ({"a": 1}, {"a": 1, "b": 2}),
    ({1, 2}, {1, 3}),
    ({Node(1)}, {Node(2)}),
    (labelled(a=1), labelled(a=2)),
    (labelled(a=1), labelled(b=1)),
    (slotted(1), slotted(2)),
    (slotted([]), slotted(())),
    (Node(1), Valued(1)),
    ([], Growing()),
    (len, max),
    (Node, Slotted),
]


@pytest.mark.parametrize(("left", "right"), DIFFERENT)
def test_checker_sees_differences(left: object, right: object) -> None:
    """The checker of these laws sees one list that is two, another order, another type, -0.0."""
    assert not is_same(left, right)
    assert not is_same(right, left)
    assert is_same(left, left)


def test_checker_takes_sets_in_any_order() -> None:
    """Sets are the same when their items are, sets and objects in them too."""
    left: object = {frozenset({1, (), Node(1)}), frozenset({2, "x", Node(2)})}
    right: object = {frozenset({Node(2), "x", 2}), frozenset({Node(1), (), 1})}
    other: object = {frozenset({Node(2), "x", 2}), frozenset({Node(3), (), 1})}
    assert is_same(left, right)
    assert not is_same(left, other)


def test_checker_takes_the_pairs_it_is_given() -> None:
    """Objects that are said to stand for each other do, whatever they consist of; no others do."""
    left, right = Node(1), Valued(2)
    assert is_same([left], [right], [(left, right)])
    assert not is_same([left], [Valued(2)], [(left, right)])
