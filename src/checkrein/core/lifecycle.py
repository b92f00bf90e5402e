"""The states of a call and of its question, and every move between them. Pure.

Whatever writes an `answered`, `started` or `finished` record asks here first, in its own transaction.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

from checkrein.ledger.entries import Entry


class State(enum.StrEnum):
    """Where a call stands, as its records say."""

    new = "new"
    refused = "refused"
    started = "started"
    asked = "asked"
    approved = "approved"
    denied = "denied"
    answered = "answered"
    expired = "expired"
    cancelled = "cancelled"
    claimed = "claimed"
    finished = "finished"
    unknown = "unknown"


class Event(enum.StrEnum):
    """What moves a call."""

    decide = "decide"
    answer = "answer"
    claim = "claim"
    drop = "drop"
    repeat = "repeat"
    finish = "finish"
    report = "report"


class Move(NamedTuple):
    """One move, and when it is made."""

    event: Event
    source: State
    target: State
    when: str


_E, _S = Event, State
MOVES = (
    Move(_E.decide, _S.new, _S.started, "policy allows the call"),
    Move(_E.decide, _S.new, _S.refused, "policy refuses the call"),
    Move(_E.decide, _S.new, _S.asked, "policy asks, and a person can be asked"),
    Move(_E.decide, _S.new, _S.cancelled, "policy asks, and nobody can be asked"),
    Move(_E.answer, _S.asked, _S.approved, "a person approves it, or a profile's fallback does"),
    Move(_E.answer, _S.asked, _S.denied, "a person denies it, or policy does by then"),
    Move(_E.answer, _S.asked, _S.answered, "a person answers in the tool's place"),
    Move(_E.answer, _S.asked, _S.expired, "nobody answers in time"),
    Move(_E.answer, _S.asked, _S.cancelled, "the caller takes it back, or nobody can be reached"),
    Move(_E.claim, _S.approved, _S.claimed, "the approval is taken for its one run"),
    Move(_E.repeat, _S.unknown, _S.claimed, "the tool is declared safe to run twice"),
    Move(_E.repeat, _S.claimed, _S.claimed, "the same, where no outcome was reported"),
    Move(_E.drop, _S.approved, _S.finished, "the approved call cannot run any more, or nobody came for it"),
    Move(_E.finish, _S.approved, _S.finished, "the agent was told yes, and reports what became of it"),
    Move(_E.finish, _S.approved, _S.unknown, "the agent was told yes, and never reported"),
    Move(_E.finish, _S.claimed, _S.finished, "the outcome is recorded"),
    Move(_E.finish, _S.claimed, _S.unknown, "the outcome was lost"),
    Move(_E.finish, _S.started, _S.finished, "the outcome is recorded"),
    Move(_E.finish, _S.started, _S.unknown, "the outcome was lost"),
    *(
        Move(_E.report, refused, _S.finished, "the agent reports that it ran all the same")
        for refused in (_S.refused, _S.denied, _S.answered, _S.expired, _S.cancelled)
    ),
)
# The kind of record that each event after the decision leaves.
RECORD_OF = {
    Event.answer: "answered",
    Event.claim: "started",
    Event.drop: "finished",
    Event.repeat: "started",
    Event.finish: "finished",
    Event.report: "finished",
}
# A call that stays here is over.
FINAL = frozenset({_S.refused, _S.denied, _S.answered, _S.expired, _S.cancelled, _S.finished, _S.unknown})
# The call may run, or is running.
UNDER_WAY = frozenset({_S.started, _S.claimed})
_ALLOWED = frozenset((move.event, move.source) for move in MOVES)
_ANSWERS = {each.value: each for each in (_S.approved, _S.denied, _S.answered, _S.expired, _S.cancelled)}


def state_of(entry: Entry) -> State:
    """Where the call of an entry stands."""
    if entry.completed_at is not None:
        return State.unknown if entry.result == "unknown" else State.finished
    if entry.verdict == "deny":
        return State.refused
    if entry.verdict == "allow":
        return State.started
    if entry.answer is None:
        return State.asked
    answer = _ANSWERS[entry.answer]
    return State.claimed if answer is State.approved and entry.started_at is not None else answer


def may(entry: Entry, event: Event) -> bool:
    """Whether this event may happen to the call of an entry.

    INVARIANT: a call makes no move that is not in the table.
    """
    return (event, state_of(entry)) in _ALLOWED


def drawn() -> str:
    """The diagram and the table as `docs/lifecycle.md` shows them."""
    arrows = dict.fromkeys(f"    {move.source} --> {move.target}: {move.event}" for move in MOVES)
    diagram = "\n".join(("```mermaid", "stateDiagram-v2", *arrows, "```"))
    rows = [f"| {move.source} | {move.event} | {move.target} | {move.when} |" for move in MOVES]
    return "\n".join((diagram, "", "| from | event | to | when |", "|---|---|---|---|", *rows))
