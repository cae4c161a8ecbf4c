"""The worker's half of a lane: what a process does with the frames that main sends.

```
UPDATE ─▶ service.receive
TASK   ─▶ service.answer ─▶ ANSWER, or RAISED with the exception; then service.rest
CALL   ─▶ a pickled function ─▶ ANSWER or RAISED
END    ─▶ the process ends; so it does when the pipe ends
```

READY is said once, when the initializer has run. ``_lane`` is main's half.
"""

from __future__ import annotations

import contextlib
import gc
import pickle
import signal
import socket
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from ._wire import Wire

READY: Final = 0
UPDATE: Final = 1
TASK: Final = 2
CALL: Final = 3
ANSWER: Final = 4
RAISED: Final = 5
END: Final = 6


@dataclass(frozen=True, slots=True)
class LaneService:
    """What a worker does with updates and tasks: functions of modules, for they are pickled.

    Attributes:
        receive: takes an update. Should not raise; if it does, the next task is not done, and
            answered with the exception.
        answer: does a task.
        rest: is called when the answer has been sent. Should not raise either.
    """

    receive: Callable[[bytes], None]
    answer: Callable[[bytes], bytes]
    rest: Callable[[], None]


def serve(
    end: socket.socket,
    inherited: Sequence[Wire],
    service: LaneService | None,
    initializer: Callable[..., object] | None,
    initargs: tuple[Any, ...],
) -> None:
    """Serve main until the pipe ends (the main function of a worker process)."""
    # What a forked process inherits stays as it is: the collector would only make copies of it, by
    # writing on every page.
    gc.freeze()
    for other in inherited:
        other.close()
    # Ctrl-C goes to all processes of a terminal. Main alone decides what it means.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A handler inherited from main would turn its request to end into an agent's exception.
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    if initializer is not None:
        initializer(*initargs)
    server = _Server(Wire(end, blocking=True), service)
    with contextlib.suppress(EOFError, OSError):  # main is gone
        server.say(READY)
        while server.handle(*server.wire.receive()):
            pass


@dataclass(slots=True)
class _Server:
    wire: Wire
    service: LaneService | None
    # What `receive` or `rest` raised, against their promise. Another answer would be made from
    # what this worker does not know.
    trouble: tuple[int, bytes] | None = None

    def say(self, kind: int, data: bytes = b"") -> None:
        self.wire.put(kind, data)
        self.wire.flush()

    def handle(self, kind: int, data: bytes) -> bool:
        """Do what a frame says; return whether there may be more."""
        if kind == CALL:
            self.say(*_reply(_make_the_call, data))
        elif kind == TASK and self.service is not None:
            trouble, self.trouble = self.trouble, None
            self.say(*(trouble or _reply(self.service.answer, data)))
            self._guard(self.service.rest)
        elif kind == UPDATE and self.service is not None:
            self._guard(self.service.receive, data)
        return kind != END

    def _guard(self, function: Callable[..., None], *args: bytes) -> None:
        try:
            function(*args)
        except BaseException as error:
            self.trouble = self.trouble or (RAISED, _dump_error(error))


def _reply(function: Callable[[bytes], bytes], data: bytes) -> tuple[int, bytes]:
    try:
        return ANSWER, function(data)
    except BaseException as error:  # an agent's SystemExit, say: this process goes on
        return RAISED, _dump_error(error)


def _make_the_call(data: bytes) -> bytes:
    function, args, kwargs = pickle.loads(data)
    return pickle.dumps(function(*args, **kwargs), 5)


def _dump_error(error: BaseException) -> bytes:
    text = "".join(traceback.format_exception(error))
    try:
        data = pickle.dumps((error, text), 5)
        pickle.loads(data)  # many classes of exceptions can be written and not be read
        return data
    except Exception:
        return pickle.dumps((RuntimeError(f"{type(error).__name__}: {error}"), text), 5)
