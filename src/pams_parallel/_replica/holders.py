"""Who holds what: walks over numbered objects, to forget some or to say where one is."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

from .kinds import DICT
from .sections import Row


def reachable(starts: Iterable[int], held: Callable[[int], Iterable[int]]) -> set[int]:
    """Return the objects that some lead to, with these.

    Args:
        starts: where to begin.
        held: returns what an object holds.
    """
    found = set(starts)
    queue = list(found)
    while queue:
        new = set(held(queue.pop())) - found
        found |= new
        queue.extend(new)
    return found


def find_path(
    starts: Iterable[int], wanted: int, steps: Callable[[int], Iterable[tuple[str, int]]]
) -> tuple[int, str] | None:
    """Return the start that is nearest to an object, and the words that lead from it there.

    Args:
        starts: where to begin.
        wanted: the object.
        steps: returns what an object holds, with the words for it.
    """
    paths = {start: (start, "") for start in starts}
    queue = deque(paths)
    while queue and wanted not in paths:
        at = queue.popleft()
        start, path = paths[at]
        for word, part in steps(at):
            if part not in paths:
                paths[part] = (start, path + word)
                queue.append(part)
    return paths.get(wanted)


def words_of(kind: int, row: Row) -> Iterable[tuple[str, object]]:
    """Return the values of a row, and the keys of a dict, with the words that lead to them."""
    keys, values = row
    for index, value in enumerate(values):
        if not keys:
            yield f"[{index}]", value
        elif index >= len(keys):
            yield ".default_factory", value
        elif kind == DICT:
            yield f"[{keys[index]!r:.40}]", value
        else:  # a slot's name has its class before it
            yield f".{str(keys[index]).rpartition('.')[2]}", value
    if kind == DICT:
        for key in keys:
            yield f".keys()[{key!r:.40}]", key
