"""Questions for a page: those that wait, a few at a time, and what became of those that were answered."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec

from checkrein import earning
from checkrein.authority.question import described, offered
from checkrein.call import split_name
from checkrein.console import shown
from checkrein.console.desk import Desk
from checkrein.ledger.entries import Entry, fold
from checkrein.ledger.query import get_entry
from checkrein.ledger.secrets import MASK
from checkrein.store import records
from checkrein.store.questions import Question, get_question, waiting

# How far back the record is looked through for answers.
_LOOK_BACK = 5_000
_BLANK: dict[str, Any] = {
    "tool": "",
    "server": None,
    "input": {},
    "risk": "unknown",
    "domains": [],
    "effects": [],
    "reasons": [],
    "stage": "",
    "agent": "",
    "danger": [],
    "summary": "An agent asks.",
}


class Open(msgspec.Struct, frozen=True):
    """A question that waits, and how many more the same answer settles."""

    question: Question
    others: int = 0


def open_questions(desk: Desk) -> list[Open]:
    """What waits and has not run out, oldest first; the same call asked about twice stands once."""
    now = desk.now()
    first: dict[str, Question] = {}
    count: Counter[str] = Counter()
    for each in waiting(desk.store):
        if each.expires_at > now:
            first.setdefault(each.same, each)
            count[each.same] += 1
    return [Open(each, count[same] - 1) for same, each in first.items()]


def card(desk: Desk, each: Open) -> dict[str, Any]:
    """A question as its card shows it."""
    described_as = described(desk.store, each.question)
    about = _BLANK | {key: value for key, value in described_as.items() if value is not None}
    server, tool = split_name(about["tool"])
    danger = about["danger"]
    return {
        **about,
        "name": tool,
        "server": about["server"] or server,
        "danger": danger,
        "level": shown.level(danger, about["risk"]),
        "summary": shown.within(about["summary"], about["project"]),
        "blocks": shown.blocks(tool, about["input"]),
        "masked": MASK in str(about["input"]),
        "trust": trust_now(desk, about["project"], about["domains"]),
        "offers": offered(desk.pipeline, about["id"]),
        "awaited": desk.pipeline.broker.is_awaited(about["id"]),
        "others": each.others,
        "expires": shown.epoch(about.get("expires_at")),
        "asked": shown.epoch(about.get("asked_at")),
    }


def trust_now(desk: Desk, project: str, domains: list[str]) -> dict[str, float]:
    """What the agent has earned today in the domains a call touches."""
    settings = desk.pipeline.policies.of(project).settings
    book = desk.pipeline.books.of(project, settings, tuple(domains))
    scores = book.scores(earning.model_for(settings), desk.now())
    return {domain: scores.of(domain) for domain in domains}


def settled(desk: Desk, entry: str) -> dict[str, Any] | None:
    """What became of a question; None while it waits, or where there never was one."""
    question = get_question(desk.store, entry)
    found = get_entry(desk.store, entry)
    if question is None or found is None:
        return None
    state = question.state
    if state == "asked":
        if question.expires_at > desk.now():
            return None
        state = "expired"
    return {**_shown_entry(found), "answer": state, "at": question.answered_at or question.expires_at}


def lately_settled(desk: Desk, limit: int) -> list[dict[str, Any]]:
    """The newest answers, newest first."""
    head = records.head(desk.store)
    sql = "SELECT entry, at FROM record WHERE seq > ? AND kind = 'answered' ORDER BY seq DESC LIMIT ?"
    rows = desk.store.query(sql, ((head[0] if head else 0) - _LOOK_BACK, limit))
    newest: dict[str, float] = dict(reversed(rows))
    folded = {each.id: each for each in fold(records.of_entries(desk.store, list(newest)))}
    return [
        {**_shown_entry(folded[entry]), "answer": folded[entry].answer, "at": at}
        for entry, at in reversed(newest.items())
        if entry in folded
    ]


def _shown_entry(each: Entry) -> dict[str, Any]:
    return {
        "id": each.id,
        "tool": each.tool_name,
        "about": shown.one_line(each.tool_input, each.project),
        "actor": each.actor,
        "channel": each.channel,
        "message": each.message,
        "result": each.result,
        "agent": each.agent,
        "project": each.project,
    }
