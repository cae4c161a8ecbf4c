"""Exchanges with worker processes: who gets what, in which order, and what a death does."""

from __future__ import annotations

import functools
import hashlib
import multiprocessing
import os
import pickle
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any, NoReturn

import pytest
from configs import child_processes
from hypothesis import given, settings
from hypothesis import strategies as st
from test_pool import START_METHODS, lane_threads, pids_of, touch_and_sleep, wait_until

from pams_parallel import WorkerTraceback
from pams_parallel._pool import LaneDiedError, LaneService, WorkerPool

QUICK = "fork" if "fork" in START_METHODS else START_METHODS[0]
LARGE = 50_000_000

MakePool = Callable[..., WorkerPool]


# ------------------------------------------------------------------------ in the workers


class Seen:
    """What a worker has seen."""

    updates: list[bytes] = []
    chain = b""
    rests = 0


def receive(update: bytes) -> None:
    """Note an update; one that says so is refused."""
    Seen.chain = link(Seen.chain, update)
    Seen.updates.append(update[:20])
    if update == b"refuse":
        raise SystemExit("refused")


def link(chain: bytes, update: bytes) -> bytes:
    """Return a digest of all updates up to this one."""
    return hashlib.sha256(chain + hashlib.sha256(update).digest()).digest()


def answer(task: bytes) -> bytes:
    """Make a call."""
    function, args = pickle.loads(task)
    return pickle.dumps(function(*args), 5)


def rest() -> None:
    """Count."""
    Seen.rests += 1


SERVICE = LaneService(receive, answer, rest)


def task(function: Callable[..., Any], *args: Any) -> bytes:
    """Return a task for `answer`."""
    return pickle.dumps((function, args), 5)


def updates() -> tuple[int, list[bytes]]:
    """Return which updates this worker has seen."""
    return os.getpid(), Seen.updates


def rests() -> int:
    """Return how often this worker has rested."""
    return Seen.rests


def echo(word: bytes) -> tuple[bytes, bytes]:
    """Return the word, and what was seen before."""
    return word, Seen.chain


def raise_value_error() -> NoReturn:
    """Raise."""
    raise ValueError("of the task", 7)


def fork_a_sleeper(path: Path, exit_code: int | None) -> None:
    """Leave a process that keeps the pipe open; then die, or go on."""
    pid = os.fork()
    if pid == 0:
        time.sleep(60)
        os._exit(0)
    path.write_text(str(pid))
    if exit_code is not None:
        os._exit(exit_code)


def meet(path: Path, number: int) -> int:
    """Wait until so many workers are here; return the process id."""
    (path / str(os.getpid())).touch()
    wait_until(lambda: len([*path.iterdir()]) >= number, 60)
    return os.getpid()


def plain_receive(update: bytes) -> None:
    """Do nothing."""


def plain_answer(data: bytes) -> bytes:
    """Return the task itself."""
    return data


PLAIN = LaneService(plain_receive, plain_answer, rest)


# ------------------------------------------------------------------------------- in main


@pytest.fixture
def make_pool() -> Iterator[MakePool]:
    """Makes pools that are closed after the test."""
    pools: list[WorkerPool] = []

    def make(
        workers: int = 1,
        method: str = QUICK,
        service: LaneService | None = SERVICE,
        initializer: Callable[..., object] | None = None,
        initargs: tuple[Any, ...] = (),
    ) -> WorkerPool:
        context = multiprocessing.get_context(method)
        pools.append(WorkerPool(workers, context, initializer, initargs, service))
        return pools[-1]

    yield make
    while pools:
        pools.pop().close()
    assert lane_threads() == set()


def run(pool: WorkerPool, update: bytes | None, *tasks: bytes) -> list[Any]:
    """Make an exchange; return the values, or the deaths, in the order of the tasks."""
    got = dict(pool.exchange(update, tasks))
    assert sorted(got) == [*range(len(tasks))]
    values = [got[index] for index in range(len(tasks))]
    return [one if isinstance(one, LaneDiedError) else pickle.loads(one) for one in values]


def kill(pool: WorkerPool, lane: int) -> None:
    """Kill an idle worker, and wait for its end."""
    pid = pool._lanes[lane].process.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: pid not in pids_of(pool))


# --------------------------------------------------------------------------------- laws


