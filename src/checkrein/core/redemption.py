"""Turns an approval into at most one run. Every door calls this, and no door repeats a step of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from checkrein.approval.question_calls import AskedCall
from checkrein.call import ToolCall
from checkrein.core.decision import Decided
from checkrein.core.lifecycle import State, state_of
from checkrein.ledger.entries import Entry
from checkrein.ledger.query import get_entry
from checkrein.pipeline import Pipeline
from checkrein.policy import UNJUDGED
from checkrein.store.questions import get_question

OTHER_CALL = "This is not the call a person said yes to."
LOST_EDIT = "A person approved other arguments, and those cannot be read any more."
CHANGED = "The tool's definition changed after it was approved."
USED = "This approval was used before."


def _fits(_arguments: dict[str, Any]) -> str:
    return ""


class CurrentTool(msgspec.Struct, frozen=True):
    """The tool as its door offers it at this moment."""

    definition: str = ""
    # Why it cannot be called now.
    unavailable: str = ""
    # What is wrong with arguments, by the tool's schema; nothing where they fit.
    faults: Callable[[dict[str, Any]], str] = _fits


class Approval(msgspec.Struct, frozen=True):
    """An approved question, and the call its caller comes back with."""

    entry: str
    call: ToolCall
    phase: str | None = "building"
    # None: this door knows no definitions.
    tool: CurrentTool | None = None
    # Whether running the call twice does no harm.
    repeatable: bool = False


class Rejected(msgspec.Struct, frozen=True):
    """Why an approved call does not run; the refusal is on the record."""

    stage: str
    reason: str
    remedy: str
    decided: Decided
    # Whether the approval was used before: the call may have run, or may be running.
    used: bool = False
    # Whether policy refuses the call by now, and the rule that does.
    overruled: bool = False
    rule: str | None = None


def check(pipeline: Pipeline, approval: Approval) -> ToolCall | Rejected:
    """Return the call as it was approved, or why it may not run any more. Claims nothing."""
    entry, call, tool = approval.entry, approval.call, approval.tool
    found, asked = get_entry(pipeline.store, entry), pipeline.broker.asked_call(entry)
    # INVARIANT: an approval is for one call, as it was asked about.
    if found is None or found.answer != "approved" or not _is_same_call(pipeline, found, asked, call):
        return _reject(pipeline, call, "state", OTHER_CALL, "Make the call again.")
    # INVARIANT: edited arguments run exactly as approved, or nothing runs.
    approved = call if found.edited_hash is None else _as_edited(pipeline, found, call)
    if approved is None:
        return _drop(
            pipeline,
            approval,
            "state",
            LOST_EDIT,
            "Make the call again; it is asked about again.",
            "arguments",
        )
    # INVARIANT: an approval is for the tool definition it was given for.
    was = asked.call.definition if asked is not None else call.definition
    if tool is not None and (tool.unavailable or tool.definition != was):
        return _drop(pipeline, approval, "definition", tool.unavailable or CHANGED, "Make the call again.")
    # INVARIANT: approved arguments that do not fit the tool are not sent to it.
    if tool is not None and (faults := tool.faults(approved.arguments)):
        return _drop(pipeline, approval, "arguments", faults, "Make the call again with arguments that fit.")
    # INVARIANT: a deny that came after the approval outranks it.
    verdict = pipeline.judge(approved, phase=approval.phase, approved=True).verdict
    if verdict.word == "deny":
        why = verdict.reasons[0].text
        rejected = _drop(pipeline, approval, verdict.stage, why, verdict.remedy, "policy")
        return msgspec.structs.replace(rejected, overruled=not rejected.used, rule=verdict.rule)
    return approved


def redeem(pipeline: Pipeline, approval: Approval) -> ToolCall | Rejected:
    """Check, then claim the one run. Blocking: doors on an event loop call it in a thread."""
    call = check(pipeline, approval)
    if isinstance(call, Rejected) or pipeline.claim(approval.entry):
        return call
    # INVARIANT: an approved call runs at most once, unless running it twice does no harm.
    if approval.repeatable and pipeline.repeat(approval.entry):
        return call
    return _used(pipeline, approval)


def _is_same_call(pipeline: Pipeline, found: Entry, asked: AskedCall | None, call: ToolCall) -> bool:
    """Whether the question was about this call; its tool may have another definition by now."""
    question = get_question(pipeline.store, found.id)
    if asked is not None:
        call = msgspec.structs.replace(call, definition=asked.call.definition)
    same = question is not None and question.binding == call.binding
    return same and (not call.call_id or call.call_id == found.call_id)


def _as_edited(pipeline: Pipeline, found: Entry, call: ToolCall) -> ToolCall | None:
    """The call with the arguments a person wrote instead; None where they are lost."""
    arguments = pipeline.broker.edited(found.id)
    if arguments is None:
        return None
    edited = msgspec.structs.replace(call, arguments=arguments)
    return edited if edited.argument_hash == found.edited_hash else None


def _used(pipeline: Pipeline, approval: Approval) -> Rejected:
    found = get_entry(pipeline.store, approval.entry)
    state = state_of(found) if found is not None else State.unknown
    if state is State.finished and found is not None:
        reason = f"{USED} What became of the call: {found.result}."
    else:
        reason = f"{USED} What became of the call is unknown; look before trying it again."
    return _reject(pipeline, approval.call, "state", reason, "Make the call again.", used=True)


def _reject(
    pipeline: Pipeline, call: ToolCall, stage: str, reason: str, remedy: str, *, used: bool = False
) -> Rejected:
    try:
        risk = pipeline.judge(call).verdict.risk
    except Exception:  # noqa: BLE001 - it is refused whatever its risk is
        risk = UNJUDGED
    return Rejected(stage, reason, remedy, pipeline.refuse(call, stage, reason, remedy, risk), used)


def _drop(
    pipeline: Pipeline, approval: Approval, stage: str, reason: str, remedy: str, evidence: str = ""
) -> Rejected:
    """The approval ends with the call that cannot run, unless that has begun."""
    # INVARIANT: an approval that is not used has an outcome, and says why.
    if not pipeline.drop(approval.entry, evidence=evidence or stage, reason=reason):
        return _used(pipeline, approval)
    return _reject(pipeline, approval.call, stage, reason, remedy)
