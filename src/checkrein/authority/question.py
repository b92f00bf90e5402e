"""Questions: what waits for a person, and what the person says."""

from __future__ import annotations

from typing import Any

import msgspec

from checkrein.authority import Asked, Params, verb
from checkrein.errors import InputError, NotFoundError
from checkrein.ledger.entries import fold, moment
from checkrein.store import Reader, records
from checkrein.store.questions import ASKED, Question, get_question, waiting

_ANSWERS = ("approved", "denied")


class _Answer(msgspec.Struct, forbid_unknown_fields=True):
    id: str
    answer: str
    message: str = ""
    edited: dict[str, Any] | None = None
    for_session: bool = False
    channel: str = "terminal"


def described(reader: Reader, question: Question) -> dict[str, Any]:
    """A question with everything its entry says, masked as the ledger keeps it."""
    found = fold(records.of_entries(reader, [question.entry]))
    about: dict[str, Any] = {}
    if found:
        each = found[0]
        about = {
            "tool": each.tool_name,
            "input": each.tool_input,
            "risk": each.risk_category,
            "domains": each.domains,
            "decision": each.decision,
            "stage": each.stage,
            "reasons": each.reasons,
            "agent": each.agent,
        }
    return {
        "id": question.entry,
        "session": question.session,
        "project": question.project,
        "asked_at": moment(question.asked_at),
        "expires_at": moment(question.expires_at),
        **about,
    }


@verb("question.list", person=False)
def list_(asked: Asked, params: Params) -> list[dict[str, Any]]:  # noqa: ARG001
    """Everything that waits, oldest first."""
    store, now = asked.pipeline.store, asked.pipeline.clock()
    return [described(store, each) for each in waiting(store) if each.expires_at > now]


@verb("question.answer", person=True)
def answer(asked: Asked, params: Params) -> dict[str, Any]:
    """{"id", "answer": approved|denied, "message"?, "edited"?, "for_session"?, "channel"?}"""
    wanted = msgspec.convert(params, _Answer)
    if wanted.answer not in _ANSWERS:
        raise InputError(f"{wanted.answer!r} is no answer.", remedy="Say approved or denied.")
    question = _named(asked.pipeline.store, wanted.id)
    if question.state != ASKED:
        who = f" by {question.actor}" if question.actor else ""
        raise InputError(f"This question is settled already: {question.state}{who}.")
    if question.expires_at <= asked.pipeline.clock():
        raise InputError("The question has expired; the call counts as refused.")
    awaited = asked.pipeline.broker.is_awaited(question.entry)
    came_to = asked.pipeline.answer(
        question.entry,
        wanted.answer,
        actor=asked.actor,
        channel=wanted.channel,
        message=wanted.message,
        edited=wanted.edited,
        for_session=wanted.for_session,
    )
    settled = get_question(asked.pipeline.store, question.entry)
    message = settled.message if settled else ""
    return {"id": question.entry, "answer": came_to, "message": message, "awaited": awaited}


def _named(reader: Reader, start: str) -> Question:
    """The question whose id begins so; one that waits, if several do."""
    exact = get_question(reader, start)
    found = [each for each in waiting(reader) if start and each.entry.startswith(start)]
    if exact is not None or len(found) == 1:
        return exact or found[0]
    if found:
        raise InputError(f"More than one question begins with {start!r}.", remedy="Give more of its id.")
    raise NotFoundError(f"No question {start!r} waits.", remedy="See `checkrein inbox`.")
