"""`checkrein watch`: verdicts, answers and outcomes as they are recorded."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from typing import Any

import click
import msgspec

from checkrein.cli.opening import Nothing, reading
from checkrein.cli.terminal import COLOUR, dim, plain, say, shortened, word
from checkrein.errors import StoreSchemaError
from checkrein.ledger.entries import Entry, body_of_row, moment
from checkrein.ledger.query import get_entry
from checkrein.store import Reader, Row, records

POLL_SECONDS = 0.2
KINDS = ("decided", "answered", "finished")
# What each kind of record adds to the call it is about.
_ADDED = {
    "decided": ("decision", "stage", "rule", "reasons", "autonomy"),
    "answered": ("answer", "actor", "channel", "message", "for"),
    "finished": ("outcome", "evidence", "latency_ms", "trust"),
}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON line for each.")
def watch(as_json: bool) -> None:
    """Show verdicts, answers and outcomes as they happen, until Ctrl-C. Changes nothing, asks nobody."""
    since = newest()
    # Said once it is so: what happens from here on is shown.
    click.echo(dim("Watching; Ctrl-C ends it."), err=True)
    try:
        for event in happening(since):
            say(msgspec.json.encode(event).decode() if as_json else line(event))
    except KeyboardInterrupt:
        return


def newest() -> int:
    """The newest record; none where there is no store yet."""
    with reading() as reader:
        head = None if isinstance(reader, Nothing) else records.head(reader)
    return head[0] if head else 0


def happening(since: int) -> Iterator[dict[str, Any]]:
    """Everything after this record; a store that does not exist yet is waited for."""
    while True:
        # One that is being made right now has no tables for a moment.
        with contextlib.suppress(StoreSchemaError), reading() as reader:
            if not isinstance(reader, Nothing):
                for event in _followed(reader, since):
                    since = event["seq"]
                    yield event
        time.sleep(POLL_SECONDS)


def _followed(reader: Reader, seq: int) -> Iterator[dict[str, Any]]:
    while True:
        for row in records.after(reader, seq, KINDS):
            seq = row[0]
            yield described(reader, row)
        time.sleep(POLL_SECONDS)


def described(reader: Reader, row: Row) -> dict[str, Any]:
    """A record with what its call was."""
    body = body_of_row(row)
    kind, data = body["kind"], body["data"]
    found = get_entry(reader, body["entry"])
    return {
        "seq": body["seq"],
        "at": moment(body["at"]),
        "kind": kind,
        "id": body["entry"],
        **(_about(found) if found is not None else {}),
        **{name: data[name] for name in _ADDED[kind] if name in data},
    }


def _about(entry: Entry) -> dict[str, Any]:
    return {
        "tool": entry.tool_name,
        "input": entry.tool_input,
        "risk": entry.risk_category,
        "verdict": entry.verdict,
        "agent": entry.agent,
        "session_id": entry.session_id,
        "project": entry.project,
    }


def line(event: dict[str, Any]) -> str:
    """One record on one line."""
    about = f"{plain(event.get('tool', ''))}  {plain(shortened(event.get('input')))}"
    when = dim(event["at"][11:19])
    if event["kind"] == "decided":
        because = plain(event["reasons"][0]) if event["reasons"] else ""
        return f"{when} {word(event['verdict'], 9)} {event['risk']:<8} {about}  {dim(because)}"
    if event["kind"] == "answered":
        colour = COLOUR["allow" if event["answer"] == "approved" else "deny"]
        said = click.style(event["answer"].ljust(9), fg=colour)
        who = plain(" ".join(filter(None, (event["actor"], f"({event['channel']})", event["message"]))))
        return f"{when} {said} {'':<8} {about}  {dim(who)}"
    moved = ", ".join(f"{domain} {score:.3f}" for domain, score in event["trust"].items())
    return f"{when} {event['outcome']:<9} {'':<8} {about}  {dim(plain(moved))}"
