"""Finds the question a hook waited for when its server ended: the hook waits on, or hears what was answered.

The door looks here before it judges a call anew. Nothing here answers or decides anything.
"""

from __future__ import annotations

import threading
from typing import Any

import msgspec

from checkrein.call import Category, Reason, Risk, ToolCall, Verdict
from checkrein.core.decision import Decided
from checkrein.ledger.entries import body_of_row
from checkrein.peers import Peer, age, process
from checkrein.pipeline import Pipeline
from checkrein.store import Reader, records
from checkrein.store.questions import ASKED, Question, about, asked_since

# How long after our start hooks that waited for an earlier server find their way back.
COMING_BACK_SECONDS = 15.0
# No hook waits longer than a day: its client's own limit.
LONGEST_WAIT_SECONDS = 86_400.0
_TAKEN_KEPT = 1_024
_CANCELLED = "cancelled"
# Where several questions fit, an open one comes first and a no before a yes.
_RANK = {ASKED: 0, "approved": 2}


class Found(msgspec.Struct, frozen=True):
    """A question a hook comes back to, and what was decided when it was asked."""

    question: Question
    decided: Decided
    # For how long the hook has been there.
    age: float


class Resuming:
    """The questions that earlier servers asked, for the hooks that come back to them."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline = pipeline
        self._began = pipeline.clock()
        self._taken: dict[str, tuple[int, str]] = {}
        self._lock = threading.Lock()
        self._lately: tuple[int | None, frozenset[str]] = (None, frozenset())

    def question(self, call: ToolCall, peer: Peer) -> Found | None:
        """The question about this very call, open or answered while its hook waited; None for a new call."""
        found = self._fitting(call, peer, any_id=False)
        if call.call_id:
            return found[0] if found else None
        # What has no id is told apart by who asks: one question for each hook, and each only once.
        earlier = [each for each in found if each.question.asked_at < self._began]
        return next((each for each in earlier if self._take(each.question.entry, peer)), None)

    def answer(self, call: ToolCall, peer: Peer) -> Found | None:
        """What was answered outside while the agent showed its own dialog, which names no id."""
        found = self._fitting(call, peer, any_id=True)
        return next((each for each in found if each.question.state != ASKED), None)

    def may_come_back(self, question: Question) -> bool:
        """Whether a hook that waited for this question may still be on its way to us."""
        soon = self._pipeline.clock() < self._began + COMING_BACK_SECONDS
        return soon and question.asked_at < self._began

    def _fitting(self, call: ToolCall, peer: Peer, *, any_id: bool) -> list[Found]:
        binding = call.binding
        if binding not in self._asked_lately():
            return []
        known = [each for each in about(self._pipeline.store, binding) if each.state != _CANCELLED]
        if not known:
            return []
        hook = process(peer.pid)
        lived = age(hook) if hook else None
        began = self._pipeline.clock() - lived if lived is not None else None
        fitting = []
        for each in sorted(known, key=lambda one: _RANK.get(one.state, 1)):
            if _waited(each, began):
                story = _Story(self._pipeline.store, each.entry)
                if story.is_of(call, any_id=any_id):
                    decided = Decided(each.entry, story.verdict())
                    fitting.append(Found(each, decided, lived or 0.0))
        return fitting

    def _asked_lately(self) -> frozenset[str]:
        """What was asked about while any hook can still be waiting; read again after a question changed."""
        store = self._pipeline.store
        writes = store.writes_to("question")
        if writes is None or writes != self._lately[0]:
            self._lately = writes, asked_since(store, self._pipeline.clock() - LONGEST_WAIT_SECONDS)
        return self._lately[1]

    def _take(self, entry: str, peer: Peer) -> bool:
        hook = process(peer.pid)
        me = (hook.pid, hook.started) if hook else (0, "")
        with self._lock:
            other = self._pipeline.broker.is_awaited(entry) or self._taken.get(entry, me) != me
            if hook is None or other:
                return False
            while len(self._taken) >= _TAKEN_KEPT:
                del self._taken[next(iter(self._taken))]
            self._taken[entry] = me
            return True


def _waited(question: Question, began: float | None) -> bool:
    """Whether a hook that began then can be waiting for the answer.

    INVARIANT: an answer is heard only by hooks that were there when it was given, so none covers a new call.
    """
    if question.state == ASKED:
        return True
    return began is not None and question.answered_at is not None and began <= question.answered_at


class _Story:
    """What the ledger says of a question's call."""

    def __init__(self, reader: Reader, entry: str) -> None:
        bodies = [body_of_row(row) for row in records.of_entries(reader, [entry])]
        self._data: dict[str, Any] = next((each["data"] for each in bodies if each["kind"] == "decided"), {})
        self.has_run = any(each["kind"] in ("started", "finished") for each in bodies)

    def is_of(self, call: ToolCall, *, any_id: bool) -> bool:
        """INVARIANT: a question fits exactly its call; one that has run is over."""
        same = self._data and self._data["cwd"] == call.cwd and self._data["agent"] == call.agent
        return bool(same) and not self.has_run and (any_id or self._data["call_id"] == call.call_id)

    def verdict(self) -> Verdict:
        """The verdict as it was recorded; it says why a person is asked, and decides nothing any more."""
        data = self._data
        return Verdict(
            decision="human_required",
            stage=data["stage"],
            risk=Risk(
                category=Category[data["risk"]],
                domains=tuple(data["domains"]),
                complexity=data["complexity"],
            ),
            reasons=tuple(Reason(line) for line in data["reasons"]),
            remedy=data["remedy"],
            rule=data["rule"],
            autonomy=data["autonomy"],
            trust=data["trust"],
        )
