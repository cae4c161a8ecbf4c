"""Our own worker processes, behind the ``Executor`` interface.

```
submit ─▶ queue ─▶ lane (a thread) ═ pipe ═▶ process: recv, call, send
                     │
                     └─ the process ends ─▶ LaneDiedError with its exit code
```

Why not ``ProcessPoolExecutor``: up to Python 3.11 it can hang for ever when a worker dies while a
large task is on its way, it does not say with which exit code a worker died, it gives up the whole
pool, and it offers no way to end workers that are busy (Ctrl-C) before Python 3.14. One pipe for
each process makes all four simple.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import queue
import signal
import sys
import threading
import time
import traceback
import warnings
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from typing import Any, Final, ParamSpec, TypeVar

from .exceptions import WorkerStartError, WorkerTraceback

P = ParamSpec("P")
T = TypeVar("T")

# How long a worker gets to end by itself, in seconds, before it is killed.
_GRACE: Final = 2.0
# How often a lane looks whether its process still lives. Its end normally wakes the lane at once;
# not so when a process that the worker started keeps the worker's end of the pipe open.
_PULSE: Final = 1.0
# Exit code of a worker that found itself running the user's script (see _refuse_while_importing).
_NO_GUARD: Final = 97
_READY: Final = b"ready"


class LaneDiedError(Exception):
    """A worker process ended while it had a task, or before its first.

    Attributes:
        exit_code: of the process.
        start_method: of the process.
        started: whether it had come up.
    """

    def __init__(self, exit_code: int | None, start_method: str, started: bool) -> None:
        super().__init__(exit_code, start_method, started)
        self.exit_code = exit_code
        self.start_method = start_method
        self.started = started

    @property
    def missing_guard(self) -> bool:
        """Whether the worker ended because the script has no ``__name__`` guard."""
        return not self.started and self.exit_code == _NO_GUARD


@dataclass(eq=False, slots=True)
class _Work:
    """A call on its way, already turned to bytes."""

    future: Future[Any]
    call: bytes


@dataclass(eq=False)
class _Lane:
    """A worker process and this end of its pipe."""

    process: BaseProcess
    connection: Connection
    start_method: str
    busy: bool = False
    started: bool = False
    reaping: threading.Lock = field(default_factory=threading.Lock)


_Queue = queue.SimpleQueue["_Work | None"]


class WorkerPool(Executor):
    """Worker processes that live until the pool is shut down.

    Calls are pickled in the thread that submits them. A worker that dies fails its own call only,
    with `LaneDiedError`; the others go on, until none is left.

    Attributes:
        start_method: of the processes.
    """

    def __init__(
        self,
        max_workers: int,
        mp_context: BaseContext,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
    ) -> None:
        """Start the processes.

        They are started here, in the calling thread and before the pool has threads: a process
        forked from a thread may find locks held for ever.

        Raises:
            WorkerStartError: a process could not be started.
        """
        _refuse_while_importing()
        self.start_method: str = mp_context.get_start_method()
        self._work: _Queue = queue.SimpleQueue()
        self._lanes: list[_Lane] = []
        self._closed = False
        self._lock = threading.Lock()
        try:
            for _ in range(max_workers):
                self._lanes.append(self._start(mp_context, initializer, initargs))
        except BaseException:
            _end(self._lanes, self._work, os.getpid())
            raise
        self._threads = [
            threading.Thread(
                target=_drive,
                args=(lane, self._work, self._lanes),
                name="pams-parallel-lane",
                daemon=True,  # an exit must not wait for agents; _end is called at exit
            )
            for lane in self._lanes
        ]
        for thread in self._threads:
            thread.start()
        self._finalizer = weakref.finalize(self, _end, self._lanes, self._work, os.getpid())

    def _start(
        self,
        context: BaseContext,
        initializer: Callable[..., object] | None,
        initargs: tuple[Any, ...],
    ) -> _Lane:
        ours, theirs = context.Pipe()
        # A forked process inherits our ends of the pipes. It must close them, or the workers
        # would not see the end of their pipes when this process is killed.
        inherited = [ours, *(lane.connection for lane in self._lanes)]
        to_close = inherited if self.start_method == "fork" else []
        process: BaseProcess = context.Process(  # type: ignore[attr-defined]  # every context has it
            target=_serve, args=(theirs, to_close, initializer, initargs)
        )
        try:
            with _fork_warning_ignored():
                process.start()
        except Exception as error:
            ours.close()
            reason = f"{type(error).__name__}: {error}"
            raise WorkerStartError(self.start_method, reason) from error
        finally:
            theirs.close()
        return _Lane(process, ours, self.start_method)

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Pickle a call now, and run it in the next worker that is free.

        Raises:
            RuntimeError: the pool is shut down.
        """
        call = pickle.dumps((fn, args, kwargs), 5)
        future: Future[T] = Future()
        with self._lock:
            if self._closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._work.put(_Work(future, call))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the workers finish what was submitted, and end them. Harmless when repeated."""
        with self._lock:
            if cancel_futures:
                _cancel_all(self._work)
            if not self._closed:
                self._closed = True
                for _ in self._lanes:
                    self._work.put(None)
        if wait:
            for thread in self._threads:
                thread.join()
            self._finalizer()

    def close(self) -> None:
        """End the workers now: what has not begun is cancelled, and busy workers are killed."""
        with self._lock:
            _cancel_all(self._work)
        _kill_all([lane for lane in self._lanes if lane.busy or not lane.started])
        self.shutdown(wait=False)
        for thread in self._threads:
            thread.join(2 * _GRACE)
        self._finalizer()


def _cancel_all(work: _Queue) -> None:
    with contextlib.suppress(queue.Empty):
        while True:
            item = work.get_nowait()
            if item is None:
                work.put(None)
                return
            item.future.cancel()


def _drive(lane: _Lane, work: _Queue, lanes: list[_Lane]) -> None:
    """Give work to one process, until there is no more or the process has died (a thread)."""
    while (item := work.get()) is not None:
        if not item.future.set_running_or_notify_cancel():
            continue
        lane.busy = True
        try:
            result = _call(lane, item.call)
        except LaneDiedError as death:
            _fail(item, death)
            lanes_left = [other for other in lanes if other is not lane and _lives(other)]
            while not lanes_left:  # nobody will do the rest; this thread fails it
                rest = work.get()
                if rest is None:
                    return
                if rest.future.set_running_or_notify_cancel():
                    _fail(rest, death)
            return
        except BaseException as error:
            item.future.set_exception(error)
        else:
            item.future.set_result(result)
            del result
        finally:
            lane.busy = False
        del item  # an idle lane must not keep the last result alive
    _dismiss(lane)
    _join(lane)


def _dismiss(lane: _Lane) -> None:
    """Tell an idle worker to end. The word is needed: others may hold our end of its pipe."""
    with contextlib.suppress(OSError):
        lane.connection.send_bytes(b"")
    lane.connection.close()


def _fail(item: _Work, death: LaneDiedError) -> None:
    item.future.set_exception(LaneDiedError(death.exit_code, death.start_method, death.started))


def _lives(lane: _Lane) -> bool:
    """Return whether a process runs, without taking its exit code from the system.

    That can be taken once only: of two threads that ask at once, one may be told nothing.
    """
    if wait([lane.process.sentinel], 0):
        return False
    if lane.start_method == "forkserver":
        return True  # no child of ours
    # The sentinel says nothing while a process that the worker started keeps it open.
    pid = lane.process.pid
    try:
        look = os.WEXITED | os.WNOHANG | os.WNOWAIT
        return pid is not None and os.waitid(os.P_PID, pid, look) is None
    except ChildProcessError:
        return False


def _ends_within(lane: _Lane, seconds: float) -> bool:
    deadline = time.monotonic() + seconds
    while _lives(lane):
        remaining = deadline - time.monotonic()
        if remaining <= 0:
            return False
        wait([lane.process.sentinel], min(remaining, 0.05))
    return True


def _call(lane: _Lane, call: bytes) -> object:
    try:
        if not lane.started:
            _receive(lane)
            lane.started = True
        lane.connection.send_bytes(call)
        succeeded, result = pickle.loads(_receive(lane))
    except (EOFError, OSError) as error:  # our end is told when the other is gone
        raise LaneDiedError(_join(lane), lane.start_method, lane.started) from error
    if succeeded:
        return result
    raised, text = result
    raised.__cause__ = WorkerTraceback(text)
    raise raised


def _receive(lane: _Lane) -> bytes:
    while not lane.connection.poll():
        ready = wait([lane.connection, lane.process.sentinel], _PULSE)
        if lane.connection not in ready and not _lives(lane) and not lane.connection.poll():
            raise EOFError
    return lane.connection.recv_bytes()


def _join(lane: _Lane) -> int | None:
    """Wait for a process that is about to end, end one that does not, and return its exit code."""
    process = lane.process
    with lane.reaping:
        for end in (None, process.terminate, process.kill):
            if end is not None:
                end()
            if _ends_within(lane, _GRACE):
                break
        process.join(_GRACE)
        if process.exitcode is None:
            # Another thread may have been told in this moment (multiprocessing looks after all
            # children when it starts one), and not have written it down yet.
            time.sleep(0.05)
        return process.exitcode


def _kill_all(lanes: list[_Lane]) -> None:
    """End processes that have something to do: ask all, then kill those that do not listen."""
    for lane in lanes:
        lane.process.terminate()
    deadline = time.monotonic() + _GRACE
    for lane in lanes:
        if not _ends_within(lane, max(deadline - time.monotonic(), 0)):
            lane.process.kill()


def _end(lanes: list[_Lane], work: _Queue, owner: int) -> None:
    """End all processes and threads of a pool; at exit too, and when the pool was dropped."""
    if os.getpid() != owner:
        return  # a forked copy of the pool: the processes are not its own
    for _ in lanes:
        work.put(None)
    for lane in lanes:
        if lane.busy or not lane.started:
            lane.process.terminate()
        else:
            _dismiss(lane)
    for lane in lanes:
        _join(lane)


@contextlib.contextmanager
def _fork_warning_ignored() -> Iterator[None]:
    """Keep Python 3.12+ from warning about (or failing on) a fork in a process with threads.

    The workers use nothing of the parent's threads: their first act is to serve a pipe.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*multi-threaded.*fork", DeprecationWarning)
        yield


