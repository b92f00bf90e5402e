"""An MCP client's ends of a line, and a pump beside them: over its own socket, or with what it passed."""

import asyncio
import contextlib
import os
import socket

from checkrein.doors.gateway import passing
from doors.gateway.loop_turns import loop_turns

WAYS = ("socket", "pipes", "sockets", "one socket")


class Ends:
    """Writes and reads as the client does. `lifeline` is the pump's side where streams are passed."""

    def __init__(self, way):
        self.way, self.word = way, None
        self.connection, self.lifeline = socket.socketpair()
        self.passed = None
        self._loop = asyncio.get_running_loop()
        if way == "socket":
            self.to = self.back = self.lifeline.fileno()
            self._pump = []
        else:
            self.to, self.back = self._passing(way)
            self._loop.add_reader(self.lifeline.fileno(), self._pump_hears)
        for fd in {self.to, self.back}:
            os.set_blocking(fd, False)

    def _passing(self, way):
        if way == "pipes":
            read, to = os.pipe()
            back, write = os.pipe()
        elif way == "sockets":
            (read, to), (write, back) = ([each.detach() for each in socket.socketpair()] for _ in range(2))
        else:
            read, to = (each.detach() for each in socket.socketpair())
            write, back = os.dup(read), os.dup(to)
        self._pump = [read, write]
        socket.send_fds(self.lifeline, [passing.WORD], self._pump)
        self.passed = passing.receive(self.connection)
        return to, back

    def _pump_hears(self):
        """A pump ends when its socket does, and the client's streams with it."""
        self.word = self.lifeline.recv(10)
        self.end_pump()

    def end_pump(self):
        self._loop.remove_reader(self.lifeline.fileno())
        self.lifeline.close()
        for fd in self._pump:
            os.close(fd)
        self._pump = []

    async def write(self, raw):
        view = memoryview(raw)
        while view:
            try:
                view = view[os.write(self.to, view) :]
            except BlockingIOError:
                await self._until(self._loop.add_writer, self._loop.remove_writer, self.to)

    async def has_room(self, raw):
        """Whether some of it could be written without waiting, after whoever reads has had the time to."""
        await loop_turns()
        try:
            return os.write(self.to, raw) > 0
        except BlockingIOError:
            return False

    async def read(self, count):
        while True:
            try:
                return os.read(self.back, count)
            except BlockingIOError:
                await self._until(self._loop.add_reader, self._loop.remove_reader, self.back)

    async def _until(self, add, remove, fd):
        ready = self._loop.create_future()
        add(fd, lambda: ready.done() or ready.set_result(None))
        try:
            await ready
        finally:
            remove(fd)

    def close_input(self):
        """The client has no more to say."""
        if self.way == "pipes":
            os.close(self.to)
            self.to = -1
            return
        found = socket.socket(fileno=self.to)
        found.shutdown(socket.SHUT_WR)
        found.detach()

    def close(self):
        if self._pump:
            self.end_pump()
        for fd in {self.to, self.back} - {-1}:
            if self.way != "socket":
                os.close(fd)
        with contextlib.suppress(OSError):
            self.lifeline.close()
