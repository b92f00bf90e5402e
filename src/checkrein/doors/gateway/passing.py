"""What an MCP client's pump hands over: its own standard input and output, for the gateway to use directly.

The server takes them in by a worker's thread, where looking at them may wait; reading and writing never does.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import socket
import stat
import sys
import time
from collections.abc import Sequence
from typing import Any

from checkrein import wire
from checkrein.errors import InputError
from checkrein.stream_ends import is_held_by, is_made_by

# The pump's word that it would pass them, the server's that it may, and what they come with.
FACT, AGREED, WORD = "PASSES", b"PASS", b"."
# The server's last word to the pump: the client had no more to say, and has all its answers.
DONE = b"."
SECONDS = 5.0
_LINUX: bool = sys.platform == "linux"
_OURS = "/proc/self/fd"
_TAKING: int = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


class Pipe:
    """One end of a pipe."""

    def __init__(self, fd: int, way: int) -> None:
        """`fd` is ours from here on, unless this raises."""
        self._flags: int | None = None
        if _LINUX:
            # INVARIANT: nobody who shares the client's descriptor can make us wait in it, nor we them: flags
            # belong to what was opened, so it is opened again.
            self.fd = os.open(f"{_OURS}/{fd}", way | os.O_NONBLOCK | os.O_CLOEXEC)
            os.close(fd)
        else:
            self.fd, self._flags = fd, _not_waiting(fd)

    def read(self, count: int) -> bytes:
        return os.read(self.fd, count)

    def write(self, pieces: Sequence[Any]) -> int:
        return os.writev(self.fd, pieces)

    def close(self) -> None:
        fd, self.fd = self.fd, -1
        _let_go(fd, self._flags)
        os.close(fd)


class Socket:
    """A stream socket, as some runtimes start their children with."""

    def __init__(self, fd: int) -> None:
        """`fd` is ours from here on, unless this raises."""
        found = socket.socket(fileno=fd)
        if (found.family, found.type) != (socket.AF_UNIX, socket.SOCK_STREAM):
            # Closing one of another family may wait for its peer.
            found.detach()
            raise InputError("A pump passed a socket of a kind we do not take.")
        self._socket, self.fd = found, fd
        # The flag of every single call does the same without being seen by others; not everywhere.
        self._flags = None if _LINUX else _not_waiting(fd)

    def read(self, count: int) -> bytes:
        return self._socket.recv(count, socket.MSG_DONTWAIT)

    def write(self, pieces: Sequence[Any]) -> int:
        return self._socket.sendmsg(pieces, (), socket.MSG_DONTWAIT)

    def close(self) -> None:
        _let_go(self.fd, self._flags)
        self.fd = -1
        self._socket.close()


class Passed:
    """A client's input and output; closed once, by whoever has them last."""

    def __init__(self, input: Pipe | Socket, output: Pipe | Socket) -> None:  # noqa: A002 - what they are
        self._ends: tuple[Pipe | Socket, ...] = (input, output)
        self.input, self.output = input, output

    def detach(self) -> Passed:
        """The same for a new owner; what the old one does with this one has no effect."""
        self._ends = ()
        return Passed(self.input, self.output)

    def close(self) -> None:
        ends, self._ends = self._ends, ()
        for end in ends:
            with contextlib.suppress(OSError):
                end.close()


def leads_to(passed: Passed | None, pid: int) -> bool:
    """Whether that very process is at the other ends: it made the sockets, or holds the pipes' other ways.

    What a pump did not pass, and what the system does not tell about, leads nowhere.
    """
    if passed is None:
        return False
    ways = ((passed.input, os.O_WRONLY), (passed.output, os.O_RDONLY))
    return all(
        is_made_by(end.fd, pid) if isinstance(end, Socket) else is_held_by(end.fd, pid, way)
        for end, way in ways
    )


def possible(connection: socket.socket) -> bool:
    """Whether we could use what is passed, and have descriptors to spare; copying takes a third of them."""
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    # The lowest free number is given first: a high one says that many are taken.
    spare = most == resource.RLIM_INFINITY or connection.fileno() < most // 2
    return spare and (not _LINUX or os.path.isdir(_OURS))  # noqa: PTH112 - of plain words


def receive(connection: socket.socket, seconds: float = SECONDS) -> Passed:
    """Two descriptors that a client can be read from and written to. INVARIANT: else none stays open."""
    fds = _received(connection, time.monotonic() + seconds)
    ends: list[Pipe | Socket] = []
    try:
        for way in (os.O_RDONLY, os.O_WRONLY):
            ends.append(_end(fds[0], way))
            fds.pop(0)
        return Passed(*ends)
    except BaseException as error:
        for fd in fds:
            os.close(fd)
        for end in ends:
            end.close()
        if isinstance(error, OSError):
            if error.errno == errno.ENXIO:
                raise wire.Gone("nobody reads what would be written") from None
            raise InputError(f"What a pump passed cannot be used: {error.strerror}.") from None
        raise


def _received(connection: socket.socket, deadline: float) -> list[int]:
    connection.settimeout(max(0.001, deadline - time.monotonic()))
    try:
        # One byte more than there should be, to see whether there are more.
        said, fds, flags, _ = socket.recv_fds(connection, len(WORD) + 1, 2, _TAKING)
    except TimeoutError:
        raise InputError("A pump that announced descriptors did not pass them in time.") from None
    except OSError as error:
        raise wire.Gone(str(error)) from None
    if len(fds) == 2 and said == WORD and not flags & socket.MSG_CTRUNC:
        for fd in fds:
            os.set_inheritable(fd, False)
        return fds
    for fd in fds:
        os.close(fd)
    if not said and not fds:
        raise wire.Gone("the connection was closed")
    raise InputError("A pump passed something else than two descriptors.")


def _end(fd: int, way: int) -> Pipe | Socket:
    mode = os.fstat(fd).st_mode
    if fcntl.fcntl(fd, fcntl.F_GETFL) & os.O_ACCMODE not in (way, os.O_RDWR):
        raise InputError("A pump passed a descriptor that goes the other way.")
    if stat.S_ISFIFO(mode):
        return Pipe(fd, way)
    if stat.S_ISSOCK(mode):
        return Socket(fd)
    raise InputError("A pump passed a descriptor that is neither a pipe nor a socket.")


def _not_waiting(fd: int) -> int:
    flags = fcntl.fcntl(fd, fcntl.F_GETFL)
    fcntl.fcntl(fd, fcntl.F_SETFL, flags | os.O_NONBLOCK)
    return flags


def _let_go(fd: int, flags: int | None) -> None:
    """As it was found: others may hold it too."""
    if flags is not None:
        with contextlib.suppress(OSError):
            fcntl.fcntl(fd, fcntl.F_SETFL, flags)
