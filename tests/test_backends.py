"""The backends: one suite for all of them, then what dill is there for.

The third backend is made here, of cloudpickle: the protocol is enough for a user's own.
"""

from __future__ import annotations

import collections
import contextlib
import copyreg
import enum
import functools
import io
import multiprocessing
import os
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import TimeoutError as FutureTimeoutError
from multiprocessing.reduction import ForkingPickler
from pathlib import Path
from typing import Any, TypeVar

import cloudpickle
import pytest
from configs import InlineRunner, child_processes, make_settings
from isomorphism import find_difference
from sample_agents import unpicklable
from specimens import SPECIMENS, call_loaded, count_visits, dump_kept, relay, visit

from pams_parallel import (
    CodecBackend,
    CodecNotInstalledError,
    DillBackend,
    MultiProcessAgentParallelRunner,
    PickleBackend,
    References,
    ReferenceTable,
    SettingsError,
    UnknownReferenceError,
)
from pams_parallel._codec import CODEC_NAMES, resolve_codec
from pams_parallel._pool import WorkerPool

T = TypeVar("T")


class CloudpickleBackend:
    """A backend of a user, written from the protocol alone."""

    name = "cloudpickle"

    def dumps(self, obj: object, references: References) -> bytes:
        """Turn an object graph to bytes."""

        class Pickler(cloudpickle.Pickler):  # type: ignore[misc]  # not typed
            def persistent_id(self, obj: object) -> object | None:
                return references.persistent_id(obj)

        buffer = io.BytesIO()
        Pickler(buffer).dump(obj)
        return buffer.getvalue()

    def loads(self, data: bytes, references: References) -> object:
        """Turn bytes back to an object graph."""

        class Unpickler(pickle.Unpickler):
            def persistent_load(self, pid: object) -> object:
                return references.persistent_load(pid)

        return Unpickler(io.BytesIO(data)).load()


PICKLE, DILL = PickleBackend(), DillBackend()
BACKENDS: list[CodecBackend] = [PICKLE, DILL, CloudpickleBackend()]
NOTHING = ReferenceTable(())

every_backend = pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
own_backends = pytest.mark.parametrize("backend", [PICKLE, DILL], ids=lambda backend: backend.name)


def copy_of(obj: Any, backend: CodecBackend, references: ReferenceTable = NOTHING) -> Any:
    """Return an object that has been bytes in between."""
    return backend.loads(backend.dumps(obj, references), references)


# ------------------------------------------------------------------- every backend


class Thing:
    """An object of a user."""

    def __init__(self, **attributes: object) -> None:
        vars(self).update(attributes)


class Mood(enum.Enum):
    """An enum that can be imported."""

    GOOD = "good"


def plain_values() -> dict[str, object]:
    """Return one of each kind of value."""
    return {
        "none": None,
        "numbers": [0, -1, 2**100, 1.5, -0.0, float("nan"), 1j, True],
        "texts": ["", "\u00fc", "\0", b"\xff", bytearray(b"ab").decode()],
        "containers": [[], (), {}, set(), frozenset({1}), {(1, 2): [3]}, collections.deque([1])],
        "importable": [Thing, Mood.GOOD, len, os.path.join, Thing.__init__, int],
        "objects": [Thing(a=[1], b=Thing(c=2))],
    }


@every_backend
def test_satisfies_the_protocol(backend: CodecBackend) -> None:
    """A backend is one by its three members, whatever its bases."""
    assert isinstance(backend, CodecBackend)
    assert resolve_codec(backend) is backend


@every_backend
def test_can_be_pickled(backend: CodecBackend) -> None:
    """A backend is pickled itself to reach the workers, and works there."""
    sent = pickle.loads(pickle.dumps(backend))
    assert sent.name == backend.name
    assert sent.loads(backend.dumps([1], NOTHING), NOTHING) == [1]


@every_backend
def test_decode_after_encode_is_identity(backend: CodecBackend) -> None:
    """Any value comes back with its type and content; what can be imported, as itself."""
    values = plain_values()
    assert find_difference(values, copy_of(values, backend)) is None


