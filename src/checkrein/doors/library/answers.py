"""What a person (or a test's script) says to a question, in the few ways a program spells it. No I/O."""

from __future__ import annotations

from typing import Any

import msgspec

from checkrein.asking import Remember
from checkrein.errors import InputError

_WORDS = {
    "yes": "approved",
    "approve": "approved",
    "approved": "approved",
    "no": "denied",
    "deny": "denied",
    "denied": "denied",
    "answer": "answered",
    "answered": "answered",
}


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """An answer; `edited` are the arguments to run with instead, `message` is for the model."""

    answer: str = "approved"
    message: str = ""
    edited: dict[str, Any] | None = None
    remember: Remember | None = None


def said(raw: Any) -> Answer:
    """`True`, `"no: not today"`, `{"edited": {...}}` or an Answer."""
    if isinstance(raw, Answer):
        return msgspec.structs.replace(raw, answer=word(raw.answer))
    if isinstance(raw, bool):
        return Answer(answer="approved" if raw else "denied")
    if isinstance(raw, str):
        spoken, _, message = raw.partition(":")
        return Answer(answer=word(spoken), message=message.strip())
    try:
        given = msgspec.convert(raw, Answer, strict=True)
    except (msgspec.MsgspecError, TypeError) as error:
        raise InputError(f"{raw!r} is no answer: {error}.", remedy='Say "yes" or "no: why".') from None
    return msgspec.structs.replace(given, answer=word(given.answer))


def word(spelled: str) -> str:
    found = _WORDS.get(spelled.strip().lower())
    if found is None:
        raise InputError(f"{spelled!r} is no answer.", remedy='Say "yes" or "no: why".')
    return found
