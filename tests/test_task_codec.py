"""The task codec: whose value failed, where in it the culprit is, and exceptions on their way."""

from __future__ import annotations

import builtins
import pickle
import sys
import traceback
from collections.abc import Callable
from typing import Any, NoReturn

import pytest
from sample_agents import unpicklable

from pams_parallel import (
    EncodeError,
    PamsParallelError,
    PayloadError,
    ReferenceTable,
    RemoteAgentError,
    SettingsError,
    TaskCodec,
    UnknownReferenceError,
    WorkerTraceback,
)

NOTHING = ReferenceTable(())
PICKLE, DILL = TaskCodec("pickle"), TaskCodec("dill")

both = pytest.mark.parametrize("codec", [PICKLE, DILL], ids=["pickle", "dill"])


class Thing:
    """An object of a user."""

    def __init__(self, **attributes: object) -> None:
        vars(self).update(attributes)


class Slotted:
    """The same with slots, one of them private."""

    __slots__ = ("__secret", "first", "second")
    first: object
    second: object

    def __init__(self, secret: object = None) -> None:
        self.__secret = secret


class SingleSlot:
    """Has one slot, given by its name alone."""

    __slots__ = "only"
    only: object


class BrokenReduce:
    """Says wrongly how it is to be pickled."""

    def __reduce__(self) -> NoReturn:
        raise LookupError("of the reducer")


def fail_to_load() -> NoReturn:
    """Fail where the object is rebuilt."""
    raise LookupError("of the loader")


class BrokenLoad:
    """Can be written, and not be read."""

    def __reduce__(self) -> tuple[Any, ...]:
        return fail_to_load, ()


# ------------------------------------------------------------------------- positions


def test_backend_by_name_or_itself() -> None:
    """A codec takes a backend, or the name of one, pickle by default; a wrong one is refused."""
    assert TaskCodec().backend.name == "pickle"
    assert DILL.backend.name == "dill"
    assert TaskCodec(DILL.backend).backend is DILL.backend
    with pytest.raises(SettingsError, match="'invalid'"):
        TaskCodec("invalid")


@both
def test_values_come_back_in_their_order(codec: TaskCodec) -> None:
    """As many values come back as were given, none of them too."""
    for values in ([], [None], [1, [2], "x", None]):
        assert codec.decode(codec.encode(values, NOTHING), NOTHING) == values


@both
def test_values_share_one_payload(codec: TaskCodec) -> None:
    """What two values have in common stays common."""
    shared = [Thing()]
    first, second = codec.decode(codec.encode([shared, Thing(of=shared)], NOTHING), NOTHING)
    assert vars(second)["of"] is first


class NamedThings:
    """References of a user, who names objects by text."""

    def __init__(self, **things: object) -> None:
        self.things = things

    def persistent_id(self, obj: object, /) -> object | None:
        """Return the name of a thing."""
        return next((name for name, thing in self.things.items() if thing is obj), None)

    def persistent_load(self, pid: Any, /) -> object:
        """Return the thing of a name."""
        return self.things[pid]


@both
def test_references_of_a_user(codec: TaskCodec) -> None:
    """Values are written with any references, not only a table; errors have their position, too."""
    here, there = NamedThings(one=Thing(), two=[]), NamedThings(one=Thing(), two=[])
    values = [here.things["two"], {"x": here.things["one"]}, 3]
    decoded = codec.decode(codec.encode(values, here), there)
    assert decoded[0] is there.things["two"]
    assert decoded[1] == {"x": there.things["one"]}
    with pytest.raises(PayloadError) as caught:
        codec.encode([1, here.things["one"], unpicklable()], here)
    assert caught.value.position == 2


