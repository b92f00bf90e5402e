"""Between the values of a conversation and the rows that keep them: whole and unmasked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from checkrein.call import DEEPEST, is_deep
from checkrein.doors.chat import Invocation, Message, Part, Run, Session, Snapshot
from checkrein.errors import InputError
from checkrein.store import Row
from checkrein.store.conversation_runs import CALL, RUN
from checkrein.store.conversations import MESSAGE, SESSION, SNAPSHOT

Parts = tuple[Part, ...]
# What holds arguments and results in a row, around them.
_AROUND = 8
_FREE = {"parts", "tools_off", "metadata", "arguments", "edited", "output"}
_PARTS_AT = MESSAGE.index("parts")
_all_parts = msgspec.json.Decoder(list[Parts])


def clean(text: str) -> str:
    """The text as it can be kept: halves of characters are joined, or replaced when they stand alone."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def packed(value: Any) -> str:
    """The JSON of a value, whatever is in it."""
    # INVARIANT: what is kept can be read again, however deep in other work whoever reads it is.
    if is_deep(value, DEEPEST + _AROUND):
        raise InputError("This cannot be kept: it is nested too deeply.", remedy="Make it flatter.")
    try:
        try:
            return msgspec.json.encode(value).decode()
        except UnicodeEncodeError:
            return msgspec.json.encode(_cleaned(msgspec.to_builtins(value))).decode()
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InputError(f"This cannot be kept: {error}.", remedy="Only what JSON can say.") from error


def columns(value: msgspec.Struct | Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
    """The row of a value, by column; only those it has."""
    given = value if isinstance(value, Mapping) else {name: getattr(value, name) for name in names}
    return {name: _column(name, given[name]) for name in names if name in given}


def session_of(row: Row) -> Session:
    named = dict(zip(SESSION, row, strict=True))
    named["tools_off"] = msgspec.json.decode(named["tools_off"], type=tuple[str, ...])
    named["metadata"] = msgspec.json.decode(named["metadata"])
    if named["auto_compress"] is not None:
        named["auto_compress"] = bool(named["auto_compress"])
    return Session(**named)


def messages_of(rows: Sequence[Row]) -> list[Message]:
    """All at once: the parts of thousands are read as one JSON text."""
    parts = _all_parts.decode("[" + ",".join([row[_PARTS_AT] for row in rows]) + "]")
    return [
        Message(row[0], row[1], said, row[3], bool(row[4]), bool(row[5]), *row[6:])
        for row, said in zip(rows, parts, strict=True)
    ]


def snapshot_of(row: Row) -> Snapshot:
    named = dict(zip(SNAPSHOT, row, strict=True))
    return Snapshot(**named | {"estimated": bool(named["estimated"])})


def run_of(row: Row) -> Run:
    return Run(**dict(zip(RUN, row, strict=True)))


def call_of(row: Row) -> Invocation:
    named = dict(zip(CALL, row, strict=True))
    for name in ("arguments", "edited", "output"):
        named[name] = None if named[name] is None else msgspec.json.decode(named[name])
    return Invocation(**named | {"asked": bool(named["asked"])})


def _column(name: str, value: Any) -> Any:
    if name in _FREE:
        return None if value is None and name == "edited" else packed(value)
    return clean(value) if isinstance(value, str) else value


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, dict):
        return {_cleaned(key): _cleaned(each) for key, each in value.items()}
    return [_cleaned(each) for each in value] if isinstance(value, (list, tuple)) else value
