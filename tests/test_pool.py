"""Our worker processes: what they run, how they end, and that none is left."""

from __future__ import annotations

import gc
import math
import multiprocessing
import operator
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future, wait
from pathlib import Path
from typing import Any, NoReturn

import psutil
import pytest
from configs import child_processes, has_ended, wait_for_end

from pams_parallel import WorkerStartError, WorkerTraceback
from pams_parallel._pool import LaneDiedError, WorkerPool

START_METHODS = multiprocessing.get_all_start_methods()
# The quickest there is. What holds for one start method only is tested with that.
QUICK = "fork" if "fork" in START_METHODS else START_METHODS[0]

MakePool = Callable[..., WorkerPool]


@pytest.fixture
def make_pool() -> Iterator[MakePool]:
    """Makes pools that are closed after the test."""
    pools: list[WorkerPool] = []

    def make(
        workers: int = 1, method: str = QUICK, initializer: Any = None, *initargs: object
    ) -> WorkerPool:
        context = multiprocessing.get_context(method)
        pools.append(WorkerPool(workers, context, initializer, initargs))
        return pools[-1]

    yield make
    while pools:
        pools.pop().close()


def pids_of(pool: WorkerPool) -> list[int]:
    """Return the process ids of the workers that live."""
    return [pid for lane in pool._lanes if (pid := lane.process.pid) and lane.process.is_alive()]


def wait_until(condition: Callable[[], object], seconds: float = 10) -> None:
    """Wait for something to become true."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.005)


def touch_and_sleep(path: Path) -> None:
    """Show that this has begun, then do nothing for long."""
    path.touch()
    time.sleep(60)


def sleeping(pool: WorkerPool, path: Path) -> Future[None]:
    """Return a call that has begun and will take long."""
    future = pool.submit(touch_and_sleep, path)
    wait_until(path.exists)
    return future


# ---------------------------------------------------------------------------- running


@pytest.mark.parametrize("method", START_METHODS)
def test_every_start_method(method: str, make_pool: MakePool) -> None:
    """Calls run in other processes, whatever way these are started, and return their results."""
    pool = make_pool(2, method)
    assert isinstance(pool, Executor)
    assert pool.start_method == method
    results = [pool.submit(math.factorial, number) for number in range(20)]
    assert [future.result(timeout=30) for future in results] == [
        math.factorial(number) for number in range(20)
    ]
    pid = pool.submit(os.getpid).result(timeout=30)
    assert pid in pids_of(pool)
    assert pid != os.getpid()


def test_arguments(make_pool: MakePool) -> None:
    """Positional and keyword arguments arrive, and `map` works as with other executors."""
    pool = make_pool(2)
    assert pool.submit(int, "ff", base=16).result(timeout=30) == 255
    assert list(pool.map(pow, [2, 3], [3, 2], timeout=30)) == [8, 9]


def test_workers_work_at_the_same_time(make_pool: MakePool, tmp_path: Path) -> None:
    """As many calls run at once as there are workers."""
    pool = make_pool(3)
    for number in range(3):
        sleeping(pool, tmp_path / str(number))
    waiting = pool.submit(os.getpid)
    assert not wait([waiting], timeout=0.1).done
    assert len(list(tmp_path.iterdir())) == 3


def test_workers_stay(make_pool: MakePool) -> None:
    """One worker runs all calls in one process: what it has loaded stays loaded."""
    pool = make_pool(1)
    assert len({pool.submit(os.getpid).result(timeout=30) for _ in range(5)}) == 1


def test_arguments_are_pickled_when_submitted(make_pool: MakePool, tmp_path: Path) -> None:
    """A call sees its arguments as they were when it was submitted, however long it waits."""
    pool = make_pool(1)
    items = [1]
    path = tmp_path / "begun"
    first = pool.submit(touch_and_wait, path)
    wait_until(path.exists)
    second = pool.submit(len, items)
    items.append(2)
    path.unlink()
    assert first.result(timeout=30) == "waited"
    assert second.result(timeout=30) == 1


def touch_and_wait(path: Path) -> str:
    """Show that this has begun, then wait until somebody takes notice."""
    path.touch()
    wait_until(lambda: not path.exists())
    return "waited"


def test_unpicklable_call_is_refused_at_once(make_pool: MakePool) -> None:
    """What cannot be pickled fails in the caller, and harms nobody."""
    pool = make_pool(1)
    with pytest.raises((pickle.PicklingError, AttributeError)):
        pool.submit(lambda: 1)
    assert pool.submit(os.getpid).result(timeout=30)


def test_large_results(make_pool: MakePool) -> None:
    """Calls and results of any size pass, also larger than a pipe's buffer."""
    pool = make_pool(2)
    payload = bytes(5_000_000)
    futures = [pool.submit(operator.concat, payload, b"x") for _ in range(4)]
    assert [len(future.result(timeout=30)) for future in futures] == [5_000_001] * 4


