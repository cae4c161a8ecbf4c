"""Everything that runs in a worker.

```
Refresh ─▶ setup (once) ─▶ replica
Task    ─▶ submit_orders, agent by agent ─▶ ChunkReport
           the replica is put back
```

In our own pool each worker keeps a replica; elsewhere a task brings its own (`run_chunk`). Either
way a task is a pure function of what was sent, and is answered whatever happens: nothing that a
user's class does while it is loaded, asked or written can break what runs it.
"""

from __future__ import annotations

import gc
import pickle
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any, Final

from ._codec import CodecBackend, PickleBackend, ReferenceTable, TaskCodec
from ._messages import (
    ChunkReport,
    Failure,
    FailureKind,
    LostChanges,
    Refresh,
    Task,
    WorkerSetup,
)
from ._questioner import Questioner
from ._replica import Replica
from ._replica_logger import LoggerTraffic
from ._serve import LaneService
from .exceptions import PayloadError, WorkerInitializerError

_NOTHING: Final = ReferenceTable(())

Initializer = tuple[Callable[..., Any], tuple[Any, ...]]
"""The worker initializer and its arguments."""


@dataclass(eq=False)
class LocalSetup:
    """The backend and the initializer of a runner, as objects.

    Kept under the runner's token in the process of the runner. Workers that are threads, and
    processes forked later, find it there: what cannot be pickled need not be.
    """

    backend: CodecBackend
    initializer: Initializer | None = None


_local_setups: weakref.WeakValueDictionary[str, LocalSetup] = weakref.WeakValueDictionary()
_loaded_backends: dict[str, CodecBackend] = {}


class _Initialized(threading.local):
    """What became of the initializers that this thread has run, by the runner's token."""

    def __init__(self) -> None:
        self.failures: dict[str, Failure | None] = {}


_initialized = _Initialized()


def register_setup(token: str, setup: LocalSetup) -> None:
    """Keep a runner's setup for workers of this process, for as long as the runner keeps it."""
    _local_setups[token] = setup


def initialize_worker(token: str, initializer: Initializer | None) -> None:
    """Run the initializer in a worker of our own pool, at the start of its process.

    What it raises is kept and answered to every task: the pool itself stays whole.
    """
    failure: Failure | None = None
    if initializer is not None:
        function, args = initializer
        try:
            function(*args)
        except BaseException as error:  # SystemExit too: it would end the worker in silence
            image = TaskCodec(PickleBackend()).encode_exception(error, _NOTHING)
            name = getattr(function, "__qualname__", repr(function))
            reason = f"{image.type_name}: {image.text}"
            failure = Failure(FailureKind.SETUP, 0, image, WorkerInitializerError(name, reason))
    _initialized.failures[token] = failure


