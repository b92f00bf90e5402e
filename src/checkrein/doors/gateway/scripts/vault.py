"""Seals what a script says, holds and returns before it is stored: the store can neither show nor change it.

The journal uses it for every text of a run. The key is a file beside the store, readable by its owner only.
"""

from __future__ import annotations

import base64
import binascii
import os
from pathlib import Path
from typing import Any

import msgspec

from checkrein.call import canonical
from checkrein.doors.gateway.sealing import key_in
from checkrein.execute.sandbox import DamagedError

_NONCE = 12
_AGAIN = "Run the script again."


class Vault:
    """One key per installation; opened at the first script."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / "runs.key"
        self._cipher: Any = None

    def close(self, content: bytes, *bound: str | int) -> str:
        """Sealed text that opens only for what it is bound to: the run, the kind of row, its number."""
        nonce = os.urandom(_NONCE)
        sealed = nonce + self._opened().encrypt(nonce, content, canonical(list(bound)))
        return base64.b64encode(sealed).decode()

    def open(self, text: str, *bound: str | int) -> bytes:
        """What was sealed; raises DamagedError."""
        from cryptography.exceptions import InvalidTag

        try:
            raw = base64.b64decode(text, validate=True)
            if len(raw) <= _NONCE:
                raise ValueError
            # INVARIANT: edited, truncated, swapped or replayed bytes are never taken up.
            content: bytes = self._opened().decrypt(raw[:_NONCE], raw[_NONCE:], canonical(list(bound)))
        except (InvalidTag, ValueError, binascii.Error):
            raise DamagedError("What is stored of this run is not what was written.", remedy=_AGAIN) from None
        return content

    def put(self, value: Any, *bound: str | int) -> str:
        """A JSON value, sealed."""
        return self.close(canonical(value), *bound)

    def get(self, text: str, *bound: str | int) -> Any:
        try:
            return msgspec.json.decode(self.open(text, *bound))
        except msgspec.MsgspecError:
            raise DamagedError("What is stored of this run cannot be read.", remedy=_AGAIN) from None

    def _opened(self) -> Any:
        if self._cipher is None:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM

            self._cipher = AESGCM(key_in(self._path))
        return self._cipher
