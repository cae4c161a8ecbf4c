"""Things that only dill carries, and what must hold of each in whatever process it is.

A specimen is made in a function, so that no other process can import it. Workers import this
module, for the checks.
"""

from __future__ import annotations

import abc
import collections
import dataclasses
import enum
import functools
import gc
import os
from collections.abc import Callable
from typing import (
    Any,
    ClassVar,
    Generic,
    NamedTuple,
    Protocol,
    TypeVar,
    cast,
    runtime_checkable,
)

from pams_parallel import DillBackend, ReferenceTable

T = TypeVar("T")


@dataclasses.dataclass(frozen=True)
class Specimen:
    """A way to make something, and the check of it.

    Attributes:
        make: makes classes, functions, and objects of these classes.
        check: fails where they are not as they were made; gets them one by one.
    """

    make: Callable[[], tuple[Any, ...]]
    check: Callable[..., None]


SPECIMENS: dict[str, Specimen] = {}

_NOTHING = ReferenceTable(())
_seen: dict[str, list[type]] = {}


def visit(name: str, data: bytes) -> bytes:
    """Load a specimen in this process, check it, and return it.

    A class that has been here before must be the same class again.
    """
    parts: Any = DillBackend().loads(data, _NOTHING)
    SPECIMENS[name].check(*parts)
    classes = [part for part in parts if isinstance(part, type)]
    seen = _seen.setdefault(name, classes)
    if not all(one is other for one, other in zip(seen, classes, strict=True)):
        raise AssertionError("a class was made twice in one process")
    return DillBackend().dumps(parts, _NOTHING)


def relay(data: bytes) -> bytes:
    """Load anything in this process, and return it."""
    return DillBackend().dumps(DillBackend().loads(data, _NOTHING), _NOTHING)


def relay_checked(data: bytes) -> bytes:
    """Load a check with what it is to check, call it in this process, and return the latter."""
    check, parts = cast("tuple[Any, Any]", DillBackend().loads(data, _NOTHING))
    check(*parts)
    return DillBackend().dumps(parts, _NOTHING)


def call_loaded(data: bytes) -> object:
    """Load a function, and return what it returns."""
    return cast("Any", DillBackend().loads(data, _NOTHING))()


def count_visits(data: bytes) -> int:
    """Load a class, and return how often it has been here; do not hold it."""
    cls = cast("Any", DillBackend().loads(data, _NOTHING))
    cls.visits = getattr(cls, "visits", 0) + 1
    visits = int(cls.visits)
    del cls
    gc.collect()
    return visits


_kept: dict[str, Any] = {}


def dump_kept(data: bytes) -> bytes:
    """Load a function, and return what it has returned the first time that it came here."""
    function = cast("Any", DillBackend().loads(data, _NOTHING))
    result = _kept.setdefault(function.__qualname__, function())
    return DillBackend().dumps(result, _NOTHING)


def _checked_by(check: Callable[..., None]) -> Callable[..., Callable[[], tuple[Any, ...]]]:
    """Enter the decorated function as the specimen with this check."""

    def enter(make: Callable[[], tuple[Any, ...]]) -> Callable[[], tuple[Any, ...]]:
        SPECIMENS[make.__name__] = Specimen(make, check)
        return make

    return enter


def expect(condition: object) -> None:
    """Fail if the condition does not hold; unlike assert, also in an optimized worker."""
    if not condition:
        raise AssertionError("not as it was made")


# ----------------------------------------------------------------------- functions


def _check_function(function: Any) -> None:
    expect(function(2) == 3)


@_checked_by(_check_function)
def a_lambda() -> tuple[Any, ...]:
    """Return a lambda."""
    return (lambda x: x + 1,)


@_checked_by(_check_function)
def closure() -> tuple[Any, ...]:
    """Return a function with a closure."""
    summand = 1

    def add(x: int) -> int:
        return x + summand

    return (add,)