@every_backend
def test_gives_bytes(backend: CodecBackend) -> None:
    """What a backend makes is bytes, and does not change with the object afterwards."""
    value = [1]
    data = backend.dumps(value, NOTHING)
    value.append(2)
    assert type(data) is bytes
    assert backend.loads(data, NOTHING) == [1]


@every_backend
def test_table_object_comes_back_as_itself(backend: CodecBackend) -> None:
    """An object of the table, a container too, is written as its id, however deep it is met."""
    thing, items, index, members = Thing(), [1], {"a": 1}, {1}
    table = ReferenceTable([thing, items, index, members])
    value = [thing, {"x": (items, [index])}, Thing(of=members), thing]
    loaded = copy_of(value, backend, table)
    assert loaded[0] is loaded[3] is thing
    assert loaded[1]["x"][0] is items
    assert loaded[1]["x"][1][0] is index
    assert loaded[2].of is members
    assert copy_of(thing, backend, table) is thing


@every_backend
def test_table_object_is_the_other_sides(backend: CodecBackend) -> None:
    """Bytes written with one table and read with another refer to the other's objects."""
    here, there = ReferenceTable([Thing(), [1]]), ReferenceTable([Thing(), [2]])
    loaded: Any = backend.loads(backend.dumps([*here.objects.values()], here), there)
    assert all(one is other for one, other in zip(loaded, there.objects.values(), strict=True))


@every_backend
def test_content_of_table_objects_is_not_written(backend: CodecBackend) -> None:
    """What only table objects hold is not looked at: it may be anything, and costs nothing."""
    heavy = Thing(never=unpicklable(), weight=b"x" * 10**6)
    data = backend.dumps([heavy] * 3, ReferenceTable([heavy]))
    assert len(data) < 1000


@every_backend
def test_equal_object_that_is_not_in_the_table_is_a_copy(backend: CodecBackend) -> None:
    """Identity decides what is a reference."""
    table = ReferenceTable([[1]])
    loaded = copy_of([[1], table.objects[0]], backend, table)
    assert loaded[0] == [1]
    assert loaded[0] is not table.objects[0]
    assert loaded[1] is table.objects[0]


@every_backend
def test_aliases_and_cycles_are_kept(backend: CodecBackend) -> None:
    """What is one object within a payload stays one, also where it holds itself."""
    shared = Thing(items=[])
    shared.items.append(shared)  # type: ignore[attr-defined]  # set by keyword
    ring: list[object] = [shared, shared]
    ring.append(ring)
    value = {"first": ring, "second": (ring, shared), "twins": ([], [])}
    loaded = copy_of(value, backend)
    assert find_difference(value, loaded) is None
    assert loaded["first"][0] is loaded["second"][1]


@every_backend
@pytest.mark.parametrize("position", ["alone", "inside"])
def test_unknown_id_is_refused(backend: CodecBackend, position: str) -> None:
    """Bytes that refer to a number that the reading table lacks are refused by the table."""
    thing = Thing()
    data = backend.dumps(thing if position == "alone" else [1, thing], ReferenceTable([thing]))
    with pytest.raises(UnknownReferenceError, match="number 0"):
        backend.loads(data, NOTHING)


@every_backend
def test_error_of_the_references_passes(backend: CodecBackend) -> None:
    """An object that the references refuse to name ends the dump with their error."""

    class Refusing:
        def persistent_id(self, obj: object, /) -> object | None:
            if isinstance(obj, Thing):
                raise LookupError("refused")
            return None

        def persistent_load(self, pid: Any, /) -> object:
            raise AssertionError("nothing was written")

    with pytest.raises(LookupError, match="refused"):
        backend.dumps({"x": [Thing()]}, Refusing())


