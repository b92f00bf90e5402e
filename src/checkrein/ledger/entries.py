"""An entry: all records of one call folded into the row a person asks for.

Field names are those of the daily JSON lines; what those words cannot say stands beside them in ours.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

import msgspec

from checkrein.errors import LedgerError
from checkrein.ledger.chain import said_in
from checkrein.store import Row
from checkrein.store.records import COLUMNS

_BODY = COLUMNS.split(", ").index("body")
# What the old words for an outcome say about ours.
_OUTCOME = {"success": "success", "failure": "failure", "unknown": "pending"}
_NEGATIVE_ANSWERS = ("denied", "answered", "expired", "cancelled")


class Entry(msgspec.Struct, kw_only=True):
    """One call: what was asked, decided, answered and what came of it."""

    id: str
    timestamp: str
    session_id: str
    tool_name: str
    tool_input: Any
    domain: str
    risk_category: str
    trust_score_before: float | None
    autonomy_score: float | None
    decision: str
    outcome: str = "pending"
    trust_score_after: float | None = None
    # Beside the words above, in ours:
    verdict: str
    stage: str
    rule: str | None
    reasons: list[str]
    domains: list[str]
    complexity: float
    effects: list[dict[str, str]]
    result: str = "unknown"
    status: str = "pending"
    answer: str | None = None
    actor: str | None = None
    channel: str | None = None
    message: str | None = None
    # What a person had run instead: masked, and the hash of it as it was.
    edited: Any = None
    edited_hash: str | None = None
    evidence: str | None = None
    output: Any = None
    started_at: str | None = None
    completed_at: str | None = None
    latency_ms: float | None = None
    door: str
    agent: str
    user: str
    project: str
    server: str | None
    call_id: str
    argument_hash: str
    seq: int
    # The record that settled the entry's daily line: a refusal, an outcome, or the end of its session.
    settled_by: int | None = None


def moment(at: float) -> str:
    """A time as ISO 8601 in UTC."""
    second = int(at // 1)
    # As `datetime` rounds: to the microsecond, and then down.
    more, micros = divmod(round((at - second) * 1e6), 1_000_000)
    return _second(second + more) + _MILLISECOND[micros // 1000]


_MILLISECOND = tuple(f".{number:03d}Z" for number in range(1000))


@lru_cache(maxsize=64)
def _second(number: int) -> str:
    return datetime.fromtimestamp(number, UTC).isoformat()[:19]


def body_of_row(row: Row) -> dict[str, Any]:
    """What a stored record says; one that was tampered with may say nothing any more."""
    try:
        body = said_in(row[_BODY])
        body["data"], body["kind"], body["entry"]
    except (ValueError, KeyError):
        raise LedgerError(
            f"Record {row[0]} cannot be read.", remedy="Run `checkrein audit verify`."
        ) from None
    return body


def fold(rows: Iterable[Row]) -> list[Entry]:
    """Entries from records in order, each record laid over the entry it belongs to."""
    entries: dict[str, Entry] = {}
    for row in rows:
        body = body_of_row(row)
        kind, entry, data, at, seq = body["kind"], body["entry"], body["data"], body["at"], body["seq"]
        if kind == "decided":
            entries[entry] = _decided(entry, data, at, seq)
        elif entry in entries and kind in _LAY:
            _LAY[kind](entries[entry], data, at, seq)
    return list(entries.values())


def _decided(entry: str, data: dict[str, Any], at: float, seq: int) -> Entry:
    blocked = data["verdict"] == "deny"
    trust = data["trust"]
    return Entry(
        id=entry,
        timestamp=moment(at),
        session_id=data["session"],
        tool_name=data["name"],
        tool_input=data["input"],
        domain=data["domain"],
        risk_category=data["risk"],
        trust_score_before=trust.get(data["domain"]),
        autonomy_score=data["autonomy"],
        decision=data["decision"],
        outcome="failure" if blocked else "pending",
        verdict=data["verdict"],
        stage=data["stage"],
        rule=data["rule"],
        reasons=data["reasons"],
        domains=data["domains"],
        complexity=data["complexity"],
        effects=data["effects"],
        result="denied" if blocked else "unknown",
        status="denied" if blocked else "pending",
        door=data["door"],
        agent=data["agent"],
        user=data["user"],
        project=data["project"],
        server=data["server"],
        call_id=data["call_id"],
        argument_hash=data["argument_hash"],
        seq=seq,
        settled_by=seq if blocked else None,
    )


def _answered(entry: Entry, data: dict[str, Any], _at: float, seq: int) -> None:
    entry.answer = data["answer"]
    entry.actor, entry.channel, entry.message = data["actor"], data["channel"], data["message"]
    entry.edited, entry.edited_hash = data.get("edited"), data.get("edited_hash")
    if entry.answer in _NEGATIVE_ANSWERS:
        entry.status, entry.outcome = "denied", "failure"
        entry.result = (
            "denied" if entry.answer == "denied" else "timeout" if entry.answer == "expired" else "cancelled"
        )
        _settle(entry, seq)


def _started(entry: Entry, _data: dict[str, Any], at: float, _seq: int) -> None:
    entry.status, entry.started_at = "running", moment(at)
    # A call whose fate was unknown runs again where that does no harm: its outcome is to come.
    entry.result, entry.outcome, entry.completed_at = "unknown", "pending", None


def _finished(entry: Entry, data: dict[str, Any], at: float, seq: int) -> None:
    entry.result = data["outcome"]
    entry.outcome = _OUTCOME.get(entry.result, "failure")
    entry.status = _STATUS.get(entry.result, "error")
    entry.evidence, entry.output = data["evidence"], data["output"]
    entry.trust_score_after = data["trust"].get(entry.domain, entry.trust_score_before)
    entry.completed_at = moment(at)
    entry.latency_ms = data["latency_ms"]
    _settle(entry, seq)


def _closed(entry: Entry, _data: dict[str, Any], _at: float, seq: int) -> None:
    _settle(entry, seq)


def _settle(entry: Entry, seq: int) -> None:
    if entry.settled_by is None:
        entry.settled_by = seq


_STATUS = {"success": "completed", "denied": "denied", "unknown": "pending"}
_LAY = {"answered": _answered, "started": _started, "finished": _finished, "closed": _closed}