def test_result_is_not_kept(make_pool: MakePool) -> None:
    """An idle worker's thread does not keep the last result alive."""
    pool = make_pool(1)
    future = pool.submit(set, [1])
    result = weakref.ref(future.result(timeout=30))
    del future
    wait_until(lambda: gc.collect() >= 0 and result() is None, 3)


def test_cancelled_call_is_not_made(make_pool: MakePool, tmp_path: Path) -> None:
    """A call that is cancelled while it waits is not made, and those after it are."""
    pool = make_pool(1)
    path, trace = tmp_path / "begun", tmp_path / "trace"
    first = pool.submit(touch_and_wait, path)
    wait_until(path.exists)
    second, third = pool.submit(trace.touch), pool.submit(os.getpid)
    assert second.cancel()
    path.unlink()
    assert first.result(timeout=30) == "waited"
    assert third.result(timeout=30) in pids_of(pool)
    assert not trace.exists()


# ------------------------------------------------------------------------- exceptions


def raise_value_error() -> NoReturn:
    """Raise."""
    raise ValueError("of the call", 7)


def raise_local_error() -> NoReturn:
    """Raise what cannot be pickled."""

    class LocalError(Exception):
        pass

    raise LocalError("of the call")


class UnloadableError(Exception):
    """Can be written, and not be read."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__(f"{one} and {two}")


def raise_unloadable_error() -> NoReturn:
    """Raise what can be pickled, and not be loaded."""
    raise UnloadableError(1, 2)


def return_lambda() -> Callable[[], int]:
    """Return what cannot be pickled."""
    return lambda: 1


def test_exception_comes_back(make_pool: MakePool) -> None:
    """An exception of a call arrives with its arguments, its cause is the worker's traceback."""
    pool = make_pool(1)
    with pytest.raises(ValueError, match="of the call") as caught:
        pool.submit(raise_value_error).result(timeout=30)
    assert caught.value.args == ("of the call", 7)
    assert isinstance(caught.value.__cause__, WorkerTraceback)
    assert "in raise_value_error" in caught.value.__cause__.text
    assert pool.submit(os.getpid).result(timeout=30)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (raise_local_error, "LocalError: of the call"),
        (return_lambda, "lambda"),
        (raise_unloadable_error, "UnloadableError"),
    ],
)
def test_what_cannot_come_back(call: Callable[[], object], text: str, make_pool: MakePool) -> None:
    """A result or an exception that cannot be brought is told, and the worker goes on."""
    pool = make_pool(1)
    with pytest.raises(Exception, match=text) as caught:
        pool.submit(call).result(timeout=30)
    assert isinstance(caught.value.__cause__, WorkerTraceback)
    assert pool.submit(os.getpid).result(timeout=30)


@pytest.mark.parametrize("error", [SystemExit, KeyboardInterrupt])
def test_exit_of_a_call_is_an_exception(error: type[BaseException], make_pool: MakePool) -> None:
    """A call that exits raises in main; its worker goes on."""
    pool = make_pool(1)
    pid = pool.submit(os.getpid).result(timeout=30)
    with pytest.raises(error):
        pool.submit(raise_base, error).result(timeout=30)
    assert pool.submit(os.getpid).result(timeout=30) == pid


