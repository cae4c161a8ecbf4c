"""Main's half of a lane: a worker process, the pipe to it, and its death.

```
start_lane ─▶ put, flush ─▶ wait_for ─▶ advance ─▶ an answer
                               └─ the process ends ─▶ LaneDiedError with its exit code
```

Nothing here waits for a worker without looking whether it still lives. ``_serve`` is the worker's
half.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import select
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from multiprocessing import reduction
from multiprocessing.connection import wait
from multiprocessing.context import BaseContext
from multiprocessing.process import BaseProcess
from typing import Any, Final

from ._serve import ANSWER, CALL, END, READY, TASK, LaneService, serve
from ._wire import Wire, make_pair
from .exceptions import WorkerStartError, WorkerTraceback

# How long a worker gets to end by itself, in seconds, before it is asked harder.
GRACE: Final = 2.0
# How often somebody who waits for a lane looks whether its process still lives. Its end normally
# wakes him at once; not so when a process that the worker started keeps the worker's end of the
# pipe open. And a Ctrl-C that comes in the moment before the waiting is seen only after it.
PULSE: Final = 1.0
# Exit code of a worker that found itself running the user's script.
NO_GUARD: Final = 97


class LaneDiedError(Exception):
    """A worker process ended while it had a task, or before its first.

    Attributes:
        exit_code: of the process; None where unknown.
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
        return not self.started and self.exit_code == NO_GUARD

    def again(self) -> LaneDiedError:
        """Return an error of its own, for another who suffers from the same death."""
        return LaneDiedError(self.exit_code, self.start_method, self.started)


@dataclass(eq=False)
class Lane:
    """A worker process and main's end of its pipe. One thread at a time may talk to it.

    Attributes:
        process: the worker.
        wire: the end.
        start_method: of the process.
        taken: whether somebody talks to it; the pool's affair.
        owes: whether it has a task or call that it has not answered.
        started: whether it has come up.
        death: set when the process has ended.
    """

    process: BaseProcess
    wire: Wire
    start_method: str
    taken: bool = False
    owes: bool = False
    started: bool = False
    death: LaneDiedError | None = None
    _gone: bool = False
    _dismissed: bool = False
    _asked: bool = False
    _looked: float = field(default_factory=time.monotonic)
    _reaping: threading.RLock = field(default_factory=threading.RLock)

    def put(self, kind: int, data: bytes = b"") -> None:
        """Put a frame behind those to be written."""
        if kind in (TASK, CALL):
            self.owes = True  # first of all: who is interrupted later must find it busy
        self.wire.put(kind, data)

    def flush(self) -> None:
        """Write as far as there is room. That the process has ended is told by `advance`."""
        try:
            self.wire.flush()
        except OSError:
            self._gone = True

    @property
    def pending(self) -> bool:
        """Whether there is something to wait for."""
        return self.owes or self.wire.unsent

    def advance(self) -> tuple[int, bytes] | None:
        """Write and read without waiting; return the answer if it is here.

        Raises:
            LaneDiedError: the process has ended without one.
        """
        if self.death is not None:
            raise self.death.again()
        self.flush()
        # Whether it is gone was found out before this reading: all that it wrote is here.
        gone = self._gone
        try:
            while (frame := self.wire.get()) is not None:
                if frame[0] != READY:
                    self.owes = False
                    return frame
                self.started = True
        except (EOFError, OSError):
            gone = True
        if gone:
            end_lanes([self])
            raise self._bury().again()
        return None

    def is_ready(self, events: set[int]) -> bool:
        """Tell whether `advance` may have something to do, given which files are ready."""
        if self.wire.fd in events or self.death is not None:
            return True
        sentinel = self.process.sentinel in events
        if sentinel or time.monotonic() - self._looked >= PULSE:
            self._looked = time.monotonic()
            self._gone = self._gone or not self.lives()
        return self._gone

    def lives(self) -> bool:
        """Tell whether the process runs, without taking its exit code from the system.

        That can be taken once only: of two threads that ask at once, one may be told nothing.
        """
        if self.death is not None or wait([self.process.sentinel], 0):
            return False
        if self.start_method == "forkserver":
            return True  # no child of ours
        # The sentinel says nothing while a process that the worker started keeps it open.
        if not hasattr(os, "waitid"):  # Windows, and macOS before Python 3.13
            with self._reaping:
                return self.process.is_alive()
        pid = self.process.pid
        try:
            look = os.WEXITED | os.WNOHANG | os.WNOWAIT
            return pid is not None and os.waitid(os.P_PID, pid, look) is None
        except ChildProcessError:
            return False

    def dismiss(self) -> None:
        """Tell an idle worker to end when it has done what it does.

        The word is needed: others may hold our end of its pipe.
        """
        if not self._dismissed:
            self._dismissed = True
            self.put(END)
        self.flush()

    def say_goodbye(self) -> None:
        """Write on where the word to end did not fit."""
        if self._dismissed:
            self.flush()

    def terminate(self) -> None:
        """Ask the process to end; the second time it is not asked."""
        if self._asked:
            self.kill()
        self._asked = True
        self.process.terminate()

    def kill(self) -> None:
        """End the process."""
        self.process.kill()

    def _bury(self) -> LaneDiedError:
        """Note the end of the process, or that nothing could end it."""
        if self.death is None:
            self.death = LaneDiedError(self._exit_code(), self.start_method, self.started)
        self.wire.close()
        return self.death

    def _exit_code(self) -> int | None:
        with self._reaping:
            code = self.process.exitcode
            if code is None and not self.lives():
                # Another thread may have been told in this moment (multiprocessing looks after
                # all children when it starts one), and not have written it down yet.
                time.sleep(0.05)
                code = self.process.exitcode
            if code is not None:
                self.process.join()  # it has ended: multiprocessing forgets it
            return code


