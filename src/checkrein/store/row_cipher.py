"""Encrypts what a row must keep and not show: the call of a question, the text of a script.

Each key is a file beside the store, readable by its owner only. Text opens only for the row it was made for.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import secrets
from pathlib import Path
from typing import Any

from checkrein.call import canonical
from checkrein.errors import SealError

KEY_BYTES, NONCE_BYTES = 32, 12


class RowCipher:
    """One key; read, or made, when it is first needed."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._cipher: Any = None

    def seal(self, content: bytes, *bound: str | int) -> str:
        """Return text that opens only with what it is bound to, such as the table and the row's id."""
        nonce = os.urandom(NONCE_BYTES)
        sealed = nonce + self._opened().encrypt(nonce, content, canonical(list(bound)))
        return base64.b64encode(sealed).decode()

    def open(self, text: str, *bound: str | int) -> bytes:
        """Return what was sealed; raises SealError."""
        from cryptography.exceptions import InvalidTag

        try:
            raw = base64.b64decode(text, validate=True)
            if len(raw) <= NONCE_BYTES:
                raise ValueError
            # INVARIANT: edited, truncated, swapped or replayed bytes are never taken up.
            content: bytes = self._opened().decrypt(
                raw[:NONCE_BYTES], raw[NONCE_BYTES:], canonical(list(bound))
            )
        except (InvalidTag, ValueError, binascii.Error):
            raise SealError("What is stored is not what was written.") from None
        return content

    def _opened(self) -> Any:
        if self._cipher is None:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM

            self._cipher = AESGCM(key_in(self._path))
        return self._cipher


def key_in(path: Path) -> bytes:
    """Return this installation's key, made on first use, readable by its owner only."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        found = path.read_bytes()
        if len(found) == KEY_BYTES:
            return found
        # A key that was cut short opens nothing: what was sealed with it is refused.
        path.unlink()
    part = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(secrets.token_bytes(KEY_BYTES))
            file.flush()
            os.fsync(file.fileno())
        # INVARIANT: of two processes that make a key at once, both use the same one.
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(part)
    finally:
        part.unlink()
    return path.read_bytes()