def raise_base(error: type[BaseException]) -> NoReturn:
    """Raise."""
    raise error(3)


# ---------------------------------------------------------------------- dead workers


def test_exit_code_of_a_worker_that_leaves(make_pool: MakePool) -> None:
    """A worker that ends in the midst of a call fails this call, with its exit code."""
    pool = make_pool(2)
    with pytest.raises(LaneDiedError) as caught:
        pool.submit(os._exit, 7).result(timeout=30)
    assert caught.value.exit_code == 7
    assert caught.value.start_method == QUICK
    assert caught.value.started
    assert not caught.value.missing_guard


def test_exit_code_of_a_worker_that_is_killed(make_pool: MakePool, tmp_path: Path) -> None:
    """A worker that is killed while it works fails its call, with the signal as exit code."""
    pool = make_pool(1)
    (pid,) = pids_of(pool)
    future = sleeping(pool, tmp_path / "begun")
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(LaneDiedError) as caught:
        future.result(timeout=10)
    assert caught.value.exit_code == -signal.SIGKILL


def test_worker_that_is_killed_while_idle(make_pool: MakePool) -> None:
    """A worker that died between two calls fails the next one, with its exit code."""
    pool = make_pool(1)
    pid = pool.submit(os.getpid).result(timeout=30)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not pids_of(pool))
    with pytest.raises(LaneDiedError) as caught:
        pool.submit(os.getpid).result(timeout=10)
    assert caught.value.exit_code == -signal.SIGKILL


def test_worker_that_is_killed_before_its_first_call(make_pool: MakePool) -> None:
    """A worker that did not come up is told from one that died at work."""
    pool = make_pool(1, "spawn")
    (pid,) = pids_of(pool)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(LaneDiedError) as caught:
        pool.submit(os.getpid).result(timeout=10)
    assert (caught.value.exit_code, caught.value.started) == (-signal.SIGKILL, False)


def test_other_workers_go_on(make_pool: MakePool) -> None:
    """After the end of a worker the others do the work."""
    pool = make_pool(2)
    died = pool.submit(os._exit, 1)
    futures = [pool.submit(abs, -number) for number in range(20)]
    with pytest.raises(LaneDiedError):
        died.result(timeout=30)
    assert [future.result(timeout=30) for future in futures] == list(range(20))


def test_all_workers_are_dead(make_pool: MakePool) -> None:
    """When no worker is left, what waits and what is submitted later fails, with the exit code."""
    pool = make_pool(2)
    futures = [pool.submit(os._exit, 5), pool.submit(os._exit, 5)]
    futures += [pool.submit(os._exit, 5) for _ in range(5)]
    for future in futures:
        with pytest.raises(LaneDiedError) as caught:
            future.result(timeout=30)
        assert caught.value.exit_code == 5
    with pytest.raises(LaneDiedError):
        pool.submit(os.getpid).result(timeout=30)
    pool.shutdown()


def test_all_workers_are_killed_while_idle(make_pool: MakePool) -> None:
    """Workers that all died between two calls leave no call without an answer."""
    pool = make_pool(2)
    for pid in pids_of(pool):
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not pids_of(pool))
    futures = [pool.submit(os.getpid) for _ in range(6)]
    for future in futures:
        with pytest.raises(LaneDiedError):
            future.result(timeout=10)


def test_cancelled_call_of_a_dead_pool(make_pool: MakePool, tmp_path: Path) -> None:
    """A call that is cancelled while it waits stays cancelled, also when the workers die."""
    pool = make_pool(1)
    (pid,) = pids_of(pool)
    first = sleeping(pool, tmp_path / "begun")
    second, third = pool.submit(os.getpid), pool.submit(os.getpid)
    assert second.cancel()
    os.kill(pid, signal.SIGKILL)
    for future, error in ((first, LaneDiedError), (second, CancelledError), (third, LaneDiedError)):
        with pytest.raises(error):
            future.result(timeout=10)


