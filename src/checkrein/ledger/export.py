"""Entries as CSV, JSON or JSON lines, for auditors and spreadsheets."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from checkrein.ledger.entries import Entry

FORMATS = ("csv", "json", "jsonl")
# A cell that starts like this would be run as a formula by a spreadsheet.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")
_encode = msgspec.json.Encoder().encode


def export(entries: Iterable[Entry], form: str) -> Iterator[str]:
    """The export in pieces, so that a million entries never sit in memory."""
    return {"csv": _csv, "json": _json, "jsonl": _jsonl}[form](entries)


def _jsonl(entries: Iterable[Entry]) -> Iterator[str]:
    for entry in entries:
        yield _encode(entry).decode() + "\n"


def _json(entries: Iterable[Entry]) -> Iterator[str]:
    yield "["
    for number, entry in enumerate(entries):
        yield ("," if number else "") + "\n" + _encode(entry).decode()
    yield "\n]\n"


def _csv(entries: Iterable[Entry]) -> Iterator[str]:
    names = Entry.__struct_fields__
    yield _line(names)
    for entry in entries:
        yield _line(_cell(getattr(entry, name)) for name in names)


def _line(cells: Iterable[str]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer).writerow(cells)
    return buffer.getvalue()


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool | int | float):
        return repr(value)
    text = value if isinstance(value, str) else _encode(value).decode()
    return f"'{text}" if text.startswith(_FORMULA) else text
