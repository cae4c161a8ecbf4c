"""Objects of one sort that are compared together, a few at a time.

Each entry of a section consists of an object and of what was in it; a column holds one part of all
entries. `is_same` looks at all entries in a few calls of C functions, `same` at one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import chain, starmap
from operator import attrgetter, is_
from typing import Any, Final, cast

Keys = tuple[object, ...]
Row = tuple[Keys, list[object]]
"""Keys or attribute names with their values; items have no keys."""

_flatten: Final = chain.from_iterable
_dict_of: Final = attrgetter("__dict__")


class _Blank:
    """Stands where an object was that is gone."""


class Section(ABC):
    """Entries of one sort.

    Attributes:
        numbers: of the objects; -1 where one was that is gone.
        restless: whether something had changed when it was last looked for.
    """

    def __init__(self, width: int) -> None:
        """Begin with no entries of so many parts."""
        self.numbers: list[int] = []
        self.restless = False
        self.columns: tuple[list[Any], ...] = tuple([] for _ in range(width))

    def add(self, number: int, entry: tuple[object, ...]) -> int:
        """Add an entry; return its place."""
        self.numbers.append(number)
        for column, part in zip(self.columns, entry, strict=True):
            column.append(part)
        return len(self.numbers) - 1

    def put(self, place: int, entry: tuple[object, ...]) -> None:
        """Replace an entry."""
        for column, part in zip(self.columns, entry, strict=True):
            column[place] = part

    def at(self, place: int) -> tuple[Any, ...]:
        """Return an entry."""
        return tuple(column[place] for column in self.columns)

    def forget(self, place: int) -> None:
        """Leave a gap."""
        self.numbers[place] = -1
        self.put(place, self.blank())

    def changed(self) -> list[int]:
        """Return the objects that do not hold what was in them."""
        same = starmap(self.same, zip(*self.columns, strict=True))
        pairs = zip(self.numbers, same, strict=True)
        return [number for number, is_same in pairs if not is_same and number >= 0]

    @staticmethod
    @abstractmethod
    def entry(obj: Any, row: Row) -> tuple[object, ...]:
        """Return the entry of an object that holds this row."""

    @staticmethod
    @abstractmethod
    def blank() -> tuple[object, ...]:
        """Return an entry that never changes."""

    @staticmethod
    @abstractmethod
    def same(*entry: Any) -> bool:
        """Tell whether the object of an entry holds what was in it."""

    @abstractmethod
    def is_same(self) -> bool:
        """Tell it of all entries together."""


class Items(Section):
    """Lists, deques and sets."""

    def __init__(self) -> None:
        super().__init__(2)

    @staticmethod
    def entry(obj: Any, row: Row) -> tuple[object, ...]:
        return obj, row[1]

    @staticmethod
    def blank() -> tuple[object, ...]:
        return (), ()

    @staticmethod
    def same(container: Any, values: Sequence[object]) -> bool:
        return len(container) == len(values) and all(map(is_, container, values))

    def is_same(self) -> bool:
        containers, values = self.columns
        return [*map(len, containers)] == [*map(len, values)] and all(
            map(is_, _flatten(containers), _flatten(values))
        )


class Dicts(Section):
    """Dicts with whatever keys."""

    def __init__(self) -> None:
        super().__init__(3)

    @staticmethod
    def entry(obj: Any, row: Row) -> tuple[object, ...]:
        return obj, *row

    @staticmethod
    def blank() -> tuple[object, ...]:
        return {}, (), []

    @staticmethod
    def same(found: dict[Any, object], keys: Keys, values: Sequence[object]) -> bool:
        return (
            len(found) == len(keys)
            and all(map(is_, found.values(), values))
            and all(map(is_, found, keys))
        )

    def is_same(self) -> bool:
        dicts, keys, values = self.columns
        return (
            [*map(len, dicts)] == [*map(len, keys)]
            and all(map(is_, _flatten(map(dict.values, dicts)), _flatten(values)))
            and all(map(is_, _flatten(dicts), _flatten(keys)))
        )


class Records(Section):
    """Instances that keep their attributes in a dict: also that dict and the class must stay.

    Names are compared by ``==``, which takes half the time of asking ``is`` for each.
    """

    def __init__(self) -> None:
        super().__init__(5)

    @staticmethod
    def entry(obj: Any, row: Row) -> tuple[object, ...]:
        return obj, vars(obj), type(obj), *row

    @staticmethod
    def blank() -> tuple[object, ...]:
        blank = _Blank()
        return blank, vars(blank), _Blank, (), []

    @staticmethod
    def same(
        obj: object, own: dict[str, object], cls: type, keys: Keys, values: Sequence[object]
    ) -> bool:
        return (
            vars(obj) is own
            and type(obj) is cls
            and tuple(own) == keys
            and all(map(is_, own.values(), values))
        )

    def is_same(self) -> bool:
        objects, dicts, classes, keys, values = self.columns
        return (
            all(map(is_, map(_dict_of, objects), dicts))
            and [*map(tuple, cast("list[Keys]", dicts))] == keys
            and all(map(is_, _flatten(map(dict.values, dicts)), _flatten(values)))
            and all(map(is_, map(type, objects), classes))
        )
