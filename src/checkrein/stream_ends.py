"""Which process is at the other end of a pipe or socket, as far as the kernel says.

The hook door asks it about a hook's input and output, the gateway about an MCP client's.
"""

from __future__ import annotations

import os
import socket
import stat
import struct
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

_LINUX: bool = sys.platform == "linux"


def is_socket(fd: int) -> bool:
    return stat.S_ISSOCK(os.fstat(fd).st_mode)


def pipe_number(fd: int) -> int:
    """The number of a pipe without a name; 0 for whatever else the descriptor is."""
    about = os.fstat(fd)
    if not stat.S_ISFIFO(about.st_mode) or not _LINUX:
        return 0
    return about.st_ino if os.readlink(f"/proc/self/fd/{fd}") == _link(about.st_ino) else 0  # noqa: PTH115


def is_made_by(fd: int, pid: int) -> bool:
    """Whether a Unix socket is one of a pair that this process made. A socket with a name is not."""
    found = socket.socket(fileno=os.dup(fd))
    try:
        if found.family != socket.AF_UNIX or found.getpeername() or found.getsockname():
            return False
        # macOS: LOCAL_PEERPID of SOL_LOCAL, which Python has no names for.
        level, option = (socket.SOL_SOCKET, socket.SO_PEERCRED) if _LINUX else (0, 2)
        (number,) = struct.unpack_from("=i", found.getsockopt(level, option, 12))
        return bool(number == pid)
    except (OSError, struct.error):
        return False
    finally:
        found.close()


def is_held_by(fd: int, pid: int, way: int) -> bool:
    """Whether a process has the pipe open that way."""
    return any(found == way for found in _ways(os.fstat(fd).st_ino, pid))


def other_holders(numbers: Collection[int], family: Collection[int]) -> bool:
    """Whether a process outside of `family` has one of these pipes open; we count as family.

    A process whose descriptors we may not see is another user's, which cannot open ours.
    """
    links = frozenset(map(_link, numbers))
    known = {str(pid) for pid in family} | {str(os.getpid())}
    for name in os.listdir("/proc"):  # noqa: PTH208 - names, and many
        if name.isdigit() and name not in known and not links.isdisjoint(_links(name)):
            return True
    return False


def _link(number: int) -> str:
    return f"pipe:[{number}]"


def _links(pid: str) -> Iterator[str]:
    folder = f"/proc/{pid}/fd"
    try:
        names = os.listdir(folder)  # noqa: PTH208 - names, and many
    except OSError:
        return
    for name in names:
        try:
            yield os.readlink(f"{folder}/{name}")  # noqa: PTH115 - thousands of them
        except OSError:
            continue


def _ways(number: int, pid: int) -> Iterator[int]:
    """How a process has a pipe open, once for each of its descriptors."""
    folder, link = f"/proc/{pid}", _link(number)
    try:
        names = os.listdir(f"{folder}/fd")  # noqa: PTH208 - names, and many
    except OSError:
        return
    for name in names:
        try:
            if os.readlink(f"{folder}/fd/{name}") != link:  # noqa: PTH115 - as above
                continue
            said = Path(f"{folder}/fdinfo/{name}").read_text(encoding="ascii")
        except OSError:
            continue
        flags = next((line.split()[1] for line in said.splitlines() if line.startswith("flags:")), "")
        if flags:
            yield int(flags, 8) & os.O_ACCMODE