@pytest.mark.parametrize("method", START_METHODS)
def test_every_start_method(method: str, make_pool: MakePool) -> None:
    """All workers get the update, also the idle one, before the tasks; no thread takes part."""
    pool = make_pool(3, method)
    assert pool.num_lanes == 3
    values = run(pool, b"one", task(updates), task(updates))
    assert [pid for pid, _ in values] == [lane.process.pid for lane in pool._lanes[:2]]
    assert [seen for _, seen in values] == [[b"one"]] * 2
    assert run(pool, None, *[task(updates)] * 3) == [
        (lane.process.pid, [b"one"]) for lane in pool._lanes
    ]
    assert lane_threads() == set()


BATCHES = st.lists(
    st.tuples(st.none() | st.binary(max_size=20), st.lists(st.binary(max_size=9), max_size=7)),
    max_size=6,
)


@pytest.mark.parametrize("lanes", [1, 2, 3])
def test_answers_belong_to_tasks_and_updates_come_before(lanes: int, make_pool: MakePool) -> None:
    """Any number of tasks: each is answered once, after all updates in their order."""
    pool = make_pool(lanes)
    chain = b""

    @settings(max_examples=40, deadline=None)
    @given(batches=BATCHES)
    def check(batches: list[tuple[bytes | None, list[bytes]]]) -> None:
        nonlocal chain
        for update, words in batches:
            if update is not None:
                chain = link(chain, update)
            values = run(pool, update, *[task(echo, word) for word in words])
            assert values == [(word, chain) for word in words]

    check()


def test_no_tasks(make_pool: MakePool) -> None:
    """Without tasks the update is sent to all, also when nobody asks for the answers."""
    pool = make_pool(2)
    pool.exchange(b"one", [])
    assert [*pool.exchange(b"two", ())] == []
    assert [*pool.exchange(None, ())] == []
    pool.exchange(b"", [])
    values = run(pool, None, task(updates), task(updates))
    assert [seen for _, seen in values] == [[b"one", b"two", b""]] * 2


def test_more_tasks_than_workers(make_pool: MakePool, tmp_path: Path) -> None:
    """Tasks go to the workers that are free: one that is slow gets no more."""
    pool = make_pool(2)
    slow = task(wait_for_file, tmp_path / "go")
    order = []
    for index, value in pool.exchange(None, [slow, *[task(os.getpid)] * 5]):
        order.append(index)
        assert isinstance(value, bytes)
        expected = pool._lanes[0 if index == 0 else 1].process.pid
        assert pickle.loads(value) == expected
        if index == 5:
            (tmp_path / "go").touch()
    assert order == [1, 2, 3, 4, 5, 0]


def wait_for_file(path: Path) -> int:
    """Wait for somebody to make a file."""
    wait_until(path.exists, 60)
    return os.getpid()


def test_workers_work_at_the_same_time(make_pool: MakePool, tmp_path: Path) -> None:
    """As many tasks run at once as there are workers."""
    pool = make_pool(3)
    assert len({*run(pool, None, *[task(meet, tmp_path, 3)] * 3)}) == 3


def test_rest_comes_after_each_answer(make_pool: MakePool) -> None:
    """`rest` is called once after each task, and not after updates and calls."""
    pool = make_pool(1)
    for number in range(4):
        assert run(pool, b"update", task(rests)) == [number]
        assert pool.submit(abs, -1).result(timeout=30) == 1


@pytest.mark.parametrize("lanes", [1, 2])
def test_large_frames_both_ways_at_once(lanes: int, make_pool: MakePool) -> None:
    """50 MB as update, tasks and answers, all at once, block nobody."""
    pool = make_pool(lanes, service=PLAIN)
    tasks = [bytes([number]) * LARGE for number in range(lanes + 1)]
    got = dict(pool.exchange(bytes(LARGE), tasks))
    assert all(got[index] == one for index, one in enumerate(tasks))


def test_large_updates_to_workers_that_have_not_come_up(
    make_pool: MakePool, tmp_path: Path
) -> None:
    """An update that fits in no pipe waits for the worker."""
    pool = make_pool(2, initializer=meet, initargs=(tmp_path, 3))
    threading.Timer(0.3, (tmp_path / "main").touch).start()
    sent = [b"one" + bytes(5_000_000), b"two" + bytes(5_000_000)]
    for update in sent:
        pool.exchange(update, [])
    values = run(pool, None, *[task(echo, b"")] * 2)
    assert values == [(b"", functools.reduce(link, sent, b""))] * 2


