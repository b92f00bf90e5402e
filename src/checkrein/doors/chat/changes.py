"""What a person may set of a conversation, and whether a value for it can be right."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from checkrein.doors.chat import compression
from checkrein.doors.chat.rows import clean, packed
from checkrein.errors import ConfigError, InputError

LONGEST_TITLE = 200
_COLOR = re.compile(r"#[0-9a-fA-F]{6}|[a-z]{0,20}")


class Changes(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Everything `update` knows."""

    title: str | None = None
    pinned: bool = False
    archived: bool = False
    color: str = ""
    provider: str = ""
    model: str = ""
    project: str = ""
    system: str = ""
    tools_off: tuple[str, ...] = ()
    threshold: float | None = None
    retention_tokens: int | None = None
    auto_compress: bool | None = None
    metadata: dict[str, Any] = {}
    tainted_by: str = ""


def changed(changes: Mapping[str, Any], now: float) -> dict[str, Any]:
    """The fields of a session these changes set."""
    try:
        given = msgspec.convert(dict(changes), Changes)
    except msgspec.ValidationError as error:
        raise InputError(
            f"The conversation cannot be changed so: {error}.",
            remedy=f"Known are {', '.join(Changes.__struct_fields__)}.",
        ) from error
    _check(given)
    fields = {name: getattr(given, name) for name in changes}
    if "title" in fields:
        fields["title"] = titled(given.title)
    for name, at in (("pinned", "pinned_at"), ("archived", "archived_at")):
        if name in fields:
            fields[at] = now if fields.pop(name) else None
    if "tools_off" in fields:
        fields["tools_off"] = tuple(sorted(set(given.tools_off)))
    return fields


def titled(title: str | None) -> str:
    """A title as it is kept: one line, not too long."""
    # One character in place of a control one: a title is shown in lists and in the terminal.
    line = " ".join("".join(each if each.isprintable() else " " for each in clean(title or "")).split())
    if not line:
        raise InputError("A conversation needs a title.")
    return line if len(line) <= LONGEST_TITLE else f"{line[: LONGEST_TITLE - 1].rstrip()}…"


def _check(given: Changes) -> None:
    try:
        compression.checked(
            compression.Wanted(threshold=given.threshold, retention_tokens=given.retention_tokens)
        )
    except ConfigError as error:
        raise InputError(f"{error.key}: {error.reason}.", remedy=error.remedy) from error
    if not _COLOR.fullmatch(given.color):
        raise InputError(f"`{given.color[:40]}` is no colour.", remedy="A name, or #rrggbb.")
    if any(not name.strip() for name in given.tools_off):
        raise InputError("`tools_off` names a server or a tool each time.")
    if given.retention_tokens is not None and given.retention_tokens >= 2**63:
        raise InputError("`retention_tokens` is out of bounds.")
    packed(given.metadata)