def start_lane(
    context: BaseContext,
    others: Sequence[Lane],
    service: LaneService | None,
    initializer: Callable[..., object] | None,
    initargs: tuple[Any, ...],
) -> Lane:
    """Start a worker process.

    Args:
        context: how.
        others: the lanes that are there already.
        service: what it does with updates and tasks.
        initializer: is called in it first.
        initargs: its arguments.

    Raises:
        WorkerStartError: it could not be started.
    """
    method: str = context.get_start_method()
    ours, theirs = make_pair()
    wire = Wire(ours, blocking=False)
    # A forked process inherits our ends of the pipes. It must close them, or the workers would
    # not see the end of their pipes when this process is killed.
    inherited = [wire, *(lane.wire for lane in others)] if method == "fork" else []
    process: BaseProcess = context.Process(  # type: ignore[attr-defined]  # every context has it
        target=serve, args=(theirs, inherited, service, initializer, initargs)
    )
    try:
        with _fork_warning_ignored():
            process.start()
    except BaseException as error:
        wire.close()
        if not isinstance(error, Exception):
            raise
        reason = f"{type(error).__name__}: {error}"
        unpicklable = _comes_from_pickling(error)
        raise WorkerStartError(method, reason, unpicklable=unpicklable) from error
    finally:
        theirs.close()
    return Lane(process, wire, method)


@contextlib.contextmanager
def _fork_warning_ignored() -> Iterator[None]:
    """Keep Python 3.12+ from warning about (or failing on) a fork in a process with threads.

    The workers use nothing of the parent's threads: their first act is to serve a pipe.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*multi-threaded.*fork", DeprecationWarning)
        yield


def _comes_from_pickling(error: BaseException) -> bool:
    """Tell whether multiprocessing failed to pickle the process object: pickling raises any type.

    All in it that is not ours is the initializer and its arguments.
    """
    frames = traceback.walk_tb(error.__traceback__)
    return any(frame.f_code is reduction.dump.__code__ for frame, _ in frames)


def wait_for(lanes: Iterable[Lane]) -> list[Lane]:
    """Wait, for `PULSE` seconds at most, until a lane can go on; return those that can."""
    lanes = list(lanes)
    if hasattr(select, "poll"):
        # a new selector would cost ten times as much (11 us for two workers)
        poll = select.poll()
        for lane in lanes:
            writing = select.POLLOUT if lane.wire.unsent else 0
            poll.register(lane.wire.fd, select.POLLIN | writing)
            poll.register(lane.process.sentinel, select.POLLIN)
        events = {fd for fd, _ in poll.poll(PULSE * 1000)}
    else:  # Windows: its sentinels cannot be selected; the end of a process ends its pipe
        reading = [lane.wire.fd for lane in lanes]
        writers = [lane.wire.fd for lane in lanes if lane.wire.unsent]
        readable, writable, _ = select.select(reading, writers, [], PULSE)
        events = {*readable, *writable}
    return [lane for lane in lanes if lane.is_ready(events)]


def end_lanes(lanes: Iterable[Lane]) -> None:
    """See processes to their end that have been told to; ask harder those that do not listen.

    Takes at most three times `GRACE`, for all of them together.
    """
    remaining = lanes = list(lanes)
    for ask in (Lane.say_goodbye, Lane.terminate, Lane.kill):
        for lane in remaining:
            ask(lane)
        deadline = time.monotonic() + GRACE
        while (
            remaining := [lane for lane in remaining if lane.lives()]
        ) and time.monotonic() < deadline:
            for lane in remaining:
                lane.say_goodbye()
            wait([lane.process.sentinel for lane in remaining], 0.02)
    for lane in lanes:
        lane._bury()


def make_call(function: Callable[..., object], args: tuple[Any, ...], kwargs: Any) -> bytes:
    """Pickle a call, for `call`."""
    return pickle.dumps((function, args, kwargs), 5)


def call(lane: Lane, data: bytes) -> object:
    """Have a worker make a call, and return or raise what it returned or raised.

    Raises:
        LaneDiedError: the process has ended.
    """
    lane.put(CALL, data)
    lane.flush()
    while (frame := lane.advance()) is None:
        wait_for([lane])
    return pickle.loads(open_answer(*frame))


def open_answer(kind: int, data: bytes) -> bytes:
    """Return an answer, or raise the exception that it is."""
    if kind == ANSWER:
        return data
    error, text = pickle.loads(data)
    error.__cause__ = WorkerTraceback(text)
    raise error
