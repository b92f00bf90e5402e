"""The call of each question, encrypted in its row, so that any server can judge it again when it is answered.

`Asking` seals a call when it is asked about; the broker opens it for whoever answers or goes on with it.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec

from checkrein.call import ToolCall, canonical
from checkrein.errors import SealError
from checkrein.store import Reader
from checkrein.store import questions as stored
from checkrein.store.row_cipher import RowCipher

_CALL, _EDIT = "question.call", "question.edit"


class AskedCall(msgspec.Struct, frozen=True):
    """A call as it was asked about, and the phase its door judged it in."""

    call: ToolCall
    phase: str | None = "building"

    def edited(self, arguments: dict[str, Any]) -> AskedCall:
        """The same call with other arguments."""
        return msgspec.structs.replace(self, call=msgspec.structs.replace(self.call, arguments=arguments))


class QuestionCalls:
    """Seals calls and edits for their questions' rows, and opens them. Knows no answer."""

    def __init__(self, reader: Reader, folder: Path) -> None:
        self._reader, self._cipher = reader, RowCipher(folder / "questions.key")

    def seal_call(self, entry: str, call: ToolCall, phase: str | None) -> str:
        # What the session did before is read back when the call is judged again.
        asked = {"call": {**msgspec.structs.asdict(call), "history": ()}, "phase": phase}
        return self._cipher.seal(canonical(asked), _CALL, entry)

    def seal_edit(self, entry: str, arguments: dict[str, Any]) -> str:
        return self._cipher.seal(canonical(arguments), _EDIT, entry)

    def asked_call(self, entry: str) -> AskedCall | None:
        """The call of a question; None where it was not kept or cannot be read."""
        found = self._opened(stored.sealed_call(self._reader, entry), _CALL, entry)
        if found is None:
            return None
        try:
            return msgspec.convert(found, AskedCall)
        except msgspec.ValidationError:
            return None

    def edited(self, entry: str) -> dict[str, Any] | None:
        """The arguments a person approved instead; None where there are none, or they cannot be read."""
        found = self._opened(stored.sealed_edit(self._reader, entry), _EDIT, entry)
        return found if isinstance(found, dict) else None

    def _opened(self, sealed: str, *bound: str) -> Any:
        if not sealed:
            return None
        try:
            return _decode(self._cipher.open(sealed, *bound))
        except (SealError, ValueError, OSError):
            return None


def _decode(text: bytes) -> Any:
    """What was encoded, with values JSON allows and our decoder rejects: a lone surrogate, a long number."""
    try:
        return msgspec.json.decode(text)
    except msgspec.DecodeError:
        return json.loads(text)
