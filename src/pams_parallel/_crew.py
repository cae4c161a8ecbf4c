"""The workers of a pool: who talks to which, and their end.

Calls are made by threads that take one lane each; an exchange takes all of them, and no thread.
"""

from __future__ import annotations

import contextlib
import queue
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Final

from ._lane import PULSE, Lane, LaneDiedError, call, end_lanes, open_answer, wait_for
from ._serve import TASK, UPDATE

_SHUT: Final = "cannot schedule new futures after shutdown"
_LEFT: Final = "an exchange was left before its end: this pool can only be closed"
_SECOND: Final = "an exchange is under way in this pool"


@dataclass(eq=False, slots=True)
class Work:
    """A call on its way, already turned to bytes."""

    future: Future[Any]
    call: bytes


@dataclass(eq=False)
class Crew:
    """What a pool shares with its threads, which must not keep the pool itself alive.

    Attributes:
        lanes: the workers, dead ones too.
        turn: guards all that follows, and who takes which lane. Reentrant: the garbage collector
            may end a pool or an exchange in the midst of anything.
        work: calls for the threads; None ends one.
        threads: that have been started, one for each lane at most.
        running: how many of them run.
        closed: nothing more is taken.
        ended: the workers are being ended, or have been.
        exchanging: an exchange is under way.
        left: an exchange was left before its end.
    """

    lanes: list[Lane]
    turn: threading.Condition = field(default_factory=threading.Condition)
    work: queue.SimpleQueue[Work | None] = field(default_factory=queue.SimpleQueue)
    threads: list[threading.Thread] = field(default_factory=list)
    running: int = 0
    closed: bool = False
    ended: bool = False
    exchanging: bool = False
    left: bool = False

    def check(self) -> None:
        """Refuse what comes too late."""
        if self.closed:
            raise RuntimeError(_SHUT)
        if self.left:
            raise RuntimeError(_LEFT)

    def start_thread(self) -> None:
        """Start one more thread."""
        # a daemon: the end of the program must not wait for agents
        thread = threading.Thread(target=_drive, args=(self,), name="pams-parallel", daemon=True)
        thread.start()
        self.threads.append(thread)
        self.running += 1

    def take_no_more(self, cancel: bool) -> None:
        """Close the queue, and cancel what is in it if asked to."""
        if cancel:
            with contextlib.suppress(queue.Empty):
                while True:
                    item = self.work.get_nowait()
                    if item is not None:
                        item.future.cancel()
        if cancel or not self.closed:
            for _ in self.threads:
                self.work.put(None)
        self.closed = True
        self.turn.notify_all()

    def take_one(self) -> Lane:
        """Wait for a lane that is free, for a call.

        Raises:
            LaneDiedError: there is none left.
            RuntimeError: an exchange was left.
        """
        with self.turn:
            while True:
                living = [lane for lane in self.lanes if lane.death is None]
                if self.ended or not living:
                    raise self.last_death()
                if self.left:
                    raise RuntimeError(_LEFT)
                for lane in living:
                    if not lane.taken:
                        lane.taken = True
                        return lane
                self.turn.wait(PULSE)

    def take_all(self) -> list[Lane]:
        """Wait for all living lanes, for an exchange; one by one, so that calls cannot starve it.

        Raises:
            RuntimeError: the pool is shut down, or an exchange was left or is under way.
        """
        taken: list[Lane] = []
        with self.turn:
            self.check()
            if self.exchanging:
                raise RuntimeError(_SECOND)
            self.exchanging = True
            try:
                for lane in self.lanes:
                    while lane.taken:
                        self.turn.wait(PULSE)
                        self.check()
                    if lane.death is None:
                        lane.taken = True
                        taken.append(lane)
            except BaseException:
                self.exchanging = False
                self.give_back(taken)
                raise
        return taken

    def give_back(self, lanes: Sequence[Lane]) -> None:
        """Let others have lanes."""
        with self.turn:
            for lane in lanes:
                lane.taken = False
            self.turn.notify_all()

    def last_death(self) -> LaneDiedError:
        """Return an error for work that no lane is left for."""
        for lane in self.lanes:
            if lane.death is not None:
                return lane.death.again()
        return LaneDiedError(None, self.lanes[0].start_method if self.lanes else "", False)

    def end(self) -> None:
        """End all processes, in bounded time; at exit too, and when the pool was dropped.

        An idle worker may finish what it does, its initializer say: it is only told to end. One
        that is busy will not listen.
        """
        with self.turn:
            if self.ended:
                return
            self.ended = True
        try:
            with self.turn:
                self.take_no_more(cancel=True)
                lanes = [lane for lane in self.lanes if lane.death is None]
                busy = [lane for lane in lanes if lane.taken or lane.owes]
            for lane in lanes:
                if lane in busy:
                    lane.terminate()
                else:
                    lane.dismiss()
            end_lanes(lanes)
        except BaseException:  # a second Ctrl-C; nobody ends them later
            for lane in self.lanes:
                lane.kill()
            end_lanes(self.lanes)
            raise


def _drive(crew: Crew) -> None:
    """Make calls until there are no more; the last thread ends the workers (a thread)."""
    while (item := crew.work.get()) is not None:
        if item.future.set_running_or_notify_cancel():
            _make(crew, item)
        del item  # an idle thread must not keep the last result alive
    with crew.turn:
        crew.running -= 1
        last = not crew.running
    if last:
        crew.end()


def _make(crew: Crew, item: Work) -> None:
    try:
        lane = crew.take_one()
        try:
            result = call(lane, item.call)
        finally:
            if lane.owes and lane.death is None:
                # no memory for the answer, say: the next call would take it for its own
                lane.kill()
                end_lanes([lane])
            crew.give_back([lane])
    except BaseException as error:
        item.future.set_exception(error)
    else:
        item.future.set_result(result)


def exchange(
    crew: Crew, update: bytes | None, tasks: Sequence[bytes]
) -> Iterator[tuple[int, bytes | LaneDiedError]]:
    """Send an update and tasks to the workers; see ``WorkerPool.exchange``."""
    lanes = crew.take_all()
    taken = [*lanes]
    waiting = deque(enumerate(tasks))
    doing: dict[Lane, int] = {}

    def give_task(lane: Lane) -> None:
        if waiting:
            doing[lane], task = waiting.popleft()
            lane.put(TASK, task)
            lane.flush()

    settled = False
    try:
        for lane in lanes:
            if update is not None:
                lane.put(UPDATE, update)
            give_task(lane)
        settled = True
        for lane in lanes:
            lane.flush()
        while pending := [lane for lane in lanes if lane.pending]:
            for lane in wait_for(pending):
                try:
                    frame = lane.advance()
                except LaneDiedError as death:
                    lanes.remove(lane)
                    if lane in doing:
                        yield doing.pop(lane), death
                    continue
                if frame is not None:
                    index = doing.pop(lane)
                    give_task(lane)  # before main is busy with the answer
                    yield index, open_answer(*frame)
        for index, _ in waiting:
            yield index, crew.last_death()
    finally:
        with crew.turn:
            # not settled: interrupted before every lane had the update
            crew.left = not settled or any(lane.pending for lane in lanes)
            crew.exchanging = False
            crew.give_back(taken)