@pytest.mark.parametrize("direction", ["to the worker", "from the worker"])
def test_killed_while_a_large_payload_is_on_its_way(
    direction: str, make_pool: MakePool, tmp_path: Path
) -> None:
    """A worker that dies while 50 MB are in the pipe fails the call in bounded time."""
    pool = make_pool(1)
    pid = pool.submit(os.getpid).result(timeout=30)
    if direction == "to the worker":
        os.kill(pid, signal.SIGSTOP)  # it reads no more: the pipe is full
        future: Future[Any] = pool.submit(len, bytes(50_000_000))
        time.sleep(0.2)
    else:
        future = pool.submit(Slow, 50_000_000, tmp_path / "begun")
        wait_until((tmp_path / "begun").exists)
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(LaneDiedError) as caught:
        future.result(timeout=10)
    assert caught.value.exit_code == -signal.SIGKILL


class Slow:
    """Large, and slow to be pickled: a worker can be killed while it sends this."""

    def __init__(self, size: int, path: Path) -> None:
        self.size = size
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        self.path.touch()
        time.sleep(0.2)
        return bytes, (bytes(self.size),)


def fork_a_sleeper(path: Path) -> NoReturn:
    """Leave a process that keeps the pipe open, and die."""
    pid = os.fork()
    if pid == 0:
        time.sleep(30)
        os._exit(0)
    path.write_text(str(pid))
    os._exit(3)


@pytest.mark.skipif(QUICK != "fork", reason="needs fork")
def test_pipe_that_somebody_keeps_open(make_pool: MakePool, tmp_path: Path) -> None:
    """The end of a worker is noticed also where a process that it started holds its pipe."""
    pool = make_pool(1)
    future = pool.submit(fork_a_sleeper, tmp_path / "pid")
    try:
        with pytest.raises(LaneDiedError) as caught:
            future.result(timeout=10)
        assert caught.value.exit_code == 3
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def fork_a_sleeper_and_go_on(path: Path) -> int:
    """Leave a process that keeps the pipe open; return the process id of the worker."""
    pid = os.fork()
    if pid == 0:
        time.sleep(60)
        os._exit(0)
    path.write_text(str(pid))
    return os.getpid()


@pytest.fixture
def held_pool(make_pool: MakePool, tmp_path: Path) -> Iterator[WorkerPool]:
    """Yield a pool of one worker, whose pipe another process holds open."""
    if QUICK != "fork":
        pytest.skip("needs fork")
    pool = make_pool(1)
    pool.submit(fork_a_sleeper_and_go_on, tmp_path / "pid").result(timeout=30)
    yield pool
    os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def test_writing_to_a_pipe_that_somebody_keeps_open(held_pool: WorkerPool) -> None:
    """A call that fits in no pipe fails when its worker died before it, and is not written on."""
    (pid,) = pids_of(held_pool)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not pids_of(held_pool))
    future = held_pool.submit(len, bytes(5_000_000))
    with pytest.raises(LaneDiedError) as caught:
        future.result(timeout=30)
    assert caught.value.exit_code == -signal.SIGKILL


def test_closing_while_a_call_is_being_written(held_pool: WorkerPool) -> None:
    """No call is left without an end when the pool is closed, and no thread."""
    (pid,) = pids_of(held_pool)
    os.kill(pid, signal.SIGSTOP)  # it reads no more
    begun = held_pool.submit(len, bytes(5_000_000))
    waiting = held_pool.submit(len, bytes(5_000_000))
    wait_until(begun.running)
    held_pool.close()
    assert isinstance(begun.exception(timeout=30), LaneDiedError)
    assert waiting.cancelled()
    assert lane_threads() == set()


# ------------------------------------------------------------------- ending the pool


def test_shutdown_finishes_what_was_submitted(make_pool: MakePool) -> None:
    """An orderly shutdown waits for all calls, and leaves no process."""
    pool = make_pool(2)
    futures = [pool.submit(abs, -number) for number in range(10)]
    pool.shutdown()
    assert [future.result(timeout=0) for future in futures] == list(range(10))
    assert child_processes() == []


