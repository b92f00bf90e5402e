"""Who is at the other end of a socket: its process, and the processes that one descends from."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path

import msgspec

_MOST_ANCESTORS = 256
_CREDENTIALS = struct.Struct("3i")
# macOS: <sys/un.h> SOL_LOCAL, LOCAL_PEERPID.
_SOL_LOCAL, _LOCAL_PEERPID = 0, 2
_LINUX: bool = sys.platform == "linux"


class Process(msgspec.Struct, frozen=True):
    """A process as it can be told from a later one with the same number."""

    pid: int
    parent: int
    started: str
    name: str
    terminal: bool = False


class Peer(msgspec.Struct, frozen=True):
    pid: int
    uid: int


def peer_of(connection: socket.socket) -> Peer:
    """The process that connected, as the kernel says."""
    if _LINUX:
        packed = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
        pid, uid, _ = _CREDENTIALS.unpack(packed)
        return Peer(pid, uid)
    pid = connection.getsockopt(_SOL_LOCAL, _LOCAL_PEERPID)
    found = process(pid)
    return Peer(pid, _owner(pid) if found else -1)


def process(pid: int) -> Process | None:
    """What the system says of a process; None when it is gone."""
    if pid <= 0:
        return None
    return _from_proc(pid) if _LINUX else _from_ps(pid)


def lineage(pid: int) -> list[Process]:
    """The process and its ancestors, nearest first; `is_whole` says whether all of them are there."""
    found: list[Process] = []
    while len(found) < _MOST_ANCESTORS:
        each = process(pid)
        if each is None:
            break
        found.append(each)
        pid = each.parent
    return found


def is_whole(line: list[Process]) -> bool:
    """Whether a lineage reaches the first process, or one the system hides because it is another user's.

    Otherwise an ancestor ended while we looked, or there are more of them than anybody needs.
    """
    return bool(line) and (line[-1].parent <= 0 or _is_hidden(line[-1].parent))


def _is_hidden(pid: int) -> bool:
    if process(pid) is not None:
        return False
    try:
        os.kill(pid, 0)
    except PermissionError:
        return True
    except OSError:
        pass
    return False


def is_alive(pid: int, started: str) -> bool:
    found = process(pid)
    return found is not None and found.started == started


def age(of: Process) -> float | None:
    """How many seconds ago a process began; None where the system's word for it says nothing to us."""
    try:
        if _LINUX:
            return time.clock_gettime(time.CLOCK_BOOTTIME) - int(of.started) / os.sysconf("SC_CLK_TCK")
        return time.time() - time.mktime(time.strptime(of.started))
    except ValueError:
        return None


def words_of(pid: int) -> list[str]:
    """The command line of a process; nothing when it cannot be read."""
    if not _LINUX:
        return _ps(pid, "args=").split()
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return []
    return [part.decode("utf-8", "replace") for part in raw.split(b"\0")[:-1]]


def program_name(pid: int) -> str:
    """The name of the file a process runs; nothing when it cannot be seen."""
    if not _LINUX:
        return Path(_ps(pid, "comm=")).name
    try:
        return Path(f"/proc/{pid}/exe").readlink().name.removesuffix(" (deleted)")
    except OSError:
        return ""


def environment_names(pid: int) -> set[str]:
    """The names (never the values) in the environment a process was started with."""
    try:
        raw = Path(f"/proc/{pid}/environ").read_bytes()
    except OSError:
        return set()
    return {part.split(b"=", 1)[0].decode("utf-8", "replace") for part in raw.split(b"\0") if part}


def has_terminal(pid: int) -> bool:
    """Whether a person could be typing into the process: its standard input is a terminal."""
    try:
        return str(Path(f"/proc/{pid}/fd/0").readlink()).startswith(("/dev/pts/", "/dev/tty"))
    except OSError:
        return not _LINUX and _ps(pid, "tty=") not in ("", "??")


def _from_proc(pid: int) -> Process | None:
    try:
        raw = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The name is in brackets and may hold anything, brackets and spaces too.
    name, _, rest = raw[raw.find(b"(") + 1 :].rpartition(b") ")
    fields = rest.split()
    return Process(
        pid, int(fields[1]), fields[19].decode(), name.decode("utf-8", "replace"), fields[4] != b"0"
    )


def _from_ps(pid: int) -> Process | None:
    parts = _ps(pid, "ppid=,tty=,lstart=,comm=").split(None, 7)
    if len(parts) < 8:
        return None
    return Process(pid, int(parts[0]), " ".join(parts[2:7]), Path(parts[7]).name, parts[1] != "??")


def _owner(pid: int) -> int:
    text = _ps(pid, "uid=")
    return int(text) if text.isdigit() else -1


def _ps(pid: int, fields: str) -> str:
    done = subprocess.run(  # noqa: S603 - a fixed program, a number
        ["/bin/ps", "-o", fields, "-p", str(pid)], capture_output=True, text=True, check=False, timeout=5
    )
    return done.stdout.strip()
