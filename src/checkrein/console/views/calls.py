"""Calls: the ledger searched, filtered, followed and exported; and each call's whole story."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Any

import msgspec
from starlette.responses import Response, StreamingResponse

from checkrein.call import DECISIONS
from checkrein.console import choices, shown
from checkrein.console.forms import Fields
from checkrein.console.visits import Visit
from checkrein.errors import InputError
from checkrein.ledger.entries import Entry
from checkrein.ledger.export import FORMATS, export
from checkrein.ledger.query import Filter, entries, entry
from checkrein.store import Reader

PAGE = 50
# How many calls one search for words looks at; the page says so and offers to go on.
SEARCHED = 1_500
_NAMES = ("project", "session", "tool", "decision", "domain", "since", "until", "words")
_ALPHABET = "0123456789abcdefghjkmnpqrstvwxyz"
_PIECE = 32_768
_TYPES = {"csv": "text/csv", "json": "application/json", "jsonl": "application/x-ndjson"}


class Found(msgspec.Struct):
    """A page of calls; `last` is where the next one begins, `is_cut` whether a search stopped on the way."""

    calls: list[Entry]
    last: str = ""
    is_cut: bool = False


def show(visit: Visit) -> Response:
    """A page of calls, newest first."""
    trouble, found = "", Found([])
    try:
        wanted = wanted_calls(visit.query, visit.desk.now())
        found = page_of(visit.desk.store, wanted, visit.query.text("words"), visit.query.text("before"))
    except InputError as error:
        trouble = str(error)
    given = {name: visit.query.text(name) for name in _NAMES}
    return visit.page(
        "calls.html",
        400 if trouble else 200,
        found=found,
        given=given,
        filtered=any(given.values()),
        at_top=not visit.query.text("before"),
        trouble=trouble,
        choices={name: choices.values(visit.desk.store, name) for name in ("tool", "domain")},
        projects=choices.projects(visit.desk.store),
        decisions=DECISIONS,
        broken=visit.desk.pipeline.ledger.broken,
        check=visit.desk.check,
    )


def rows(visit: Visit) -> Response:
    """Calls that came after the newest a page shows, for its live tail."""
    wanted = wanted_calls(visit.query, visit.desk.now())
    newest = visit.query.text("after")
    found = page_of(visit.desk.store, wanted, visit.query.text("words"), "").calls
    return visit.page("_rows.html", calls=[each for each in found if each.id > newest], fresh=True)


def one(visit: Visit) -> Response:
    """One call with everything that is recorded of it."""
    found, story = entry(visit.desk.store, visit.named["id"])
    state = visit.desk.offered("passphrase.state")
    return visit.page(
        "call.html",
        call=found,
        blocks=shown.blocks(found.tool_name, found.tool_input),
        output=_output(found.output),
        story=[{**each, "pretty": shown.pretty(each["data"])} for each in story],
        level=shown.level([], found.risk_category),
        releasable=found.verdict == "deny" and found.risk_category == "critical",
        passphrase=bool(state and state.get("is_set")),
        question=found.verdict == "ask" and found.answer is None,
    )


def release(visit: Visit) -> Response:
    """Let exactly this refused call pass once."""
    said = {"entry": visit.named["id"]}
    if visit.form.text("passphrase"):
        said["passphrase"] = visit.form.text("passphrase")
    visit.desk.ask("release.make", **said)
    text = "Released: exactly this call may run once, soon. Let the agent try again."
    return visit.back(f"/calls/{visit.named['id']}", text)


def export_all(visit: Visit) -> Response:
    """Every matching call as a file."""
    form = visit.named["form"]
    if form not in FORMATS:
        raise InputError(f"{form[:20]!r} is no format.", remedy=f"Use {', '.join(FORMATS)}.")
    wanted = wanted_calls(visit.query, visit.desk.now())
    found = entries(visit.desk.store, wanted)
    words = visit.query.text("words").lower()
    chosen = (each for each in found if _mentions(each, words)) if words else found
    headers = {"content-disposition": f'attachment; filename="checkrein-calls.{form}"'}
    return StreamingResponse(_pieces(export(chosen, form)), media_type=_TYPES[form], headers=headers)


def wanted_calls(query: Fields, now: float) -> Filter:
    """The filter a form describes."""
    given = {name: query.text(name) or None for name in ("project", "session", "tool", "decision", "domain")}
    since, until = shown.moment(query.text("since"), now), shown.moment(query.text("until"), now)
    return Filter(since=since, until=until, **given)


def page_of(reader: Reader, wanted: Filter, words: str, before: str) -> Found:
    """The next calls after the one named `before`, newest first."""
    if before:
        # Ids begin with their time; calls of the same millisecond are told apart below.
        edge = _time_of(before) + 0.001
        limit = edge if wanted.until is None else min(edge, wanted.until)
        wanted = msgspec.structs.replace(wanted, until=limit)
    older = (each for each in entries(reader, wanted) if not before or each.id < before)
    if words:
        return _searched(older, words.lower())
    calls = list(islice(older, PAGE + 1))
    return Found(calls[:PAGE], calls[PAGE - 1].id if len(calls) > PAGE else "")


def _searched(older: Iterator[Entry], words: str) -> Found:
    calls: list[Entry] = []
    last = ""
    for each in islice(older, SEARCHED):
        last = each.id
        if _mentions(each, words):
            calls.append(each)
            if len(calls) == PAGE:
                return Found(calls, last)
    is_cut = next(older, None) is not None
    return Found(calls, last if is_cut else "", is_cut)


def _mentions(each: Entry, words: str) -> bool:
    """Whether the call's id, names, arguments, reasons or answer hold the words."""
    said: tuple[Any, ...] = (each.id, each.tool_name, each.agent, each.project, each.rule, each.actor)
    text = " ".join(str(part) for part in (*said, each.message, each.tool_input, *each.reasons))
    return words in text.lower()


def _time_of(entry_id: str) -> float:
    """The moment an id was made; what is no id is the beginning of time."""
    number = 0
    for character in entry_id[:16].ljust(16, "0"):
        place = _ALPHABET.find(character)
        if place < 0:
            raise InputError("This place in the list cannot be read.", remedy="Begin at the newest call.")
        number = number << 5 | place
    return (number >> 35) / 1000


def _output(output: Any) -> list[shown.Block]:
    return [] if output in (None, "") else shown.blocks("", output)


def _pieces(lines: Iterator[str]) -> Iterator[bytes]:
    """The export in pieces of some size, each read by one thread in one go."""
    piece: list[str] = []
    size = 0
    for line in lines:
        piece.append(line)
        size += len(line)
        if size >= _PIECE:
            yield "".join(piece).encode("utf-8", "replace")
            piece, size = [], 0
    yield "".join(piece).encode("utf-8", "replace")
