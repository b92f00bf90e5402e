"""Finds entries: by time, session, project, tool, decision or domain, newest first; and counts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec

from checkrein.errors import InputError, NotFoundError
from checkrein.ledger.entries import Entry, fold
from checkrein.store import Reader, records

_PAGE = 200


class Filter(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a person remembers of the calls they look for; everything given must fit."""

    since: float | None = None
    until: float | None = None
    session: str | None = None
    project: str | None = None
    tool: str | None = None
    decision: str | None = None
    domain: str | None = None

    def given(self) -> dict[str, Any]:
        return {name: value for name in self.__struct_fields__ if (value := getattr(self, name)) is not None}


def entries(reader: Reader, wanted: Filter, limit: int | None = None) -> Iterator[Entry]:
    """Matching entries, newest first, read page by page."""
    left, before = limit, None
    while left is None or left > 0:
        page = records.find(reader, wanted.given(), limit=min(_PAGE, left or _PAGE), before=before)
        if not page:
            return
        folded = {entry.id: entry for entry in fold(records.of_entries(reader, [each[1] for each in page]))}
        yield from (folded[each[1]] for each in page if each[1] in folded)
        before = page[-1][0]
        left = None if left is None else left - len(page)


def entry(reader: Reader, start: str) -> tuple[Entry, list[dict[str, Any]]]:
    """The one entry whose id begins with `start`, and its records."""
    found = records.find(reader, {"entry": start}, limit=2)
    if not found or not start:
        raise NotFoundError(f"There is no call {start!r}.", remedy="See `checkrein audit list`.")
    if len(found) > 1 and found[0][1] != start and found[1][1] != start:
        raise InputError(f"More than one call begins with {start!r}.", remedy="Give more of its id.")
    rows = records.of_entries(reader, [start if start in (found[0][1], found[-1][1]) else found[0][1]])
    return fold(rows)[0], [msgspec.json.decode(row[8]) for row in rows]


def stats(reader: Reader, wanted: Filter) -> dict[str, Any]:
    """How many calls there were, by decision, result, risk, domain and tool."""
    total = 0
    counts: dict[str, Counter[str]] = {
        name: Counter() for name in ("decision", "result", "risk", "domain", "tool")
    }
    for each in entries(reader, wanted):
        total += 1
        counts["decision"][each.decision] += 1
        counts["result"][each.result] += 1
        counts["risk"][each.risk_category] += 1
        counts["tool"][each.tool_name] += 1
        counts["domain"].update(each.domains)
    return {"calls": total} | {name: dict(counter.most_common()) for name, counter in counts.items()}
