"""Main's half: what has changed since the workers were told last.

Every object that the simulation holds has a number. In each batch the rows of all are compared
with those that were sent; what differs is sent again, and objects that are new get a number.
"""

from __future__ import annotations

import graphlib
import pickle
import random
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, Final, cast

import numpy as np

from .._codec.prng_state import pack_prng
from .._codec.protocol import CodecBackend
from .._codec.references import ReferenceTable
from .holders import find_path, reachable, words_of
from .kinds import (
    ARRAY,
    ATOM,
    ATOM_TYPES,
    CONSTANT,
    DICT,
    LIST,
    LOGGER,
    MUTABLE_ROWS,
    OPAQUE,
    PRNG,
    RECORD,
    STATE,
    TUPLE,
    Kinds,
    is_atom,
    phase_of,
)
from .loggers import Look, Wanted, look_at, read_parts
from .opaques import CannotSendError, Opaques, order_of
from .rows import LONG, Rows, changed_span
from .sections import Row
from .update import Coded, CodedRow, LoggerUpdate, Update

_NO_REFERENCES: Final = ReferenceTable(())
_SPLICED: Final = 32
"""Lists from this length on are sent by what has changed in them."""


_PACK: Final = 512
"""Rows that are pickled together."""


class _StartAgainError(Exception):
    """The replica must be made anew."""