@both
@pytest.mark.parametrize("bad", [unpicklable(), BrokenReduce(), [[{"x": unpicklable()}]]])
@pytest.mark.parametrize("position", [0, 1, 3])
def test_position_of_what_cannot_be_encoded(codec: TaskCodec, bad: object, position: int) -> None:
    """The error of encoding says which value it was, with the serializer's error as its cause."""
    values: list[object] = [[1], Thing(), "text", {}]
    values[position] = bad
    with pytest.raises(PayloadError) as caught:
        codec.encode(values, NOTHING)
    assert caught.value.position == position
    assert isinstance(caught.value.__cause__, (TypeError, LookupError))


@both
def test_position_of_the_first(codec: TaskCodec) -> None:
    """Of several that cannot be encoded, the first counts."""
    with pytest.raises(PayloadError) as caught:
        codec.encode([1, unpicklable(), 2, unpicklable()], NOTHING)
    assert caught.value.position == 1


@both
@pytest.mark.parametrize("position", [0, 1, 3])
def test_position_of_what_cannot_be_decoded(codec: TaskCodec, position: int) -> None:
    """The error of decoding says which value was being loaded, with its error as its cause."""
    values: list[object] = [[1], Thing(), "text", {}]
    values[position] = [BrokenLoad()]
    data = codec.encode(values, NOTHING)
    with pytest.raises(PayloadError) as caught:
        codec.decode(data, NOTHING)
    assert caught.value.position == position
    assert isinstance(caught.value.__cause__, LookupError)


@both
def test_position_of_a_shared_culprit(codec: TaskCodec) -> None:
    """What is bad in two values is the fault of the first that holds it."""
    shared = Thing(never=unpicklable())
    with pytest.raises(PayloadError) as caught:
        codec.encode([1, shared, [shared]], NOTHING)
    assert caught.value.position == 1


@pytest.mark.parametrize("position", [0, 1, 2])
def test_position_of_an_object_whose_class_cannot_be_encoded(position: int) -> None:
    """A class that dill cannot write is the fault of the value that has it, not of a later one."""

    class Unwritable:
        resource = unpicklable()

    values: list[object] = [1, 2, 3]
    values[position] = Unwritable()
    with pytest.raises(PayloadError) as caught:
        DILL.encode(values, NOTHING)
    assert caught.value.position == position


@both
@pytest.mark.parametrize("data", [b"", b"no payload", b"\x80\x05"])
def test_position_before_the_first(codec: TaskCodec, data: bytes) -> None:
    """Where no value had begun, the position is -1."""
    with pytest.raises(PayloadError) as caught:
        codec.decode(data, NOTHING)
    assert caught.value.position == -1


@pytest.mark.parametrize("payload", [{"no": "list"}, ("no", "list"), "text", None], ids=repr)
def test_other_bytes_of_the_same_backend(payload: object) -> None:
    """Bytes that do not hold values, but could be loaded, are refused."""
    with pytest.raises(PayloadError) as caught:
        PICKLE.decode(pickle.dumps(payload), NOTHING)
    assert isinstance(caught.value.__cause__, TypeError)


# ----------------------------------------------------------------------------- paths


def explained(
    value: object, codec: TaskCodec = PICKLE, noun: str = "attribute 'policy'", **more: Any
) -> PamsParallelError:
    """Return the error for a value of an agent."""
    return codec.explain(value, "agent 12 (MyAgent)", noun, NOTHING, **more)


def slotted() -> Slotted:
    """Return an object with a bad value in a slot."""
    thing = Slotted()
    thing.first, thing.second = 1, [unpicklable()]
    return thing


def single_slot() -> SingleSlot:
    """Return an object with a bad value in its only slot."""
    thing = SingleSlot()
    thing.only = unpicklable()
    return thing