class _Resident:
    """What a worker keeps for one runner: its setup and its replica."""

    def __init__(self) -> None:
        self._codec: TaskCodec | None = None
        self._traffic = LoggerTraffic()
        self._replica: Replica | None = None
        self._last: Questioner | None = None
        self._lost: list[LostChanges] = []
        self._decode_seconds = 0.0
        # what went wrong between tasks: the answer to every task until a new beginning
        self._failure: Failure | None = None

    def receive(self, refresh: Refresh) -> None:
        """Take what brings the replica up to date."""
        start = perf_counter()
        if refresh.setup is not None:
            self._begin(refresh.setup)
        if self._failure is None and self._replica is not None:
            self._guard(self._replica.apply, refresh.update)
        self._decode_seconds = perf_counter() - start

    def _begin(self, setup: WorkerSetup) -> None:
        self._failure = None
        try:
            self._failure = _ensure_initialized(setup)
            backend = _find_backend(setup)
        except BaseException as error:
            image = TaskCodec(PickleBackend()).encode_exception(error, _NOTHING)
            self._failure = Failure(FailureKind.SETUP, 0, image)
            return
        self._codec = TaskCodec(backend)
        self._replica = Replica(backend, self._traffic)

    def answer(self, task: Task) -> ChunkReport:
        """Ask the agents of a task."""
        if self._failure is not None:
            return ChunkReport(failure=self._failure)
        start = perf_counter()
        assert self._codec is not None  # a setup comes first
        assert self._replica is not None
        self._last = Questioner(self._replica, self._traffic, self._codec)
        report = self._last.ask_all(task.asks)
        earlier, self._lost = tuple(self._lost), []
        decode_seconds, self._decode_seconds = self._decode_seconds, 0.0
        return replace(
            report,
            earlier=earlier,
            decode_seconds=decode_seconds,
            ask_seconds=perf_counter() - start,
        )

    def rest(self) -> None:
        """Undo what agents did to the replica, and remember what is to be said about it."""
        self._traffic.calls = []
        self._traffic.needs.clear()
        if self._failure is None and self._replica is not None:
            self._guard(self._restore)

    def _restore(self) -> None:
        assert self._replica is not None
        changed = self._replica.rows.changed()
        if self._last is not None:
            self._lost += self._last.changes_of_others(changed)
            self._last = None
        self._replica.restore(changed)

    def _guard(self, function: Callable[..., None], *args: bytes) -> None:
        try:
            function(*args)
        except PayloadError as failed:
            assert self._codec is not None
            image = self._codec.encode_exception(failed.__cause__ or failed, _NOTHING)
            self._failure = Failure(FailureKind.DECODE, failed.position, image)


_resident = _Resident()


def receive_update(data: bytes) -> None:
    """Take a pickled `Refresh`, in a worker of our own pool."""
    refresh: Refresh = pickle.loads(data)
    if refresh.setup is None:
        _resident.receive(refresh)
        return
    # Collecting garbage while a large replica is built takes longer than building it. What it
    # consists of is never garbage as a whole: it need not be looked at ever after.
    gc.disable()
    try:
        _resident.receive(refresh)
    finally:
        gc.freeze()
        gc.enable()


def answer_task(data: bytes) -> bytes:
    """Do a pickled `Task` in a worker of our own pool, and return a pickled `ChunkReport`."""
    return pickle.dumps(_answered(_resident, pickle.loads(data)), 5)


def rest() -> None:
    """Get ready for the next task, in a worker of our own pool."""
    _resident.rest()


SERVICE: Final = LaneService(receive_update, answer_task, rest)
"""What workers of our own pool do."""


def run_chunk(data: bytes) -> bytes:
    """Ask the agents of one task that brings its own replica, in any worker.

    Args:
        data: a pickled ``Task``.

    Returns:
        A pickled ``ChunkReport``.
    """
    resident = _Resident()
    task: Task = pickle.loads(data)
    if task.refresh is not None:
        resident.receive(task.refresh)
    return pickle.dumps(_answered(resident, task), 5)


def _answered(resident: _Resident, task: Task) -> ChunkReport:
    try:
        return resident.answer(task)
    except BaseException as error:  # what escaped is answered, not raised into the executor
        image = TaskCodec(PickleBackend()).encode_exception(error, _NOTHING)
        return ChunkReport(failure=Failure(FailureKind.SETUP, 0, image))


def _find_backend(setup: WorkerSetup) -> CodecBackend:
    local = _local_setups.get(setup.token)
    if local is not None:
        return local.backend
    if setup.token not in _loaded_backends:
        _loaded_backends[setup.token] = _load(setup.backend, setup.problem)
    return _loaded_backends[setup.token]


def _ensure_initialized(setup: WorkerSetup) -> Failure | None:
    """Run the initializer if this worker has not run it; return what it raised, every time."""
    if not setup.has_initializer:
        return None
    if setup.token not in _initialized.failures:
        local = _local_setups.get(setup.token)
        initializer = local.initializer if local else _load(setup.initializer, setup.problem)
        initialize_worker(setup.token, initializer)
    return _initialized.failures[setup.token]


def _load(data: bytes | None, problem: str) -> Any:
    if data is None:
        raise pickle.PicklingError(problem)
    return pickle.loads(data)
