"""Classes that cannot be imported, rebuilt in another process without being defined again.

A class has a key, given by the process that first sends it. Under its key it is found again: in the
process that it comes from, in those forked from it, and in those where it was rebuilt. So it is one
class in each process, whatever travels.

Rebuilding is not defining: ``__init_subclass__`` of the bases is not run again (a registry would
get a second entry), nor a metaclass's constructor; the class gets the attributes that it has.
"""

from __future__ import annotations

import abc
import contextlib
import enum
import sys
import threading
import types
import uuid
import weakref
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, cast

FUNCTION: Final = types.FunctionType
# multiprocessing gives a script that a worker imports the second name
_MAIN: Final = ("__main__", "__mp_main__")

_keys: weakref.WeakKeyDictionary[type, str] = weakref.WeakKeyDictionary()
_classes: weakref.WeakValueDictionary[str, type] = weakref.WeakValueDictionary()
# A rebuilt class must stay the same even if nobody holds it for a while.
_rebuilt: Final[list[type]] = []
_lock: Final = threading.RLock()

# What a class gets by being made, or what belongs to the process.
_SKIPPED: Final = frozenset(
    {
        "__dict__",
        "__weakref__",
        "__slots__",
        "_abc_impl",
        "__annotate__",
        "__annotate_func__",
        "__annotations_cache__",
    }
)
_ENUM_SKIPPED: Final = frozenset(
    {
        "_member_names_",
        "_member_map_",
        "_value2member_map_",
        "_unhashable_values_",
        "_unhashable_values_map_",
        "_hashable_values_",
        "_member_type_",
        "_value_repr_",
        "_use_args_",
        "__new__",
    }
)


# Under this name the classes that were registered with an abstract one travel.
_REGISTERED: Final = "registered with it"


class Shape(NamedTuple):
    """What must be known to make a class, before its attributes.

    Attributes:
        module: its module's name.
        qualname: its qualified name.
        is_named: whether the name leads to the class in its own process. It need not: a dataclass
            with slots refers to the class that it was made from, which has the same name.
        parts: encoded: metaclass, bases, slots, and the values of an enum's members by name.
    """

    module: str
    qualname: str
    is_named: bool
    parts: bytes


def is_importable(cls: type) -> bool:
    """Return whether another process finds this class by its name."""
    if cls.__module__ in _MAIN:
        return False
    # the types of builtins that have no name there (NoneType, function) are known to dill
    return has_own_name(cls) or cls.__module__ == "builtins"


def has_own_name(cls: type) -> bool:
    """Return whether the name of a class leads to it."""
    return _look_up(cls.__module__, cls.__qualname__) is cls


def _look_up(module: str, qualname: str) -> object:
    found: object = sys.modules.get(module)
    for name in qualname.split("."):
        found = getattr(found, name, None)
    return found


def key_of(cls: type) -> str:
    """Return the key of a class; a new one the first time."""
    with _lock:
        key = _keys.get(cls)
        if key is None:
            key = uuid.uuid4().hex
            _remember(key, cls)
        return key


def _remember(key: str, cls: type) -> None:
    _keys[cls] = key
    _classes[key] = cls


def class_of(key: str) -> type:
    """Return the class with a key that has come with this payload or before."""
    return _classes[key]


def find_class(key: str, shape: Shape) -> type | None:
    """Return this process's own class for a key, or None when it must be rebuilt."""
    with _lock:
        cls = _classes.get(key)
        if cls is None and shape.module in _MAIN and shape.is_named:
            # a forked worker has main's, one that was spawned has imported the script
            found = _look_up("__main__", shape.qualname)
            if isinstance(found, type) and found.__qualname__ == shape.qualname:
                cls = found
                _remember(key, cls)
        return cls


def shape_of(cls: type, dumps: Callable[[object], bytes]) -> Shape:
    """Return what is needed to make a class like this."""
    members = None
    if issubclass(cls, enum.Enum):
        members = {name: member._value_ for name, member in cls.__members__.items()}
    slots = vars(cls).get("__slots__")
    parts = dumps((type(cls), cls.__bases__, slots, members))
    module = "__main__" if cls.__module__ in _MAIN else cls.__module__
    return Shape(module, cls.__qualname__, has_own_name(cls), parts)