PATHS: dict[str, tuple[Callable[[], object], str, str]] = {
    "itself": (unpicklable, "", "generator"),
    "attribute": (lambda: Thing(ok=1, rule=unpicklable()), ".rule", "generator"),
    "attributes": (lambda: Thing(a=Thing(b=Thing(c=unpicklable()))), ".a.b.c", "generator"),
    "dict value": (lambda: {"ok": 1, "x": unpicklable()}, "['x']", "generator"),
    "number as key": (lambda: {7: unpicklable()}, "[7]", "generator"),
    "dict key": (lambda: {BrokenReduce(): 1}, ".keys()[...", "BrokenReduce"),
    "list": (lambda: [0, 1, [2, unpicklable()]], "[2][1]", "generator"),
    "tuple": (lambda: (0, (unpicklable(),)), "[1][0]", "generator"),
    "set": (lambda: {1, BrokenReduce()}, "{<...", "BrokenReduce"),
    "slot": (slotted, ".second[0]", "generator"),
    "single slot": (single_slot, ".only", "generator"),
    "private slot": (lambda: Slotted(unpicklable()), "._Slotted__secret", "generator"),
    "mixed": (lambda: Thing(rule={"x": [0, unpicklable()]}), ".rule['x'][1]", "generator"),
    "reducer": (lambda: [BrokenReduce()], "[0]", "BrokenReduce"),
}


@both
@pytest.mark.parametrize(("make", "path", "culprit"), PATHS.values(), ids=PATHS)
def test_path(codec: TaskCodec, make: Callable[[], object], path: str, culprit: str) -> None:
    """The error for a value leads to the smallest part of it that cannot be encoded."""
    error = explained(make(), codec)
    assert isinstance(error, EncodeError)
    assert error.owner == "agent 12 (MyAgent)"
    start, more, _ = path.partition("...")
    if more:
        assert error.path.startswith(f"attribute 'policy{start}")
    else:
        assert error.path == f"attribute 'policy{path}'"
    assert error.value == culprit
    assert error.backend == codec.backend.name
    assert isinstance(error.__cause__, (TypeError, LookupError))
    assert str(error.__cause__) in error.reason


def test_lambda_under_pickle() -> None:
    """A lambda is named as a function, and the sentence says what to do."""
    error = explained(Thing(rule=lambda x: x))
    assert isinstance(error, EncodeError)
    assert (error.path, error.value) == ("attribute 'policy.rule'", "function")
    assert "agent 12 (MyAgent)" in str(error)
    assert "use codec='dill' (pip install pams-parallel[dill])" in str(error)


def test_local_class_under_pickle() -> None:
    """An object of a class that was made in a function is the culprit itself, not a part of it."""

    class Local:
        def __init__(self) -> None:
            self.ok = 1

    error = explained([1, Local()])
    assert isinstance(error, EncodeError)
    assert error.path == "attribute 'policy[1]'"
    assert error.value.endswith("<locals>.Local")


def test_local_class_itself_under_pickle() -> None:
    """A class is the culprit whole: its attributes are not what is to be written."""

    class Local:
        rule = unpicklable()

    error = explained([1, Local])
    assert isinstance(error, EncodeError)
    assert (error.path, error.value) == ("attribute 'policy[1]'", "type")


def test_noun_that_is_no_name() -> None:
    """A path that follows words is put behind them."""
    error = explained([0, unpicklable()], noun="its orders")
    assert isinstance(error, EncodeError)
    assert error.path == "its orders[1]"


@both
def test_path_through_a_cycle(codec: TaskCodec) -> None:
    """A value that holds itself is followed once."""
    ring: list[object] = [1]
    ring += [ring, Thing(back=ring, rule=unpicklable())]
    error = explained(ring, codec)
    assert isinstance(error, EncodeError)
    assert error.path == "attribute 'policy[2].rule'"


def test_long_path() -> None:
    """A value that is nested deeper than anybody reads is explained, too."""
    value: object = unpicklable()
    for _ in range(100):
        value = [value]
    error = explained(value)
    assert isinstance(error, EncodeError)
    assert error.path.startswith("attribute 'policy[0][0][0]")