def test_shutdown_without_waiting(make_pool: MakePool) -> None:
    """A shutdown that does not wait lets the calls finish, and the workers end by themselves."""
    pool = make_pool(2)
    futures = [pool.submit(abs, -number) for number in range(10)]
    pool.shutdown(wait=False)
    assert [future.result(timeout=30) for future in futures] == list(range(10))
    assert wait_for_end(child_processes(), 5) == []


def test_shutdown_that_cancels(make_pool: MakePool, tmp_path: Path) -> None:
    """A shutdown may cancel what has not begun; what has begun is finished."""
    pool = make_pool(1)
    path = tmp_path / "begun"
    first = pool.submit(touch_and_wait, path)
    wait_until(path.exists)
    waiting = [pool.submit(os.getpid) for _ in range(3)]
    pool.shutdown(wait=False, cancel_futures=True)
    path.unlink()
    assert first.result(timeout=30) == "waited"
    assert all(future.cancelled() for future in waiting)
    pool.shutdown()


def test_second_shutdown_is_harmless(make_pool: MakePool) -> None:
    """Shutting down or closing again, in any order, does nothing and fails at nothing."""
    pool = make_pool(2)
    pool.shutdown()
    pool.shutdown()
    pool.close()
    pool.shutdown(wait=False, cancel_futures=True)
    pool.close()
    assert child_processes() == []


def test_with_block(make_pool: MakePool) -> None:
    """A `with` block shuts the pool down at its end."""
    with make_pool(1) as pool:
        future = pool.submit(os.getpid)
    assert future.result(timeout=0)
    assert child_processes() == []


def test_submit_after_shutdown(make_pool: MakePool) -> None:
    """A pool that is shut down takes no calls."""
    for end in (WorkerPool.shutdown, WorkerPool.close):
        pool = make_pool(1)
        end(pool)
        with pytest.raises(RuntimeError, match="after shutdown"):
            pool.submit(os.getpid)


def test_close_ends_busy_workers(make_pool: MakePool, tmp_path: Path) -> None:
    """Closing ends workers in the midst of a call, cancels what waits, and is quick."""
    pool = make_pool(2)
    busy = [sleeping(pool, tmp_path / str(number)) for number in range(2)]
    waiting = pool.submit(os.getpid)
    started = time.monotonic()
    pool.close()
    assert time.monotonic() - started < 5
    assert child_processes() == []
    for future in busy:
        with pytest.raises(LaneDiedError):
            future.result(timeout=5)
    assert waiting.cancelled()


