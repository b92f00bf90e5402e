"""Encrypts what a script says, holds and returns before it is stored.

The journal uses it for every text of a run.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from checkrein.call import canonical
from checkrein.errors import SealError
from checkrein.execute.sandbox import DamagedError
from checkrein.store.row_cipher import RowCipher

_AGAIN = "Run the script again."


class Vault:
    """One key per installation; opened at the first script."""

    def __init__(self, folder: Path) -> None:
        self._cipher = RowCipher(folder / "runs.key")

    def close(self, content: bytes, *bound: str | int) -> str:
        """Sealed text that opens only for what it is bound to: the run, the kind of row, its number."""
        return self._cipher.seal(content, *bound)

    def open(self, text: str, *bound: str | int) -> bytes:
        """What was sealed; raises DamagedError."""
        try:
            return self._cipher.open(text, *bound)
        except SealError:
            raise DamagedError("What is stored of this run is not what was written.", remedy=_AGAIN) from None

    def put(self, value: Any, *bound: str | int) -> str:
        """A JSON value, sealed."""
        return self.close(canonical(value), *bound)

    def get(self, text: str, *bound: str | int) -> Any:
        try:
            return msgspec.json.decode(self.open(text, *bound))
        except msgspec.MsgspecError:
            raise DamagedError("What is stored of this run cannot be read.", remedy=_AGAIN) from None
