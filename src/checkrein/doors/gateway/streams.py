"""A client's own input and output as one connection: what the stdio front uses where a pump passed them.

To the line above it like any other transport. The pump's socket is its lifeline: neither outlives it.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections import deque
from itertools import islice

from checkrein.doors.gateway.passing import DONE, Passed

_AT_ONCE, _PIECES = 64 << 10, 64


class Streams(asyncio.Transport):
    """Reads from one descriptor, writes to another, never waits in either."""

    def __init__(self, line: asyncio.Protocol, lifeline: socket.socket, passed: Passed) -> None:
        """All three are ours from here on."""
        super().__init__()
        self._loop = asyncio.get_running_loop()
        self._line, self._lifeline, self._passed = line, lifeline, passed
        self._input, self._output = passed.input, passed.output
        self._unsent: deque[bytes | bytearray | memoryview] = deque()
        self._size, self._high, self._low = 0, 64 << 10, 16 << 10
        self._full = self._reading = self._closing = self._over = self._ended = False

    def open(self) -> None:
        self._loop.add_reader(self._lifeline.fileno(), self.abort)
        self._line.connection_made(self)
        self.resume_reading()
        # A named pipe that everybody left before we opened it tells its end only to who reads.
        self._loop.call_soon(self._readable)

    # Reading

    def pause_reading(self) -> None:
        if self._reading:
            self._reading = False
            self._loop.remove_reader(self._input.fd)

    def resume_reading(self) -> None:
        if not (self._reading or self._closing or self._ended):
            self._reading = True
            self._loop.add_reader(self._input.fd, self._readable)

    def is_reading(self) -> bool:
        return self._reading

    def _readable(self) -> None:
        if not self._reading:
            return
        try:
            data = self._input.read(_AT_ONCE)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        try:
            if data:
                self._line.data_received(data)
            else:
                self._end_of_input()
        except Exception as error:  # noqa: BLE001 - INVARIANT: a line in an unknown state is not read on
            told = {"message": "a client's line failed", "exception": error, "transport": self}
            self._loop.call_exception_handler(told)
            self.abort()

    def _end_of_input(self) -> None:
        self.pause_reading()
        self._ended = True
        if not self._line.eof_received():
            self.close()

    # Writing

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._high = self._high if high is None else high
        self._low = self._high // 4 if low is None else low

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._low, self._high

    def get_write_buffer_size(self) -> int:
        return self._size

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if self._over or not data:
            return
        if not self._unsent:
            done = self._written([data])
            if done == len(data) or self._over:
                return
            self._loop.add_writer(self._output.fd, self._writable)
            data = memoryview(bytes(data))[done:]
        self._unsent.append(data)
        self._size += len(data)
        if self._size > self._high and not self._full:
            self._full = True
            self._line.pause_writing()

    def _written(self, pieces: list[bytes | bytearray | memoryview]) -> int:
        try:
            return self._output.write(pieces)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError:
            self.abort()
            return 0

    def _writable(self) -> None:
        """One call, so that a client that reads fast keeps nobody else waiting."""
        done = self._written(list(islice(self._unsent, _PIECES)))
        if self._over:
            return
        self._size -= done
        while done:
            first = self._unsent.popleft()
            if done < len(first):
                self._unsent.appendleft(memoryview(first)[done:])
            done -= min(done, len(first))
        if not self._unsent:
            self._loop.remove_writer(self._output.fd)
        if self._full and self._size <= self._low:
            self._full = False
            self._line.resume_writing()
        if self._closing and not self._unsent:
            self.abort()

    # Ending

    def is_closing(self) -> bool:
        return self._closing

    def close(self) -> None:
        """Read no more; end when all is written."""
        if self._closing:
            return
        self._closing = True
        self.pause_reading()
        if not self._unsent:
            self.abort()

    def abort(self) -> None:
        """End now. Also what happens when the pump is gone: INVARIANT: then nobody is read from any more."""
        if self._over:
            return
        self._over = self._closing = True
        self.pause_reading()
        self._loop.remove_reader(self._lifeline.fileno())
        if self._unsent:
            self._loop.remove_writer(self._output.fd)
            self._unsent.clear()
            self._size = 0
        # Whoever called us may be in the middle of something.
        self._loop.call_soon(self._lose)

    def _lose(self) -> None:
        self._passed.close()
        with contextlib.suppress(OSError):
            if self._ended:
                self._lifeline.send(DONE)
        self._lifeline.close()
        self._line.connection_lost(None)
