"""Frames of bytes over a pair of sockets, without a copy and without waiting for ever.

```
kind: 1 byte │ size: 8 bytes │ data
```

Both ends are the same class. Main's end does not block: `Wire.flush` writes what fits and
`Wire.get` returns None until a frame is whole, so that one thread serves many workers and notices
those that die. A worker's end blocks, and the same methods wait.
"""

from __future__ import annotations

import io
import socket
import struct
from collections import deque
from typing import Final

_HEAD: Final = struct.Struct("<BQ")
# What a system lets wait in a socket differs (macOS: 8 KB); a small frame should fit.
_BUFFER: Final = 1 << 20


class Wire:
    """One end of a pipe that carries frames. Not safe for several threads.

    Attributes:
        fd: the number of the socket; stale after `close`.
    """

    def __init__(self, end: socket.socket, *, blocking: bool) -> None:
        end.setblocking(blocking)  # whatever socket.setdefaulttimeout says
        self.fd: int = end.fileno()
        self._end = end
        self._blocking = blocking
        self._out: deque[memoryview] = deque()
        self._head = b""
        self._data: _Data | None = None

    @property
    def unsent(self) -> bool:
        """Whether something that was put has not been written."""
        return bool(self._out)

    def put(self, kind: int, data: bytes = b"") -> None:
        """Put a frame behind those that are to be written; it is not copied."""
        self._out.append(memoryview(_HEAD.pack(kind, len(data))))
        if data:
            self._out.append(memoryview(data))

    def flush(self) -> None:
        """Write what was put; an end that does not block: as far as there is room.

        Raises:
            OSError: the other end is closed.
        """
        out = self._out
        try:
            while out:
                sent = self._write(out)
                while out and sent >= len(out[0]):
                    sent -= len(out.popleft())
                if sent:
                    out[0] = out[0][sent:]
        except BlockingIOError:
            pass

    def _write(self, out: deque[memoryview]) -> int:
        if hasattr(self._end, "sendmsg"):  # head and data in one call
            return self._end.sendmsg(out)
        return self._end.send(out[0])  # Windows

    def get(self) -> tuple[int, bytes] | None:
        """Return kind and data of the next frame; None as long as it is not whole.

        Raises:
            EOFError: the other end is closed.
            OSError: so it is, and had not read all.
        """
        try:
            while len(self._head) < _HEAD.size:
                self._head += self._read(_HEAD.size - len(self._head))
            kind, size = _HEAD.unpack(self._head)
            data = self._data.read() if self._data else self._begin(size)
        except BlockingIOError:
            return None
        self._head, self._data = b"", None
        return kind, data

    def receive(self) -> tuple[int, bytes]:
        """Return the next frame of an end that blocks."""
        while (frame := self.get()) is None:
            pass
        return frame

    def _begin(self, size: int) -> bytes:
        if not size:
            return b""
        # An end that blocks gets all at once. So does main what a socket can hold.
        flags = socket.MSG_WAITALL if self._blocking else 0
        first = self._read(size if self._blocking else min(size, _BUFFER), flags)
        if len(first) == size:
            return first
        self._data = _Data(self._end, first, size)
        return self._data.read()

    def _read(self, size: int, flags: int = 0) -> bytes:
        if piece := self._end.recv(size, flags):
            return piece
        raise EOFError

    def close(self) -> None:
        """Close the socket. Harmless when repeated."""
        self._end.close()


class _Data:
    """Data that arrives in parts.

    Written into the memory that a BytesIO hands out as bytes in the end: joining parts, or making
    bytes of a bytearray, would copy them (50 MB: 31 ms in all, against 50 and 57).
    """

    def __init__(self, end: socket.socket, first: bytes, size: int) -> None:
        self._end = end
        self._file = io.BytesIO()
        self._file.seek(size - 1)
        self._file.write(b"\0")
        self._free = self._file.getbuffer()
        self._take(first)

    def _take(self, first: bytes) -> None:
        self._free[: len(first)] = first
        self._advance(len(first))

    def _advance(self, count: int) -> None:
        rest = self._free[count:]
        self._free.release()
        self._free = rest

    def read(self) -> bytes:
        """Read up to the last part; BlockingIOError: it has not come."""
        while len(self._free):
            count = self._end.recv_into(self._free)
            if not count:
                raise EOFError
            self._advance(count)
        self._free.release()  # getvalue copies as long as somebody could write
        return self._file.getvalue()


def make_pair() -> tuple[socket.socket, socket.socket]:
    """Return two sockets that are connected to each other."""
    pair = socket.socketpair()
    for end in pair:
        end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
        if not hasattr(socket, "AF_UNIX") or end.family != socket.AF_UNIX:
            # Windows: what is written in two calls must not wait for an acknowledgement
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return pair
