"""Where two states go apart, in words."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import zip_longest

from .tree import Branch, Node, State, one_line

_WIDTH = 70
_MISSING = "nothing"


@dataclass(frozen=True, slots=True)
class Difference:
    """One place at which two states differ.

    Attributes:
        where: the path to it in words, such as ``agent 12 ('FCNAgents-12'): cash_amount``.
        left: the value on the left as text, in full.
        right: the value on the right as text, in full.
        left_name: what the left state is called in the sentence.
        right_name: what the right state is called in the sentence.
    """

    where: str
    left: str
    right: str
    left_name: str = "sequential"
    right_name: str = "parallel"

    def __str__(self) -> str:
        left, right = _shorten(self.left, self.right)
        return f"{self.where}: {left} ({self.left_name}) against {right} ({self.right_name})"


def first_difference(left: State, right: State) -> Difference | None:
    """Return the first place at which two states differ, or None when they are the same.

    Prices, volumes and numbers of orders come first, from the earliest time on, so that the
    first difference is near to its cause; then log records, books, agents and the rest.
    """
    return _compare("", left.root, right.root)


def _compare(where: str, left: Node, right: Node) -> Difference | None:
    if not isinstance(left, Branch) or not isinstance(right, Branch) or left.kind != right.kind:
        if left == right:
            return None
        return Difference(where, one_line(left), one_line(right))
    for left_item, right_item in zip_longest(left.items, right.items):
        found = _compare_items(where, left_item, right_item)
        if found is None:
            continue
        if left_item is not None and right_item is not None and left_item[0] != right_item[0]:
            return _explain_labels(where, left, right, left_item[0], right_item[0])
        return found
    return None


def _compare_items(
    where: str, left: tuple[str, Node] | None, right: tuple[str, Node] | None
) -> Difference | None:
    if left is None or right is None:
        label, part = left or right or ("", "")
        present = one_line(part)
        return Difference(
            _join(where, label),
            _MISSING if left is None else present,
            _MISSING if right is None else present,
        )
    if left[0] != right[0]:
        return Difference(where, left[0], right[0])
    return _compare(_join(where, left[0]), left[1], right[1])


def _explain_labels(
    where: str, left: Branch, right: Branch, left_label: str, right_label: str
) -> Difference:
    """Say which of two unlike labels at the same place is missing on the other side."""
    left_items, right_items = dict(left.items), dict(right.items)
    if left_label not in right_items:
        return Difference(_join(where, left_label), one_line(left_items[left_label]), _MISSING)
    if right_label not in left_items:
        return Difference(_join(where, right_label), _MISSING, one_line(right_items[right_label]))
    return Difference(f"{where}: order of the keys", ", ".join(left_items), ", ".join(right_items))


def _join(where: str, label: str) -> str:
    """Append a step to a path: ``[3]`` and ``.price`` directly, words after a colon."""
    if not where or label.startswith(("[", ".")):
        return where + label
    return f"{where}: {label}"


def _shorten(left: str, right: str) -> tuple[str, str]:
    """Cut two long texts to the surroundings of their first different character."""
    same = next(
        (i for i, (a, b) in enumerate(zip(left, right, strict=False)) if a != b),
        min(len(left), len(right)),
    )
    start = max(0, same - _WIDTH // 2)
    return _window(left, start), _window(right, start)


def _window(text: str, start: int) -> str:
    if len(text) <= _WIDTH:
        return text
    start = min(start, len(text) - _WIDTH)
    end = start + _WIDTH
    return ("..." if start else "") + text[start:end] + ("..." if end < len(text) else "")
