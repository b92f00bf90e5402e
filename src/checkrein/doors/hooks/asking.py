"""How a person is asked about a call: in the agent's own dialog or in ours, and what the agent hears then.

The door calls it for every verdict of ask, for hooks that come back, and when the agent shows its dialog.
"""

from __future__ import annotations

import time
from typing import Any

from checkrein.approval import wording
from checkrein.asking import IN_THE_AGENT
from checkrein.call import ToolCall
from checkrein.core.decision import Decided, is_persons_word
from checkrein.core.redemption import Approval, Rejected, check
from checkrein.doors.hooks import replies
from checkrein.doors.hooks.callers import Callers
from checkrein.doors.hooks.calls import Calls
from checkrein.doors.hooks.dialects import dialect
from checkrein.doors.hooks.events import Event
from checkrein.doors.hooks.replies import Reply
from checkrein.doors.hooks.resuming import Found, Resuming
from checkrein.doors.hooks.waiting import Questions, Waiting
from checkrein.peers import Peer
from checkrein.pipeline import Pipeline
from checkrein.store.agents import Session
from checkrein.store.questions import ASKED, Question, asked_about


class Asking:
    """Questions on their way to a person, and answers on their way to the agent."""

    def __init__(
        self, pipeline: Pipeline, callers: Callers, calls: Calls, resuming: Resuming, questions: Questions
    ) -> None:
        self._pipeline, self._callers, self._calls = pipeline, callers, calls
        self._resuming, self._questions = resuming, questions

    def can_ask(self, event: Event, session: Session, line: Waiting | None) -> bool:
        """Whether a person can be asked: in the agent's own dialog, or elsewhere while the hook waits."""
        return _in_dialog(event, session) or (line is not None and self._pipeline.broker.reachable)

    def asked(
        self,
        event: Event,
        call: ToolCall,
        decided: Decided,
        session: Session,
        peer: Peer,
        line: Waiting | None,
    ) -> Reply:
        """The agent's own dialog where a person sits before it; else ours, if anyone can be reached."""
        if _in_dialog(event, session):
            self._questions.shown(decided.entry, event)
            return replies.ask(event, wording.question(call, decided.verdict, decided.entry))
        if line is None or not decided.asked:
            return replies.deny(event, wording.unreachable(call, decided.verdict, decided.entry))
        settled = self._questions.answer(decided.entry, peer, line)
        return self._told(event, call, decided, settled)

    def resumed(
        self, event: Event, call: ToolCall, found: Found, session: Session, peer: Peer, line: Waiting
    ) -> Reply:
        """The hook waited for an earlier server: it goes on waiting, or hears what was said meanwhile."""
        decided, asked = found.decided, found.question.state == ASKED
        self._calls.opened(call, decided, time.monotonic())
        if asked and _in_dialog(event, session):
            return replies.ask(event, wording.question(call, decided.verdict, decided.entry))
        line.deadline -= found.age
        settled = self._questions.answer(decided.entry, peer, line)
        return self._told(event, call, decided, settled)

    def answered(self, event: Event, call: ToolCall, peer: Peer, line: Waiting) -> Reply | None:
        """What is said to the agent's dialog about a question of ours; None where we have not asked.

        The first answer counts, there or here.
        """
        found = asked_about(self._pipeline.store, call.binding)
        if found:
            settled = self._questions.answer(found[0].entry, peer, line, native=True)
            return self._said_to_dialog(event, call, settled)
        before = self._resuming.answer(call, peer)
        return self._said_to_dialog(event, call, before.question) if before else None

    def asked_anew(
        self,
        event: Event,
        call: ToolCall,
        decided: Decided,
        session: Session,
        peer: Peer,
        line: Waiting,
    ) -> Reply:
        """Our question about a call that the agent asks or refuses by itself: beside its dialog, or alone."""
        if not decided.asked:
            return replies.deny(event, wording.unreachable(call, decided.verdict, decided.entry))
        native = _in_dialog(event, session)
        if native:
            self._questions.shown(decided.entry, event)
        settled = self._questions.answer(decided.entry, peer, line, native=native)
        return self._said_to_dialog(event, call, settled)

    def _said_to_dialog(self, event: Event, call: ToolCall, settled: Question | None) -> Reply:
        # What was answered in the agent's own dialog needs no second answer.
        if settled is None or settled.channel == IN_THE_AGENT:
            return replies.silent()
        if settled.state == "approved":
            approved = self._approved(event, call, settled)
            if isinstance(approved, str):
                return replies.permission(event, False, approved)
            persons, updated = is_persons_word(settled), _rewritten(call, approved)
            return replies.allow(event, persons=persons, updated=updated)
        said = settled.message or {"expired": "Nobody answered in time."}.get(settled.state, "")
        return replies.permission(event, False, f"{settled.actor or 'Checkrein'} said no. {said}".strip())

    def _told(self, event: Event, call: ToolCall, decided: Decided, settled: Question | None) -> Reply:
        """What a person said, in the agent's words."""
        if settled is None:
            return replies.deny(event, "The agent stopped waiting for the answer.")
        if settled.state == "approved":
            approved = self._approved(event, call, settled)
            if isinstance(approved, str):
                return replies.deny(event, approved)
            updated = _rewritten(call, approved)
            self._calls.rewritten(call, decided, updated, time.monotonic())
            persons, why = is_persons_word(settled), f"{settled.actor} approved it."
            return replies.allow(event, persons=persons, reason=why, updated=updated)
        no = wording.answered(
            call, decided.verdict, decided.entry, settled.state, settled.actor, settled.message
        )
        return replies.deny(event, no)

    def _approved(self, event: Event, call: ToolCall, settled: Question) -> ToolCall | str:
        """The call as it was approved, or why the agent is not told to run it."""
        entry = settled.entry
        phase = self._pipeline.phase_of(call.project, call.session)
        # INVARIANT: an agent is told yes only to what was approved and may still run.
        found = check(self._pipeline, Approval(entry, call, phase))
        if isinstance(found, Rejected):
            return wording.refusal(call, found.decided.verdict, found.decided.entry)
        updated = _rewritten(call, found)
        persons = is_persons_word(settled)
        if updated is not None and not replies.can_rewrite(event, updated, persons=persons):
            why = f"{dialect(event.agent).title} cannot be given the edited input."
            self._pipeline.drop(entry, evidence="arguments", reason=why)
            return why
        return found


def _in_dialog(event: Event, session: Session) -> bool:
    """Whether a person sits before the agent's own dialog."""
    return replies.can_ask(event) and session.attended


def _rewritten(call: ToolCall, approved: ToolCall) -> dict[str, Any] | None:
    """The arguments a person wrote instead; None where they are those of the call."""
    return approved.arguments if approved.argument_hash != call.argument_hash else None