@every_backend
def test_any_id_travels(backend: CodecBackend) -> None:
    """An id is passed on as it is, a negative number or a tuple of texts too."""
    ids = [-1, 2**40, ("some", "text")]

    class Naming:
        def persistent_id(self, obj: object, /) -> object | None:
            return ids[vars(obj)["number"]] if isinstance(obj, Thing) else None

        def persistent_load(self, pid: Any, /) -> object:
            return [pid]

    value = [Thing(number=number) for number in range(len(ids))]
    assert backend.loads(backend.dumps(value, Naming()), Naming()) == [[pid] for pid in ids]


@every_backend
def test_asks_in_writing_order(backend: CodecBackend) -> None:
    """Every object is asked for before it is written, in the order in which that happens."""
    asked: list[object] = []

    class Listening:
        def persistent_id(self, obj: object, /) -> object | None:
            if isinstance(obj, (Thing, list, dict)) and "marker" in str(obj):
                asked.append(obj)
            return None

        def persistent_load(self, pid: Any, /) -> object:
            raise AssertionError("nothing was written")

    value: list[Any] = [["marker 1", {"marker 2": ["marker 3"]}], ["marker 4"]]
    backend.dumps(value, Listening())
    expected = [value, value[0], value[0][1], value[0][1]["marker 2"], value[1]]
    assert [id(obj) for obj in asked] == [id(obj) for obj in expected]


# ------------------------------------------------------------------------ reducers


class Handle:
    """Cannot be pickled by itself."""

    def __init__(self, number: int, way: str = "") -> None:
        self.number = number
        self.way = way
        self.resource = unpicklable()


def reduce_for_multiprocessing(handle: Handle) -> tuple[Any, ...]:
    """Rebuild by number."""
    return Handle, (handle.number, "multiprocessing")


def reduce_for_copyreg(handle: Handle) -> tuple[Any, ...]:
    """Rebuild by number."""
    return Handle, (handle.number, "copyreg")


@contextlib.contextmanager
def registered(
    *, multiprocessing: Callable[[Any], Any] | None = None, copyreg_: Any = None
) -> Iterator[None]:
    """Register reducers of `Handle` for a while."""
    extra: dict[type, Any] = ForkingPickler._extra_reducers  # type: ignore[attr-defined]
    try:
        if multiprocessing is not None:
            ForkingPickler.register(Handle, multiprocessing)
        if copyreg_ is not None:
            copyreg.pickle(Handle, copyreg_)
        yield
    finally:
        extra.pop(Handle, None)
        copyreg.dispatch_table.pop(Handle, None)


@own_backends
def test_without_a_reducer(backend: CodecBackend) -> None:
    """The object that these tests register reducers for cannot be written otherwise."""
    with pytest.raises(TypeError, match="generator"):
        backend.dumps(Handle(1), NOTHING)


@own_backends
def test_reducers_for_multiprocessing(backend: CodecBackend) -> None:
    """What was registered with `ForkingPickler.register` is used, inside of other objects too."""
    with registered(multiprocessing=reduce_for_multiprocessing):
        loaded = copy_of([Thing(handle=Handle(7))], backend)[0].handle
    assert (loaded.number, loaded.way) == (7, "multiprocessing")


@own_backends
def test_reducers_of_copyreg(backend: CodecBackend) -> None:
    """What was registered with `copyreg.pickle` is used."""
    with registered(copyreg_=reduce_for_copyreg):
        loaded = copy_of([Handle(7)], backend)[0]
    assert (loaded.number, loaded.way) == (7, "copyreg")


@own_backends
def test_reducer_for_multiprocessing_comes_first(backend: CodecBackend) -> None:
    """A class with both is sent as multiprocessing sends it."""
    with registered(multiprocessing=reduce_for_multiprocessing, copyreg_=reduce_for_copyreg):
        assert copy_of(Handle(7), backend).way == "multiprocessing"


@own_backends
def test_reducers_that_share_memory_are_not_used(backend: CodecBackend) -> None:
    """PyTorch's reducers for multiprocessing hand over memory: the ordinary one is used."""

    def sharing(handle: Handle) -> tuple[Any, ...]:
        raise AssertionError("memory is shared")

    sharing.__module__ = "torch.multiprocessing.reductions"
    with registered(multiprocessing=sharing, copyreg_=reduce_for_copyreg):
        assert copy_of(Handle(7), backend).way == "copyreg"


