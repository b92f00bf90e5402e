"""Where the running server is found: its socket, its spool, its log, and the door file that names them.

The door file lies in the state directory and says everything a hook needs, so that no variable in an
agent's environment decides which server judges its calls.
"""

from __future__ import annotations

import hashlib
import os
import socket
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

import msgspec

from checkrein.errors import NotFoundError, StoreError
from checkrein.settings.sources import state_dir

# A Unix socket's name may have 104 bytes on macOS, 108 on Linux, with the zero at its end.
LONGEST_SOCKET = 100
LOOPBACK = "127.0.0.1"
_FIRST_LINE = "checkrein-door 1"
# What a server that a hook starts is given of the environment; nothing of the agent's reaches it.
_INHERITED = (
    "HOME",
    "LANG",
    "LC_ALL",
    "LOGNAME",
    "PATH",
    "TZ",
    "USER",
    "XDG_CONFIG_HOME",
    "XDG_RUNTIME_DIR",
    "XDG_STATE_HOME",
)


class DoorFile(msgspec.Struct, frozen=True):
    """What a hook reads before it knocks."""

    socket: str
    spool: str
    python: str
    environment: dict[str, str]


def door_file() -> Path:
    return state_dir() / "door"


def spool_dir() -> Path:
    return state_dir() / "spool"


def log_file() -> Path:
    return state_dir() / "server.log"


def socket_path() -> Path:
    """The socket of this state directory's server; short enough for the system."""
    name = f"{hashlib.sha256(os.fsencode(state_dir())).hexdigest()[:12]}.sock"
    given = os.environ.get("XDG_RUNTIME_DIR", "")
    wanted = Path(given) / "checkrein" if given.startswith("/") else state_dir() / "run"
    if len(os.fsencode(wanted / name)) <= LONGEST_SOCKET:
        return wanted / name
    return Path(tempfile.gettempdir()) / f"checkrein-{os.getuid()}" / name


def console_socket_path() -> Path:
    """The console's own socket, for connections that SSH forwards."""
    return socket_path().with_suffix(".web")


def sign_in_folder() -> Path:
    """Where the files lie that sign a browser in."""
    return socket_path().with_suffix(".signin")


def private_folder(folder: Path) -> Path:
    """A folder only its owner can enter; one that belongs to somebody else is refused."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.lstat()
        if folder.is_symlink() or status.st_uid != os.geteuid():
            raise StoreError(
                f"{folder} belongs to another user.", remedy="Remove it, or set XDG_RUNTIME_DIR."
            )
        if status.st_mode & 0o077:
            folder.chmod(0o700)
    except OSError as error:
        raise StoreError(f"{folder}: {error.strerror}.", remedy="Make it a folder of your own.") from error
    return folder


def listen_on_path(path: Path, backlog: int) -> socket.socket:
    """A listening Unix socket only its owner can reach; what lies there is left over and goes."""
    private_folder(path.parent)
    path.unlink(missing_ok=True)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    before = os.umask(0o177)
    try:
        listener.bind(str(path))
        listener.listen(backlog)
    except OSError:
        listener.close()
        raise
    finally:
        os.umask(before)
    return listener


def listen_on_loopback(ports: Iterable[int], backlog: int) -> socket.socket | None:
    """A listening socket on the first of these ports that is free; none where none is."""
    for wanted in ports:
        # Named as TCP, so that asyncio sends small answers at once instead of waiting to fill a packet.
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind((LOOPBACK, wanted))
            listener.listen(backlog)
        except OSError:
            listener.close()
            continue
        return listener
    return None


def server_environment() -> dict[str, str]:
    """What a server is started with; whatever else is set here is none of its business."""
    return {name: os.environ[name] for name in _INHERITED if name in os.environ}


def write_door(at: Path | None = None) -> Path:
    """Write the door file, whole or not at all."""
    environment = [f"{name}={value}" for name, value in server_environment().items()]
    lines = [_FIRST_LINE, str(at or socket_path()), str(spool_dir()), sys.executable, *environment]
    if any("\n" in line for line in lines):
        raise StoreError("A path with a line break cannot be used.", remedy="Use folders with plain names.")
    private_folder(state_dir())
    private_folder(spool_dir())
    # Bytes: the name of a folder need not be UTF-8, and the hook client reads it as it is.
    content = b"".join(os.fsencode(line) + b"\n" for line in lines)
    path = door_file()
    if _content(path) != content:
        _put(path, content)
    return path


def _content(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except OSError:
        return None


def _put(path: Path, content: bytes) -> None:
    """A file in one step; what could not be finished leaves nothing behind."""
    part = ""
    try:
        handle, part = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        Path(part).replace(path)
    except OSError as error:
        if part:
            Path(part).unlink(missing_ok=True)
        raise StoreError(f"{path}: {error.strerror}.", remedy="Free some space.") from error


def read_door() -> DoorFile:
    """The door file, or NotFoundError when no server has ever run here."""
    content = _content(door_file())
    if content is None:
        raise NotFoundError("No server has run here yet.", remedy="Run `checkrein up`.")
    lines = os.fsdecode(content).split("\n")
    if len(lines) < 4 or lines[0] != _FIRST_LINE:
        raise NotFoundError(f"{door_file()} cannot be read.", remedy="Run `checkrein up`.")
    pairs = (line.partition("=") for line in lines[4:] if line)
    return DoorFile(lines[1], lines[2], lines[3], {name: value for name, _, value in pairs})
