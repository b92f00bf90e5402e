"""No server's process outlives us: who ends them when we stop, when we are killed, and what a past run left.

Every process group we start is known to a watcher, a shell that ends them when our end of its pipe closes
(however we end), and is noted in a file by which the next run finds what even the watcher missed.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import msgspec

from checkrein import peers
from checkrein.runtime import private_folder
from checkrein.settings.sources import state_dir

# Reads "+ GROUP" and "- GROUP"; at the end of its input it ends what is still on its list.
_WATCHER = """
trap '' HUP INT TERM
groups=" "
while read -r sign group; do
  case "$sign$groups" in
    +*) groups="$groups$group " ;;
    -*" $group "*) groups="${groups%% "$group" *} ${groups#* "$group" }" ;;
  esac
done
for group in $groups; do kill -s KILL -- "-$group"; done 2>/dev/null
"""


class Note(msgspec.Struct, frozen=True):
    """A process we started, and who we were."""

    pid: int
    started: str
    owner: int
    owner_started: str


class Watcher:
    """The process that ends our groups when we no longer can; there while there is a group."""

    def __init__(self) -> None:
        self._groups: set[int] = set()
        self._process: subprocess.Popen[bytes] | None = None

    def add(self, group: int) -> None:
        self._groups.add(group)
        if self._process is None or self._process.poll() is not None:
            self._begin()
        else:
            self._tell(b"+", group)

    def remove(self, group: int) -> None:
        self._groups.discard(group)
        self._tell(b"-", group)
        if not self._groups:
            self._end()

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def _begin(self) -> None:
        self._end()
        self._process = subprocess.Popen(  # noqa: S603 - a fixed program
            ["/bin/sh", "-c", _WATCHER],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env={},
            cwd="/",
            start_new_session=True,
        )
        for each in self._groups:
            self._tell(b"+", each)

    def _tell(self, sign: bytes, group: int) -> None:
        if self._process is not None and self._process.stdin is not None:
            # One that was killed is noticed, and replaced, when the next group comes.
            with contextlib.suppress(OSError):
                os.write(self._process.stdin.fileno(), b"%s %d\n" % (sign, group))

    def _end(self) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin is not None:
            # Its list is empty, or it is dead already.
            process.stdin.close()
        try:
            process.wait(2)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


watcher = Watcher()


def _folder() -> Path:
    return state_dir() / "gateway"


def note(name: str, pid: int) -> Path | None:
    """Write down a process of ours; nothing when it is gone already."""
    found, own = peers.process(pid), peers.process(os.getpid())
    if found is None or own is None:
        return None
    path = private_folder(_folder()) / f"{name}-{pid}"
    content = msgspec.json.encode(Note(pid, found.started, own.pid, own.started))
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600), "wb") as file:
        file.write(content)
    return path


def sweep() -> int:
    """End what earlier runs left behind, and forget it; how many groups there were."""
    ended = 0
    for path in sorted(_folder().glob("*-*")):
        found = _read(path)
        if found is not None and peers.is_alive(found.owner, found.owner_started):
            continue
        # INVARIANT: only the very process we wrote down is ended, never a later one with its number.
        if found is not None and peers.is_alive(found.pid, found.started):
            ended += signal_group(found.pid, signal.SIGKILL)
        path.unlink(missing_ok=True)
    return ended


def _read(path: Path) -> Note | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Note)
    except (OSError, msgspec.MsgspecError):
        return None


def signal_group(group: int, number: int) -> bool:
    """Whether there was anybody to signal."""
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def is_living(group: int) -> bool:
    """Whether any process of the group still runs; one that only waits to be buried does not."""
    if not signal_group(group, 0):
        return False
    return sys.platform != "linux" or any(_runs_in(group, each) for each in Path("/proc").iterdir())


def _runs_in(group: int, folder: Path) -> bool:
    if not folder.name.isdigit():
        return False
    try:
        fields = (folder / "stat").read_bytes().rpartition(b") ")[2].split()
    except OSError:
        return False
    return len(fields) > 2 and int(fields[2]) == group and fields[0] not in (b"Z", b"X")
