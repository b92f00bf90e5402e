"""Copies of checkpoints outside the store: all in `checkpoints.jsonl` beside it, the newest in the user's
configuration folder.

The newest one names the key, so a record that was made anew under another key does not agree with it. The
ledger writes them once a commit is on the disk. Opening the ledger and `audit verify` compare them with the
store.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

import msgspec

from checkrein.call import canonical
from checkrein.errors import LedgerError
from checkrein.ledger.checkpoints import Checkpoint
from checkrein.settings.sources import config_dir

FILE = "checkpoints.jsonl"
# More than the longest line.
_LAST_LINES = 16_384
_SECTOR = 512
# Who reads the newest copy while it is written looks again.
_LOOKS, _PAUSE = 3, 0.005
_decode = msgspec.json.Decoder(Checkpoint).decode


def newest_copy(folder: Path) -> Path:
    """Where the newest checkpoint of the store in `folder` is copied to."""
    name = hashlib.sha256(os.fsencode(os.path.realpath(folder))).hexdigest()[:12]
    return config_dir() / "checkpoints" / f"{name}.json"


class Copies:
    """The copies of one store's checkpoints. A full disk delays them and costs no record."""

    def __init__(self, folder: Path, newest: Path | None) -> None:
        """`newest`: the file of the newest checkpoint, outside of `folder`; None keeps no such copy."""
        self.file, self.newest = folder / FILE, newest

    def keep(self, made: Sequence[Checkpoint]) -> bool:
        """Copy checkpoints, oldest first. False: nothing was copied, try again with the next."""
        try:
            _append(self.file, b"".join(canonical(each) + b"\n" for each in made))
        except OSError:
            return False
        if self.newest is not None:
            # A configuration folder nobody can write to costs this copy only; `audit verify` says so.
            with contextlib.suppress(OSError):
                _replace(self.newest, canonical(made[-1]))
        return True

    def repair(self) -> None:
        """Remove a last line that a crash cut short, so that the next one is not written behind it."""
        with contextlib.suppress(OSError):
            end = _last_lines(self.file)
            if end and not end.endswith(b"\n"):
                cut = len(end) - (end.rfind(b"\n") + 1)
                os.truncate(self.file, self.file.stat().st_size - cut)

    def last_in_file(self) -> Checkpoint | None:
        """The newest checkpoint in the file beside the store; None where there is none to read."""
        for line in reversed(_last_lines(self.file).split(b"\n")):
            with contextlib.suppress(msgspec.MsgspecError):
                return _decode(line)
        return None


def newest_in(path: Path) -> Checkpoint | None:
    """The checkpoint in a file of its own; None where there is none. Raises LedgerError."""
    for _ in range(_LOOKS):
        try:
            found = _decode(path.read_bytes())
            _ = found.content
        except FileNotFoundError:
            return None
        except (OSError, msgspec.MsgspecError, LedgerError):
            time.sleep(_PAUSE)
        else:
            return found
    raise LedgerError(f"{path} cannot be read.")


def others_of(path: Path, keys: set[str]) -> list[tuple[Path, Checkpoint]]:
    """Newest checkpoints that other stores with these keys left beside `path`: this one, before it moved."""
    found = []
    for other in sorted(path.parent.glob("*.json")):
        with contextlib.suppress(LedgerError):
            if other != path and (each := newest_in(other)) and each.content.get("key") in keys:
                found.append((other, each))
    return found


def kept(folder: Path) -> list[Checkpoint]:
    """The checkpoints in the file beside the store; a last line cut short by a crash does not count."""
    try:
        lines = (folder / FILE).read_bytes().split(b"\n")
    except FileNotFoundError:
        return []
    found = []
    for number, line in enumerate(lines, start=1):
        try:
            if line:
                found.append(_decode(line))
        except msgspec.MsgspecError:
            if number != len(lines):
                raise LedgerError(f"{folder / FILE}, line {number} is not a checkpoint.") from None
    return found


def _last_lines(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - _LAST_LINES))
            return file.read()
    except OSError:
        return b""


def _append(path: Path, lines: bytes) -> None:
    """All the lines or none."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        size = os.fstat(descriptor).st_size
        try:
            whole = os.write(descriptor, lines) == len(lines)
        except OSError:
            os.ftruncate(descriptor, size)
            raise
        if not whole:
            os.ftruncate(descriptor, size)
            raise OSError(28, "No space left on device")
    finally:
        os.close(descriptor)


def _replace(path: Path, content: bytes) -> None:
    """In place and within one sector: a new file under its name would make each refusal wait for the disk."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        descriptor = os.open(path, flags, 0o600)
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(path, flags, 0o600)
    try:
        os.pwrite(descriptor, content.ljust(_SECTOR), 0)
    finally:
        os.close(descriptor)
