"""Signed checkpoints: the chain's head at a moment, under a key of this installation.

A chain alone does not show that its end was cut off; a checkpoint kept elsewhere does. Each one is in the
store, appended to `checkpoints.jsonl` beside it, and can be printed to be kept on another machine.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from checkrein.call import canonical
from checkrein.errors import LedgerError

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

KEY = "ledger.key"
FILE = "checkpoints.jsonl"


class Checkpoint(msgspec.Struct, frozen=True):
    """What was signed, and the signature in hex."""

    body: str
    signature: str

    @property
    def content(self) -> dict[str, Any]:
        try:
            decoded: dict[str, Any] = msgspec.json.decode(self.body, type=dict)
            if isinstance(decoded["seq"], int) and isinstance(decoded["hash"], str):
                return decoded
        except (msgspec.MsgspecError, KeyError):
            pass
        raise LedgerError(
            "A checkpoint cannot be read.", remedy="It was tampered with; keep the store as evidence."
        )


class Signer:
    """This installation's Ed25519 key, made on first use and readable by its owner only."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._key: Ed25519PrivateKey | None = None
        self._making = threading.Lock()

    def sign(self, seq: int, head: str, at: float) -> Checkpoint:
        body = canonical({"at": at, "hash": head, "key": self.public, "seq": seq}).decode()
        return Checkpoint(body, self._private().sign(body.encode()).hex())

    @property
    def public(self) -> str:
        return self._private().public_key().public_bytes_raw().hex()

    def keep(self, checkpoint: Checkpoint) -> None:
        """Append the checkpoint to the file beside the store; a full disk costs the copy, not the record."""
        with contextlib.suppress(OSError):
            _append(self._folder / FILE, canonical(checkpoint) + b"\n")

    def _private(self) -> Ed25519PrivateKey:
        with self._making:
            return self._key or self._made()

    def _made(self) -> Ed25519PrivateKey:
        """The key from its file, made on first use; one thread at a time."""
        if self._key is None:
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

            path = self._folder / KEY
            if not path.exists():
                _write_new(path, Ed25519PrivateKey.generate().private_bytes_raw())
            self._key = Ed25519PrivateKey.from_private_bytes(path.read_bytes())
        return self._key


def _append(path: Path, line: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, line)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_new(path: Path, content: bytes) -> None:
    """The whole key or none of it, never readable by others; whoever is first has made it for all."""
    handle, name = tempfile.mkstemp(prefix=".key-", dir=path.parent)
    part = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(handle)
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(part)
    finally:
        part.unlink()


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
                found.append(msgspec.json.decode(line, type=Checkpoint))
        except msgspec.MsgspecError:
            if number != len(lines):
                raise LedgerError(f"{folder / FILE}, line {number} is not a checkpoint.") from None
    return found


def is_signed(checkpoint: Checkpoint, public: str) -> bool:
    """Whether the signature is by the key given."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

    try:
        key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(public))
        key.verify(bytes.fromhex(checkpoint.signature), checkpoint.body.encode())
    except (InvalidSignature, ValueError):
        return False
    return True