def test_too_deep_for_the_serializer() -> None:
    """A value that is too deep for pickle is explained with pickle's own error."""
    value: object = 1
    for _ in range(10 * sys.getrecursionlimit()):
        value = [value]
    with pytest.raises(PayloadError) as caught:
        PICKLE.encode([0, value], NOTHING)
    assert caught.value.position == 1
    error = explained(value, error=caught.value.__cause__)
    assert isinstance(error, EncodeError)
    assert "RecursionError" in error.reason


def test_table_objects_are_no_culprits() -> None:
    """What is written as a reference is not followed."""
    market = Thing(never=unpicklable())
    table = ReferenceTable([market])
    value = [market, Thing(rule=unpicklable(), market=market)]
    error = PICKLE.explain(value, "agent 1 (A)", "attribute 'x'", table)
    assert isinstance(error, EncodeError)
    assert error.path == "attribute 'x[1].rule'"


def test_value_that_failed_only_in_company() -> None:
    """For a value that can be encoded alone, the error that it was in is the reason."""
    error = explained([1], error=OSError("disk full"))
    assert isinstance(error, EncodeError)
    assert error.path == "attribute 'policy'"
    assert "OSError: disk full" in error.reason


# ------------------------------------------------------------------- foreign objects


class Market:
    """A simulation object, for these tests."""

    def __init__(self, name: str) -> None:
        self.name = name


def foreign(obj: object) -> str | None:
    """Name markets that are in no table."""
    return f"market {obj.name}" if isinstance(obj, Market) else None


@both
def test_foreign_object_is_refused(codec: TaskCodec) -> None:
    """A simulation object that is in no table is refused, and its value is the one that failed."""
    known = Market("known")
    table = ReferenceTable([known])
    values = [[known], {"x": Market("new")}]
    with pytest.raises(PayloadError) as caught:
        codec.encode(values, table, foreign)
    assert caught.value.position == 1
    error = codec.explain(values[1], "agent 3 (A)", "attribute 'seen'", table, foreign)
    assert isinstance(error, UnknownReferenceError)
    assert error.owner == "agent 3 (A)"
    assert error.path == "attribute 'seen['x']'"
    assert error.target == "market new"


@both
def test_table_object_is_not_foreign(codec: TaskCodec) -> None:
    """What is in the table is a reference, though it is a simulation object."""
    known = Market("known")
    table = ReferenceTable([known])
    decoded = codec.decode(codec.encode([[known]], table, foreign), table)
    assert decoded[0] == [known]


@both
def test_foreign_object_is_the_culprit_whatever_it_holds(codec: TaskCodec) -> None:
    """A refused object is refused whole: what it consists of is not looked at."""
    market = Market("new")
    vars(market)["never"] = unpicklable()
    error = codec.explain([market], "agent 3 (A)", "its orders", NOTHING, foreign)
    assert isinstance(error, UnknownReferenceError)
    assert error.path == "its orders[0]"


@both
def test_unknown_reference_while_decoding(codec: TaskCodec) -> None:
    """Bytes that refer to what the table lacks are the fault of the value that does so."""
    thing = Thing()
    data = codec.encode([1, [thing]], ReferenceTable([0, thing]))
    with pytest.raises(PayloadError) as caught:
        codec.decode(data, ReferenceTable([0]))
    assert caught.value.position == 1
    assert isinstance(caught.value.__cause__, UnknownReferenceError)


# --------------------------------------------------------------- exceptions on their way


class TwoArgumentsError(Exception):
    """Makes its text of two arguments."""

    def __init__(self, market: int, price: float) -> None:
        super().__init__(f"market {market} at {price}")
        self.market, self.price = market, price


class KeywordOnlyError(ValueError):
    """Can only be made with a keyword."""

    def __init__(self, *, code: int) -> None:
        super().__init__(f"code {code}")
        self.code = code


class TransformedError(Exception):
    """Changes its text each time that it is made."""

    def __init__(self, text: str) -> None:
        super().__init__(f"<{text}>")