def test_calls_and_exchanges_take_turns(make_pool: MakePool) -> None:
    """Calls may be submitted at any time: they wait for an exchange, and it waits for them."""
    pool = make_pool(2)
    futures = [pool.submit(abs, -number) for number in range(10)]
    answers = pool.exchange(None, [task(abs, -1), task(abs, -2)])
    first = next(answers)
    futures += [pool.submit(abs, -number) for number in range(10, 20)]
    assert sorted(index for index, _ in (first, *answers)) == [0, 1]
    assert [future.result(timeout=30) for future in futures] == [*range(20)]
    assert run(pool, None, task(abs, -3)) == [3]


# ----------------------------------------------------------------------------- refusals


def test_a_pool_without_a_service(make_pool: MakePool) -> None:
    """It makes no exchanges, and goes on."""
    pool = make_pool(1, service=None)
    with pytest.raises(RuntimeError, match="no service"):
        pool.exchange(None, [b""])
    assert pool.submit(abs, -1).result(timeout=30) == 1


@pytest.mark.parametrize("end", [WorkerPool.shutdown, WorkerPool.close])
def test_a_pool_that_is_shut_down(end: Callable[[WorkerPool], None], make_pool: MakePool) -> None:
    """It makes no exchanges."""
    pool = make_pool(1)
    end(pool)
    for tasks in ([], [b""]):
        with pytest.raises(RuntimeError, match="after shutdown"):
            pool.exchange(b"", tasks)


def test_one_exchange_at_a_time(make_pool: MakePool) -> None:
    """A second exchange in the midst of the first is refused, and harms nobody."""
    pool = make_pool(1)
    answers = pool.exchange(None, [task(abs, -1), task(abs, -2)])
    next(answers)
    with pytest.raises(RuntimeError, match="under way"):
        pool.exchange(b"", [])
    assert [index for index, _ in answers] == [1]
    assert run(pool, None, task(updates))[0][1] == []


def test_what_a_task_raises(make_pool: MakePool) -> None:
    """An exception of the service is raised in main; nothing is owed, so the pool goes on."""
    pool = make_pool(1)
    with pytest.raises(ValueError, match="of the task") as caught:
        run(pool, None, task(raise_value_error))
    assert caught.value.args == ("of the task", 7)
    assert isinstance(caught.value.__cause__, WorkerTraceback)
    assert "in raise_value_error" in caught.value.__cause__.text
    assert run(pool, None, task(abs, -1)) == [1]


def test_what_an_update_raises(make_pool: MakePool) -> None:
    """A worker does not die of an update that fails; its next task is not done, and says so."""
    pool = make_pool(1)
    pid = pids_of(pool)[0]
    pool.exchange(b"refuse", [])
    pool.exchange(b"second", [])
    with pytest.raises(SystemExit, match="refused") as caught:
        run(pool, b"third", task(updates))
    assert isinstance(caught.value.__cause__, WorkerTraceback)
    assert run(pool, None, task(updates)) == [(pid, [b"refuse", b"second", b"third"])]


# ---------------------------------------------------------------------------- left early


def fail_in_the_midst(answers: Iterator[object]) -> NoReturn:
    """Leave an exchange as an error of the caller does."""
    for _ in answers:
        raise ZeroDivisionError
    raise AssertionError("no answers")


@pytest.mark.parametrize("how", ["close", "drop", "error"])
def test_an_exchange_that_is_left(how: str, make_pool: MakePool, tmp_path: Path) -> None:
    """The pool takes nothing more, and closing it kills who owes an answer."""
    pool = make_pool(3)
    begun = tmp_path / "begun"
    tasks = [task(wait_for_file, begun), task(touch_and_sleep, begun)]
    if how == "error":
        with pytest.raises(ZeroDivisionError):
            fail_in_the_midst(pool.exchange(b"one", tasks))
    else:
        answers: Any = pool.exchange(b"one", tasks)
        assert next(answers)[0] == 0
        if how == "close":
            answers.close()
        del answers
    with pytest.raises(RuntimeError, match="left before its end"):
        pool.exchange(None, [b""])
    with pytest.raises(RuntimeError, match="left before its end"):
        pool.submit(abs, -1)
    started = time.monotonic()
    pool.close()
    assert time.monotonic() - started < 10
    assert child_processes() == []


def test_an_exchange_that_is_held_when_the_pool_is_closed(
    make_pool: MakePool, tmp_path: Path
) -> None:
    """The iterator may live on, in a traceback say: the pool ends, and it tells of deaths."""
    pool = make_pool(2)
    answers = pool.exchange(None, [task(abs, -1), task(touch_and_sleep, tmp_path / "begun")])
    assert next(answers)[0] == 0
    wait_until((tmp_path / "begun").exists)
    waiting = pool.submit(abs, -1)
    pool.close()
    assert child_processes() == []
    assert isinstance(dict(answers)[1], LaneDiedError)
    assert waiting.done()