def ignore_sigterm_and_sleep(path: Path) -> None:
    """Refuse to be ended in a friendly way."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    touch_and_sleep(path)


def test_close_ends_a_worker_that_refuses(make_pool: MakePool, tmp_path: Path) -> None:
    """A worker that does not end when it is told is killed, in bounded time."""
    pool = make_pool(1)
    pool.submit(ignore_sigterm_and_sleep, tmp_path / "begun")
    wait_until((tmp_path / "begun").exists)
    started = time.monotonic()
    pool.close()
    assert time.monotonic() - started < 10
    assert child_processes() == []


def test_close_ends_a_stopped_worker(make_pool: MakePool) -> None:
    """A worker that does nothing at all (stopped) is ended, too."""
    pool = make_pool(1)
    pid = pool.submit(os.getpid).result(timeout=30)
    os.kill(pid, signal.SIGSTOP)
    started = time.monotonic()
    pool.close()
    assert time.monotonic() - started < 10
    assert child_processes() == []


def test_close_ends_many_stopped_workers(make_pool: MakePool) -> None:
    """The time that workers are given is given to all of them at once."""
    pool = make_pool(6)
    for future in [pool.submit(time.sleep, 0.3) for _ in range(6)]:
        future.result(timeout=30)
    for pid in pids_of(pool):
        os.kill(pid, signal.SIGSTOP)
    started = time.monotonic()
    pool.close()
    assert time.monotonic() - started < 10
    assert child_processes() == []


def touch_in_turn(path: Path, seconds: float) -> None:
    """Show that this has begun, and after some time that it was let to end."""
    (path / f"begun {os.getpid()}").touch()
    time.sleep(seconds)
    (path / f"ended {os.getpid()}").touch()


@pytest.mark.parametrize("method", START_METHODS)
@pytest.mark.parametrize("end", [WorkerPool.shutdown, WorkerPool.close])
def test_closing_lets_the_initializer_end(
    end: Callable[[WorkerPool], None], method: str, make_pool: MakePool, tmp_path: Path
) -> None:
    """A worker without a task is told to end, and not killed in the midst of its initializer."""
    pool = make_pool(2, method, touch_in_turn, tmp_path, 0.5)
    wait_until(lambda: len([*tmp_path.glob("begun*")]) == 2, 60)
    end(pool)
    assert len([*tmp_path.glob("ended*")]) == 2
    assert [lane.process.exitcode for lane in pool._lanes] == [0, 0]


@pytest.mark.parametrize("signals", ["default", "ignored"])
def test_close_does_not_wait_for_an_endless_initializer(
    signals: str, make_pool: MakePool, tmp_path: Path
) -> None:
    """The time that it gets is bounded."""
    function = touch_and_sleep if signals == "default" else ignore_sigterm_and_sleep
    pool = make_pool(2, QUICK, function, tmp_path / "begun")
    wait_until((tmp_path / "begun").exists)
    started = time.monotonic()
    pool.close()
    assert time.monotonic() - started < 10
    assert child_processes() == []


def test_close_that_is_interrupted(make_pool: MakePool) -> None:
    """A second Ctrl-C while workers are waited for leaves none of them, also not a stopped one."""
    pool = make_pool(2)
    os.kill(pids_of(pool)[0], signal.SIGSTOP)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - the signal comes in the midst of it
        timer.start()
        pool.close()
    assert child_processes() == []


@pytest.mark.parametrize("method", START_METHODS)
def test_close_at_once(method: str, make_pool: MakePool) -> None:
    """A pool can be closed before its workers have come up."""
    pool = make_pool(2, method)
    pool.close()
    assert wait_for_end(child_processes(), 5) == []


def lane_threads() -> set[threading.Thread]:
    """Return the threads of pools."""
    return {thread for thread in threading.enumerate() if thread.name.startswith("pams-parallel")}


@pytest.mark.parametrize("used", [False, True], ids=["unused", "used"])
def test_dropped_pool_leaves_no_process(used: bool) -> None:
    """A pool that nobody holds any more ends its workers."""
    pool = WorkerPool(2, multiprocessing.get_context(QUICK))
    if used:
        pool.submit(os.getpid).result(timeout=30)
    assert len(child_processes()) == 2
    del pool
    gc.collect()
    assert wait_for_end(child_processes(), 5) == []


def test_dropped_pool_leaves_no_thread() -> None:
    """A pool that nobody holds any more ends its threads."""
    before = lane_threads()
    pool = WorkerPool(2, multiprocessing.get_context(QUICK))
    assert [future.result(timeout=30) for future in (pool.submit(abs, -1), pool.submit(abs, -2))]
    assert len(lane_threads() - before) == 2
    del pool
    gc.collect()
    wait_until(lambda: lane_threads() <= before, 5)


@pytest.mark.parametrize("end", [WorkerPool.shutdown, WorkerPool.close])
def test_no_thread_is_left(end: Callable[[WorkerPool], None], make_pool: MakePool) -> None:
    """When the pool has been ended, its threads have ended, too."""
    before = lane_threads()
    pool = make_pool(3)
    assert lane_threads() <= before  # only calls need them
    assert list(pool.map(abs, range(-9, 0))) == list(range(9, 0, -1))
    assert len(lane_threads() - before) == 3
    end(pool)
    assert lane_threads() <= before


@pytest.mark.skipif(QUICK != "fork", reason="needs fork")
def test_forked_copy_harms_nobody(make_pool: MakePool) -> None:
    """A process forked from ours that ends with a copy of the pool leaves the workers alone."""
    pool = make_pool(1)
    pid = pool.submit(os.getpid).result(timeout=30)
    with warnings.catch_warnings():
        # Python 3.12 warns of the pool's threads; the child ends before it could need them
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        pool._finalizer()
        os._exit(0)
    os.waitpid(child, 0)
    assert pool.submit(os.getpid).result(timeout=30) == pid


@pytest.mark.parametrize("first", ["", "import tempfile; kept = tempfile.TemporaryDirectory()"])
def test_program_that_just_ends(first: str) -> None:
    """A program that ends with an open pool, busy too, ends its workers, and says nothing.

    Whatever it used before: what Python runs at exit depends on the order of imports.
    """
    script = textwrap.dedent(
        f"""
        {first}
        import multiprocessing, os, time
        from pams_parallel._pool import WorkerPool
        if __name__ == "__main__":
            pool = WorkerPool(2, multiprocessing.get_context({QUICK!r}))
            print(pool.submit(os.getpid).result(timeout=30))
            busy = [pool.submit(time.sleep, 60) for _ in range(2)]
            time.sleep(0.2)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert wait_until_ended(int(done.stdout))