class OwnTextError(Exception):
    """Has a text of its own making."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    def __str__(self) -> str:
        return f"number {self.number}"


class OwnReduceError(Exception):
    """Says itself how it is pickled."""

    def __init__(self, left: int, right: int) -> None:
        super().__init__(f"{left} {right}")
        self.pair = (left, right)

    def __reduce__(self) -> tuple[Any, ...]:
        return OwnReduceError, self.pair


class SlottedError(Exception):
    """Keeps something in a slot."""

    __slots__ = ("level",)

    def __init__(self, level: int) -> None:
        super().__init__(level)
        self.level = level


class Leaving(SystemExit):
    """Ends the process with a reason."""

    def __init__(self, reason: str, *, code: int) -> None:
        super().__init__(code)
        self.reason = reason


class Finished(StopIteration):
    """Ends an iteration with a value and a reason."""

    def __init__(self, value: int, reason: str) -> None:
        super().__init__(value)
        self.reason = reason


class Plain:
    """Shows its address."""


class BrokenTextError(Exception):
    """Has no text."""

    def __str__(self) -> str:
        raise LookupError("of the text")


def raised(error: BaseException) -> BaseException:
    """Return an error that has been raised, as an agent raises it."""
    try:
        raise error
    except BaseException as caught:
        return caught


def travelled(
    error: BaseException, codec: TaskCodec = PICKLE, table: ReferenceTable = NOTHING
) -> BaseException:
    """Return an exception as it arrives; its description is pickled in between."""
    image = pickle.loads(pickle.dumps(codec.encode_exception(raised(error), table)))
    return codec.decode_exception(image, "agent 3 (A)", table)


def with_attribute(error: BaseException) -> BaseException:
    """Put an attribute on an exception."""
    vars(error)["detail"] = {"x": [1]}
    return error


EXCEPTIONS: dict[str, Callable[[], BaseException]] = {
    "builtin": lambda: ValueError("text"),
    "without arguments": lambda: LookupError(),
    "several arguments": lambda: ValueError("text", 3, None),
    "key": lambda: KeyError("name"),
    "two arguments": lambda: TwoArgumentsError(3, 1.5),
    "keyword only": lambda: KeywordOnlyError(code=7),
    "transformed": lambda: TransformedError("x"),
    "own text": lambda: OwnTextError(7),
    "own reduce": lambda: OwnReduceError(1, 2),
    "slot": lambda: SlottedError(3),
    "exit": lambda: SystemExit(3),
    "exit with text": lambda: SystemExit("text"),
    "exit without code": lambda: SystemExit(),
    "exit of a class of its own": lambda: Leaving("enough", code=3),
    "stop": lambda: StopIteration(7),
    "stop of a class of its own": lambda: Finished(7, "enough"),
    "interrupt": lambda: KeyboardInterrupt(),
    "assertion": lambda: AssertionError("text"),
    "system": lambda: OSError(2, "No such file", "name"),
    "two files": lambda: FileNotFoundError(2, "No such file", "one", None, "two"),
    "permission": lambda: PermissionError(13, "Permission denied"),
    "unicode": lambda: UnicodeDecodeError("utf-8", b"ab\xff", 2, 3, "invalid"),
    "import": lambda: ImportError("text", name="module", path="file"),
    "syntax": lambda: SyntaxError("text", ("file", 1, 2, "line")),
    "ours": lambda: EncodeError("agent 1 (A)", "attribute 'x'", "list", "pickle", "reason"),
    "attribute": lambda: with_attribute(ValueError("text")),
}

BUILTIN_ATTRIBUTES = (
    *("code", "value", "errno", "strerror", "filename", "filename2", "name", "path", "obj"),
    *("encoding", "object", "start", "end", "reason", "lineno", "offset", "text", "msg", "level"),
)
"""Attributes of exceptions that are not in their dict."""


def attributes(error: BaseException) -> dict[str, object]:
    """Return all attributes of an exception."""
    names = [name for name in BUILTIN_ATTRIBUTES if hasattr(error, name)]
    return {**{name: getattr(error, name) for name in names}, **vars(error)}


@both
@pytest.mark.parametrize("make", EXCEPTIONS.values(), ids=EXCEPTIONS)
def test_exception_arrives(codec: TaskCodec, make: Callable[[], BaseException]) -> None:
    """An exception arrives with its type, text, arguments and attributes."""
    error = make()
    arrived = travelled(error, codec)
    assert type(arrived) is type(error)
    assert str(arrived) == str(error)
    assert arrived.args == error.args
    assert attributes(arrived) == attributes(error)


@pytest.mark.parametrize(
    ("make", "name"),
    [(lambda: unpicklable().absent, "absent"), (lambda: absent, "absent")],  # type: ignore[attr-defined, name-defined]  # noqa: F821
    ids=["attribute", "name"],
)
def test_name_that_was_not_there(make: Callable[[], object], name: str) -> None:
    """The name that an AttributeError or a NameError is about arrives, whatever it was asked of."""
    with pytest.raises((AttributeError, NameError)) as caught:
        make()
    assert getattr(caught.value, "name", None) == name
    arrived = travelled(caught.value)
    assert type(arrived) is type(caught.value)
    assert getattr(arrived, "name", None) == name


@both
def test_traceback_is_attached(codec: TaskCodec) -> None:
    """The cause of what arrives is the traceback of the worker as text, and names the agent."""

    def submit_orders() -> NoReturn:
        raise ValueError("text")

    with pytest.raises(ValueError) as caught:
        submit_orders()
    image = codec.encode_exception(caught.value, NOTHING)
    arrived = codec.decode_exception(image, "agent 3 (A)", NOTHING)
    cause = arrived.__cause__
    assert isinstance(cause, WorkerTraceback)
    assert cause.agent == "agent 3 (A)"
    assert "in submit_orders" in cause.text
    assert "in submit_orders" in "".join(traceback.format_exception(arrived))
    assert "agent 3 (A)" in "".join(traceback.format_exception(arrived))


def test_causes_are_in_the_traceback() -> None:
    """What an exception was raised from is told in its traceback."""
    try:
        try:
            raise LookupError("the first")
        except LookupError as first:
            raise ValueError("the second") from first
    except ValueError as second:
        arrived = travelled(second)
    assert isinstance(arrived.__cause__, WorkerTraceback)
    assert "LookupError: the first" in arrived.__cause__.text


@pytest.mark.skipif(sys.version_info < (3, 11), reason="no notes before Python 3.11")
@both
def test_notes(codec: TaskCodec) -> None:
    """Notes arrive."""
    error: Any = ValueError("text")
    error.add_note("one")
    error.add_note("two")
    assert getattr(travelled(error, codec), "__notes__", None) == ["one", "two"]


@pytest.mark.skipif(sys.version_info < (3, 11), reason="no groups before Python 3.11")
@both
def test_exception_group(codec: TaskCodec) -> None:
    """A group arrives with its exceptions, groups in it too."""
    group: Any = vars(builtins)["ExceptionGroup"]  # a name that Python 3.10 lacks
    inner = group("inner", [TypeError("a")])
    arrived: Any = travelled(group("outer", [inner, ValueError("b")]), codec)
    assert type(arrived) is group
    assert str(arrived) == "outer (2 sub-exceptions)"
    assert repr(arrived.exceptions) == repr((inner, ValueError("b")))


@both
def test_table_objects_of_an_exception(codec: TaskCodec) -> None:
    """An exception that holds a simulation object arrives with main's, in its arguments too."""
    market = Market("one")
    error = ValueError("text", market)
    vars(error)["market"] = market
    arrived = travelled(error, codec, ReferenceTable([market]))
    assert arrived.args[1] is market
    assert vars(arrived)["market"] is market