def test_an_exchange_whose_last_answer_was_taken(make_pool: MakePool) -> None:
    """Who takes all answers and never asks for the end has left nothing."""
    pool = make_pool(2)
    answers = pool.exchange(b"one", [task(abs, -1)])
    assert next(answers)[0] == 0
    del answers
    assert [seen for _, seen in run(pool, None, *[task(updates)] * 2)] == [[b"one"]] * 2


@pytest.mark.parametrize("large", [False, True])
def test_ctrl_c(large: bool, make_pool: MakePool, tmp_path: Path) -> None:
    """It interrupts at once, also while frames are on their way to workers that do not read."""
    pool = make_pool(2)
    if large:
        for pid in pids_of(pool):
            os.kill(pid, signal.SIGSTOP)
    else:
        run(pool, None, task(abs, -1), task(abs, -1))
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    tasks = [task(touch_and_sleep, tmp_path / str(number)) for number in range(2)]
    with pytest.raises(KeyboardInterrupt):  # noqa: PT012 - the signal may come at any moment
        timer.start()
        run(pool, bytes(LARGE if large else 0), *tasks)
    with pytest.raises(RuntimeError, match="left before its end"):
        pool.exchange(None, [b""])
    started = time.monotonic()
    pool.close()
    assert time.monotonic() - started < 10
    assert child_processes() == []


# -------------------------------------------------------------------------------- deaths


def assert_died(value: object, exit_code: int = -signal.SIGKILL) -> None:
    """Check that a worker died, and of what."""
    assert isinstance(value, LaneDiedError)
    assert value.exit_code == exit_code


@pytest.mark.parametrize("method", START_METHODS)
def test_a_worker_that_dies_while_it_has_a_task(method: str, make_pool: MakePool) -> None:
    """Its task has the death, the other tasks their answers; the others go on without it."""
    pool = make_pool(3, method)
    tasks = [task(abs, -1), task(os._exit, 7), *[task(abs, -number) for number in range(2, 6)]]
    values = run(pool, None, *tasks)
    assert_died(values.pop(1), 7)
    assert values == [1, 2, 3, 4, 5]
    assert run(pool, b"one", *[task(abs, -number) for number in range(4)]) == [0, 1, 2, 3]
    assert len(pids_of(pool)) == 2
    assert pool.submit(abs, -1).result(timeout=30) == 1


def test_a_worker_that_is_killed_while_it_has_a_task(make_pool: MakePool, tmp_path: Path) -> None:
    """The signal is told."""
    pool = make_pool(2)
    victim = pool._lanes[1].process

    def shoot() -> None:
        wait_until((tmp_path / "begun").exists)
        victim.kill()

    threading.Thread(target=shoot).start()
    alive, dead = run(pool, None, task(abs, -1), task(touch_and_sleep, tmp_path / "begun"))
    assert alive == 1
    assert_died(dead)
    assert dead.started


@pytest.mark.parametrize("method", START_METHODS)
def test_a_worker_that_is_killed_before_its_first_task(
    method: str, make_pool: MakePool, tmp_path: Path
) -> None:
    """It is told from one that died at work."""
    pool = make_pool(2, method, initializer=wait_for_file, initargs=(tmp_path / "go",))
    kill(pool, 0)
    (tmp_path / "go").touch()
    dead, alive = run(pool, b"one", task(updates), task(updates))
    assert_died(dead)
    assert not dead.started
    assert alive[1] == [b"one"]


def test_a_worker_that_is_killed_between_tasks(make_pool: MakePool) -> None:
    """The others get their updates and do their tasks."""
    pool = make_pool(2)
    run(pool, b"one", task(abs, -1), task(abs, -1))
    kill(pool, 0)
    values = run(pool, b"two", task(updates), task(updates), task(updates))
    assert_died(values[0])
    assert [seen for _, seen in values[1:]] == [[b"one", b"two"]] * 2
    assert run(pool, None, task(abs, -1)) == [1]


def test_an_idle_worker_that_is_killed(make_pool: MakePool) -> None:
    """Nobody misses it; the tasks are done."""
    pool = make_pool(2)
    kill(pool, 1)
    for _ in range(3):
        assert run(pool, b"one", task(abs, -1)) == [1]
    pool.exchange(bytes(5_000_000), [])
    assert run(pool, None, *[task(abs, -1)] * 3)[::2] == [1, 1]


