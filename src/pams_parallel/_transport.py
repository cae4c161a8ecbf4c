"""From tasks to reports: in our own workers, which keep replicas, or in any executor."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import (
    FIRST_EXCEPTION,
    BrokenExecutor,
    CancelledError,
    Executor,
    Future,
    wait,
)
from time import perf_counter
from typing import Any, cast

from ._messages import Ask, ChunkReport, Refresh, Task
from ._pool import LaneDiedError, WorkerPool
from ._stats import BatchStats
from ._worker import run_chunk
from .exceptions import WorkerDiedError, WorkerStartError, WorkerTaskError


def run_tasks(
    executor: Executor,
    refresh: Refresh | None,
    tasks: Sequence[tuple[Ask, ...]],
    names_of: Callable[[int], tuple[str, ...]],
    stats: BatchStats,
    start: float,
) -> list[ChunkReport | BaseException]:
    """Run the tasks, and return their reports.

    A task is always answered: an exception means that a worker or the executor has failed.

    Args:
        executor: where.
        refresh: what workers must know first.
        tasks: the agents of each task.
        names_of: returns what to call the agents of a task in a message.
        stats: is told what it took.
        start: when encoding began.
    """
    answers: list[ChunkReport | BaseException | None] = [None] * len(tasks)
    run = _exchange if isinstance(executor, WorkerPool) else _submit
    keeps = isinstance(executor, WorkerPool)
    encoded = [pickle.dumps(Task(asks, None if keeps else refresh), 5) for asks in tasks]
    update = pickle.dumps(refresh, 5) if keeps and refresh is not None else None
    encoded_at = perf_counter()
    stats.tasks += len(tasks)
    stats.encoded_bytes += sum(map(len, encoded)) + len(update or b"")
    stats.encode_seconds += encoded_at - start
    received, broken = run(executor, update, encoded)
    waited = perf_counter() - encoded_at
    decode, ask = 0.0, 0.0
    for index, data in received.items():
        stats.received_bytes += len(data)
        answers[index] = report = pickle.loads(data)
        if report.decode_seconds + report.ask_seconds > decode + ask:
            decode, ask = report.decode_seconds, report.ask_seconds
    stats.decode_seconds += decode
    stats.ask_seconds += ask
    stats.send_seconds += max(waited - decode - ask, 0.0)
    if broken is None:
        return cast("list[ChunkReport | BaseException]", answers)
    not_done = [number for number, answer in enumerate(answers) if answer is None]
    failure = _worker_error(broken, tuple(name for n in not_done for name in names_of(n)))
    return [failure if answer is None else answer for answer in answers]


Answers = tuple[dict[int, bytes], BaseException | None]
"""The answers by number of the task, and what has failed."""


def _exchange(executor: Any, update: bytes | None, tasks: Sequence[bytes]) -> Answers:
    """Run the tasks in our own workers, which keep their replicas."""
    pool: WorkerPool = executor
    received: dict[int, bytes] = {}
    broken: BaseException | None = None
    try:
        for number, answer in pool.exchange(update, tasks):
            if isinstance(answer, LaneDiedError):
                broken = broken or answer
            else:
                received[number] = answer
    except Exception as error:
        broken = broken or error
    return received, broken


def _submit(executor: Executor, update: bytes | None, tasks: Sequence[bytes]) -> Answers:
    """Run the tasks in an executor that promises nothing: each brings a whole replica.

    When something has failed, the tasks that are not done are not waited for.
    """
    futures: list[Future[bytes]] = []
    received: dict[int, bytes] = {}
    broken: BaseException | None = None
    try:
        for task in tasks:
            futures.append(executor.submit(run_chunk, task))
    except BrokenExecutor as error:
        broken = error
    _wait(futures)
    for number, future in enumerate(futures):
        if not future.done():
            continue
        try:
            received[number] = future.result()
        except (Exception, CancelledError) as error:
            broken = broken or error
    return received, broken


def _wait(futures: Sequence[Future[bytes]]) -> None:
    """Wait until all are done, or one has failed.

    In slices: a Ctrl-C that comes in the moment before a lock is waited for is only seen when the
    waiting ends.
    """
    while True:
        done, pending = wait(futures, timeout=1.0, return_when=FIRST_EXCEPTION)
        if not pending or any(one.cancelled() or one.exception() for one in done):
            return


def _worker_error(error: BaseException, agents: tuple[str, ...]) -> BaseException:
    made: BaseException
    if isinstance(error, LaneDiedError):
        if error.missing_guard or (not error.started and (error.exit_code or 0) > 0):
            said = "" if error.missing_guard else _where_it_spoke(error.start_method)
            reason = f"it ended with exit code {error.exit_code} before its first task{said}"
            made = WorkerStartError(error.start_method, reason, error.missing_guard)
        else:
            made = WorkerDiedError(agents, error.exit_code)
    elif isinstance(error, BrokenExecutor):
        made = WorkerDiedError(agents, None, str(error))
    else:
        made = WorkerTaskError(agents, f"{type(error).__name__}: {error}")
    made.__cause__ = error
    return made


def _where_it_spoke(start_method: str) -> str:
    """Return what else is known of a worker that ended before its first task."""
    if start_method == "fork":
        return " (what it said itself is on stderr)"
    # a fork server that dies of the missing guard takes the worker along, with an exit code of 1
    return (
        " (what it said itself is on stderr; a script must start the simulation under "
        'if __name__ == "__main__":)'
    )