class Tracker(ReferenceTable):
    """What the workers know of a simulation: its objects by the numbers that theirs have.

    An update that was made has to be sent to all of them; a tracker whose `update` raised is of no
    more use.

    Attributes:
        kinds: what each object is.
        roots: what all others hang on: the simulator, and loggers.
    """

    def __init__(
        self,
        backend: CodecBackend,
        is_logger: Callable[[type], bool],
        is_agent: Callable[[type], bool],
        wanted: Wanted,
    ) -> None:
        """Begin with workers that know nothing.

        Args:
            backend: writes what has no row.
            is_logger: tells classes whose instances are replaced by stand-ins.
            is_agent: tells classes whose ``prng`` is only sent when they are asked.
            wanted: what is read of loggers; may grow.
        """
        self._backend = backend
        self._kinds = Kinds(is_logger)
        self._is_agent = is_agent
        self._wanted = wanted
        self._agent_classes: dict[type, bool] = {}
        self._begin()

    def _begin(self) -> None:
        super().__init__()
        self.kinds: dict[int, int] = {}
        self._rows = Rows(read_state, self.objects, self.kinds)
        self._opaques = Opaques(self._backend, self.objects, self.numbers, self._adopt)
        self._next = 0
        self._classes: dict[int, type] = {}
        self._items: dict[int, tuple[int, ...]] = {}
        self._pending: deque[int] = deque()
        self._prngs: dict[int, bytes] = {}
        self._of_agents: set[int] = set()
        self._states: list[tuple[int, bytes]] = []
        self._arrays: dict[int, tuple[str, tuple[int, ...], str, bool, bytes] | None] = {}
        self._loggers: dict[int, Look] = {}
        self._fresh = 0
        self.roots: tuple[object, ...] = ()
        self._coded: list[CodedRow] = []
        self._update = Update(first=True)

    # --- what others ask ----------------------------------------------------------------------

    def generator_of(self, agent: object) -> bytes | None:
        """Return the packed state of an agent's generator, for those who ask the agent.

        It changes with every call, and nobody else uses it: updates leave it out. None where it is
        in them, or where it is no generator of Python's own class.
        """
        prng = _prng_of(agent)
        if self.numbers.get(id(prng)) in self._of_agents:
            return pack_prng(cast("random.Random", prng))
        return None

    def all_but(self, number: int) -> ReferenceTable:
        """Return references to all objects that workers know, and not to one."""
        return ReferenceTable(obj for key, obj in self.objects.items() if key != number)

    def holder_path(self, number: int, owners: Sequence[object]) -> tuple[object, str] | None:
        """Return one of the owners that holds an object nearest, and the path to it.

        Args:
            number: of the object.
            owners: the parts of the simulation.
        """
        starts = {n: owner for owner in owners if (n := self.index_of(owner)) is not None}
        found = find_path(starts, number, self._steps)
        return None if found is None else (starts[found[0]], found[1])

    def _steps(self, number: int) -> Iterable[tuple[str, int]]:
        """Return the objects that an object holds, with the words that lead there.

        What a logger holds is not the simulation's.
        """
        kind = self.kinds[number]
        if kind == LOGGER:
            return
        row = self._rows.of(number)
        if row is not None:
            for word, value in words_of(kind, row):
                held = self.numbers.get(id(value))
                if held is not None:
                    yield word, held
        elif kind == TUPLE:
            yield from ((f"[{index}]", part) for index, part in enumerate(self._items[number]))
        else:
            yield from (("", part) for part in self._held(number))
        if number in self._classes:
            yield "", self.numbers[id(self._classes[number])]

    # --- an update ----------------------------------------------------------------------------

    def update(self, simulator: object, loggers: Sequence[object]) -> bytes:
        """Return what workers must be told.

        Args:
            simulator: holds the simulation.
            loggers: more that workers may write to.

        Raises:
            CannotSendError: something cannot be sent.
        """
        try:
            update = self._make(simulator, loggers)
        except _StartAgainError:
            self._begin()
            update = self._make(simulator, loggers)
        self._pack_rows()
        data = pickle.dumps(update, 5)
        self._update = Update(first=False)
        return data

    def _pack_rows(self) -> None:
        """Pickle the rows some at a time: a worker then never holds all of them twice."""

        def phase(row: CodedRow) -> int:
            return phase_of(self.kinds[row[0]], self._classes.get(row[0]))

        rows, self._coded = self._coded, []
        rows.sort(key=phase)
        self._update.hashed = [row for row in rows if phase(row) == 0]
        self._update.rows = [
            pickle.dumps(rows[start : start + _PACK], 5) for start in range(0, len(rows), _PACK)
        ]

    def _make(self, simulator: object, loggers: Sequence[object]) -> Update:
        update = self._update
        if self._is_due():
            self._sweep()
        for number in self._rows.changed():
            self._send_row(number)
        roots = [simulator, *(logger for logger in loggers if logger is not None)]
        for root in roots:
            self._number(root)
        update.simulator = self.numbers[id(simulator)]
        self._drain()
        self._send_loggers()
        self._order(self._opaques.write())
        self._send_prngs()
        self._send_arrays()
        self.roots = tuple(roots)
        return update

    def _number(self, obj: object) -> int:
        """Return the number of an object; give it one if it has none."""
        number = self.numbers.get(id(obj))
        if number is not None:
            return number
        kind = self._kinds.of(obj)
        if kind == TUPLE:
            return self._number_tuple(cast("tuple[object, ...]", obj))
        number = self._register(obj, kind)
        if kind == CONSTANT:
            try:
                self._update.constants.append((number, self._backend.dumps(obj, _NO_REFERENCES)))
            except Exception as error:
                raise CannotSendError(number) from error
        elif kind in MUTABLE_ROWS:
            self._update.new.append((number, kind, self._shape(obj, kind, number)))
            self._pending.append(number)
        elif kind == PRNG:
            self._update.new.append((number, kind, False))
            self._prngs[number] = b""
        elif kind == ARRAY:
            self._arrays[number] = None
        elif kind == OPAQUE:
            self._opaques.add(number)
        elif kind == LOGGER:
            self._loggers[number] = Look()
        return number

    def _register(self, obj: object, kind: int) -> int:
        number = self._next
        self._next += 1
        self._fresh += 1
        self.numbers[id(obj)] = number
        self.objects[number] = obj
        self.kinds[number] = kind
        return number

    def _shape(self, obj: Any, kind: int, number: int) -> object:
        """Return what is needed to make an empty object of this kind."""
        if kind in (RECORD, STATE):
            self._classes[number] = cls = type(obj)
            return self._number(cls)
        if kind == DICT:
            return type(obj) is defaultdict
        if kind == LIST and type(obj) is deque:
            return (obj.maxlen,)
        return None

    def _number_tuple(self, obj: tuple[object, ...]) -> int:
        """Number a tuple and those within it, which must be made first."""
        stack: list[tuple[object, ...]] = [obj]
        while stack:
            top = stack[-1]
            inner = [
                item
                for item in top
                if id(item) not in self.numbers and self._kinds.of(item) == TUPLE
            ]
            if inner:
                stack.extend(cast("list[tuple[object, ...]]", inner))
                continue
            stack.pop()
            if id(top) in self.numbers:
                continue
            number = self._register(top, TUPLE)
            cls = None if type(top) is tuple else self._number(type(top))
            coded = self._code(top)
            self._update.tuples[number] = (cls, (tuple(coded[0]), coded[1], coded[2]))
            self._items[number] = (*coded[2], *(() if cls is None else (cls,)))
        return self.numbers[id(obj)]

    def _code(self, values: Sequence[object]) -> Coded:
        """Return values as they are written: atoms, and the numbers of objects."""
        positions = [
            index
            for index, value in enumerate(values)
            if type(value) not in ATOM_TYPES and not (type(value) is tuple and is_atom(value))
        ]
        if not positions:
            return values, (), ()
        numbers = [self._number(values[index]) for index in positions]
        coded = list(values)
        for index in positions:
            coded[index] = None
        return coded, positions, numbers

    def _drain(self) -> None:
        """Send the rows of new objects, and of those that they hold."""
        while self._pending:
            self._send_row(self._pending.popleft())

    def _send_row(self, number: int) -> None:
        obj, kind = self.objects[number], self.kinds[number]
        if number in self._classes and type(obj) is not self._classes[number]:
            raise _StartAgainError
        try:
            row = self._rows.read(number)
        except Exception as error:  # of the object's own making
            raise CannotSendError(number) from error
        before = self._rows.of(number)
        self._rows.take(number, row)
        if before is not None and type(obj) is list and len(before[1]) >= _SPLICED:
            self._send_splice(number, before[1], row[1])
            return
        keys, values = self._rows.of(number) or row
        if kind == RECORD and self._is_of_agent(type(obj)):
            self._note_generator(obj)
        coded_keys: Coded = self._code(keys) if kind == DICT else (keys, (), ())
        self._coded.append((number, coded_keys, self._code(values)))

    def _send_splice(self, number: int, old: list[object], new: list[object]) -> None:
        long = len(new) > LONG and all(map(is_atom, new))
        start, end = changed_span(old, new, long)
        items = self._code(new[start : len(new) - end])
        self._update.splices.append((number, start, len(old) - end, items))

    def _is_of_agent(self, cls: type) -> bool:
        known = self._agent_classes.get(cls)
        if known is None:
            known = self._agent_classes[cls] = self._is_agent(cls)
        return known

    def _note_generator(self, agent: object) -> None:
        """Number the generator of an agent: it is sent now, and whenever the agent is asked."""
        prng = _prng_of(agent)
        if type(prng) is random.Random and id(prng) not in self.numbers:
            number = self._register(prng, PRNG)
            self._update.new.append((number, PRNG, True))
            self._of_agents.add(number)
            self._states.append((number, pack_prng(prng)))

    # --- loggers ------------------------------------------------------------------------------

    def _send_loggers(self) -> None:
        """Send what loggers have; `_loggers` grows while wanted values lead to more."""
        done: set[int] = set()
        while todo := [number for number in self._loggers if number not in done]:
            for number in todo:
                done.add(number)
                self._send_logger(number)
                self._drain()

    def _send_logger(self, number: int) -> None:
        logger = self.objects[number]
        cls = type(logger)
        look = look_at(logger, self._wanted, self.numbers)
        if look.is_like(self._loggers[number]):
            return
        self._loggers[number] = look
        base = self._sendable_class(cls)
        told = LoggerUpdate(
            class_name=cls.__name__,
            is_own_class=base is cls,
            names=look.names,
            sent=look.sent,
            values=self._code(look.values),
            unreadable=look.unreadable,
        )
        self._update.loggers.append((number, self._number(base), told))

    def _sendable_class(self, cls: type) -> type:
        """Return the class, or the nearest base of it that can be sent."""
        for base in cls.__mro__[:-1]:
            if id(base) in self.numbers:
                return base
            try:
                self._backend.dumps(base, _NO_REFERENCES)
            except Exception:
                continue
            return base
        return object

    def refuse_logger_part(self, number: int, cause: BaseException | None) -> bool:
        """Note the parts of loggers that hold what cannot be sent; tell whether there is one."""
        reason = f"{type(cause).__name__}: {cause}"
        found = False
        for at, look in self._loggers.items():
            for name, value in read_parts(self.objects[at], look, self._wanted):
                start = self.numbers.get(id(value))
                if start is not None and number in reachable([start], self._held):
                    self._wanted.unreadable[type(self.objects[at]), name] = reason
                    found = True
        return found

    # --- opaques ------------------------------------------------------------------------------

    def _adopt(self, obj: object) -> bool:
        """Number an object that two opaque ones hold; tell whether it has one."""
        if self._kinds.of(obj) in (ATOM, CONSTANT, TUPLE):
            return False
        self._number(obj)
        self._drain()
        return True

    def _order(self, changed: Iterable[int]) -> None:
        """Send opaques, and the order in which they and tuples are to be made."""
        update, opaques = self._update, self._opaques
        keys = dict.fromkeys((*update.tuples, *changed))
        while True:
            needs = self._unchangeable_needs(keys)
            try:
                order = order_of(needs.__getitem__, needs)
                break
            except graphlib.CycleError as error:
                merged = opaques.merge(error.args[1])
                for member in opaques.groups[merged].members:
                    keys.pop(member, None)
                    update.tuples.pop(member, None)
                keys[merged] = None
        for key in keys:
            if key in opaques.groups:
                group = opaques.groups[key]
                update.opaques[key] = (group.members, group.needs, group.data)
        update.order = [key for key in order if key in keys]

    def _unchangeable_needs(self, keys: Iterable[int]) -> dict[int, list[int]]:
        """Return which tuples and groups some are made of, and what those are made of."""
        found: dict[int, list[int]] = {}
        stack = list(keys)
        while stack:
            key = stack.pop()
            if key in found:
                continue
            group = self._opaques.group_of(key)
            inside = group.needs if group else self._items[key]
            found[key] = [
                self._opaques.key_of(number)
                for number in inside
                if number in self._items or self._opaques.group_of(number)
            ]
            stack.extend(found[key])
        return found

    # --- generators and arrays ----------------------------------------------------------------

    def _send_prngs(self) -> None:
        for number, before in self._prngs.items():
            packed = pack_prng(cast("random.Random", self.objects[number]))
            if packed != before:
                self._prngs[number] = packed
                self._states.append((number, packed))
        states, self._states = self._states, []
        # in one piece: thousands of small ones would leave a worker's memory full of holes
        packed_states = b"".join(packed for _, packed in states)
        self._update.prngs = ([number for number, _ in states], packed_states)

    def _send_arrays(self) -> None:
        for number, before in self._arrays.items():
            array = cast("np.ndarray[Any, Any]", self.objects[number])
            writeable = bool(array.flags.writeable)
            if before is not None and not writeable and not before[3]:
                continue
            order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
            content = array.tobytes(order="F" if order == "F" else "C")
            state = (array.dtype.str, array.shape, order, writeable, content)
            if state != before:
                self._arrays[number] = state
                self._update.arrays.append((number, *state))

    # --- what nothing holds -------------------------------------------------------------------

    def _is_due(self) -> bool:
        """Tell whether it is time to look for what nothing holds: it takes a walk over all."""
        return self._fresh > max(512, len(self.objects) // 2)

    def _sweep(self) -> None:
        """Forget, and have forgotten, what nothing held when the last update was made."""
        live = reachable([self.numbers[id(root)] for root in self.roots], self._held)
        dead = [number for number in self.objects if number not in live]
        for number in dead:
            del self.numbers[id(self.objects[number])]
            del self.objects[number], self.kinds[number]
            self._classes.pop(number, None)
            self._items.pop(number, None)
            self._prngs.pop(number, None)
            self._arrays.pop(number, None)
            self._loggers.pop(number, None)
        self._of_agents.difference_update(dead)
        self._opaques.drop(dead)
        self._rows.drop(dead)
        self._update.dropped = dead
        self._fresh = 0

    def _held(self, number: int) -> Iterable[int]:
        kind = self.kinds[number]
        if kind == LOGGER:
            values: Iterable[object] = self._loggers[number].values
        elif (row := self._rows.of(number)) is not None:
            values = chain(*row) if kind == DICT else row[1]
            if number in self._classes:
                values = chain(values, (self._classes[number],))
        else:
            group = self._opaques.group_of(number)
            inside = (*group.needs, *group.members) if group else ()
            return (*self._items.get(number, ()), *inside)
        get = self.numbers.get
        # an atom may have taken the id of no numbered object: those are alive
        return [found for found in map(get, map(id, values)) if found is not None]


def _prng_of(agent: object) -> object:
    return getattr(agent, "__dict__", {}).get("prng")


def read_state(obj: Any) -> Row:
    """Return the row of an object that says itself what its state is.

    A state that is a dict of attributes is taken apart; any other is a single value.
    """
    reduced = cast("tuple[Any, ...]", obj.__reduce_ex__(4))
    state = reduced[2] if len(reduced) > 2 else None
    if state is None:
        return (), []
    if type(state) is dict and state and all(type(key) is str for key in state):
        return (*state,), [*state.values()]
    return (), [state]