def content_of(cls: type) -> dict[str, object]:
    """Return the attributes of a class that are not made with it."""
    content: dict[str, object] = {}
    for name, value in vars(cls).items():
        if name in _SKIPPED or isinstance(value, types.MemberDescriptorType):
            continue
        if issubclass(cls, enum.Enum) and (name in _ENUM_SKIPPED or name in cls.__members__):
            continue
        content[name] = value
    if vars(cls).get("__annotations__") is None:  # lazily made since Python 3.14
        with contextlib.suppress(Exception):
            content["__annotations__"] = dict(cls.__annotations__)
    if isinstance(cls, abc.ABCMeta):
        registered = [reference() for reference in cast("Any", abc)._get_dump(cls)[0]]
        content[_REGISTERED] = sorted(
            (other for other in registered if other is not None), key=lambda c: c.__qualname__
        )
    if issubclass(cls, enum.Enum):
        content["__members__"] = {
            name: {key: item for key, item in vars(member).items() if key != "__objclass__"}
            for name, member in cls.__members__.items()
        }
    return content


def make_class(key: str, shape: Shape, loads: Callable[[bytes], object]) -> type:
    """Make a class that has its place in the hierarchy and no attributes yet."""
    meta, bases, slots, members = cast("tuple[Any, ...]", loads(shape.parts))
    name = shape.qualname.rpartition(".")[2]
    with _lock, _no_subclass_hooks(bases):
        if members is not None:
            namespace = meta.__prepare__(name, bases)
            for member, value in members.items():
                namespace[member] = value
            builder: Any = enum.EnumMeta
        else:
            namespace = {} if slots is None else {"__slots__": slots}
            builder = _builder(meta)
        namespace["__module__"] = shape.module
        namespace["__qualname__"] = shape.qualname
        cls = cast("type", builder.__new__(meta, name, bases, namespace))
        _remember(key, cls)
        _rebuilt.append(cls)
    if shape.module in _MAIN and shape.is_named and not has_main_global(shape.qualname):
        set_main_global(name, cls)
    return cls


def fill_class(cls: type, content: object) -> None:
    """Give a made class its attributes."""
    attributes = cast("dict[str, Any]", content)
    members = attributes.pop("__members__", {}) if issubclass(cls, enum.Enum) else {}
    for registered in attributes.pop(_REGISTERED, ()):
        cast("Any", cls).register(registered)
    for name, value in attributes.items():
        # some are read-only where they are what they were made as (__module__, __doc__ of 3.10)
        with contextlib.suppress(AttributeError, TypeError):
            type.__setattr__(cls, name, value)
    for name, state in members.items():
        vars(cast("Any", cls)[name]).update(state)


def finish_class(cls: type) -> None:
    """Do what needs the attributes of all classes of a payload."""
    if issubclass(cls, enum.Enum):
        # made before the classes of its values had their equality and hash
        by_value = cast("Any", cls)._value2member_map_
        by_value.clear()
        for member in cls.__members__.values():
            with contextlib.suppress(TypeError):  # a value without a hash
                by_value.setdefault(member._value_, member)


def _builder(meta: type) -> Any:
    """Return the nearest metaclass of the standard library: a user's may keep a registry."""
    known = ("builtins", "abc", "enum", "typing")
    return next(cls for cls in meta.__mro__ if cls.__module__ in known)


@contextlib.contextmanager
def _no_subclass_hooks(bases: tuple[type, ...]) -> Iterator[None]:
    """Keep the bases' ``__init_subclass__`` from being run while a class is rebuilt."""
    hooked: list[tuple[type, object]] = []
    for base in bases:
        for cls in base.__mro__:
            hook = vars(cls).get("__init_subclass__")
            if hook is not None and cls is not object:
                with contextlib.suppress(TypeError):  # a class written in C has no registry
                    type.__setattr__(cls, "__init_subclass__", classmethod(_do_nothing))
                    hooked.append((cls, hook))
    try:
        yield
    finally:
        for cls, hook in reversed(hooked):
            type.__setattr__(cls, "__init_subclass__", hook)


def _do_nothing(cls: type, /, **kwargs: object) -> None:
    pass


def main_globals_of(function: types.FunctionType) -> dict[str, object]:
    """Return the globals of ``__main__`` that a function defined there uses."""
    main = vars(sys.modules["__main__"])
    if function.__globals__ is not main:
        return {}
    names: set[str] = set()
    codes = [function.__code__]
    while codes:
        code = codes.pop()
        names.update(code.co_names)
        codes.extend(const for const in code.co_consts if isinstance(const, types.CodeType))
    return {name: main[name] for name in names if name in main}


def has_main_global(name: str) -> bool:
    """Return whether this process's ``__main__`` has a global."""
    return name in vars(sys.modules["__main__"])


def set_main_global(name: str, value: object) -> None:
    """Give this process's ``__main__`` a global that it lacks."""
    vars(sys.modules["__main__"])[name] = value
