"""Finds the process at the other end of a loopback TCP connection, from the system's own tables.

The gateway's HTTP front and the console ask before a request counts as a person's. A connection whose process
is not found is trusted with nothing.
"""

from __future__ import annotations

import contextlib
import os
import socket
import struct
import subprocess
import sys
from collections import deque
from pathlib import Path

from checkrein.peers import Peer
from checkrein.runtime import LOOPBACK

_PROC = Path("/proc")
_LSOF = "/usr/sbin/lsof"
_RECENT = 8
# How the kernel's table begins an IPv4 address that an IPv6 socket uses.
_MAPPED = f"{0:016X}{struct.unpack('=I', bytes((0, 0, 255, 255)))[0]:08X}"


class TcpPeers:
    """Finds who holds the client's end of a connection; tries those first that were there before."""

    def __init__(self, proc: Path = _PROC) -> None:
        self._proc = proc
        self._recent: deque[int] = deque(maxlen=_RECENT)

    def find(self, client: tuple[str, int], port: int) -> Peer | None:
        """The process whose connection from `client` leads to our `port`; takes some milliseconds.

        Process 0 with a user: another user's process, which the system does not show us.
        """
        if sys.platform != "linux":
            return _from_lsof(client, port)
        inode, uid = self._socket(client, port)
        if not inode:
            return None
        link = f"socket:[{inode}]"
        recent = list(self._recent)
        for pid in (*recent, *self._others(set(recent))):
            if self._holds(pid, link):
                if pid not in self._recent:
                    self._recent.append(pid)
                return Peer(pid, uid)
        return Peer(0, uid) if uid != os.geteuid() else None

    def _socket(self, client: tuple[str, int], port: int) -> tuple[str, int]:
        """The number of the client's socket and whose it is; as IPv6 writes it where the client does."""
        # INVARIANT: both ends of the connection are compared whole.
        # One local port can lead to two servers: to ours, and to one on another address and our port.
        theirs, ours = _written(*client), _written(LOOPBACK, port)
        for name, prefix in (("tcp", ""), ("tcp6", _MAPPED)):
            with contextlib.suppress(OSError):
                for line in (self._proc / "net" / name).read_text(encoding="ascii").splitlines()[1:]:
                    words = line.split()
                    if words[1:3] == [prefix + theirs, prefix + ours]:
                        return words[9] if words[9] != "0" else "", int(words[7])
        return "", -1

    def _others(self, but: set[int]) -> list[int]:
        """Processes, the newest first: a client has usually not run for long."""
        found = [int(each) for each in os.listdir(self._proc) if each.isdecimal()]  # noqa: PTH208 - names, and many
        return sorted((pid for pid in found if pid not in but), reverse=True)

    def _holds(self, pid: int, link: str) -> bool:
        folder = f"{self._proc}/{pid}/fd"
        try:
            names = os.listdir(folder)  # noqa: PTH208 - as above
        except OSError:
            return False
        for name in names:
            with contextlib.suppress(OSError):
                if os.readlink(f"{folder}/{name}") == link:  # noqa: PTH115 - as above
                    return True
        return False


def _written(address: str, port: int) -> str:
    """An address as the kernel's table has it: the bytes of IPv4 in this machine's order, then the port."""
    (number,) = struct.unpack("=I", socket.inet_aton(address))
    return f"{number:08X}:{port:04X}"


def _from_lsof(client: tuple[str, int], port: int) -> Peer | None:
    way = f"{client[0]}:{client[1]}->127.0.0.1:{port}"
    words = [_LSOF, "-nP", f"-iTCP@{client[0]}:{client[1]}", "-sTCP:ESTABLISHED", "-Fpun"]
    try:
        done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=5)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return None
    return _read_lsof(done.stdout, way)


def _read_lsof(text: str, way: str) -> Peer | None:
    """One field a line, its first letter says which; a process comes before its connections."""
    pid = uid = -1
    for line in text.splitlines():
        if line[:1] == "p":
            pid = int(line[1:])
        elif line[:1] == "u":
            uid = int(line[1:])
        elif line == f"n{way}":
            return Peer(pid, uid)
    return None