def _refuse_while_importing() -> None:
    """End a worker that is importing a script which starts the simulation again.

    Python would print a traceback from each worker; main says once what is wrong instead.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        sys.exit(_NO_GUARD)


def _serve(
    connection: Connection,
    inherited: list[Connection],
    initializer: Callable[..., object] | None,
    initargs: tuple[Any, ...],
) -> None:
    """Serve calls from a pipe until it ends (the main function of a worker process)."""
    for other in inherited:
        other.close()
    # Ctrl-C goes to all processes of a terminal. Main alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A handler inherited from main would turn its request to end into an agent's exception.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if initializer is not None:
        initializer(*initargs)
    with contextlib.suppress(EOFError, OSError):
        connection.send_bytes(_READY)
        while data := connection.recv_bytes():
            connection.send_bytes(_answer(data))


def _answer(data: bytes) -> bytes:
    try:
        fn, args, kwargs = pickle.loads(data)
        return pickle.dumps((True, fn(*args, **kwargs)), 5)
    except BaseException as error:
        # only for calls that are not ours: run_chunk answers its failures itself
        text = traceback.format_exc()
        try:
            answer = pickle.dumps((False, (error, text)), 5)
            pickle.loads(answer)  # many classes of exceptions can be written and not be read
            return answer
        except Exception:
            return pickle.dumps(
                (False, (RuntimeError(f"{type(error).__name__}: {error}"), text)), 5
            )
