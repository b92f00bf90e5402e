"""A real Unix-socket server in a thread, and the frames it may send."""

import contextlib
import fcntl
import os
import select
import socket
import struct
import sys
import termios
import threading

from checkrein import peers
from patience import PATIENCE, until

KEEP_ALIVE = b"\0\0\0\0"


def frame(code=0, out=b"", err=b""):
    body = bytes([code]) + struct.pack(">I", len(out)) + out + err
    return struct.pack(">I", len(body)) + body


def meaning(reply):
    """What a client must make of these bytes: (code, stdout, stderr), or None for a failure."""
    while reply[:4] == KEEP_ALIVE:
        reply = reply[4:]
    if len(reply) < 4:
        return None
    (length,) = struct.unpack(">I", reply[:4])
    body = reply[4 : 4 + length]
    if not 5 <= length <= 1 << 20 or len(body) < length:
        return None
    out = 5 + int.from_bytes(body[1:5], "big")
    if body[0] not in (0, 2) or out > length:
        return None
    return body[0], body[5:out], body[out:]


def wait_until_read(connection):
    """Returns once the client has read all that was sent to it, or is gone."""
    until(lambda: not unread(connection))


def unread(connection):
    """How much of what was sent the other side has not read yet."""
    if sys.platform == "darwin":
        return connection.getsockopt(socket.SOL_SOCKET, 0x1024)  # SO_NWRITE
    return int.from_bytes(fcntl.ioctl(connection, termios.TIOCOUTQ, bytes(4)), sys.byteorder)


def processes_naming(folder):
    """Numbers of the processes with this folder in their command line; empty where there is no /proc."""
    with contextlib.suppress(FileNotFoundError):
        numbers = [int(each) for each in os.listdir("/proc") if each.isdigit()]
        return [pid for pid in numbers if folder in " ".join(peers.words_of(pid)) and pid != os.getpid()]
    return []


def children(pid):
    """Its children's numbers, also of those it has not waited for; empty where there is no /proc."""
    try:
        with open(f"/proc/{pid}/task/{pid}/children", encoding="utf-8") as file:
            return file.read().split()
    except FileNotFoundError:
        return []


def sleeps(pid):
    """Whether the process waits for something; true where there is no /proc."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rpartition(") ")[2].startswith("S")
    except FileNotFoundError:
        return True


def times_waited(pid):
    """How often the process went to sleep by itself."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        (line,) = (each for each in file if each.startswith("voluntary_ctxt_switches"))
    return int(line.split()[1])


class Streams:
    """What a pump passed, used as if it were the connection; says the last word when it is closed."""

    def __init__(self, connection):
        self.connection, self.ended = connection, False
        connection.sendall(frame(0, b"PASS"))
        word, self.fds, _, _ = socket.recv_fds(connection, 10, 10)
        assert (word, len(self.fds)) == (b".", 2)

    def recv(self, count):
        select.select([self.fds[0]], [], [])
        piece = os.read(self.fds[0], count)
        self.ended = self.ended or not piece
        return piece

    def sendall(self, data):
        view = memoryview(data)
        while view:
            select.select([], [self.fds[1]], [])
            view = view[os.write(self.fds[1], view[:4096]) :]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for fd in self.fds:
            os.close(fd)
        if self.ended:
            self.connection.sendall(b".")


class Server:
    """Keeps the requests it read; sends `answer`, or lets it talk to the connection."""

    def __init__(self, path, answer):
        self.requests = []
        self.answer = answer
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(64)
        self.thread = threading.Thread(target=self._accept, daemon=True)
        self.thread.start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        # A client that gave up is what some tests are about.
        with connection, contextlib.suppress(OSError):
            (length,) = struct.unpack(">I", read(connection, 4))
            self.requests.append(read(connection, length))
            if callable(self.answer):
                self.answer(connection)
            else:
                connection.sendall(self.answer)

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join(PATIENCE)


def read(connection, length):
    whole = bytearray()
    while len(whole) < length:
        piece = connection.recv(length - len(whole))
        if not piece:
            raise ConnectionResetError
        whole += piece
    return bytes(whole)
