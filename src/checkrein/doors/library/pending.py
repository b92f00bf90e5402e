"""A call that waits, as data: written to JSON here, read back wherever the program goes on. No I/O."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from checkrein.call import ToolCall, Verdict
from checkrein.errors import InputError

FORMAT = 1


class Pending(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything that is needed to go on with a call; it holds the call's arguments as they are."""

    kind: Literal["approval", "suspended"]
    entry: str
    call: ToolCall
    text: str = ""
    phase: str = "building"
    # What was said when it was asked; for whoever shows the question.
    verdict: Verdict | None = None
    # Of a tool that stopped by itself: how often, what it said, and what it was told before.
    step: int = 0
    payload: Any = None
    told: tuple[Any, ...] = ()
    format: int = FORMAT

    def json(self) -> str:
        return msgspec.json.encode(self).decode()


_decoder = msgspec.json.Decoder(Pending)


def pending(raw: Pending | str | bytes | dict[str, Any]) -> Pending:
    """A pending call from wherever it was kept."""
    try:
        if isinstance(raw, str | bytes):
            found = _decoder.decode(raw)
        else:
            found = raw if isinstance(raw, Pending) else msgspec.convert(raw, Pending)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"This is no pending call: {error}", remedy="Keep what `json()` gives.") from None
    if found.format != FORMAT:
        raise InputError(f"This pending call has format {found.format}; this version knows {FORMAT}.")
    return found
