"""A worker's half: the simulation as main has it, kept up to date, and put back after each task.

```
update ─▶ apply ─▶ agents are asked, and may change anything ─▶ restore
```
"""

from __future__ import annotations

import pickle
import random
import sys
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import Any, Final, cast

import numpy as np

from .._codec.prng_state import PACKED_SIZE, pack_prng, unpack_prng
from .._codec.protocol import CodecBackend
from .._codec.references import ReferenceTable
from .._replica_logger import LoggerTraffic, LoggerView, make_replica_logger
from ..exceptions import PayloadError
from .kinds import ATOM_TYPES, DICT, LIST, RECORD, SET, STATE, is_atom, phase_of
from .opaques import Recorder, order_of
from .rows import Rows, is_set
from .sections import Row
from .update import Coded, CodedRow, LoggerUpdate, Update

_NO_REFERENCES: Final = ReferenceTable(())
_Array = tuple[str, tuple[int, ...], str, bool, bytes]


class Replica(ReferenceTable):
    """A copy of main's simulation.

    Attributes:
        objects: its objects, by the number that main's have.
        numbers: the numbers, by ``id()`` of the object.
        kinds: what each object is.
        rows: what objects hold, as main has it.
        simulator: number of the simulator.
        views: what is known of loggers.
    """

    def __init__(self, backend: CodecBackend, traffic: LoggerTraffic) -> None:
        """Begin with nothing.

        Args:
            backend: reads what the tracker's backend wrote.
            traffic: where stand-ins of loggers note what is done with them.
        """
        self._backend = backend
        self._traffic = traffic
        self._begin()

    def _begin(self) -> None:
        super().__init__()
        self.kinds: dict[int, int] = {}
        self.rows = Rows(lambda obj: self.rows.read_record(obj), self.objects, self.kinds)
        self.simulator = -1
        self._classes: dict[int, type] = {}
        self._states: dict[int, Row] = {}
        # of these `__setstate__` made something that is not main's
        self._hidden: set[int] = set()
        self._tuples: dict[int, tuple[int | None, Coded]] = {}
        self._groups: dict[int, tuple[tuple[int, ...], tuple[int, ...], bytes]] = {}
        self._written: dict[int, bytes | None] = {}
        self._key_of: dict[int, int] = {}
        self._prngs: dict[int, bytes] = {}
        self._of_agents: set[int] = set()
        self._arrays: dict[int, _Array] = {}
        self.views: dict[int, LoggerView] = {}
        # objects that others have taken the place of, until all that holds them is told
        self._old: dict[int, object] = {}
        self._position = -1

    def row_as_sent(self, number: int) -> Row | None:
        """Return what an object holds in main; None when it is not known by parts."""
        return self._states.get(number) or self.rows.of(number)

    # --- taking an update ---------------------------------------------------------------------

    def apply(self, data: bytes) -> None:
        """Become what main is.

        Raises:
            PayloadError: with the number of the object that failed; its cause says why. The
                replica is of no more use.
        """
        self._position = -1
        try:
            self._apply(pickle.loads(data))
        except Exception as error:
            raise PayloadError(self._position) from error

    def _apply(self, update: Update) -> None:
        if update.first:
            self._begin()
        self.simulator = update.simulator
        for number, encoded in update.constants:
            self._position = number
            self._put(number, self._backend.loads(encoded, _NO_REFERENCES))
        for number, kind, shape in update.new:
            self._position = number
            self._make_empty(number, kind, shape)
        for number, cls_number, change in update.loggers:
            self._position = number
            self._make_logger(number, cls_number, change)
        for number, *state in update.arrays:
            self._position = number
            self._arrays[number] = cast("_Array", tuple(state))
            self._restore_array(number)
        self._hash_early(update)
        self._take_unchangeable(update)
        self._position = -1
        rows: dict[int, Row] = {}
        for pack in update.rows:
            rows.update(self._read_rows(pickle.loads(pack)))
            if update.first:  # nothing is replaced: each part can be done with before the next
                self._fill(rows)
                rows = {}
        update.new.clear()
        for number, start, stop, items in update.splices:
            _, values = self.rows.of(number) or ((), [])
            rows[number] = ((), [*values[:start], *self._values(items), *values[stop:]])
        self._replace(rows)
        self._fill(rows)
        numbers, states = update.prngs
        for index, number in enumerate(numbers):
            self._position = number
            packed = memoryview(states)[index * PACKED_SIZE : (index + 1) * PACKED_SIZE]
            self._set_prng(number, packed)
            if number not in self._of_agents:  # those are set when the agent is asked
                self._prngs[number] = bytes(packed)
        for number, _, change in update.loggers:
            self.views[number].sent.clear()
            values = self._values(change.values)
            self.views[number].sent.update(zip(change.sent, values, strict=True))
        self._drop(update.dropped)
        self._write_new()

    def _read_rows(self, rows: Iterable[CodedRow]) -> Iterable[tuple[int, Row]]:
        for number, keys, values in rows:
            yield number, (self._keys(number, keys), self._values(values))

    def _put(self, number: int, obj: object) -> None:
        old = self.objects.get(number)
        if old is not None:
            self._old.setdefault(number, old)
            if self.numbers.get(id(old)) == number:
                del self.numbers[id(old)]
        self.objects[number] = obj
        self.numbers.setdefault(id(obj), number)

    def _make_empty(self, number: int, kind: int, shape: Any) -> None:
        obj: Any
        if kind in (RECORD, STATE):
            self._classes[number] = cls = cast("Any", self.objects[shape])
            obj = cls.__new__(cls)
        elif kind == DICT:
            obj = defaultdict() if shape else {}
        elif kind == LIST:
            obj = [] if shape is None else deque(maxlen=shape[0])
        elif kind == SET:
            obj = set()
        else:
            obj = random.Random(0)  # without a seed it would ask the system for one
            if shape:
                self._of_agents.add(number)
        self.kinds[number] = kind
        self._put(number, obj)

    def _make_logger(self, number: int, cls_number: int, change: LoggerUpdate) -> None:
        view = self.views.get(number)
        if view is None:
            view = self.views[number] = LoggerView(change.class_name, change.is_own_class)
            cls = cast("type", self.objects[cls_number])
            self._put(number, make_replica_logger(number, view, cls, self._traffic))
        view.names = change.names
        view.unreadable = dict(change.unreadable)

    def _keys(self, number: int, keys: Coded) -> tuple[object, ...]:
        if self.kinds[number] == RECORD:
            return tuple([sys.intern(k) if type(k) is str else k for k in keys[0]])
        return tuple(self._values(keys))

    def _values(self, coded: Coded) -> list[object]:
        values, positions, numbers = coded
        # a list was made for this by the unpickler; the items of tuples are needed again
        decoded = values if type(values) is list else list(values)
        for position, number in zip(positions, numbers, strict=True):
            decoded[position] = self.objects[number]
        return decoded

    # --- what cannot be changed in place ------------------------------------------------------

    def _restore_array(self, number: int) -> None:
        """Give an array its content, or make another where that cannot be."""
        dtype, shape, order, writeable, content = state = self._arrays[number]
        old = cast("np.ndarray[Any, Any] | None", self.objects.get(number))
        fresh = np.frombuffer(content, np.dtype(dtype)).reshape(shape, order=cast("Any", order))
        if old is not None and _is_like(old, state) and writeable:
            old[...] = fresh
            return
        made = fresh.copy(order=cast("Any", order))
        made.flags.writeable = writeable
        self._put(number, made)

    def _hash_early(self, update: Update) -> None:
        """Give records that are hashed by what they hold as much of it as is there."""
        for number, keys, (values, positions, numbers) in update.hashed:
            self._position = number
            there = [*values]
            missing = set()
            for position, part in zip(positions, numbers, strict=True):
                if part in self.objects:
                    there[position] = self.objects[part]
                else:
                    missing.add(position)
            names = self._keys(number, keys)
            known = [i for i in range(len(names)) if i not in missing]
            row = tuple([names[i] for i in known]), [there[i] for i in known]
            self._fill_record(self.objects[number], row)

    def _take_unchangeable(self, update: Update) -> None:
        """Make new tuples and opaque objects, and again those that hold others that changed."""
        self._tuples.update(update.tuples)
        for key, group in update.opaques.items():
            for member in group[0]:  # may have stood alone before
                self._groups.pop(member, None)
                self._written.pop(member, None)
                self._tuples.pop(member, None)
                self._key_of[member] = key
            self._groups[key] = group
        self._make_again(update.order)

    def _make_again(self, keys: Iterable[int]) -> None:
        """Make tuples and groups, and all of those that hold them or something else that is new."""
        wanted = dict.fromkeys(keys)
        changed = set(self._old)
        for key in wanted:
            members = self._groups[key][0] if key in self._groups else (key,)
            changed.update(number for number in members if number in self.objects)
        while changed:
            holders = [
                key
                for key in (*self._tuples, *self._groups)
                if key not in wanted and not changed.isdisjoint(self._needs(key))
            ]
            if not holders:
                break
            wanted.update(dict.fromkeys(holders))
            for key in holders:
                changed.update(self._groups[key][0] if key in self._groups else (key,))

        def needs(key: int) -> Iterable[int]:
            return (self._key_of.get(number, number) for number in self._needs(key))

        self._make(order_of(needs, wanted))

    def _needs(self, key: int) -> Sequence[int]:
        """Return what a tuple or a group is made of."""
        return self._tuples[key][1][2] if key in self._tuples else self._groups[key][1]

    def _make(self, keys: Iterable[int]) -> None:
        """Make tuples and groups of opaque objects."""
        for key in keys:
            self._position = key
            if key in self._tuples:
                self._put(key, self._make_tuple(key))
                continue
            members, _, encoded = self._groups[key]
            made = cast("list[object]", self._backend.loads(encoded, self))
            for number, obj in zip(members, made, strict=True):
                self._put(number, obj)
            self._written[key] = None

    def _make_tuple(self, number: int) -> object:
        cls_number, coded = self._tuples[number]
        items = self._values(coded)
        if cls_number is None:
            return tuple(items)
        return tuple.__new__(cast("type[tuple[object, ...]]", self.objects[cls_number]), items)

    def _replace(self, rows: dict[int, Row]) -> None:
        """Add the rows that hold objects in whose place there are others now."""
        if not self._old:
            return
        by_id = {id(old): number for number, old in self._old.items()}

        def replaced(values: Sequence[object]) -> list[object]:
            return [self.objects[by_id[id(v)]] if id(v) in by_id else v for v in values]

        for number, row in {**dict(self.rows.items()), **self._states, **rows}.items():
            keys, values = row
            if not by_id.keys().isdisjoint(map(id, values)) or (
                self.kinds[number] == DICT and not by_id.keys().isdisjoint(map(id, keys))
            ):
                rows[number] = (tuple(replaced(keys)), replaced(values))
        for number, state in self._states.items():
            # what it made of its state may hold them, too, in ways that are not known
            live = self.rows.of(number)
            held = live is None or not by_id.keys().isdisjoint(map(id, live[1]))
            if held or number in self._hidden:
                rows.setdefault(number, state)
        for view in self.views.values():
            sent = dict(zip(view.sent, replaced([*view.sent.values()]), strict=True))
            view.sent.update(sent)
        self._old = {}

    # --- filling ------------------------------------------------------------------------------

    def _fill(self, rows: dict[int, Row]) -> None:
        """Give objects what they hold: those that others are hashed by first."""
        for number in sorted(rows, key=self._phase):
            self._position = number
            obj: Any = self.objects[number]
            kind = self.kinds[number]
            row = keys, values = rows[number]
            if kind == RECORD:
                self._fill_record(obj, row)
            elif kind == STATE:
                self._states[number] = row
                row = self._fill_state(number, row)
            elif kind == DICT:
                obj.clear()
                obj.update(zip(keys, values, strict=False))
                if len(values) > len(keys):
                    obj.default_factory = values[-1]
            elif type(obj) is list:
                obj[:] = values
            else:
                obj.clear()
                (obj.extend if kind == LIST else obj.update)(values)
            self.rows.take(number, row)

    def _phase(self, number: int) -> int:
        return phase_of(self.kinds[number], self._classes.get(number))

    def _fill_record(self, obj: Any, row: Row) -> None:
        keys, values = row
        if type(obj) is not (cls := self._classes[self.numbers[id(obj)]]):
            obj.__class__ = cls
        own = keys.index(None) if None in keys else len(keys)
        if hasattr(obj, "__dict__"):
            attributes = vars(obj)
            if attributes:  # one that was never cleared may share its keys with others
                attributes.clear()
            attributes.update(zip(keys[:own], values, strict=False))
        slots = dict(zip(keys[own + 1 :], values[own + 1 :], strict=True))
        for name, slot in self.rows.slots(cls):
            if name in slots:
                slot.__set__(obj, slots[name])
            elif is_set(slot, obj):
                slot.__delete__(obj)

    def _fill_state(self, number: int, row: Row) -> Row:
        """Have an object take its state, and return the attributes that it then has."""
        obj: Any = self.objects[number]
        keys, values = row
        if type(obj) is not (cls := self._classes[number]):
            obj.__class__ = cls
        if hasattr(obj, "__dict__"):
            vars(obj).clear()
        if keys or values:
            state = dict(zip(keys, values, strict=True)) if keys else values[0]
            set_state(obj, state)
        live = self.rows.read_record(obj)
        known = all(
            type(value) in ATOM_TYPES or is_atom(value) or id(value) in self.numbers
            for value in live[1]
        )
        (self._hidden.discard if known else self._hidden.add)(number)
        return live

    def set_generator(self, agent: object, packed: bytes) -> None:
        """Bring the generator of an agent that is about to be asked up to date."""
        vars(agent)["prng"].setstate(unpack_prng(packed))

    def _set_prng(self, number: int, packed: bytes | memoryview) -> None:
        state: Any = unpack_prng(packed)
        cast("random.Random", self.objects[number]).setstate(state)

    def _write_new(self) -> None:
        """Note how opaque objects are written here, to see later whether they are as they were."""
        for key, data in self._written.items():
            if data is None:
                self._written[key] = self._write(key)

    def _write(self, key: int) -> bytes:
        members = self._groups[key][0]
        try:
            return self._backend.dumps(
                [self.objects[number] for number in members],
                Recorder(self.numbers, members, {}),
            )
        except Exception:  # can be read and not be written: it is taken for changed
            return b""

    def _drop(self, numbers: Iterable[int]) -> None:
        numbers = [number for number in numbers if number in self.objects]
        self.rows.drop(numbers)
        for number in numbers:
            obj = self.objects.pop(number)
            if self.numbers.get(id(obj)) == number:
                del self.numbers[id(obj)]
            for table in (
                *(self.kinds, self._classes, self._states, self._tuples, self._groups),
                *(self._written, self._key_of, self._prngs, self._arrays, self.views),
            ):
                cast("dict[int, object]", table).pop(number, None)
            self._hidden.discard(number)
            self._of_agents.discard(number)

    # --- after a task -------------------------------------------------------------------------

    def restore(self, changed: Iterable[int]) -> None:
        """Undo what agents did.

        Args:
            changed: the objects whose rows are not as they were taken.

        Raises:
            PayloadError: with the number of the object that failed; its cause says why. The
                replica is of no more use.
        """
        self._position = -1
        try:
            self._restore(changed)
        except Exception as error:
            raise PayloadError(self._position) from error

    def _restore(self, changed: Iterable[int]) -> None:
        rows: dict[int, Row] = {}
        for number in (*changed, *self._hidden):
            row = self.row_as_sent(number)
            if row is not None:
                rows[number] = row
        for number in self.views:
            object.__getattribute__(self.objects[number], "__dict__").clear()
            self._traffic.changed.pop(number, None)
        for number, state in self._arrays.items():
            if not _is_as_sent(cast("np.ndarray[Any, Any]", self.objects[number]), state):
                self._restore_array(number)
        opaque = {
            key for key, data in self._written.items() if not data or self._write(key) != data
        }
        self._make_again(opaque)
        self._replace(rows)
        self._fill(rows)
        for number, packed in self._prngs.items():
            prng = cast("random.Random", self.objects[number])
            if pack_prng(prng) != packed:
                self._set_prng(number, packed)
        self._write_new()


def set_state(obj: Any, state: Any) -> None:
    """Give an empty object its state, in the way that pickle would."""
    # asked of the class: a __getattr__ that forwards to a field would recurse on an empty object
    setter = getattr(type(obj), "__setstate__", None)
    if setter is not None:
        setter(obj, state)
        return
    slots: object = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    if state:
        vars(obj).update(cast("dict[str, object]", state))
    for name, value in cast("dict[str, object]", slots or {}).items():
        setattr(obj, name, value)


def _is_like(array: np.ndarray[Any, Any], state: _Array) -> bool:
    """Tell whether an array can take the content of another as it stands."""
    dtype, shape, order, writeable, _ = state
    fortran = array.flags.f_contiguous and not array.flags.c_contiguous
    return (
        array.dtype.str == dtype
        and array.shape == shape
        and order == ("F" if fortran else "C")
        and bool(array.flags.writeable) == writeable
    )


def _is_as_sent(array: np.ndarray[Any, Any], state: _Array) -> bool:
    order: Any = state[2]
    return _is_like(array, state) and (not state[3] or array.tobytes(order=order) == state[4])