def test_local_exception_under_dill() -> None:
    """An exception of a class that was made in a function arrives as that class."""

    class LocalError(Exception):
        pass

    assert type(travelled(LocalError("text"), DILL)) is LocalError


# --------------------------------------------------------- exceptions that cannot travel


class UnloadableError(Exception):
    """Can be written, and not be read."""

    def __reduce__(self) -> tuple[Any, ...]:
        return fail_to_load, ()


class DisguisedError(Exception):
    """Is read as another."""

    def __reduce__(self) -> tuple[Any, ...]:
        return ValueError, self.args


class ChangedTextError(Exception):
    """Is read with another text."""

    def __reduce__(self) -> tuple[Any, ...]:
        return ChangedTextError, ("another",)


class BrokenReduceError(Exception):
    """Says wrongly how it is pickled."""

    def __reduce__(self) -> NoReturn:
        raise LookupError("of the reducer")


def of_local_class() -> Exception:
    """Return an exception of a class that cannot be imported."""

    class LocalError(Exception):
        pass

    return LocalError("text")


def with_unpicklable_attribute() -> Exception:
    """Return an exception with an attribute that cannot be pickled."""
    error = ValueError("text")
    vars(error)["never"] = unpicklable()
    return error


STRANDED: dict[str, tuple[Callable[[], Exception], str, str]] = {
    "cannot be loaded": (lambda: UnloadableError("text"), "UnloadableError", "of the loader"),
    "loads as another class": (
        lambda: DisguisedError("text"),
        "DisguisedError",
        "it came out as ValueError",
    ),
    "loads with another text": (lambda: ChangedTextError("text"), "ChangedTextError", "another"),
    "cannot be reduced": (lambda: BrokenReduceError("text"), "BrokenReduceError", "of the reducer"),
    "of a local class": (of_local_class, "of_local_class.<locals>.LocalError", "local object"),
    "unpicklable argument": (lambda: ValueError(unpicklable()), "ValueError", "cannot pickle"),
    "unpicklable attribute": (with_unpicklable_attribute, "ValueError", "cannot pickle"),
}