# ------------------------------------------------------------- by name, and without dill


@pytest.mark.parametrize(("name", "cls"), [("pickle", PickleBackend), ("dill", DillBackend)])
def test_by_name(name: str, cls: type) -> None:
    """A backend that comes with the package is made by its name."""
    backend = resolve_codec(name)
    assert type(backend) is cls
    assert backend.name == name
    assert name in CODEC_NAMES


class NoLoads:
    """Lacks a member of the protocol."""

    name = "half"

    def dumps(self, obj: object, references: References) -> bytes:
        """Never called."""
        raise NotImplementedError


@pytest.mark.parametrize("codec", ["invalid", "", "DILL", 1, b"dill", NoLoads(), PickleBackend])
def test_no_codec(codec: Any) -> None:
    """Neither a known name nor a backend, a class of one included, is an error with the value."""
    with pytest.raises(SettingsError) as caught:
        resolve_codec(codec, "some.key")
    assert (caught.value.key, caught.value.value) == ("some.key", repr(codec))


def set_up_with_dill_in_the_config() -> None:
    """Set up a runner whose config says dill."""
    runner = InlineRunner(make_settings({"FCNAgent": 3}, codec="dill"))
    try:
        runner._setup()
    finally:
        assert runner.simulator.markets == []
        assert runner.executor is None


WAYS_TO_DILL: dict[str, Callable[[], object]] = {
    "argument": lambda: MultiProcessAgentParallelRunner({}, codec="dill"),
    "class": DillBackend,
    "config": set_up_with_dill_in_the_config,
    "name": lambda: resolve_codec("dill"),
}