def test_program_that_is_killed() -> None:
    """Workers of a program that was killed end by themselves."""
    script = textwrap.dedent(
        f"""
        import multiprocessing, os, time
        from pams_parallel._pool import WorkerPool
        if __name__ == "__main__":
            pool = WorkerPool(3, multiprocessing.get_context({QUICK!r}))
            print(*{{pool.submit(os.getpid).result(timeout=30) for _ in range(9)}})
            print(*[lane.process.pid for lane in pool._lanes], flush=True)
            os.kill(os.getpid(), 9)
        """
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == -signal.SIGKILL
    pids = done.stdout.splitlines()[-1].split()
    assert len(pids) == 3
    assert all(wait_until_ended(int(pid)) for pid in pids)


def wait_until_ended(pid: int) -> bool:
    """Tell whether a process ends soon."""
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if not psutil.pid_exists(pid) or has_ended(psutil.Process(pid)):
            return True
        time.sleep(0.02)
    os.kill(pid, signal.SIGKILL)
    return False


# ----------------------------------------------------------------- signals, initializer


def handlers() -> tuple[bool, bool]:
    """Tell whether Ctrl-C is ignored here, and a request to end is not caught."""
    return (
        signal.getsignal(signal.SIGINT) is signal.SIG_IGN,
        signal.getsignal(signal.SIGTERM) is signal.SIG_DFL,
    )


@pytest.mark.parametrize("method", START_METHODS)
def test_signals_of_workers(method: str, make_pool: MakePool) -> None:
    """Workers ignore Ctrl-C, and have no handler of main for a request to end."""
    before = signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        pool = make_pool(1, method)
        assert pool.submit(handlers).result(timeout=30) == (True, True)
    finally:
        signal.signal(signal.SIGTERM, before)


def test_worker_survives_ctrl_c(make_pool: MakePool) -> None:
    """Ctrl-C that reaches a worker, idle or busy, does nothing there."""
    pool = make_pool(1)
    pid = pool.submit(os.getpid).result(timeout=30)
    future = pool.submit(time.sleep, 0.3)
    for _ in range(3):
        time.sleep(0.05)
        os.kill(pid, signal.SIGINT)
    future.result(timeout=30)
    os.kill(pid, signal.SIGINT)
    assert pool.submit(os.getpid).result(timeout=30) == pid


memory: list[object] = []
"""Kept by a worker's copy of this module."""


def remember(*args: object) -> None:
    """Keep the arguments in this process."""
    memory.append((os.getpid(), *args))


def recall(path: Path) -> list[Any]:
    """Return what this process has kept, when all workers are here."""
    (path / str(os.getpid())).touch()
    wait_until(lambda: len(list(path.iterdir())) == 2)
    return memory


@pytest.mark.parametrize("method", START_METHODS)
def test_initializer(method: str, make_pool: MakePool, tmp_path: Path) -> None:
    """The initializer runs once in each worker, with its arguments, and not in main."""
    memory.clear()
    pool = make_pool(2, method, remember, "a", [1])
    futures = [pool.submit(recall, tmp_path) for _ in range(2)]
    kept = [entry for future in futures for entry in future.result(timeout=30)]
    assert sorted(pid for pid, *_ in kept) == sorted(pids_of(pool))
    assert [args for _, *args in kept] == [["a", [1]]] * 2
    assert memory == []


locks: list[Any] = []
"""Kept by a worker's copy of this module."""


def keep_lock(lock: Any) -> None:
    """Keep a lock in this process."""
    locks.append(lock)


def try_lock() -> bool:
    """Tell whether the lock is free."""
    return bool(locks[0].acquire(timeout=0.1))


@pytest.mark.parametrize("method", START_METHODS)
def test_locks_travel_with_the_initializer(method: str, make_pool: MakePool) -> None:
    """A lock of multiprocessing among the initializer's arguments is the lock of main."""
    lock = multiprocessing.get_context(method).Lock()
    pool = make_pool(1, method, keep_lock, lock)
    with lock:
        assert pool.submit(try_lock).result(timeout=30) is False
    assert pool.submit(try_lock).result(timeout=30) is True
    assert lock.acquire(block=False) is False


def test_process_that_cannot_be_started() -> None:
    """A worker that cannot be started is an error that says why; those before it are ended."""
    context = multiprocessing.get_context(QUICK)
    started: list[None] = []

    class FailingProcess(context.Process):  # type: ignore[name-defined,misc]  # every context has it
        def start(self) -> None:
            if started:
                raise BlockingIOError(11, "Resource temporarily unavailable")
            super().start()
            started.append(None)

    class FailingContext(type(context)):  # type: ignore[misc]  # a class that is not known
        Process = FailingProcess

    with pytest.raises(WorkerStartError, match="Resource temporarily unavailable") as caught:
        WorkerPool(2, FailingContext())
    assert repr(QUICK) in str(caught.value)
    assert not caught.value.unpicklable
    assert "__main__" not in str(caught.value)
    assert "hook" not in str(caught.value)
    assert isinstance(caught.value.__cause__, BlockingIOError)
    assert wait_for_end(child_processes(), 5) == []


class Unpicklable:
    """Refuses to be pickled, with an error of any type."""

    def __reduce__(self) -> NoReturn:
        raise LookupError("not this one")


@pytest.mark.parametrize("method", [method for method in START_METHODS if method != "fork"])
@pytest.mark.parametrize(
    ("initializer", "initargs", "text"),
    [
        (lambda: 1, (), "lambda"),
        (print, (lambda: 1,), "lambda"),
        (print, (Unpicklable(),), "not this one"),
        (print, (threading.Lock(),), "lock"),
    ],
)
def test_initializer_that_cannot_be_sent(
    initializer: Callable[..., object], initargs: tuple[object, ...], text: str, method: str
) -> None:
    """The error names the hooks that it comes from, and does not speak of the guard."""
    with pytest.raises(WorkerStartError, match=text) as caught:
        WorkerPool(2, multiprocessing.get_context(method), initializer, initargs)
    assert caught.value.unpicklable
    for hook in ("_get_worker_initializer", "_get_worker_initargs"):
        assert hook in str(caught.value)
    assert "__main__" not in str(caught.value)
    assert caught.value.__cause__ is not None
    assert wait_for_end(child_processes(), 5) == []


def test_script_without_a_guard(tmp_path: Path) -> None:
    """A script that makes a pool while it is imported is found out by its workers, in silence."""
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent(
            """
            import multiprocessing, os
            from pams_parallel._pool import LaneDiedError, WorkerPool
            pool = WorkerPool(1, multiprocessing.get_context("spawn"))
            try:
                pool.submit(os.getpid).result(timeout=30)
            except LaneDiedError as death:
                print(death.missing_guard)
            pool.close()
            """
        )
    )
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.stdout, done.stderr) == ("True\n", "")