@_checked_by(_check_function)
def recursive_closure() -> tuple[Any, ...]:
    """Return a function that refers to itself through its closure."""

    def count(x: int) -> int:
        return 0 if x < 0 else count(x - 1) + 1

    return (count,)


@_checked_by(_check_function)
def function_with_defaults() -> tuple[Any, ...]:
    """Return a function with defaults of both kinds."""

    def add(x: int, y: int = 2, *, z: tuple[int, ...] = (-1,)) -> int:
        return x + y + sum(z)

    return (add,)


@_checked_by(_check_function)
def partial() -> tuple[Any, ...]:
    """Return a partial of a lambda."""
    return (functools.partial(lambda x, y: x - y, y=-1),)


@_checked_by(_check_function)
def decorated_function() -> tuple[Any, ...]:
    """Return a function that wraps another."""

    def twice_less(function: Callable[[int], int]) -> Callable[[int], int]:
        @functools.wraps(function)
        def wrapper(x: int) -> int:
            return function(x) - function(0)

        return wrapper

    return (twice_less(lambda x: x * 3 // 2 if x else 0),)


# ------------------------------------------------------------------------ ordinary classes


def _check_simple(cls: Any, thing: Any) -> None:
    expect(type(thing) is cls)
    expect(cls.__doc__ == "Adds.")
    expect(cls(3).plus(4) == 7)
    expect(thing.plus(1) == 6)
    expect(cls.__module__ == __name__)


@_checked_by(_check_simple)
def simple_class() -> tuple[Any, ...]:
    """Return a class and an object of it."""

    class Simple:
        """Adds."""

        def __init__(self, start: int) -> None:
            self.start = start

        def plus(self, number: int) -> int:
            return self.start + number

    return Simple, Simple(5)


def _check_nested(outer: Any, inner: Any, thing: Any) -> None:
    expect(outer.Inner is inner)
    expect(outer.Inner.Innermost().depth() == 2)
    expect(type(thing) is inner)
    expect(inner.__qualname__.endswith("nested_classes.<locals>.Outer.Inner"))


@_checked_by(_check_nested)
def nested_classes() -> tuple[Any, ...]:
    """Return a class and one inside of it, which has another inside."""

    class Outer:
        class Inner:
            class Innermost:
                def depth(self) -> int:
                    return 2

    return Outer, Outer.Inner, Outer.Inner()


def _check_descriptors(cls: Any, field: Any, thing: Any) -> None:
    fresh = cls(2)
    expect(cls.make(3).side == 3)
    expect(isinstance(cls.make(1), cls))
    expect(cls.times(2, 3) == 6)
    expect(fresh.area == 4)
    fresh.area = 9
    expect(fresh.side == 3)
    expect(thing.side == 5)
    expect(type(vars(cls)["own"]) is field)
    expect(vars(cls)["own"].name == "own")
    expect(fresh.own == "own of 3")


@_checked_by(_check_descriptors)
def class_with_descriptors() -> tuple[Any, ...]:
    """Return a class with a classmethod, a staticmethod, a property, and its own descriptor."""

    class Field:
        def __set_name__(self, owner: type, name: str) -> None:
            self.name = name

        def __get__(self, obj: Any, owner: type) -> Any:
            return self if obj is None else f"{self.name} of {obj.side}"

    class Square:
        own = Field()

        def __init__(self, side: int) -> None:
            self.side = side

        @classmethod
        def make(cls, side: int) -> Square:
            return cls(side)

        @staticmethod
        def times(x: int, y: int) -> int:
            return x * y

        @property
        def area(self) -> int:
            return self.side**2

        @area.setter
        def area(self, area: int) -> None:
            self.side = round(area**0.5)

    return Square, Field, Square(5)


def _check_cached_property(cls: Any, thing: Any) -> None:
    fresh = cls()
    expect(fresh.slow == [3])
    expect(fresh.slow is fresh.slow)
    expect(thing.slow == [3, "changed"])


@_checked_by(_check_cached_property)
def class_with_cached_property() -> tuple[Any, ...]:
    """Return a class with a cached property, which before Python 3.12 has a lock."""

    class Slow:
        @functools.cached_property
        def slow(self) -> list[Any]:
            return [3]

    thing = Slow()
    thing.slow.append("changed")
    return Slow, thing


def _check_slots(base: Any, cls: Any, thing: Any) -> None:
    expect(not hasattr(thing, "__dict__"))
    expect((thing.x, thing.reveal(), thing.only) == (1, 2, 3))
    expect(not hasattr(thing, "unset"))
    fresh = cls()
    fresh.unset = 4
    expect(fresh.unset == 4)
    try:
        fresh.other = 1
    except AttributeError:
        pass
    else:
        raise AssertionError("the slots are gone")
    expect(base.x.__get__(thing) == 1)


@_checked_by(_check_slots)
def classes_with_slots() -> tuple[Any, ...]:
    """Return a class with slots, one of them private, and a subclass with a single one."""

    class Base:
        __slots__ = ("__secret", "unset", "x")

        def hide(self, secret: int) -> None:
            self.__secret = secret

        def reveal(self) -> int:
            return self.__secret

    class Derived(Base):
        __slots__ = "only"
        only: int

    thing: Any = Derived()
    thing.x, thing.only = 1, 3
    thing.hide(2)
    return Base, Derived, thing


def _check_slots_and_dict(cls: Any, thing: Any) -> None:
    expect(thing.x == 1)
    expect(vars(thing) == {"y": 2})
    expect("x" in vars(cls))


@_checked_by(_check_slots_and_dict)
def class_with_slots_and_dict() -> tuple[Any, ...]:
    """Return a class that has both a slot and a dict."""

    class Both:
        __slots__ = ("__dict__", "__weakref__", "x")

    thing: Any = Both()
    thing.x, thing.y = 1, 2
    return Both, thing


def _check_mutual(ping: Any, pong: Any, thing: Any) -> None:
    expect(ping.other is pong)
    expect(pong.other is ping)
    expect(type(thing.answer()) is pong)
    expect(type(thing.answer().answer()) is ping)


@_checked_by(_check_mutual)
def mutually_recursive_classes() -> tuple[Any, ...]:
    """Return two classes that have each other as attributes, and in the closures of methods."""

    class Ping:
        other: ClassVar[type]

        def answer(self) -> Any:
            return Pong()

    class Pong:
        other = Ping

        def answer(self) -> Any:
            return Ping()

    Ping.other = Pong
    return Ping, Pong, Ping()


def _check_own_instance(cls: Any, default: Any) -> None:
    expect(type(cls.default) is cls)
    expect(type(default) is cls)
    expect(cls.default.name == default.name == "default")
    expect(cls.by_name["default"] is cls.default)


@_checked_by(_check_own_instance)
def class_that_holds_an_instance() -> tuple[Any, ...]:
    """Return a class with an attribute that is an object of the class."""

    class Config:
        default: ClassVar[Any]
        by_name: ClassVar[dict[str, Any]] = {}

        def __init__(self, name: str) -> None:
            self.name = name

    Config.default = Config.by_name["default"] = Config("default")
    return Config, Config.default


def _check_super(base: Any, left: Any, right: Any, both: Any, thing: Any) -> None:
    expect(both.__mro__[:4] == (both, left, right, base))
    expect(thing.words() == ["base", "right", "left", "both"])
    expect(issubclass(both, base))
    expect(base.__subclasses__() == [left, right])


@_checked_by(_check_super)
def diamond() -> tuple[Any, ...]:
    """Return four classes that call each other through `super`."""

    class Base:
        def words(self) -> list[str]:
            return ["base"]

    class Left(Base):
        def words(self) -> list[str]:
            return [*super().words(), "left"]

    class Right(Base):
        def words(self) -> list[str]:
            return [*super().words(), "right"]

    class Both(Left, Right):
        def words(self) -> list[str]:
            return [*super().words(), "both"]

    return Base, Left, Right, Both, Both()


# ------------------------------------------------------------- hooks of classes


def _check_registry(base: Any, left: Any, right: Any) -> None:
    expect(base.known == [left, right])
    expect((left.label, right.label) == ("first", "second"))


@_checked_by(_check_registry)
def hierarchy_with_a_registry() -> tuple[Any, ...]:
    """Return a class that knows its subclasses through ``__init_subclass__``."""

    class Plugin:
        known: ClassVar[list[type]] = []
        label: ClassVar[str]

        def __init_subclass__(cls, label: str, **kwargs: Any) -> None:
            super().__init_subclass__(**kwargs)
            cls.label = label
            Plugin.known.append(cls)

    class Left(Plugin, label="first"):
        pass

    class Right(Plugin, label="second"):
        pass

    return Plugin, Left, Right


class Registered:
    """Notes its subclasses, where they are defined."""

    known: ClassVar[list[str]] = []

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls.mark = len(Registered.known)
        Registered.known.append(cls.__name__)

    mark: ClassVar[int]


def _check_registered(cls: Any, thing: Any, home: int) -> None:
    expect(Registered.known == (["OfFunction"] if os.getpid() == home else []))
    expect("__init_subclass__" in vars(Registered))
    before = len(Registered.known)

    class Another(Registered):
        pass

    expect(Registered.known[before:] == ["Another"])
    del Registered.known[before:]
    expect(isinstance(thing, Registered))
    expect(cls.mark == 0)


@_checked_by(_check_registered)
def subclass_of_an_importable_registry() -> tuple[Any, ...]:
    """Return a class whose base can be imported and keeps a registry."""
    Registered.known.clear()

    class OfFunction(Registered):
        pass

    return OfFunction, OfFunction(), os.getpid()


def _check_metaclass(meta: Any, base: Any, cls: Any) -> None:
    expect(type(cls) is meta)
    expect(len(cls) == 5)
    expect(meta.made == ["Base", "Derived"])
    expect(cls.tag == "tag of Derived")
    expect(issubclass(cls, base))
    type_of_new = type(meta("Fresh", (base,), {}))
    expect(type_of_new is meta)
    expect(meta.made.pop() == "Fresh")


@_checked_by(_check_metaclass)
def metaclass() -> tuple[Any, ...]:
    """Return a metaclass that counts its classes, and two of these."""

    class Meta(type):
        made: ClassVar[list[str]] = []

        def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
            Meta.made.append(name)
            return super().__new__(mcs, name, bases, {**namespace, "tag": f"tag of {name}"})

        def __len__(cls) -> int:
            return 5

    class Base(metaclass=Meta):
        pass

    class Derived(Base):
        pass

    return Meta, Base, Derived


class ImportableMeta(type):
    """Notes its classes, where they are defined."""

    made: ClassVar[list[str]] = []
    place: int

    def __new__(mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        """Note the class."""
        ImportableMeta.made.append(name)
        return super().__new__(mcs, name, bases, {**namespace, "place": len(ImportableMeta.made)})


def _check_importable_metaclass(cls: Any, thing: Any, home: int) -> None:
    expect(type(cls) is ImportableMeta)
    expect(cls.place == 1)
    expect(ImportableMeta.made == (["OfMeta"] if os.getpid() == home else []))
    expect(type(thing) is cls)


@_checked_by(_check_importable_metaclass)
def class_of_an_importable_metaclass() -> tuple[Any, ...]:
    """Return a class whose metaclass can be imported and keeps a registry."""
    ImportableMeta.made.clear()

    class OfMeta(metaclass=ImportableMeta):
        pass

    return OfMeta, OfMeta(), os.getpid()


def _check_abstract(shape: Any, circle: Any, thing: Any) -> None:
    expect(isinstance(thing, shape))
    expect(thing.area() == 3)
    expect(type(circle) is abc.ABCMeta)
    try:
        shape()
    except TypeError:
        pass
    else:
        raise AssertionError("an abstract class was instantiated")


@_checked_by(_check_abstract)
def abstract_class() -> tuple[Any, ...]:
    """Return an abstract class and one that is not."""

    class Shape(abc.ABC):
        @abc.abstractmethod
        def area(self) -> int:
            raise NotImplementedError

    class Circle(Shape):
        def area(self) -> int:
            return 3

    return Shape, Circle, Circle()


def _check_virtual(shape: Any, blob: Any) -> None:
    expect(issubclass(blob, shape))


@_checked_by(_check_virtual)
def virtual_subclass() -> tuple[Any, ...]:
    """Return an abstract class with a class that was registered with it."""

    class Shape(abc.ABC):  # noqa: B024 - registered ones need no methods
        pass

    class Blob:
        pass

    Shape.register(Blob)
    return Shape, Blob


def _check_generic(box: Any, ints: Any, thing: Any) -> None:
    expect(box[int].__origin__ is box)
    expect(box.__parameters__ == (T,))
    expect(ints.__orig_bases__ == (box[int],))
    expect(thing.get() == 7)


@_checked_by(_check_generic)
def generic_class() -> tuple[Any, ...]:
    """Return a generic class, and a subclass of it for a type."""

    class Box(Generic[T]):
        def __init__(self, value: T) -> None:
            self.value = value

        def get(self) -> T:
            return self.value

    class Ints(Box[int]):
        pass

    return Box, Ints, Ints(7)


class Importable:
    """Has what the protocol below asks for."""

    def speak(self) -> str:
        """Speak."""
        return "word"


def _check_protocol(cls: Any) -> None:
    expect(isinstance(Importable(), cls))
    expect(not isinstance(3, cls))


@_checked_by(_check_protocol)
def runtime_protocol() -> tuple[Any, ...]:
    """Return a protocol that can be asked at run time."""

    @runtime_checkable
    class Speaking(Protocol):
        def speak(self) -> str: ...

    return (Speaking,)


def _check_exception(cls: Any, error: Any) -> None:
    expect(type(error) is cls)
    expect(isinstance(error, ValueError))
    expect(str(error) == "two: 2")
    expect((error.name, error.number) == ("two", 2))
    try:
        raise cls("one", 1)
    except ValueError as caught:
        expect(caught.args == ("one: 1",))


@_checked_by(_check_exception)
def exception_class() -> tuple[Any, ...]:
    """Return an exception class that says itself how it is pickled."""

    class SomethingError(ValueError):
        def __init__(self, name: str, number: int) -> None:
            super().__init__(f"{name}: {number}")
            self.name, self.number = name, number

        def __reduce__(self) -> tuple[Any, ...]:
            return type(self), (self.name, self.number)

    return SomethingError, SomethingError("two", 2)


def _check_own_reduce(cls: Any, thing: Any) -> None:
    expect(type(thing) is cls)
    expect(thing.path == ["made", "rebuilt"] or thing.path == ["made"])


@_checked_by(_check_own_reduce)
def class_with_getstate() -> tuple[Any, ...]:
    """Return a class with ``__getstate__`` and ``__setstate__``."""

    class Way:
        def __init__(self) -> None:
            self.path = ["made"]

        def __getstate__(self) -> list[str]:
            return self.path[:1]

        def __setstate__(self, state: list[str]) -> None:
            self.path = [*state, "rebuilt"]

    return Way, Way()


def _check_builtin_bases(items: Any, index: Any, number: Any, things: Any) -> None:
    expect([type(thing) for thing in things] == [items, index, number])
    expect(things == [[1], {"a": 1}, 7])
    expect(things[0].size() == 1)
    expect(items([1, 2]).size() == 2)


@_checked_by(_check_builtin_bases)
def subclasses_of_builtins() -> tuple[Any, ...]:
    """Return subclasses of list, dict and int."""

    class Items(list[int]):
        def size(self) -> int:
            return len(self)

    class Index(dict[str, int]):
        pass

    class Number(int):
        pass

    return Items, Index, Number, [Items([1]), Index(a=1), Number(7)]


# ---------------------------------------------------------------- data classes and tuples


def _check_dataclass(cls: Any, point: Any, mutable: Any) -> None:
    expect(point == cls(1, 2))
    expect(hash(point) == hash(cls(1, 2)))
    expect(sorted([cls(2, 1), point])[0] is point)
    expect([field.name for field in dataclasses.fields(cls)] == ["x", "y"])
    expect(dataclasses.replace(point, x=3) == cls(3, 2))
    expect(not hasattr(point, "__dict__"))
    try:
        point.x = 5
    except dataclasses.FrozenInstanceError:
        pass
    else:
        raise AssertionError("no longer frozen")
    expect(mutable().items is not mutable().items)


@_checked_by(_check_dataclass)
def data_class() -> tuple[Any, ...]:
    """Return a frozen data class with slots, and an ordinary one with a default factory."""

    @dataclasses.dataclass(frozen=True, slots=True, order=True)
    class Point:
        x: int
        y: int = 0

    @dataclasses.dataclass
    class Bag:
        items: list[int] = dataclasses.field(default_factory=list)

    return Point, Point(1, 2), Bag


def _check_named_tuples(old: Any, new: Any, things: Any) -> None:
    expect([type(thing) for thing in things] == [old, new])
    expect(things[0] == (1, 2))
    expect(things[1].total() == 3)
    expect(old._fields == ("x", "y"))
    expect(new(5).y == 2)
    expect(things[1]._replace(x=9) == (9, 2))
    expect(things[0]._asdict() == {"x": 1, "y": 2})


@_checked_by(_check_named_tuples)
def named_tuples() -> tuple[Any, ...]:
    """Return a named tuple of each kind."""
    Old = collections.namedtuple("Old", "x y")

    class New(NamedTuple):
        x: int
        y: int = 2

        def total(self) -> int:
            return self.x + self.y

    return Old, New, [Old(1, 2), New(1)]


# ------------------------------------------------------------------------------- enums


def _check_enum(cls: Any, red: Any) -> None:
    expect(cls.RED is red)
    expect(cls("red") is red)
    expect(cls["RED"] is red)
    expect(list(cls) == [cls.RED, cls.GREEN])
    expect(cls.ALIAS is red)
    expect(red.shout() == "RED!")
    expect(cls.first() is red)
    expect(red.name == "RED")
    expect(repr(red).endswith("Color.RED: 'red'>"))
    expect({red: 1}[cls.RED] == 1)
    expect(red != cls.GREEN)


@_checked_by(_check_enum)
def enum_with_methods() -> tuple[Any, ...]:
    """Return an enum with methods and an alias."""

    class Color(enum.Enum):
        RED = "red"
        GREEN = "green"
        ALIAS = "red"  # noqa: PIE796 - an alias

        def shout(self) -> str:
            return f"{self.name}!"

        @classmethod
        def first(cls) -> Any:
            return cls.RED

    return Color, Color.RED


def _check_str_enum(cls: Any, east: Any) -> None:
    expect(cls.EAST is east)
    expect(cls("east") is east)
    expect(east == "east")
    expect(east.upper() == "EAST")
    expect("".join([east]) == "east")
    expect(isinstance(east, str))


@_checked_by(_check_str_enum)
def enum_of_str() -> tuple[Any, ...]:
    """Return an enum whose members are str."""

    class Side(str, enum.Enum):
        EAST = "east"
        WEST = "west"

    return Side, Side.EAST


def _check_int_enum(cls: Any, low: Any) -> None:
    expect(cls(1) is low)
    expect(low + 1 == cls.HIGH)
    expect(low < cls.HIGH)
    expect([cls.LOW, cls.HIGH] == [1, 2])


@_checked_by(_check_int_enum)
def enum_of_int() -> tuple[Any, ...]:
    """Return an enum whose members are int."""

    class Level(enum.IntEnum):
        LOW = 1
        HIGH = 2

    return Level, Level.LOW


def _check_enum_new(cls: Any, dog: Any) -> None:
    expect(cls(1) is dog)
    expect(dog.sound == "woof")
    expect([(member.value, member.sound) for member in cls] == [(1, "woof"), (2, "meow")])


@_checked_by(_check_enum_new)
def enum_with_own_new() -> tuple[Any, ...]:
    """Return an enum with a ``__new__`` that sets value and an attribute."""

    class Animal(enum.Enum):
        sound: str

        def __new__(cls, number: int, sound: str) -> Any:
            member = object.__new__(cls)
            member._value_ = number
            member.sound = sound
            return member

        DOG = (1, "woof")
        CAT = (2, "meow")

    return Animal, Animal.DOG


def _check_enum_str_new(cls: Any, low: Any) -> None:
    expect(cls("low") is low)
    expect(low == "low")
    expect((low.rank, cls.HIGH.rank) == (1, 2))
    expect(isinstance(low, str))


@_checked_by(_check_enum_str_new)
def enum_of_str_with_own_new() -> tuple[Any, ...]:
    """Return an enum of str with a ``__new__`` of two arguments."""

    class Rank(str, enum.Enum):
        rank: int

        def __new__(cls, text: str, rank: int) -> Any:
            member = str.__new__(cls, text)
            member._value_ = text
            member.rank = rank
            return member

        LOW = ("low", 1)
        HIGH = ("high", 2)

    return Rank, Rank.LOW


def _check_enum_init(cls: Any, earth: Any) -> None:
    expect(cls((2, 3)) is earth)
    expect((earth.mass, earth.radius, earth.density) == (2, 3, 6))
    expect(cls.MARS.mass == 1)


@_checked_by(_check_enum_init)
def enum_with_own_init() -> tuple[Any, ...]:
    """Return an enum with an ``__init__`` and a property."""

    class Planet(enum.Enum):
        EARTH = (2, 3)
        MARS = (1, 2)

        def __init__(self, mass: int, radius: int) -> None:
            self.mass, self.radius = mass, radius

        @property
        def density(self) -> int:
            return self.mass * self.radius

    return Planet, Planet.EARTH


def _check_auto(cls: Any, second: Any) -> None:
    expect(cls("second!") is second)
    expect([member.value for member in cls] == ["first!", "second!"])


@_checked_by(_check_auto)
def enum_with_auto() -> tuple[Any, ...]:
    """Return an enum with automatic values of its own making."""

    class Step(enum.Enum):
        @staticmethod
        def _generate_next_value_(name: str, *args: Any) -> str:
            return f"{name.lower()}!"

        FIRST = enum.auto()
        SECOND = enum.auto()

    return Step, Step.SECOND


def _check_missing(cls: Any, on: Any) -> None:
    expect(cls("anything") is on)
    expect(cls(0) is not on)


@_checked_by(_check_missing)
def enum_with_missing() -> tuple[Any, ...]:
    """Return an enum that gives a member for any value."""

    class Switch(enum.Enum):
        ON = 1
        OFF = 0

        @classmethod
        def _missing_(cls, value: object) -> Any:
            return cls.ON

    return Switch, Switch.ON


def _check_flag(cls: Any, read: Any, both: Any, none: Any) -> None:
    expect(read is cls.READ)
    expect(both is cls.READ | cls.WRITE)
    expect(both is cls.BOTH)
    expect(none is cls(0))
    expect(cls.WRITE in both)
    expect(both & cls.READ is read)
    expect(read | cls.RUN is cls(5))
    expect((~read).value == (cls.WRITE | cls.RUN).value)


@_checked_by(_check_flag)
def flag() -> tuple[Any, ...]:
    """Return a flag, a member, a named combination and the empty one."""

    class Access(enum.Flag):
        READ = enum.auto()
        WRITE = enum.auto()
        RUN = enum.auto()
        BOTH = READ | WRITE

    return Access, Access.READ, Access.BOTH, Access(0)


def _check_combined_flag(cls: Any, combined: Any, number: Any) -> None:
    expect(combined is cls.A | cls.B)
    expect(cls.A in combined)
    expect(number == 3)
    expect(number & 1 == 1)


@_checked_by(_check_combined_flag)
def combined_flag() -> tuple[Any, ...]:
    """Return a combination that has no name, of a flag and of one whose members are int."""

    class Bits(enum.Flag):
        A = 1
        B = 2

    class IntBits(enum.IntFlag):
        A = 1
        B = 2

    return Bits, Bits.A | Bits.B, IntBits.A | IntBits.B


def _check_plain_base(base: Any, cls: Any, one: Any) -> None:
    expect(cls(1) is one)
    expect(one.describe() == "ONE=1")
    expect(issubclass(cls, base))
    expect(not list(base))


@_checked_by(_check_plain_base)
def enum_with_a_base() -> tuple[Any, ...]:
    """Return an enum without members, and one that inherits its methods."""

    class Described(enum.Enum):
        def describe(self) -> str:
            return f"{self.name}={self.value}"

    class Number(Described):
        ONE = 1

    return Described, Number, Number.ONE


def _check_enum_of_objects(cls: Any, held: Any, first: Any) -> None:
    expect(cls.FIRST is first)
    expect(cls(first.value) is first)
    expect(type(first.value) is held)
    expect([member.value.number for member in cls] == [1, 2])


@_checked_by(_check_enum_of_objects)
def enum_of_data_classes() -> tuple[Any, ...]:
    """Return an enum whose values are objects with an equality and a hash."""

    @dataclasses.dataclass(frozen=True)
    class Held:
        number: int

    class Pair(enum.Enum):
        FIRST = Held(1)
        SECOND = Held(2)

    return Pair, Held, Pair.FIRST


@_checked_by(_check_enum_of_objects)
def enum_of_objects() -> tuple[Any, ...]:
    """Return an enum whose values are objects that are equal to themselves only."""

    class Held:
        def __init__(self, number: int) -> None:
            self.number = number

    class Pair(enum.Enum):
        FIRST = Held(1)
        SECOND = Held(2)

    return Pair, Held, Pair.FIRST


def _check_enum_in_classes(side: Any, cls: Any, policy: Any) -> None:
    expect(cls.SIGNS[side.BUY] == 1)
    expect(cls().side is side.BUY)
    expect(policy.side is side.SELL)
    expect(policy.sign() == -1)
    expect(side.SELL.policy().side is side.SELL)
    expect(dataclasses.fields(cls)[0].default is side.BUY)


@_checked_by(_check_enum_in_classes)
def enum_and_class_that_know_each_other() -> tuple[Any, ...]:
    """Return an enum and a class: one has members of the other as keys and defaults."""

    class Side(enum.Enum):
        BUY = 1
        SELL = 2

        def policy(self) -> Any:
            return Policy(self)

    @dataclasses.dataclass
    class Policy:
        side: Side = Side.BUY
        SIGNS: ClassVar[dict[Side, int]] = {Side.BUY: 1, Side.SELL: -1}

        def sign(self) -> int:
            return self.SIGNS[self.side]

    return Side, Policy, Policy(Side.SELL)


def _check_meta_with_state(meta: Any, base: Any, child: Any, thing: Any) -> None:
    expect(type(child) is type(base) is meta)
    expect(child.registry is base.registry)
    expect(base.registry == {"Child": child})
    expect(isinstance(thing, base))
    expect(thing.twice() == 14)


@_checked_by(_check_meta_with_state)
def abstract_metaclass_with_a_registry() -> tuple[Any, ...]:
    """Return a metaclass of abstract classes that registers all but the first of them."""

    class Meta(abc.ABCMeta):
        def __init__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> None:
            super().__init__(name, bases, namespace)
            known: Any = next((vars(base)["registry"] for base in bases), None)
            if known is not None:
                known[name] = cls

    class Base(metaclass=Meta):
        registry: ClassVar[dict[str, type]] = {}

        @abc.abstractmethod
        def once(self) -> int:
            raise NotImplementedError

        def twice(self) -> int:
            return 2 * self.once()

    class Child(Base):
        def once(self) -> int:
            return 7

    return Meta, Base, Child, Child()
