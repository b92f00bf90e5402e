"""Sessions, messages, runs and calls as pages, programs and the terminal get them: JSON, ISO times."""

from __future__ import annotations

from typing import Any

import msgspec

from checkrein.approval.families import offers
from checkrein.doors.chat import Invocation, Message, Run, Session, Snapshot
from checkrein.ledger.entries import moment
from checkrein.pipeline import Pipeline
from checkrein.store.questions import ASKED, get_question

Facts = dict[str, Any]
_TIMES = (
    "created_at",
    "updated_at",
    "last_message_at",
    "archived_at",
    "pinned_at",
    "started_at",
    "completed_at",
    "ended_at",
)


def session_view(session: Session) -> Facts:
    return _dated(msgspec.structs.asdict(session))


def message_view(message: Message) -> Facts:
    found = _dated(msgspec.structs.asdict(message))
    del found["raw"]
    found["parts"] = [msgspec.structs.asdict(each) for each in message.parts]
    return found


def run_view(run: Run) -> Facts:
    return _dated(msgspec.structs.asdict(run))


def snapshot_view(snapshot: Snapshot) -> Facts:
    return _dated(msgspec.structs.asdict(snapshot))


def call_view(call: Invocation, pipeline: Pipeline) -> Facts:
    """A call, and while its question waits, what a person needs to answer it."""
    found = _dated(msgspec.structs.asdict(call))
    if call.started_at is not None and call.completed_at is not None:
        found["milliseconds"] = round((call.completed_at - call.started_at) * 1000)
    if call.asked and call.status == "pending" and call.entry:
        found["question"] = _question(call, pipeline)
    return found


def _question(call: Invocation, pipeline: Pipeline) -> Facts | None:
    asked = get_question(pipeline.store, call.entry)
    if asked is None or asked.state != ASKED:
        return None
    known = pipeline.broker.call(call.entry)
    if known is None:
        return {"expires_at": moment(asked.expires_at), "offers": [], "risk": "", "reasons": [call.reason]}
    judged = pipeline.judge(known)
    risk, redactor = judged.verdict.risk, judged.force.redactor
    secrets = pipeline.secrets.of(call.entry, redactor)

    def mask(text: str) -> str:
        return redactor.text(secrets.quoted(text))

    return {
        "expires_at": moment(asked.expires_at),
        "offers": [{"what": each.what, "label": each.label} for each in offers(known, risk, mask)],
        "risk": risk.category.name,
        "reasons": [call.reason],
    }


def _dated(found: Facts) -> Facts:
    for name in _TIMES:
        if found.get(name) is not None:
            # Nobody knows when what was imported without a time was said.
            found[name] = moment(found[name]) if found[name] else ""
    return found
