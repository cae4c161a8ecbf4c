"""The backend for lambdas, closures, nested classes and classes of ``__main__``."""

from __future__ import annotations

import enum
import functools
import importlib
import io
import pickle
import threading
from typing import Any, Final, NamedTuple, cast

from ..exceptions import CodecNotInstalledError
from . import class_carrier
from .protocol import References
from .reducers import registered_reducers
from .references import ReferenceTable

PROTOCOL: Final = 5
# First word of the persistent id of a class; ids of the reference table are never such tuples.
_CLASS: Final = "pams_parallel class"
# Likewise of an enum's member: its value need not be equal to itself after a journey.
_MEMBER: Final = "pams_parallel member"
_RLOCK: Final = type(threading.RLock())
_NO_REFERENCES: Final = ReferenceTable(())


class DillBackend:
    """dill, with classes carried as references.

    Functions travel by value, with the closure they have; those of ``__main__`` find their globals
    in the worker's ``__main__``, and what that lacks (in a notebook, all) comes along. A class
    that cannot be imported is defined once in a worker and is the same class ever after; on the
    way back it is main's own class.

    Needs dill: ``pip install pams-parallel[dill]``. Slower than pickle, which suffices for all
    that has an importable name.
    """

    name = "dill"

    def __init__(self) -> None:
        """Import dill.

        Raises:
            CodecNotInstalledError: it is not installed.
        """
        _import_dill()

    def dumps(self, obj: object, references: References) -> bytes:
        """Turn an object graph to bytes."""
        return pickle.dumps(_Writer().write(obj, references), PROTOCOL)

    def loads(self, data: bytes, references: References) -> object:
        """Turn bytes back to an object graph."""
        return _read(cast("_Payload", pickle.loads(data)), references)


class _Payload(NamedTuple):
    """What a dump consists of: bytes of dill, and what must be there before they are loaded.

    Attributes:
        body: the object graph.
        classes: key, shape and content of the classes that it refers to, bases first.
        main_globals: encoded globals of ``__main__`` that its functions use.
    """

    body: bytes
    classes: list[tuple[str, class_carrier.Shape, bytes]]
    main_globals: dict[str, bytes]


class _Writer:
    """Writes one payload, and collects the classes and globals that it needs on the way."""

    def __init__(self) -> None:
        self._met: set[str] = set()
        self._shapes: dict[str, class_carrier.Shape] = {}
        self._contents: dict[str, bytes] = {}
        self._globals: dict[str, bytes] = {}

    def write(self, obj: object, references: References) -> _Payload:
        body = self._dump(obj, references)
        # A shape is complete when those of its bases are: this is the order to make them in.
        classes = [(key, shape, self._contents[key]) for key, shape in self._shapes.items()]
        return _Payload(body, classes, self._globals)

    def _dump(self, obj: object, references: References) -> bytes:
        buffer = io.BytesIO()
        _pickler_class()(buffer, references, self).dump(obj)
        return buffer.getvalue()

    def _dump_global(self, value: object) -> bytes:
        met, shapes, contents = set(self._met), dict(self._shapes), dict(self._contents)
        try:
            return self._dump(value, _NO_REFERENCES)
        except Exception:  # a lock, a file: a worker that has its own is served, one that has not
            # gets a NameError that names it. Classes met on the way may be written by half.
            self._met, self._shapes, self._contents = met, shapes, contents
            return b""

    def class_id(self, cls: type) -> tuple[str, str] | None:
        """Return the persistent id of a class that cannot be imported, else None.

        The class is written where it is met first, so that an error falls to who has it.
        """
        if class_carrier.is_importable(cls):
            return None
        key = class_carrier.key_of(cls)
        if key not in self._met:
            self._met.add(key)
            shape = class_carrier.shape_of(cls, lambda part: self._dump(part, _NO_REFERENCES))
            self._shapes[key] = shape
            self._contents[key] = self._dump(class_carrier.content_of(cls), _NO_REFERENCES)
        return (_CLASS, key)

    def member_id(self, member: enum.Enum) -> tuple[str, str, str] | None:
        """Return the persistent id of a member of such a class, else None."""
        class_id = self.class_id(type(member))
        name = member._name_
        # a combination of flags is no member; it is rebuilt from its value
        if class_id is None or type(member).__members__.get(name) is not member:
            return None
        return (_MEMBER, class_id[1], name)

    def note_function(self, function: Any) -> None:
        """Take along the globals of ``__main__`` that a function uses."""
        for name, value in class_carrier.main_globals_of(function).items():
            if name not in self._globals:
                self._globals[name] = b""  # it may use itself
                self._globals[name] = self._dump_global(value)


