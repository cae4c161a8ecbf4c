"""Our own worker processes, behind the ``Executor`` interface.

```
exchange ─▶ all lanes, in the calling thread ─────────────┐
                                                          ├─▶ lane ═ pipe ═▶ process
submit ─▶ queue ─▶ a thread that takes the next free lane ┘
```

Why not ``ProcessPoolExecutor``: up to Python 3.11 it can hang for ever when a worker dies while a
large task is on its way, it does not say with which exit code a worker died, it gives up the whole
pool, and it offers no way to end workers that are busy (Ctrl-C) before Python 3.14. One pipe for
each process makes all four simple.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Executor, Future
from multiprocessing import util
from multiprocessing.context import BaseContext
from typing import Any, ParamSpec, TypeVar

from ._crew import Crew, Work, exchange
from ._lane import GRACE, NO_GUARD, PULSE, Lane, LaneDiedError, make_call, start_lane
from ._serve import LaneService

__all__ = ["LaneDiedError", "LaneService", "WorkerPool"]

P = ParamSpec("P")
T = TypeVar("T")


class WorkerPool(Executor):
    """Worker processes that live until the pool is shut down.

    Calls are pickled in the thread that submits them. A worker that dies fails its own call or
    task only, with `LaneDiedError`; the others go on, until none is left.

    Attributes:
        start_method: of the processes.
        num_lanes: number of the processes that were started.
    """

    def __init__(
        self,
        max_workers: int,
        mp_context: BaseContext,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
        service: LaneService | None = None,
    ) -> None:
        """Start the processes.

        They are started here, in the calling thread and before the pool has threads: a process
        forked from a thread may find locks held for ever.

        Raises:
            WorkerStartError: a process could not be started.
        """
        _refuse_while_importing()
        self.start_method: str = mp_context.get_start_method()
        self.num_lanes = max_workers
        self._has_service = service is not None
        self._lanes: list[Lane] = []
        self._crew = Crew(self._lanes)
        try:
            for _ in range(max_workers):
                lane = start_lane(mp_context, self._lanes, service, initializer, initargs)
                self._lanes.append(lane)
        except BaseException:
            self._crew.end()
            raise
        # Not weakref.finalize: at the end of the program that may come after multiprocessing has
        # begun to wait for its processes, which it does without an end. With a priority this comes
        # before. It does nothing in a forked copy of this process.
        self._finalizer = util.Finalize(self, Crew.end, (self._crew,), exitpriority=10)

    def exchange(
        self, update: bytes | None, tasks: Sequence[bytes]
    ) -> Iterator[tuple[int, bytes | LaneDiedError]]:
        """Send an update to all workers, then tasks to those that are free; yield the answers.

        Every live worker gets the update, once and before its next task. Task ``i`` goes to
        worker ``i`` as far as all live and there are enough; the others follow in order. All is
        written when the iterator ends. No thread takes part, and nothing is copied.

        With tasks this begins when the iterator is first asked. An iterator that is left before
        its end leaves workers that owe an answer: the pool takes nothing more, and `close` ends
        them. One exchange at a time; it waits for calls that were submitted.

        Yields:
            The number of a task with its answer, or with the error when its worker died. Tasks
            that no worker is left for have the error of the last.

        Raises:
            RuntimeError: the pool has no service, is shut down, or an exchange was left.
            Exception: what the service raised.
        """
        if not self._has_service:
            raise RuntimeError("this pool has no service to answer with")
        with self._crew.turn:
            self._crew.check()
        answers = exchange(self._crew, update, tasks)
        return answers if tasks else iter([*answers])  # nobody asks for no answers

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Pickle a call now, and run it in the next worker that is free.

        Raises:
            RuntimeError: the pool is shut down, or an exchange was left.
        """
        data = make_call(fn, args, kwargs)
        future: Future[T] = Future()
        with self._crew.turn:
            self._crew.check()
            if len(self._crew.threads) < len(self._lanes):
                self._crew.start_thread()
            self._crew.work.put(Work(future, data))
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Let the workers finish what was submitted, and end them. Harmless when repeated."""
        crew = self._crew
        with crew.turn:
            if not crew.threads and not crew.ended and not wait:
                crew.start_thread()  # which ends the workers
            crew.take_no_more(cancel_futures)
        if wait:
            for thread in crew.threads:
                while thread.is_alive():
                    thread.join(PULSE)
            self._finalizer()

    def close(self) -> None:
        """End the workers now: what has not begun is cancelled, and busy workers are killed.

        Takes at most some 8 s, and that only where workers refuse to end.
        """
        self._finalizer()
        deadline = time.monotonic() + 4 * GRACE
        for thread in self._crew.threads:
            thread.join(max(deadline - time.monotonic(), 0))


def _refuse_while_importing() -> None:
    """End a worker that is importing a script which starts the simulation again.

    Python would print a traceback from each worker; main says once what is wrong instead.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        sys.exit(NO_GUARD)
