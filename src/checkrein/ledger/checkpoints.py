"""Signed checkpoints: the chain's head at a moment, under a key of this installation.

Each one is stored in the transaction of the record it covers, copied out of the store (`copies`), and can be
printed to be kept on another machine. A chain alone does not show that its end was cut off or made anew.
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

    @property
    def previous(self) -> int | None:
        """The record of the checkpoint before this one; None: made before checkpoints named it."""
        found = self.content.get("previous")
        return found if isinstance(found, int) else None


class Signer:
    """This installation's Ed25519 key, made on first use and readable by its owner only."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / KEY
        self._key: Ed25519PrivateKey | None = None
        self._making = threading.Lock()

    @property
    def exists(self) -> bool:
        return self._key is not None or self._path.exists()

    def sign(self, seq: int, head: str, at: float, previous: int = 0) -> Checkpoint:
        said = {"at": at, "hash": head, "key": self.public, "previous": previous, "seq": seq}
        body = canonical(said).decode()
        return Checkpoint(body, self._private().sign(body.encode()).hex())

    @property
    def public(self) -> str:
        return self._private().public_key().public_bytes_raw().hex()

    def _private(self) -> Ed25519PrivateKey:
        with self._making:
            try:
                return self._key or self._made()
            except (OSError, ValueError) as error:
                why = error.strerror if isinstance(error, OSError) else "it is no key"
                raise LedgerError(
                    f"The record cannot be signed: {self._path}: {why}.",
                    remedy="Put the key back as it was; calls are refused until then.",
                ) from error

    def _made(self) -> Ed25519PrivateKey:
        """The key from its file, made on first use; one thread at a time."""
        if self._key is None:
            from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

            if not self._path.exists():
                _write_new(self._path, Ed25519PrivateKey.generate().private_bytes_raw())
            self._key = Ed25519PrivateKey.from_private_bytes(self._path.read_bytes())
        return self._key


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
