"""Frames: what is put at one end is got at the other."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pams_parallel._wire import Wire, make_pair

Pair = tuple[Wire, Wire]


@pytest.fixture
def pair() -> Iterator[Pair]:
    """Yield an end that does not block and one that does."""
    one, other = make_pair()
    ends = Wire(one, blocking=False), Wire(other, blocking=True)
    yield ends
    for end in ends:
        end.close()


SIZES = st.sampled_from([0, 1, 8, 9, 60_000, 300_000, 2_000_000])


@settings(max_examples=20, deadline=None)
@given(frames=st.lists(st.tuples(st.integers(0, 255), SIZES), max_size=8))
def test_frames_arrive_whole_and_in_order(frames: list[tuple[int, int]]) -> None:
    """Kinds and data arrive as they were put, of any size, in both directions at once."""
    one, other = make_pair()
    main, worker = Wire(one, blocking=False), Wire(other, blocking=True)
    sent = [(kind, bytes([kind]) * size) for kind, size in frames]

    def echo() -> None:
        for _ in sent:
            worker.put(*worker.receive())
            worker.flush()

    thread = threading.Thread(target=echo)
    thread.start()
    for frame in sent:
        main.put(*frame)
    got: list[tuple[int, bytes]] = []
    while len(got) < len(sent):
        main.flush()
        if (received := main.get()) is not None:
            got.append(received)
    thread.join()
    assert not main.unsent
    assert got == sent
    assert all(type(data) is bytes for _, data in got)
    main.close()
    worker.close()


def test_an_end_that_does_not_block(pair: Pair) -> None:
    """It returns at once when nothing is there, and when there is no more room."""
    main, worker = pair
    assert main.get() is None
    main.put(1, bytes(10_000_000))
    main.flush()
    assert main.unsent
    received: list[tuple[int, bytes]] = []
    thread = threading.Thread(target=lambda: received.append(worker.receive()))
    thread.start()
    while thread.is_alive():
        main.flush()
    assert received == [(1, bytes(10_000_000))]


def test_frames_that_come_in_pieces() -> None:
    """A frame is not got before its last byte, wherever it is cut."""
    one, other = socket.socketpair()
    with other:
        main = Wire(one, blocking=False)
        frame = bytes([7]) + (5).to_bytes(8, "little") + b"hello"
        for byte in frame:
            assert main.get() is None
            other.send(bytes([byte]))
        assert main.get() == (7, b"hello")
        main.close()


@pytest.mark.parametrize("reader", [0, 1])
@pytest.mark.parametrize("written", [b"", b"\x01\x05", b"\x01\x05\0\0\0\0\0\0\0abc"])
def test_an_end_that_is_closed(reader: int, written: bytes) -> None:
    """When the other end is closed, also in the midst of a frame, reading is an EOFError."""
    ends = socket.socketpair()
    wire = Wire(ends[reader], blocking=bool(reader))
    ends[1 - reader].sendall(written)
    ends[1 - reader].close()
    with pytest.raises(EOFError):
        wire.get()
    wire.close()


def test_writing_to_an_end_that_is_closed(pair: Pair) -> None:
    """It is an OSError."""
    main, worker = pair
    worker.close()
    main.put(1, b"x")
    with pytest.raises(OSError):
        main.flush()


def test_the_default_timeout_of_sockets_is_no_timeout_of_ours() -> None:
    """A program's `setdefaulttimeout` does not make an end give up."""
    socket.setdefaulttimeout(0.05)
    try:
        one, other = make_pair()
        main, worker = Wire(one, blocking=False), Wire(other, blocking=True)
    finally:
        socket.setdefaulttimeout(None)
    assert main.get() is None
    main.put(1)
    timer = threading.Timer(0.2, main.flush)
    timer.start()
    assert worker.receive() == (1, b"")
    timer.join()
    main.close()
    worker.close()


def test_without_sendmsg(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a system has no `sendmsg` (Windows), frames are written piece by piece."""
    main, worker = pair

    class Plain:
        def __init__(self, end: socket.socket) -> None:
            self.recv, self.send, self.close = end.recv, end.send, end.close

    monkeypatch.setattr(main, "_end", Plain(main._end))
    main.put(1, b"one")
    main.put(2)
    main.flush()
    assert [worker.receive(), worker.receive()] == [(1, b"one"), (2, b"")]
