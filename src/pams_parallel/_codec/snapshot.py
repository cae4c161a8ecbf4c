"""The simulation to bytes and back, object by object.

```
reference table        snapshot                              replica, same numbering
 0 market      ──────▶ class + encoded state          ──────▶ made empty, then filled
 1 its PRNG    ──────▶ packed words                   ──────▶ a new generator
 2 its list    ──────▶ inside the state of 0          ──────▶ where 0 holds it
 3 the logger  ──────▶ class, names, what is read     ──────▶ a stand-in
```

Plain objects are written as their class and their state, and refer to each other by number, so that
the depth of a payload does not grow with the number of agents that know each other (pickle would
recurse from agent to agent). All states share one payload: what two agents share stays shared.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple, cast

from .._messages import LoggerImage, Snapshot
from ..exceptions import PayloadError
from .diagnose import attributes_of
from .marks import MarkedReferences, interleave, parts_of
from .prng_state import PACKED_SIZE, is_packable, make_prng, pack_prng
from .protocol import CodecBackend
from .reducers import registered_reducers
from .references import ReferenceTable

# How an object of the table is carried: one byte each in Snapshot.kinds.
PLAIN: Final = ord("p")  # as class and state
PRNG: Final = ord("r")  # packed
LOGGER: Final = ord("l")  # as a stand-in
INLINE: Final = ord("i")  # where the graph meets it first: containers, classes with own reducers

Wanted = Mapping[int, frozenset[str]]
"""Number of a logger among the loggers -> the attributes that agents read."""

MakeLogger = Callable[[int, LoggerImage, type, Mapping[str, object]], object]
"""Makes the stand-in from its table number, its image, its class and the values that were sent."""

_NO_REFERENCES: Final = ReferenceTable(())


class Unreadable(NamedTuple):
    """A part of a logger that was wanted and cannot be encoded."""

    logger: int
    name: str
    reason: str


def classify(objects: Sequence[object], loggers: Sequence[object]) -> bytes:
    """Return the kind of each object of a table."""
    logger_ids = {id(logger) for logger in loggers}
    kind_of_type: dict[type, int] = {}
    kinds = bytearray()
    for obj in objects:
        cls = type(obj)
        kind = kind_of_type.get(cls)
        if kind is None:
            kind = PLAIN if _is_plain(cls) else INLINE
            kind_of_type[cls] = PRNG if is_packable(obj) else kind
        kinds.append(LOGGER if id(obj) in logger_ids else kind_of_type[cls])
    return bytes(kinds)


def _is_plain(cls: type) -> bool:
    """Return whether instances are rebuilt by ``cls.__new__(cls)`` and a state."""
    reduce_ex: object = cls.__reduce_ex__
    reduce: object = cls.__reduce__
    return (
        reduce_ex is object.__reduce_ex__
        and reduce is object.__reduce__
        and not hasattr(cls, "__getnewargs__")
        and not hasattr(cls, "__getnewargs_ex__")
        and cls not in registered_reducers()
        # a builtin base brings content of its own (a dict's items)
        and all(base is object or _is_python_class(base) for base in cls.__mro__)
    )


def _is_python_class(cls: type) -> bool:
    heap_type = 1 << 9
    return bool(cls.__flags__ & heap_type)


class _Fill:
    """Fills an object while the graph is being loaded, in the graph's order.

    So an object that is loaded later can already be hashed by, or look at, those before it.
    """

    __slots__ = ("obj", "state")

    def __init__(self, obj: object, state: object) -> None:
        self.obj = obj
        self.state = state

    def __reduce__(self) -> tuple[object, ...]:
        return (_fill, (self.obj, self.state))


def _fill(obj: object, state: object) -> None:
    """Give an empty object its state, in the way that pickle would."""
    # asked of the class: a __getattr__ that forwards to a field would recurse on an empty object
    set_state = getattr(type(obj), "__setstate__", None)
    if set_state is not None:
        set_state(obj, state)
        return
    slots: object = None
    if isinstance(state, tuple) and len(state) == 2:
        state, slots = state
    if state:
        attributes = vars(obj)
        attributes.clear()  # what was set early comes again, in main's order
        attributes.update(cast("dict[str, object]", state))
    for name, value in cast("dict[str, object]", slots or {}).items():
        setattr(obj, name, value)


def encode_snapshot(
    backend: CodecBackend,
    table: ReferenceTable,
    loggers: Sequence[object],
    wanted: Wanted,
) -> Snapshot:
    """Turn the objects of a table to bytes.

    Args:
        backend: the serializer.
        table: all simulation objects.
        loggers: those of them that are loggers.
        wanted: what of the loggers is to be sent with its value.

    Raises:
        PayloadError: with the number of the object that failed; its cause says why.
    """
    kinds = classify(table.objects, loggers)
    classes: dict[type, int] = {}
    class_numbers: list[int] = []
    prngs: list[bytes] = []
    # What others are hashed by must be there before they stand in a dict that is loaded.
    early: list[tuple[int, object]] = []
    hashed: list[tuple[int, object]] = []
    parts: list[tuple[int, object]] = []
    late: list[tuple[int, object]] = []
    inline: list[tuple[int, object]] = []
    for index, (kind, obj) in enumerate(zip(kinds, table.objects, strict=True)):
        if kind == PLAIN:
            cls = type(obj)
            class_numbers.append(classes.setdefault(cls, len(classes)))
            state = _state_of(obj, index)
            if not state:
                continue
            has_own_hash = cls.__hash__ not in (object.__hash__, None)
            if hasattr(cls, "__setstate__") or (has_own_hash and not isinstance(state, dict)):
                (hashed if has_own_hash else late).append((index, _Fill(obj, state)))
                continue
            if has_own_hash:
                atoms = {name: item for name, item in state.items() if _is_atom(item)}
                early.append((index, _Fill(obj, atoms)))
            parts.append((index, _Fill(obj, state)))
        elif kind == PRNG:
            prngs.append(pack_prng(cast("random.Random", obj)))
        elif kind == INLINE:
            inline.append((index, obj))
    references = SnapshotReferences(table, kinds)
    images, values = _images(backend, table, loggers, wanted, classes, references)
    marked = MarkedReferences(references, numbers=references.numbers)
    graph = [*early, *hashed, *parts, *late, *inline, (len(table), values)]
    return Snapshot(
        kinds=kinds,
        classes=_encode_classes(backend, list(classes), table, class_numbers, kinds),
        class_numbers=tuple(class_numbers),
        prngs=b"".join(prngs),
        graph=_guarded(backend, interleave(graph), marked),
        loggers=tuple(images),
    )


def _state_of(obj: object, index: int) -> Any:
    """Return the state as the object itself gives it, through ``__getstate__`` where defined."""
    try:
        reduced = cast("tuple[Any, ...]", obj.__reduce_ex__(4))
    except Exception as error:
        raise PayloadError(index) from error
    return reduced[2]


def _is_atom(value: object) -> bool:
    if type(value) is tuple:
        return all(map(_is_atom, value))
    return value is None or type(value) in (bool, int, float, str, bytes)


def _guarded(backend: CodecBackend, payload: object, marked: MarkedReferences) -> bytes:
    try:
        return backend.dumps(payload, marked)
    except Exception as error:
        raise PayloadError(marked.position) from error


def _encode_classes(
    backend: CodecBackend,
    classes: list[type],
    table: ReferenceTable,
    class_numbers: list[int],
    kinds: bytes,
) -> bytes:
    """Turn the classes to bytes; a failure is that of the first object of the class."""
    try:
        return backend.dumps(classes, _NO_REFERENCES)
    except Exception as error:
        plain = [index for index, kind in enumerate(kinds) if kind == PLAIN]
        for index, number in zip(plain, class_numbers, strict=True):
            if not _can_encode(backend, classes[number], _NO_REFERENCES):
                raise PayloadError(index) from error
        raise


def state_items(obj: object) -> list[tuple[str, object]]:
    """Return what of an object is sent, by attribute; for finding out what cannot be."""
    state = cast("tuple[Any, ...]", obj.__reduce_ex__(4))[2] if _is_plain(type(obj)) else None
    parts = state if isinstance(state, tuple) else (state,)
    return [item for part in parts if isinstance(part, dict) for item in part.items()]


class SnapshotReferences:
    """Writes objects of the table by number, those excepted that are written where they are met."""

    def __init__(self, table: ReferenceTable, kinds: bytes) -> None:
        self._table = table
        self.numbers = {
            key: index for key, index in table.numbers.items() if kinds[index] != INLINE
        }

    def persistent_id(self, obj: object, /) -> int | None:
        return self.numbers.get(id(obj))

    def persistent_load(self, pid: object, /) -> object:
        return self._table.persistent_load(pid)


def _images(
    backend: CodecBackend,
    table: ReferenceTable,
    loggers: Sequence[object],
    wanted: Wanted,
    classes: dict[type, int],
    references: SnapshotReferences,
) -> tuple[list[LoggerImage], list[list[object]]]:
    """Return the loggers as workers know them, and the values of theirs that are sent."""
    images: list[LoggerImage] = []
    values: list[list[object]] = []
    for number, logger in enumerate(loggers):
        attributes = dict(attributes_of(logger))
        names = wanted.get(number, frozenset())
        sent: dict[str, object] = {}
        unreadable: list[tuple[str, str]] = []
        for name, value in attributes.items():
            if references.persistent_id(value) is not None:
                sent[name] = value  # a reference costs two bytes
            elif name in names:
                try:
                    backend.dumps(value, references)
                    sent[name] = value
                except Exception as error:
                    unreadable.append((name, f"{type(error).__name__}: {error}"))
        cls = _sendable_class(backend, type(logger))
        images.append(
            LoggerImage(
                class_number=classes.setdefault(cls, len(classes)),
                is_own_class=cls is type(logger),
                class_name=type(logger).__name__,
                names=tuple(attributes),
                sent=tuple(sent),
                unreadable=tuple(unreadable),
            )
        )
        values.append(list(sent.values()))
    return images, values


def _sendable_class(backend: CodecBackend, cls: type) -> type:
    """Return the class, or the nearest base of it that can be sent."""
    return next(base for base in cls.__mro__ if _can_encode(backend, base, _NO_REFERENCES))


def _can_encode(backend: CodecBackend, obj: object, references: ReferenceTable) -> bool:
    try:
        backend.dumps(obj, references)
    except Exception:
        return False
    return True


def decode_snapshot(
    backend: CodecBackend, snapshot: Snapshot, make_logger: MakeLogger
) -> ReferenceTable:
    """Build the replica.

    Returns:
        A table with the replica's objects under the numbers that main's have.

    Raises:
        PayloadError: with the number of the object that failed; its cause says why.
    """
    try:
        classes = cast("list[type]", backend.loads(snapshot.classes, _NO_REFERENCES))
    except Exception as error:
        raise PayloadError(-1) from error
    # The values of a logger are loaded with the graph, after its stand-in has been referred to.
    sent: list[dict[str, object]] = [{} for _ in snapshot.loggers]
    objects: list[object] = []
    class_numbers = iter(snapshot.class_numbers)
    prngs = memoryview(snapshot.prngs)
    loggers = iter(zip(snapshot.loggers, sent, strict=True))
    for index, kind in enumerate(snapshot.kinds):
        if kind == PLAIN:
            cls = classes[next(class_numbers)]
            objects.append(cast("Any", cls).__new__(cls))
        elif kind == PRNG:
            objects.append(make_prng(prngs[:PACKED_SIZE]))
            prngs = prngs[PACKED_SIZE:]
        elif kind == LOGGER:
            image, values = next(loggers)
            objects.append(make_logger(index, image, classes[image.class_number], values))
        else:
            objects.append(None)
    marked = MarkedReferences(ReferenceTable(objects))
    try:
        parts = parts_of(backend.loads(snapshot.graph, marked))
    except Exception as error:
        raise PayloadError(marked.position) from error
    for image, values, loaded in zip(
        snapshot.loggers, sent, cast("list[list[object]]", parts[-1]), strict=True
    ):
        values.update(zip(image.sent, loaded, strict=True))
    inline = [index for index, kind in enumerate(snapshot.kinds) if kind == INLINE]
    first = len(parts) - 1 - len(inline)
    for index, obj in zip(inline, parts[first:-1], strict=True):
        objects[index] = obj
    return ReferenceTable(objects)