@pytest.mark.parametrize("use", WAYS_TO_DILL.values(), ids=WAYS_TO_DILL)
def test_dill_is_not_installed(use: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever asks for dill without having it is told at once what to install."""
    monkeypatch.setitem(sys.modules, "dill", None)
    with pytest.raises(CodecNotInstalledError) as caught:
        use()
    assert "pip install" in str(caught.value)
    assert "pams-parallel[dill]" in str(caught.value)
    assert "codec='dill'" in str(caught.value)
    assert isinstance(caught.value, (ImportError, ValueError))
    assert isinstance(caught.value.__cause__, ImportError)


# ------------------------------------------------------------------ what dill is there for


@pytest.fixture(scope="module", autouse=True)
def no_process_left() -> Iterator[None]:
    """Replace the check after each test: here one worker serves all of them."""
    yield
    assert not child_processes()


class Abroad:
    """One worker process, which has inherited nothing; another if it hangs."""

    def __init__(self) -> None:
        self._pool: WorkerPool | None = None

    def call(self, function: Callable[[bytes], T], data: bytes) -> T:
        """Call a function there; fail if it does not return."""
        self._pool = self._pool or WorkerPool(1, multiprocessing.get_context("spawn"))
        try:
            return self._pool.submit(function, data).result(timeout=10)
        except FutureTimeoutError:  # another class than TimeoutError before Python 3.11
            self.close()
            raise

    def close(self) -> None:
        """End the worker."""
        if self._pool is not None:
            self._pool.close()
            self._pool = None


@pytest.fixture(scope="module")
def worker(no_process_left: None) -> Iterator[Abroad]:
    """One process for all tests."""
    abroad = Abroad()
    yield abroad
    abroad.close()


def there_and_back(value: object, worker: Abroad, visit: Callable[[bytes], bytes] = relay) -> Any:
    """Return a value that has been in another process."""
    return DILL.loads(worker.call(visit, DILL.dumps(value, NOTHING)), NOTHING)


@pytest.mark.parametrize("name", SPECIMENS)
def test_comes_back_as_mains_own(name: str, worker: Abroad) -> None:
    """What is made in a function works in another process, and comes back as main's own class.

    Enum members are main's members. A second visit finds the same classes.
    """
    made = SPECIMENS[name].make()
    SPECIMENS[name].check(*made)
    for _ in range(2):
        returned = there_and_back(made, worker, functools.partial(visit, name))
        for one, other in zip(made, returned, strict=True):
            assert type(other) is type(one)
            if isinstance(one, (type, enum.Enum)):
                assert other is one
        SPECIMENS[name].check(*returned)
        SPECIMENS[name].check(*made)


@pytest.mark.parametrize("name", SPECIMENS)
def test_comes_back_within_a_process(name: str) -> None:
    """Without another process in between, a class is the class that was sent."""
    made = SPECIMENS[name].make()
    returned = copy_of(made, DILL)
    SPECIMENS[name].check(*returned)
    for one, other in zip(made, returned, strict=True):
        if type(one) is not int:
            assert (other is one) == isinstance(one, (type, enum.Enum))


def test_forked_worker_has_mains_class() -> None:
    """A class that a worker has inherited is not made again there."""
    if "fork" not in multiprocessing.get_all_start_methods():
        pytest.skip("no fork here")

    class Inherited:
        pass

    def address(cls: type) -> int:
        return id(cls)

    DILL.dumps(Inherited, NOTHING)  # what is sent before the first fork gets its key
    pool = WorkerPool(1, multiprocessing.get_context("fork"))
    try:
        call = DILL.dumps(functools.partial(address, Inherited), NOTHING)
        assert pool.submit(call_loaded, call).result(timeout=10) == id(Inherited)
    finally:
        pool.close()


def test_nonlocal_counts_on(worker: Abroad) -> None:
    """A closure travels with what it has counted, and counts on where it is."""

    def counter() -> Callable[[], int]:
        count = 0

        def increase() -> int:
            nonlocal count
            count += 1
            return count

        return increase

    increase = counter()
    increase()
    assert worker.call(call_loaded, DILL.dumps(increase, NOTHING)) == 2
    returned = there_and_back(increase, worker)
    assert (returned(), returned(), increase()) == (2, 3, 2)


@pytest.mark.parametrize("make", [threading.Lock, threading.RLock])
def test_lock(make: Callable[[], Any], worker: Abroad) -> None:
    """A lock comes as a free one: an agent that has one does not wait for ever."""
    lock = there_and_back([make()], worker)[0]
    assert lock.acquire(timeout=5)
    lock.release()


def test_two_closures_share_their_variable(worker: Abroad) -> None:
    """What two functions of one payload share stays shared."""

    def account() -> tuple[Callable[[int], None], Callable[[], int]]:
        balance = 0

        def deposit(amount: int) -> None:
            nonlocal balance
            balance += amount

        return deposit, lambda: balance

    deposit, read = there_and_back(account(), worker)
    deposit(5)
    assert read() == 5


def test_class_in_other_company(worker: Abroad) -> None:
    """A class that came alone is the class that comes later as the type of an object, or a base."""

    class Base:
        pass

    class Derived(Base):
        pass

    assert there_and_back(Base, worker) is Base
    assert type(there_and_back(Base(), worker)) is Base
    assert there_and_back(Derived, worker) is Derived
    assert type(there_and_back([{"x": Derived()}], worker)[0]["x"]) is Derived


def test_class_that_nobody_holds(worker: Abroad) -> None:
    """A class that was made in a worker stays there, though no object of it does."""

    class Visitor:
        pass

    data = DILL.dumps(Visitor, NOTHING)
    assert [worker.call(count_visits, data) for _ in range(3)] == [1, 2, 3]
    assert not hasattr(Visitor, "visits")


def test_table_objects_inside_of_closures(worker: Abroad) -> None:
    """What a closure or a user object of a local class refers to in the table is the table's."""
    thing = Thing()

    class Holder:
        held: object = None

    holder = Holder()
    holder.held = thing
    function, back = copy_of([lambda: thing, holder], DILL, ReferenceTable([thing]))
    assert function() is thing
    assert back.held is thing


def test_class_made_in_a_worker(worker: Abroad) -> None:
    """A class that a worker has made is one class in main, too, however often it comes."""

    def make() -> Any:
        class FromWorker:
            size = 3

        return [FromWorker, FromWorker()]

    data = DILL.dumps(make, NOTHING)
    first: Any = DILL.loads(worker.call(dump_kept, data), NOTHING)
    again: Any = DILL.loads(worker.call(dump_kept, data), NOTHING)
    cls, thing = first
    assert type(thing) is cls
    assert cls.size == 3
    assert again[0] is cls


MAIN_GLOBALS = """
from sample_agents import unpicklable

class Unwritable:
    resource = unpicklable()

thing = Unwritable()
number = 3

def get():
    return thing, number
"""


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Names of `__main__`, one of them of something that cannot be written."""
    namespace = vars(sys.modules["__main__"])
    for name in ("Unwritable", "thing", "number", "get", "unpicklable"):
        monkeypatch.setitem(namespace, name, None)
    exec(MAIN_GLOBALS, namespace)
    return namespace


def test_global_that_cannot_be_written(names: dict[str, Any]) -> None:
    """A function that uses such a global travels without it: a process may have its own."""
    get = copy_of(names["get"], DILL)
    assert get() == (names["thing"], 3)


def test_value_that_cannot_be_written_beside_such_a_function(names: dict[str, Any]) -> None:
    """What a function may do without is an error where it is a value itself."""
    for values in ([names["get"], names["thing"]], [names["thing"], names["get"]]):
        with pytest.raises(TypeError, match="generator"):
            DILL.dumps(values, NOTHING)


SCRIPT = """
import enum, multiprocessing
from pams_parallel import DillBackend, ReferenceTable
from pams_parallel._pool import WorkerPool
from sample_agents import unpicklable
from specimens import call_loaded, relay_checked

FACTOR = 3
SEEN = []
NOTHING = ReferenceTable(())

class Side(enum.Enum):
    BUY = 1
    SELL = -1

    def flip(self):
        return Side.SELL if self is Side.BUY else Side.BUY

class Policy:
    made = 0

    def __init__(self, side):
        Policy.made += 1
        self.side = side

    def price(self):
        return scaled(self.side.flip().value)

def scaled(number):
    return (lambda: FACTOR * number)()

def remember():
    SEEN.append(1)
    return len(SEEN)

def check(cls, side, policy, function):
    assert type(policy) is cls is Policy
    assert side is Side.BUY is policy.side
    assert policy.price() == -3
    assert function(2) == 6

def main():
    made = (Policy, Side.BUY, Policy(Side.BUY), scaled)
    pool = WorkerPool(1, multiprocessing.get_context("spawn"))
    try:
        for _ in range(2):
            data = DillBackend().dumps((check, made), NOTHING)
            data = pool.submit(relay_checked, data).result(timeout=20)
            returned = DillBackend().loads(data, NOTHING)
            assert returned[0] is Policy
            assert returned[1] is Side.BUY
            assert returned[3](1) == 3
            check(*returned)
        assert Policy.made == 1
        # what a worker keeps in a global is neither replaced nor brought back
        data = DillBackend().dumps(remember, NOTHING)
        assert [pool.submit(call_loaded, data).result(timeout=20) for _ in range(3)] == [1, 2, 3]
        assert SEEN == []
    finally:
        pool.close()
    print("done")

if __name__ == "__main__":
    main()
"""


@pytest.mark.parametrize("way", ["script", "no file"])
def test_names_of_main(way: str, tmp_path: Path) -> None:
    """Classes and functions of `__main__` are the worker's own where it has imported the script.

    Where there is no script, as in a notebook, they come along, with the globals that they use.
    """
    file = tmp_path / "script.py"
    file.write_text(SCRIPT)
    arguments = [str(file)] if way == "script" else ["-c", SCRIPT]
    paths = [str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [sys.executable, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("done\n", "")