@pytest.mark.parametrize("update", [False, True])
def test_a_worker_that_is_killed_while_frames_are_on_their_way(
    update: bool, make_pool: MakePool
) -> None:
    """One that dies while 50 MB are sent to it fails its task, and the others do theirs."""
    pool = make_pool(2)
    assert run(pool, None, task(abs, -1), task(abs, -1)) == [1, 1]
    pid = pids_of(pool)[1]
    os.kill(pid, signal.SIGSTOP)  # it reads no more: the pipe is full
    threading.Timer(0.3, os.kill, (pid, signal.SIGKILL)).start()
    load = bytes(LARGE)
    first, second = run(
        pool, load if update else None, task(abs, -1), task(len, b"" if update else load)
    )
    assert first == 1
    assert_died(second)


def test_a_worker_that_is_killed_while_it_sends(make_pool: MakePool) -> None:
    """One that dies while it sends 50 MB fails its task."""
    pool = make_pool(2)
    lane = pool._lanes[1]
    answers = pool.exchange(None, [task(abs, -1), task(bytes, LARGE)])
    assert next(answers)[0] == 0
    # as long as we do not go on, nobody reads: the pipe is full, and the rest never comes
    wait_until(lambda: wait([lane.wire.fd], 0), 60)
    lane.kill()
    ((index, value),) = answers
    assert index == 1
    assert_died(value)


def test_no_worker_is_left(make_pool: MakePool) -> None:
    """Tasks that nobody is left for have the death, in this exchange and in later ones."""
    pool = make_pool(2)
    values = run(pool, None, *[task(os._exit, 5)] * 2, *[task(abs, -1)] * 3)
    values += run(pool, b"one", task(abs, -1))
    assert len(values) == 6
    for value in values:
        assert_died(value, 5)
    with pytest.raises(LaneDiedError):
        pool.submit(abs, -1).result(timeout=30)
    pool.exchange(b"one", [])


@pytest.fixture
def sleeper(tmp_path: Path) -> Iterator[Path]:
    """Yield a path for the process id of a process that is ended after the test."""
    yield tmp_path / "sleeper"
    if (tmp_path / "sleeper").exists():
        os.kill(int((tmp_path / "sleeper").read_text()), signal.SIGKILL)


@pytest.mark.skipif(QUICK != "fork", reason="needs fork")
@pytest.mark.parametrize("method", [method for method in START_METHODS if method != "forkserver"])
@pytest.mark.parametrize("has_waitid", [True, False])
def test_a_pipe_that_somebody_keeps_open(
    has_waitid: bool,
    method: str,
    make_pool: MakePool,
    sleeper: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A death is noticed also where a process of the worker holds the pipe, on any system."""
    if not has_waitid:
        monkeypatch.delattr(os, "waitid", raising=False)
    pool = make_pool(2, method)
    values = run(pool, None, task(fork_a_sleeper, sleeper, 3), *[task(abs, -1)] * 3)
    assert_died(values[0], 3)
    assert values[1:] == [1, 1, 1]


@pytest.mark.skipif(QUICK != "fork", reason="needs fork")
def test_a_pipe_that_somebody_keeps_open_and_nobody_reads(
    make_pool: MakePool, sleeper: Path
) -> None:
    """Updates and tasks larger than the pipe do not wait for a worker that died before them."""
    pool = make_pool(2)
    run(pool, None, task(fork_a_sleeper, sleeper, None))
    kill(pool, 0)
    pool.exchange(bytes(5_000_000), [])
    values = run(pool, bytes(5_000_000), task(len, bytes(5_000_000)), task(abs, -1))
    assert values == [5_000_000, 1]


def test_an_exit_code_that_is_told_late(
    make_pool: MakePool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where `os.waitid` is missing, an exit code that somebody else took is no trouble."""
    monkeypatch.delattr(os, "waitid", raising=False)
    pool = make_pool(2)
    (lane, _) = pool._lanes
    lane.kill()
    assert lane.process.pid is not None
    os.waitpid(lane.process.pid, 0)
    dead, alive = run(pool, None, task(abs, -1), task(abs, -1))
    assert isinstance(dead, LaneDiedError)
    assert alive == 1


def test_a_system_without_poll(make_pool: MakePool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where `select.poll` is missing (Windows), `select.select` does, and deaths are noticed."""
    monkeypatch.delattr(select, "poll", raising=False)
    monkeypatch.delattr(os, "waitid", raising=False)
    pool = make_pool(2)
    values = run(pool, bytes(LARGE), task(abs, -1), task(os._exit, 3), task(len, bytes(LARGE)))
    assert_died(values.pop(1), 3)
    assert values == [1, LARGE]
