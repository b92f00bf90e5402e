"""A tool that stopped to be told something: on the record, and going on once with what it is told.

A gate with a store of its own calls this; `library` does for one that asks the server.
"""

from __future__ import annotations

from typing import Any

from checkrein.authority.taken import Taken
from checkrein.call import ToolCall
from checkrein.ledger.entries import Entry, body_of_row, fold
from checkrein.ledger.query import get_entry
from checkrein.pipeline import Pipeline
from checkrein.store import Transaction, records


def pause(pipeline: Pipeline, entry: str, call: ToolCall, step: int, payload: Any, *, told: str = "") -> None:
    """Record that a running tool stopped to be told something; `call` is what runs, `told` a digest."""
    redactor = pipeline.policies.of(call.project).redactor
    data = {
        "project": call.project,
        "session": call.session,
        "step": step,
        "argument_hash": call.argument_hash,
        "payload": pipeline.secrets.of(entry, redactor).value(redactor.value(payload)),
        "told_hash": told,
    }
    pipeline.store.write(lambda tx: pipeline.ledger.append(tx, "suspended", data, entry=entry), durable=True)


def go_on(
    pipeline: Pipeline,
    entry: str,
    call: ToolCall,
    step: int,
    phase: str,
    *,
    again: bool = False,
    told: str = "",
) -> Taken:
    """Let a tool that stopped go on with what it was told, once."""
    taken: list[bool] = []

    def claim(tx: Transaction) -> None:
        rows = records.of_entries(tx, [entry])
        story, found = [body_of_row(row) for row in rows], fold(rows)
        same = bool(found) and _is_of(found[0], call)
        steps = {each["data"]["step"]: each["data"] for each in story if each["kind"] == "suspended"}
        stop = steps.get(step, {})
        # INVARIANT: a tool goes on with what it was told, as it was called; others keep both, and may lie.
        fits = (
            same and stop.get("argument_hash") == call.argument_hash and stop.get("told_hash", told) == told
        )
        gone = any(each["kind"] == "resumed" and each["data"]["step"] == step for each in story)
        over = bool(found) and found[0].completed_at is not None
        repeat = again and (not over or found[0].result == "unknown") and max(steps, default=0) == step
        # INVARIANT: a tool that stopped goes on once for each time it stopped, unless repeating is harmless.
        taken[:] = [fits and ((not gone and not over) or repeat)]
        if taken[0]:
            data = {"project": call.project, "session": call.session, "step": step}
            pipeline.ledger.append(tx, "resumed", data, entry=entry)

    if is_under_way(pipeline, entry, call):
        # INVARIANT: what the policy of this moment refuses does not go on, whatever was said before.
        verdict = pipeline.judge(call, phase=phase, approved=True).verdict
        if verdict.word == "deny":
            pipeline.finish(entry, "cancelled", evidence="policy")
            why, remedy = verdict.reasons[0].text, verdict.remedy
            return Taken(refused=pipeline.refuse(call, verdict.stage, why, remedy, verdict.risk))
    pipeline.store.write(claim, durable=True)
    if taken[0]:
        return Taken(call.arguments)
    why, risk = "This call does not wait to go on.", pipeline.judge(call).verdict.risk
    return Taken(refused=pipeline.refuse(call, "state", why, "Make the call again.", risk))


def is_under_way(pipeline: Pipeline, entry: str, call: ToolCall) -> bool:
    found = get_entry(pipeline.store, entry)
    return found is not None and found.completed_at is None and _is_of(found, call)


def _is_of(entry: Entry, call: ToolCall) -> bool:
    return (entry.tool_name, entry.session_id, entry.project, entry.door) == (
        call.name,
        call.session,
        call.project,
        call.door,
    )
