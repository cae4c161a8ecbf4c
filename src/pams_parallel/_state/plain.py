"""Any Python value as a tree of texts."""

from __future__ import annotations

import random
import types
from collections import deque
from collections.abc import Iterable
from typing import Final

from .arrays import array_items, array_of
from .attributes import attributes_of, has_identity, hides_content, reduction_of
from .leaves import class_name, leaf_text
from .names import Names, part_name
from .prng import generator_items
from .tree import Branch, Node, one_line

_SEQUENCES: Final = (list, tuple, deque)
_SETS: Final = (set, frozenset)


class Describer:
    """Turns the attributes of one object, and all that they lead to, into plain data.

    An object that appears twice is written out once and referred to after that, which ends cycles
    and makes ``a is b`` part of the state. That goes for objects with an identity of their own;
    tuples, dates and others that hash by value may be copied without any difference.

    Args:
        names: what simulation objects are called; they are not written out.
    """

    def __init__(self, names: Names) -> None:
        self._names = names
        # the objects stay referenced here: a freed object's id goes to the next one
        self._seen: dict[int, tuple[object, str]] = {}
        self._open: dict[int, str] = {}

    def attributes(self, name: str, owner: object, skip: Iterable[str] = ()) -> Branch:
        """Return all attributes of a simulation object, its own containers written out.

        Args:
            name: of the owner, as in the table of names.
            owner: the simulation object.
            skip: attributes to leave out.
        """
        items = []
        for attribute, value in attributes_of(owner):
            if attribute not in skip:
                own = self._names.of(value) == part_name(name, attribute)
                items.append((attribute, self.node(value, attribute, follow=own)))
        return Branch(class_name(type(owner)), tuple(items))

    def node(self, value: object, path: str, follow: bool = False) -> Node:
        """Return a value as plain data.

        Args:
            value: anything.
            path: how to get to it, for later references to it.
            follow: write it out even if it has a name.
        """
        text = leaf_text(value) or (None if follow else self._names.of(value))
        if text is not None:
            return text
        key = id(value)
        if key in self._open:
            return f"<same object as {self._open[key]}>"
        if has_identity(value):
            if key in self._seen:
                return f"<same object as {self._seen[key][1]}>"
            self._seen[key] = (value, path)
        self._open[key] = path
        try:
            return Branch(class_name(type(value)), tuple(self._parts(value, path)))
        finally:
            del self._open[key]

    def _parts(self, value: object, path: str) -> list[tuple[str, Node]]:
        contents = self._contents(value)
        parts = list(contents or ())
        attributes = attributes_of(value)
        for attribute, part in attributes:
            # the generator's contents tell it
            if not (attribute == "gauss_next" and isinstance(value, random.Random)):
                parts.append((f".{attribute}", part))
        if contents is None and (not attributes or hides_content(type(value))):
            parts.extend(reduction_of(value))
        # leaves first: the path of every price of a long list costs more than its text
        return [(label, leaf_text(part) or self.node(part, path + label)) for label, part in parts]

    def _contents(self, value: object) -> Iterable[tuple[str, object]] | None:
        """Return what a container, an array or a generator holds, None for other objects."""
        if isinstance(value, _SEQUENCES):
            return [(f"[{i}]", part) for i, part in enumerate(value)]
        if isinstance(value, dict):
            return [(f"[{self._alone(key)}]", part) for key, part in value.items()]
        if isinstance(value, _SETS):
            # each seen alone: which of two members is written out first must not play a part
            members = sorted(((self._alone(member), member) for member in value), key=_first)
            return [(f"[{i}]", member) for i, (_, member) in enumerate(members)]
        if isinstance(value, bytearray):
            return [("[bytes]", bytes(value))]
        if isinstance(value, types.MethodType):
            return [(".__func__", value.__func__), (".__self__", value.__self__)]
        if isinstance(value, types.FunctionType):
            cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
            return [
                (".name", f"{value.__module__}.{value.__qualname__}"),
                *((f".closure.{name}", _cell_content(cell)) for name, cell in cells),
            ]
        generator = generator_items(value)
        if generator is not None:
            return generator
        array = array_of(value)
        return None if array is None else array_items(array)

    def _alone(self, value: object) -> str:
        """Return the text of a value without regard to what was seen before."""
        return leaf_text(value) or one_line(Describer(self._names).node(value, "it"))


def _first(pair: tuple[str, object]) -> str:
    return pair[0]


def _cell_content(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:
        # a name of the enclosing function that is not bound yet
        return ...