def _read(payload: _Payload, references: References) -> object:
    new: list[tuple[type, bytes]] = []
    for key, shape, content in payload.classes:
        cls = class_carrier.find_class(key, shape)
        if cls is None:
            cls = class_carrier.make_class(key, shape, lambda data: _load(data, _NO_REFERENCES))
            new.append((cls, content))
    for cls, content in new:
        class_carrier.fill_class(cls, _load(content, _NO_REFERENCES))
    for cls, _ in new:
        class_carrier.finish_class(cls)
    for name, data in payload.main_globals.items():
        if data and not class_carrier.has_main_global(name):
            class_carrier.set_main_global(name, _load(data, _NO_REFERENCES))
    return _load(payload.body, references)


def _load(data: bytes, references: References) -> object:
    return _unpickler_class()(io.BytesIO(data), references).load()


def _import_dill() -> Any:
    """Import dill, the only place that does."""
    try:
        return importlib.import_module("dill")
    except ImportError as error:
        raise CodecNotInstalledError(
            "codec", "'dill'", "an installed codec", "pams-parallel[dill]"
        ) from error


def _reduce_cached_property(prop: Any) -> tuple[object, ...]:
    """Leave out the lock that it has before Python 3.12."""
    return (_make_cached_property, (prop.func, prop.attrname))


def _make_cached_property(function: Any, name: str | None) -> object:
    prop: Any = functools.cached_property(function)
    prop.attrname = name
    return prop


_made: dict[str, type] = {}


def _pickler_class() -> Any:
    """Return our pickler; made when dill is first needed."""
    if "pickler" in _made:
        return _made["pickler"]
    base: Any = _import_dill().Pickler

    class Dispatch(type(base.dispatch)):  # type: ignore[misc]  # dill is not typed
        """Writes importable classes by name; dill would define some of a library's anew."""

        def __missing__(self, cls: type) -> Any:
            if issubclass(cls, type):
                return save_class
            raise KeyError(cls)

    def save_class(pickler: Any, cls: type) -> None:
        if class_carrier.has_own_name(cls):
            pickle._Pickler.save_global(pickler, cls, cls.__qualname__)  # type: ignore[attr-defined]
        else:
            base.dispatch[type](pickler, cls)  # NoneType and the like

    def save_rlock(pickler: Any, lock: object) -> None:
        # dill would rebuild a free one as held by nobody, on which everyone waits for ever
        pickler.save_reduce(threading.RLock, (), obj=lock)

    class Pickler(base):  # type: ignore[misc]  # dill is not typed
        dispatch = Dispatch({**base.dispatch, type: save_class, _RLOCK: save_rlock})

        def __init__(self, buffer: io.BytesIO, references: References, writer: _Writer) -> None:
            super().__init__(buffer, protocol=PROTOCOL, byref=False, recurse=False)
            self._references = references
            self._writer = writer
            own: dict[type, Any] = {functools.cached_property: _reduce_cached_property}
            self.dispatch_table = {**registered_reducers(), **own}

        def persistent_id(self, obj: object) -> object | None:
            pid = self._references.persistent_id(obj)
            if pid is not None:
                return pid
            if isinstance(obj, type):
                return self._writer.class_id(obj)
            if isinstance(obj, enum.Enum):
                return self._writer.member_id(obj)
            if type(obj) is class_carrier.FUNCTION:
                self._writer.note_function(obj)
            return None

    _made["pickler"] = Pickler
    return Pickler


def _unpickler_class() -> Any:
    """Return our unpickler; made when dill is first needed."""
    if "unpickler" in _made:
        return _made["unpickler"]
    base: Any = _import_dill().Unpickler

    class Unpickler(base):  # type: ignore[misc]  # dill is not typed
        def __init__(self, buffer: io.BytesIO, references: References) -> None:
            super().__init__(buffer)
            self._references = references

        def persistent_load(self, pid: Any) -> object:
            if isinstance(pid, tuple) and pid[:1] == (_CLASS,):
                return class_carrier.class_of(pid[1])
            if isinstance(pid, tuple) and pid[:1] == (_MEMBER,):
                return cast("type[enum.Enum]", class_carrier.class_of(pid[1])).__members__[pid[2]]
            return self._references.persistent_load(pid)

    _made["unpickler"] = Unpickler
    return Unpickler
