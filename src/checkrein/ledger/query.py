"""Finds entries: by time, session, project, tool, decision or domain, newest first; and counts them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from checkrein.errors import InputError, NotFoundError
from checkrein.ledger.entries import Entry, body_of_row, fold
from checkrein.ledger.record import first_id
from checkrein.ledger.terms import REMEMBERED, term, terms_of
from checkrein.store import Reader, lookup, records

_PAGE = 200
_PLAIN = re.compile(r"[ !#-\[\]-~]+")


class Filter(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a person remembers of the calls they look for; everything given must fit."""

    since: float | None = None
    until: float | None = None
    session: str | None = None
    project: str | None = None
    tool: str | None = None
    decision: str | None = None
    domain: str | None = None

    def terms(self) -> list[str]:
        given = ((name, getattr(self, name)) for name in REMEMBERED)
        return [term(name, value) for name, value in given if value is not None]


def entries(reader: Reader, wanted: Filter, limit: int | None = None) -> Iterator[Entry]:
    """Matching entries, newest first, read page by page."""
    low = first_id(wanted.since) if wanted.since is not None else ""
    before = first_id(wanted.until) if wanted.until is not None else ""
    left = limit
    while left is None or left > 0:
        page = _page(reader, wanted.terms(), low, before, _PAGE if left is None else min(_PAGE, left))
        folded = {entry.id: entry for entry in fold(records.of_entries(reader, page))}
        yield from (folded[each] for each in page if each in folded)
        if not page:
            return
        before = page[-1]
        left = None if left is None else left - len(page)


def _page(reader: Reader, terms: list[str], low: str, before: str, limit: int) -> list[str]:
    """The newest ids that fit: those filed under the terms, and the few recorded since the last filing."""
    recent = records.after(reader, lookup.filed(reader), ("decided",), holding=_said(terms)) if terms else ()
    fitting = {
        row[3]
        for row in recent
        if low <= row[3]
        and (not before or row[3] < before)
        and set(terms) <= set(terms_of(body_of_row(row)["data"]))
    }
    filed = lookup.find(reader, terms, low, before, limit)
    return sorted(fitting.union(filed), reverse=True)[:limit]


def _said(terms: list[str]) -> str:
    """A text that every decision under these terms holds, where there is one that JSON spells in one way."""
    values = (each.partition(":")[2] for each in terms)
    return next((f'"{value}"' for value in values if _PLAIN.fullmatch(value)), "")


def get_entry(reader: Reader, id: str) -> Entry | None:  # noqa: A002 - the entry's own word
    """All that is on the record about one call."""
    return next(iter(fold(records.of_entries(reader, [id]))), None)


def entry(reader: Reader, start: str) -> tuple[Entry, list[dict[str, Any]]]:
    """The one entry whose id begins with `start`, and its records."""
    found = lookup.find(reader, (), start, f"{start}\U0010ffff", 2) if start else []
    if not found:
        raise NotFoundError(f"There is no call {start!r}.", remedy="See `checkrein audit list`.")
    if len(found) > 1 and start not in found:
        raise InputError(f"More than one call begins with {start!r}.", remedy="Give more of its id.")
    rows = records.of_entries(reader, [start if start in found else found[0]])
    return fold(rows)[0], [body_of_row(row) for row in rows]


def stats(found: Iterable[Entry]) -> dict[str, Any]:
    """How many calls there were, by decision, result, risk, domain and tool."""
    total = 0
    counts: dict[str, Counter[str]] = {
        name: Counter() for name in ("decision", "result", "risk", "domain", "tool")
    }
    for each in found:
        total += 1
        counts["decision"][each.decision] += 1
        counts["result"][each.result] += 1
        counts["risk"][each.risk_category] += 1
        counts["tool"][each.tool_name] += 1
        counts["domain"].update(each.domains)
    return {"calls": total} | {name: dict(counter.most_common()) for name, counter in counts.items()}
