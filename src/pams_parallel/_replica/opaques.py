"""Objects that only the backend can write: they are written whole, and sent when the bytes differ.

Each is written by itself, with references to all objects that are known. An object within, which
nothing else knows, is part of it; what is within two of them becomes known itself, so that it stays
one object. Those that hold each other directly are written together.
"""

from __future__ import annotations

import graphlib
import types
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from .._codec.protocol import CodecBackend

_NEVER_SHARED = (type, types.ModuleType, types.CodeType, types.BuiltinFunctionType)


@dataclass(slots=True)
class Group:
    """Opaque objects (and tuples) that hold each other, mostly one alone.

    Attributes:
        members: their numbers.
        needs: the objects that they refer to.
        data: how they were written last.
    """

    members: tuple[int, ...]
    needs: tuple[int, ...] = ()
    data: bytes = b""


class CannotSendError(Exception):
    """An object of the simulation cannot be sent; the cause says why.

    Attributes:
        number: of the object.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class Recorder:
    """The references of one group; notes which are used, and what else is met."""

    def __init__(
        self, numbers: Mapping[int, int], members: Iterable[int], met: dict[int, object]
    ) -> None:
        self._numbers = numbers
        self._members = frozenset(members)
        self.needs: dict[int, None] = {}
        self.met = met

    def persistent_id(self, obj: object, /) -> int | None:
        number = self._numbers.get(id(obj))
        if number is None or number in self._members:
            if number is None:
                self.met[id(obj)] = obj
            return None
        self.needs[number] = None
        return number

    def persistent_load(self, pid: object, /) -> object:
        raise LookupError(pid)


class Opaques:
    """The opaque objects of a simulation in main."""

    def __init__(
        self,
        backend: CodecBackend,
        objects: Mapping[int, object],
        numbers: Mapping[int, int],
        adopt: Callable[[object], bool],
    ) -> None:
        """Take the tables of known objects, and what makes an object known if it is worth it."""
        self._backend = backend
        self._objects = objects
        self._numbers = numbers
        self._adopt = adopt
        self.groups: dict[int, Group] = {}
        self._group_of: dict[int, int] = {}

    def add(self, number: int) -> None:
        """Take an object in."""
        self.groups[number] = Group((number,))
        self._group_of[number] = number

    def drop(self, numbers: Iterable[int]) -> None:
        """Forget objects."""
        for number in numbers:
            group = self._group_of.pop(number, None)
            if group is not None:
                self.groups.pop(group, None)

    def group_of(self, number: int) -> Group | None:
        """Return the group of an object, or None when it is not opaque."""
        return self.groups.get(self.key_of(number))

    def key_of(self, number: int) -> int:
        """Return the key of the group of an object; of others their own number."""
        return self._group_of.get(number, number)

    def write(self) -> list[int]:
        """Write all groups; return those (by their first member) that are not as they were.

        Raises:
            CannotSendError: an object cannot be written.
        """
        changed: dict[int, None] = {}
        queue = deque(self.groups)
        queued = set(queue)
        owners: dict[int, int] = {}
        met: dict[int, dict[int, object]] = {}  # keeps what is met alive: an id() is used once
        while queue:
            key = queue.popleft()
            group = self.groups[key]
            met[key] = {}
            data, needs = self._write(group, met[key])
            shared = self._find_shared(owners, met[key])
            if shared is not None and self._adopt(shared):
                # both are written again, with a reference to it
                other = owners[id(shared)]
                owners = {part: owner for part, owner in owners.items() if owner != other}
                queue.extend((other, key))
            else:
                owners.update(dict.fromkeys(met[key], key))
                if data != group.data or needs != group.needs:
                    group.data, group.needs = data, needs
                    changed[key] = None
            new = [one for one in self.groups if one not in queued]
            queue.extend(new)
            queued.update(new)
        return list(changed)

    def _find_shared(self, owners: Mapping[int, int], met: Mapping[int, object]) -> object | None:
        """Return an object that another group has met too."""
        for number, obj in met.items():
            if number in owners and self._may_be_shared(obj):
                return obj
        return None

    def _may_be_shared(self, obj: object) -> bool:
        if id(obj) in self._numbers or isinstance(obj, _NEVER_SHARED):
            return False
        # the namespaces of modules, which some backends look into
        return not (type(obj) is dict and "__builtins__" in obj)

    def _write(self, group: Group, met: dict[int, object]) -> tuple[bytes, tuple[int, ...]]:
        recorder = Recorder(self._numbers, group.members, met)
        try:
            data = self._backend.dumps([self._objects[n] for n in group.members], recorder)
        except Exception as error:
            raise CannotSendError(self._guilty(group)) from error
        return data, tuple(recorder.needs)

    def _guilty(self, group: Group) -> int:
        for number in group.members:
            recorder = Recorder(self._numbers, group.members, {})
            try:
                self._backend.dumps(self._objects[number], recorder)
            except Exception:
                return number
        return group.members[0]

    def merge(self, members: Iterable[int]) -> int:
        """Have objects written together from now on; return the key of their group."""
        numbers = {
            part
            for member in members
            for part in (
                self.groups[self._group_of[member]].members
                if member in self._group_of
                else (member,)
            )
        }
        merged = tuple(sorted(numbers))
        for number in merged:
            self.groups.pop(self._group_of.get(number, -1), None)
        for number in merged:
            self._group_of[number] = merged[0]
        self.groups[merged[0]] = group = Group(merged)
        group.data, group.needs = self._write(group, {})
        return merged[0]


def order_of(needs: Callable[[int], Iterable[int]], keys: Iterable[int]) -> list[int]:
    """Return keys so that each comes after those that it needs.

    Raises:
        graphlib.CycleError: some need each other.
    """
    known = dict.fromkeys(keys)
    sorter: graphlib.TopologicalSorter[int] = graphlib.TopologicalSorter()
    for key in known:
        sorter.add(key, *(need for need in needs(key) if need in known and need != key))
    return list(sorter.static_order())