@pytest.mark.parametrize(("make", "name", "reason"), STRANDED.values(), ids=STRANDED)
def test_exception_is_told(make: Callable[[], Exception], name: str, reason: str) -> None:
    """An exception that cannot be brought is told: agent, type, text, traceback, and why not."""
    error = make()
    arrived = travelled(error)
    assert isinstance(arrived, RemoteAgentError)
    assert isinstance(arrived, RuntimeError)
    assert arrived.agent == "agent 3 (A)"
    module = "" if type(error).__module__ == "builtins" else f"{type(error).__module__}."
    assert arrived.type_name == f"{module}{name}"
    assert arrived.text == str(error)
    assert "in raised" in arrived.remote_traceback
    assert reason in arrived.reason
    assert isinstance(arrived.__cause__, WorkerTraceback)
    for part in (arrived.agent, arrived.type_name, arrived.text, "in raised", reason):
        assert part in str(arrived)


def test_text_with_an_address() -> None:
    """An exception that shows an object arrives, though the object has another address here."""
    arrived = travelled(KeyError(Plain()))
    assert type(arrived) is KeyError
    assert isinstance(arrived.args[0], Plain)
    assert str(arrived) == repr(arrived.args[0])


def test_exception_without_a_text() -> None:
    """An exception whose text cannot be made arrives all the same."""
    arrived = travelled(BrokenTextError())
    assert isinstance(arrived, BrokenTextError)
    assert isinstance(arrived.__cause__, WorkerTraceback)


def test_backend_that_always_fails() -> None:
    """No error of a backend keeps an exception from being told."""

    class Failing:
        name = "failing"

        def dumps(self, obj: object, references: object) -> bytes:
            raise OSError("disk full")

        def loads(self, data: bytes, references: object) -> object:
            raise OSError("disk full")

    arrived = travelled(ValueError("text"), TaskCodec(Failing()))
    assert isinstance(arrived, RemoteAgentError)
    assert "OSError: disk full" in arrived.reason
