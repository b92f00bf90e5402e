"""Hooks that wait for a person's answer, and the questions that end without one.

The door and those who handle its events call it. No yes comes from here.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Protocol

from checkrein.core import approvals
from checkrein.doors.hooks import replies
from checkrein.doors.hooks.dialects import dialect
from checkrein.doors.hooks.resuming import Resuming
from checkrein.peers import Peer, lineage
from checkrein.pipeline import Pipeline
from checkrein.store.agents import Session
from checkrein.store.questions import Question, get_question, waiting

_TICK = 1.0


class Waiting(Protocol):
    """The hook process at the other end of the line."""

    deadline: float
    # What follows the door file in its command line.
    words: Sequence[str]

    def streams(self) -> list[int]:
        """Its standard input and output, which the caller closes; nothing where it does not pass them."""
        ...

    def still_here(self) -> bool:
        """Whether it waits still; tells it that we do."""
        ...


class Questions:
    """The questions of all hooks, for as long as somebody waits for an answer."""

    def __init__(self, pipeline: Pipeline, resuming: Resuming) -> None:
        self._pipeline, self._resuming = pipeline, resuming
        # Questions whose gate waits for our answer: the agent runs nothing before it.
        self._held: Counter[str] = Counter()

    def in_dialog(self, session: Session, entry: str) -> bool:
        """Whether the agent's own dialog asks this question, so that the call's report tells the answer."""
        asks = replies.can_ask(dialect(session.agent)) and session.attended
        return asks and not self._held[entry]

    def answer(self, entry: str, peer: Peer, line: Waiting, *, native: bool = False) -> Question | None:
        """The settled question; None when the hook, or the agent that ran it, went away before that."""
        broker, family = self._pipeline.broker, _family(peer)
        with broker.awaiting(entry), contextlib.nullcontext() if native else self._holding(entry):
            # A hook may outlive its agent, and then nobody would do what it is told.
            while line.still_here() and _family(peer) == family:
                settled = broker.wait(entry, _TICK)
                if settled is not None:
                    return settled
                if time.monotonic() >= line.deadline or self._is_over(entry):
                    approvals.close(self._pipeline, entry, "expired", "timeout")
        # A call may be heard twice: what another hook still waits for stays asked.
        if not native and not broker.is_awaited(entry):
            self._cancel(entry, "the agent stopped waiting")
        return None

    @contextlib.contextmanager
    def _holding(self, entry: str) -> Iterator[None]:
        self._held[entry] += 1
        try:
            yield
        finally:
            self._held[entry] -= 1
            self._held += Counter()  # without those that nobody holds any more

    def withdraw(self, session: Session, *, over: bool = False) -> None:
        """Questions the agent's own dialog answered with no (it tells nobody), or that nobody waits for."""
        in_dialog = replies.can_ask(dialect(session.agent)) and session.attended
        for question in waiting(self._pipeline.store, session.id):
            coming = not over and not in_dialog and self._resuming.may_come_back(question)
            if not coming and not self._pipeline.broker.is_awaited(question.entry):
                self._cancel(question.entry, "refused or interrupted in the agent")

    def _is_over(self, entry: str) -> bool:
        question = get_question(self._pipeline.store, entry)
        return question is not None and question.expires_at <= self._pipeline.clock()

    def _cancel(self, entry: str, why: str) -> None:
        approvals.abandon(self._pipeline, entry, "agent", why)


def _family(peer: Peer) -> list[tuple[int, str]]:
    """The hook, the shell that runs it, and the agent that waits for both; whatever they call themselves."""
    return [(each.pid, each.started) for each in lineage(peer.pid)[:3]]
