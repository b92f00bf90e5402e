"""Questions: what waits for a person, and what the person says."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from checkrein.approval.families import offers
from checkrein.approval.summaries import dangers, summary
from checkrein.asking import Remember
from checkrein.authority import Asked, Params, verb
from checkrein.errors import CheckreinError, InputError, NotFoundError
from checkrein.ledger.entries import Entry, moment
from checkrein.ledger.query import get_entry
from checkrein.pipeline import Pipeline
from checkrein.store import Reader
from checkrein.store.grants import grant_of
from checkrein.store.questions import ASKED, Question, beginning_with, get_question, waiting

_ANSWERS = ("approved", "denied", "answered")


class _Answer(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    answer: str
    message: str = ""
    edited: dict[str, Any] | None = None
    result: str | None = None
    remember: Remember | None = None
    for_session: bool = False
    channel: str = "terminal"


def described(reader: Reader, question: Question) -> dict[str, Any]:
    """A question with everything its entry says, masked as the ledger keeps it."""
    found = get_entry(reader, question.entry)
    return {
        "id": question.entry,
        "session": question.session,
        "project": question.project,
        "asked_at": moment(question.asked_at),
        "expires_at": moment(question.expires_at),
        **(_about(found) if found is not None else {}),
    }


def _about(entry: Entry) -> dict[str, Any]:
    return {
        "tool": entry.tool_name,
        "server": entry.server,
        "input": entry.tool_input,
        "risk": entry.risk_category,
        "domains": entry.domains,
        "effects": entry.effects,
        "decision": entry.decision,
        "stage": entry.stage,
        "reasons": entry.reasons,
        "agent": entry.agent,
        "trust": entry.trust_score_before,
        "summary": summary(entry.tool_name, entry.effects, entry.agent),
        "danger": dangers(entry.effects),
    }


@verb("question.list", person=False)
def list_(asked: Asked, params: Params) -> list[dict[str, Any]]:  # noqa: ARG001
    """Everything that waits, oldest first; what is asked several times over stands once."""
    pipeline, now = asked.pipeline, asked.pipeline.clock()
    open_ones = [each for each in waiting(pipeline.store) if each.expires_at > now]
    same = Counter(each.same for each in open_ones)
    first = {each.same: each for each in reversed(open_ones)}
    return [
        described(pipeline.store, each)
        | {"same": same[each.same], "awaited": pipeline.broker.is_awaited(each.entry)}
        | {"offers": offered(pipeline, each.entry)}
        for each in open_ones
        if first[each.same] is each
    ]


def offered(pipeline: Pipeline, entry: str) -> list[dict[str, str]]:
    """How far a yes could be remembered; nothing while nobody waits with the call itself."""
    call = pipeline.broker.call(entry)
    if call is None:
        return []
    risk, redactor = pipeline.judge(call).verdict.risk, pipeline.policies.of(call.project).redactor
    secrets = pipeline.secrets.of(entry, redactor)

    def mask(text: str) -> str:
        return redactor.text(secrets.quoted(text))

    return [{"what": each.what, "label": each.label} for each in offers(call, risk, mask)]


@verb("question.call", person=True)
def call_(asked: Asked, params: Params) -> dict[str, Any]:
    """{"id"}: the arguments a question is about, as they will run. Secrets included, so never logged."""
    question = _named(asked.pipeline.store, msgspec.convert(params["id"], str))
    found = asked.pipeline.broker.call(question.entry)
    # Only what a person has to decide about.
    if found is None or question.state != ASKED:
        raise InputError("The call of this question cannot be shown any more.", remedy="See `audit show`.")
    return {"id": question.entry, "tool": found.name, "input": found.arguments}


@verb("question.answer", person=True)
def answer(asked: Asked, params: Params) -> dict[str, Any]:
    """{"id", "answer": approved|denied|answered, "message"?, "edited"?, "result"?, "remember"?}"""
    wanted = msgspec.convert(params, _Answer)
    if wanted.answer not in _ANSWERS:
        raise InputError(f"{wanted.answer!r} is no answer.", remedy="Say approved or denied.")
    if (wanted.result is not None) != (wanted.answer == "answered"):
        raise InputError("`result` is what you answer for the tool, and goes with `answered` only.")
    question = _named(asked.pipeline.store, wanted.id)
    if question.state != ASKED:
        who = f" by {question.actor}" if question.actor else ""
        raise InputError(f"This question is settled already: {question.state}{who}.")
    awaited = asked.pipeline.broker.is_awaited(question.entry)
    came_to = asked.pipeline.answer(
        question.entry,
        wanted.answer,
        actor=asked.actor,
        channel="console" if asked.signed_in else "terminal",
        message=wanted.message if wanted.result is None else wanted.result,
        edited=wanted.edited,
        remember=wanted.remember or (Remember() if wanted.for_session else None),
    )
    settled = get_question(asked.pipeline.store, question.entry)
    message = settled.message if settled else ""
    made = grant_of(asked.pipeline.store, question.entry) if came_to == "approved" else None
    told = {"id": question.entry, "answer": came_to, "message": message, "awaited": awaited}
    return told | ({"grant": made.id} if made else {})


@verb("question.answer_all", person=True)
def answer_all(asked: Asked, params: Params) -> list[dict[str, Any]]:
    """{"answers": [...]}: several at once, each with its own choice; one that fails holds up no other."""
    came = []
    for each in msgspec.convert(params["answers"], list[dict[str, Any]]):
        try:
            came.append(answer(asked, each))
        except (CheckreinError, msgspec.MsgspecError) as error:
            came.append({"id": str(each.get("id", "")), "error": str(error)})
    return came


def _named(reader: Reader, start: str) -> Question:
    """The question whose id begins so.

    INVARIANT: the beginning of a question's id never names another one once the first is settled.
    """
    exact = get_question(reader, start)
    found = beginning_with(reader, start) if start and exact is None else []
    if exact is not None or len(found) == 1:
        return exact or found[0]
    if found:
        raise InputError(f"More than one question begins with {start!r}.", remedy="Give more of its id.")
    raise NotFoundError(f"No question {start!r} waits.", remedy="See `checkrein inbox`.")
