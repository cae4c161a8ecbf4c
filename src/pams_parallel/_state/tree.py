"""The plain data of a state: a tree of texts, its one-line form and its digest."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Branch:
    """A value that has parts.

    Attributes:
        kind: what it is: ``list``, ``dict``, the name of a class.
        items: its parts in an order that means the same in every process: a label, which is a
            step of a path (``[3]``, ``.price``, ``cash_amount``), and the part.
    """

    kind: str
    items: tuple[tuple[str, Node], ...]


Node: TypeAlias = str | Branch
"""A leaf is the text of a Python literal, or of a name in angle brackets.

Texts rather than values, because values compare too loosely (``0.0 == -0.0``, ``1 == True``) or not
at all (``nan != nan``, orders).
"""


@dataclass(frozen=True, slots=True)
class State:
    """The state of a simulation at one moment. Two states are equal when all of it is the same.

    Attributes:
        root: its parts, first those that tell most about where two runs went apart.
    """

    root: Branch


_BRACKETS = {"list": ("[", "]"), "tuple": ("(", ")"), "dict": ("{", "}"), "set": ("{", "}")}


def one_line(node: Node) -> str:
    """Return a value as one line that reads like Python."""
    if not isinstance(node, Branch):
        return node
    if node.kind in ("list", "tuple", "set"):
        parts = [one_line(part) for _, part in node.items]
    elif node.kind == "dict":
        parts = [f"{label[1:-1]}: {one_line(part)}" for label, part in node.items]
    else:
        parts = [f"{label.lstrip('.')}={one_line(part)}" for label, part in node.items]
    left, right = _BRACKETS.get(node.kind, (f"{node.kind}(", ")"))
    return left + ", ".join(parts) + right


def digest(state: State) -> str:
    """Return the SHA-256 of a state in hexadecimal.

    Equal states have equal digests in every process and on every platform; string hashing and
    memory addresses play no part. It is not promised to stay the same between releases.
    """
    sha = hashlib.sha256()
    for piece in _pieces(state.root):
        # the length in front keeps "ab" + "c" apart from "a" + "bc"
        data = piece.encode("utf-8", "surrogatepass")
        sha.update(b"%d:" % len(data))
        sha.update(data)
    return sha.hexdigest()


def _pieces(root: Node) -> Iterator[str]:
    """Yield the texts of a tree so that no two trees yield the same."""
    stack: list[Node] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, Branch):
            yield "branch"
            yield node.kind
            yield str(len(node.items))
            for label, _ in node.items:
                yield label
            stack.extend(part for _, part in reversed(node.items))
        else:
            yield "leaf"
            yield node
