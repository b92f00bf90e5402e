"""Hooks that wait for a person's answer, and the questions that end without one.

The door and those who handle its events call it, the server lets questions expire. No yes comes from here.
"""

from __future__ import annotations

import time
from typing import Protocol

from checkrein.call import ToolCall
from checkrein.doors.hooks import replies
from checkrein.doors.hooks.dialects import dialect
from checkrein.doors.hooks.resuming import Resuming
from checkrein.errors import InputError
from checkrein.peers import Peer, lineage
from checkrein.pipeline import Pipeline
from checkrein.store.agents import Session
from checkrein.store.questions import Question, waiting

_TICK = 1.0


class Waiting(Protocol):
    """The hook process at the other end of the line."""

    deadline: float

    def still_here(self) -> bool:
        """Whether it waits still; tells it that we do."""
        ...


class Questions:
    """The questions of all hooks, for as long as somebody waits for an answer."""

    def __init__(self, pipeline: Pipeline, resuming: Resuming) -> None:
        self._pipeline, self._resuming = pipeline, resuming

    def answer(
        self, entry: str, call: ToolCall, peer: Peer, line: Waiting, *, native: bool = False
    ) -> Question | None:
        """The settled question; None when the hook, or the agent that ran it, went away before that."""
        broker, family = self._pipeline.broker, _family(peer)
        with broker.awaiting(entry, call):
            # A hook may outlive its agent, and then nobody would do what it is told.
            while line.still_here() and _family(peer) == family:
                settled = broker.wait(entry, _TICK)
                if settled is not None:
                    return settled
                if time.monotonic() >= line.deadline or self._is_over(entry):
                    self.settle(entry, "expired", "timeout")
        # A call may be heard twice: what another hook still waits for stays asked.
        if not native and not broker.is_awaited(entry):
            self.settle(entry, "cancelled", "agent", "the agent stopped waiting")
        return None

    def settle(self, entry: str, answer: str, channel: str, message: str = "") -> None:
        """Record that a question ended without a person; somebody may have been quicker."""
        try:
            self._pipeline.answer(entry, answer, actor="", channel=channel, message=message)
        except InputError:
            return

    def expire(self) -> None:
        """Questions nobody answered in time are a no."""
        now = self._pipeline.clock()
        for question in waiting(self._pipeline.store):
            if question.expires_at <= now and not self._pipeline.broker.is_awaited(question.entry):
                self.settle(question.entry, "expired", "timeout")

    def withdraw(self, session: Session, *, over: bool = False) -> None:
        """Questions the agent's own dialog answered with no (it tells nobody), or that nobody waits for."""
        in_dialog = replies.can_ask(dialect(session.agent)) and session.attended
        for question in waiting(self._pipeline.store, session.id):
            coming = not over and not in_dialog and self._resuming.may_come_back(question)
            if not coming and not self._pipeline.broker.is_awaited(question.entry):
                self.settle(question.entry, "cancelled", "agent", "refused or interrupted in the agent")

    def _is_over(self, entry: str) -> bool:
        now = self._pipeline.clock()
        return any(each.entry == entry and each.expires_at <= now for each in waiting(self._pipeline.store))


def _family(peer: Peer) -> list[tuple[int, str]]:
    """The hook, the shell that runs it, and the agent that waits for both; whatever they call themselves."""
    return [(each.pid, each.started) for each in lineage(peer.pid)[:3]]
