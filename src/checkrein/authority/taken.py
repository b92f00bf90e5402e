"""A yes that is used up: by the very call it was given to, once, and only while the policy lets it run.

A gate with a store of its own calls this; `library` does for one that asks the server.
"""

from __future__ import annotations

from typing import Any

import msgspec

from checkrein.call import ToolCall, Verdict, digest
from checkrein.errors import InputError
from checkrein.judged import Decided
from checkrein.ledger.entries import Entry, body_of_row, fold
from checkrein.pipeline import Pipeline
from checkrein.store import records
from checkrein.store.questions import get_question


class Taken(msgspec.Struct, frozen=True):
    """A yes that is used up now, with the arguments it was given for; or why there is none to use."""

    arguments: dict[str, Any] | None = None
    refused: Decided | None = None


def take(
    pipeline: Pipeline,
    entry: str,
    call: ToolCall,
    phase: str,
    *,
    edited: dict[str, Any] | None = None,
    again: bool = False,
) -> Taken:
    """Use up a yes. `edited`: arguments kept since they were approved; `again`: twice does no harm."""
    asked = get_question(pipeline.store, entry)
    if asked is None or asked.binding != call.binding or asked.state != "approved":
        why = "This is not the call a person said yes to."
        return not_taken(pipeline, call, "state", why, "Make the call again.")
    arguments = _approved(pipeline, entry, call, edited)
    if arguments is None:
        why = "It was approved with other arguments, and those are not there any more."
        return not_taken(pipeline, call, "state", why, "Make the call again; it is asked about again.")
    refused = refused_now(pipeline, entry, msgspec.structs.replace(call, arguments=arguments), phase)
    if refused is not None:
        return refused
    # INVARIANT: an approved call runs at most once, unless running it twice does no harm.
    if not pipeline.begin(entry) and not (again and _may_repeat(pipeline, entry)):
        return not_taken(pipeline, call, "state", _used(pipeline, entry), "Make the call again.")
    return Taken(arguments)


def _approved(
    pipeline: Pipeline, entry: str, call: ToolCall, kept: dict[str, Any] | None
) -> dict[str, Any] | None:
    """The arguments a person said yes to; nothing where they wrote others that are lost."""
    story = _story(pipeline, entry)
    answered: dict[str, Any] = next((each["data"] for each in story if each["kind"] == "answered"), {})
    if "edited" not in answered:
        return call.arguments
    heard = pipeline.broker.edited(entry)
    if heard is not None:
        return heard
    noted = [each["data"]["argument_hash"] for each in story if each["kind"] == "edited"]
    # INVARIANT: arguments that come from outside run only where they are the ones that were approved.
    return kept if kept is not None and digest(kept) in noted else None


def refused_now(pipeline: Pipeline, entry: str, call: ToolCall, phase: str) -> Taken | None:
    """INVARIANT: what the policy of this moment refuses does not run, whatever was said before."""
    verdict = pipeline.judge(call, phase=phase, approved=True).verdict
    if verdict.word != "deny":
        return None
    pipeline.finish(entry, "cancelled", evidence="policy")
    return not_taken(pipeline, call, verdict.stage, verdict.reasons[0].text, verdict.remedy, verdict)


def not_taken(
    pipeline: Pipeline, call: ToolCall, stage: str, why: str, remedy: str, was: Verdict | None = None
) -> Taken:
    risk = was.risk if was else pipeline.judge(call).verdict.risk
    return Taken(refused=pipeline.refuse(call, stage, why, remedy, risk))


def _story(pipeline: Pipeline, entry: str) -> list[dict[str, Any]]:
    return [body_of_row(row) for row in records.of_entries(pipeline.store, [entry])]


def entry_of(pipeline: Pipeline, entry: str) -> Entry | None:
    return next(iter(fold(records.of_entries(pipeline.store, [entry]))), None)


def _may_repeat(pipeline: Pipeline, entry: str) -> bool:
    """Whether a call that began has no outcome anybody knows; beginning again is recorded."""
    found = entry_of(pipeline, entry)
    if found is None or found.answer != "approved" or found.result != "unknown":
        return False
    pipeline.start(entry)
    return True


def _used(pipeline: Pipeline, entry: str) -> str:
    found = entry_of(pipeline, entry)
    fate = found.result if found is not None else "unknown"
    if fate == "unknown":
        return "This yes was used before, and what became of the call is unknown; look before trying again."
    return f"This yes was used before; what became of the call: {fate}."


def may_report(pipeline: Pipeline, entry: str, outcome: str) -> None:
    """INVARIANT: nothing is learned from a call that nobody let run."""
    found = entry_of(pipeline, entry) if outcome in ("success", "failure") else None
    if found is None or found.completed_at is not None:
        return
    if found.verdict != "allow" and found.answer != "approved" and found.started_at is None:
        raise InputError(f"{entry} may not have run: nobody said yes to it.", remedy="Resume it instead.")
