"""Hooks that wait for a person's answer, and the questions that end without one.

The door and those who handle its events call it. No yes comes from here.
"""

from __future__ import annotations

import contextlib
import time
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from typing import Protocol

from checkrein.asking import IN_THE_AGENT
from checkrein.core import approvals
from checkrein.doors.hooks.dialects import dialect
from checkrein.doors.hooks.events import Event
from checkrein.doors.hooks.resuming import Resuming
from checkrein.errors import InputError, NotFoundError
from checkrein.peers import Peer, lineage
from checkrein.pipeline import Pipeline
from checkrein.store.agents import Session
from checkrein.store.questions import Question, get_question, waiting

_TICK = 1.0
_SHOWN_KEPT = 4_096


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
        self._shown: OrderedDict[str, None] = OrderedDict()

    def in_dialog(self, session: Session, entry: str) -> bool:
        """Whether the agent's own dialog asks this question, so that the call's report tells the answer."""
        asks = dialect(session.agent).has_dialog and session.attended
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

    def shown(self, entry: str, event: Event) -> None:
        """A question is in the agent's own dialog, about a call that its turn waits for."""
        if dialect(event.agent).dialog_no == "turn_end" and not event.subagent:
            self._shown[entry] = None
            while len(self._shown) > _SHOWN_KEPT:
                self._shown.popitem(last=False)

    def withdraw(self, session: Session, *, over: bool = False) -> None:
        """Questions that nobody waits for any more, and those that the session's end leaves open."""
        in_dialog = dialect(session.agent).has_dialog and session.attended
        for question in waiting(self._pipeline.store, session.id):
            # What the person typed meanwhile says nothing of a call they may have said yes to before.
            going_on = not over and question.entry in self._shown
            coming = not over and not in_dialog and self._resuming.may_come_back(question)
            awaited = self._pipeline.broker.is_awaited(question.entry)
            if not coming and not going_on and not awaited:
                self._cancel(question.entry, "refused or interrupted in the agent")

    def refused_in_dialog(self, session: Session, user: str) -> None:
        """The agent's turn is over: what its dialog showed and what never ran, its person said no to."""
        for question in waiting(self._pipeline.store, session.id):
            if question.entry in self._shown:
                self.refuse(question.entry, user)

    def refuse(self, entry: str, user: str) -> bool:
        """Record the no that a person gave in the agent's own dialog; False where there is no open question.

        INVARIANT: the agent's report answers no question that a hook waits for outside the agent's dialog.
        """
        in_dialog = entry in self._shown
        # The hook beside a dialog may outlive it: the agent does not always end it.
        if not in_dialog and self._pipeline.broker.is_awaited(entry):
            return False
        self._shown.pop(entry, None)
        try:
            self._pipeline.answer(entry, "denied", actor=user, channel=IN_THE_AGENT)
        except (InputError, NotFoundError):
            return False
        return True

    def _is_over(self, entry: str) -> bool:
        question = get_question(self._pipeline.store, entry)
        return question is not None and question.expires_at <= self._pipeline.clock()

    def _cancel(self, entry: str, why: str) -> None:
        approvals.abandon(self._pipeline, entry, "agent", why)


def _family(peer: Peer) -> list[tuple[int, str]]:
    """The hook, the shell that runs it, and the agent that waits for both; whatever they call themselves."""
    return [(each.pid, each.started) for each in lineage(peer.pid)[:3]]
