"""How a person is asked about a call: in the agent's own dialog or in ours, and what the agent hears then.

The door calls it for every verdict of ask, for hooks that come back, and when the agent shows its dialog.
"""

from __future__ import annotations

import time

from checkrein.approval import wording
from checkrein.call import ToolCall
from checkrein.doors.hooks import replies
from checkrein.doors.hooks.callers import Callers
from checkrein.doors.hooks.calls import Calls
from checkrein.doors.hooks.dialects import dialect
from checkrein.doors.hooks.events import Event
from checkrein.doors.hooks.replies import Reply
from checkrein.doors.hooks.resuming import Found, Resuming
from checkrein.doors.hooks.waiting import Questions, Waiting
from checkrein.judged import Decided
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
        table = dialect(event.agent)
        if replies.can_ask(table) and session.attended:
            return replies.ask(event, wording.question(call, decided.verdict, decided.entry))
        if line is None or not self._pipeline.broker.reachable:
            self._questions.settle(decided.entry, "cancelled", "none", "nobody could be reached")
            return replies.deny(event, wording.unreachable(call, decided.verdict, decided.entry))
        settled = self._questions.answer(decided.entry, call, peer, line)
        return self._told(event, call, decided, settled)

    def resumed(
        self, event: Event, call: ToolCall, found: Found, session: Session, peer: Peer, line: Waiting
    ) -> Reply:
        """The hook waited for an earlier server: it goes on waiting, or hears what was said meanwhile."""
        decided, asked = found.decided, found.question.state == ASKED
        self._calls.opened(call, decided, time.monotonic())
        if asked and replies.can_ask(dialect(event.agent)) and session.attended:
            return replies.ask(event, wording.question(call, decided.verdict, decided.entry))
        line.deadline -= found.age
        settled = self._questions.answer(decided.entry, call, peer, line)
        why = self._void(call, settled, edited=found.edited) if settled else ""
        return replies.deny(event, why) if why else self._told(event, call, decided, settled)

    def permission(self, event: Event, facts: dict[str, str], peer: Peer, line: Waiting | None) -> Reply:
        """The agent shows its dialog; whoever answers first, there or here, is heard."""
        session = self._callers.session(event, facts, peer)
        call = self._callers.call(event, session)
        if line is None:
            return replies.silent()
        found = asked_about(self._pipeline.store, call.binding)
        before = None if found else self._resuming.answer(call, peer)
        settled = before.question if before else None
        if found:
            settled = self._questions.answer(found[0].entry, call, peer, line, native=True)
        # What was answered in the agent's own dialog needs no second answer.
        if settled is None or settled.channel == "agent":
            return replies.silent()
        why = self._void(call, settled, edited=before is not None and before.edited)
        if why:
            return replies.permission(event, False, why)
        edited = self._pipeline.broker.edited(settled.entry)
        if settled.state == "approved" and (edited is None or replies.can_rewrite(event, edited)):
            return replies.permission(event, True, updated=edited)
        said = settled.message or {"expired": "Nobody answered in time."}.get(settled.state, "")
        return replies.permission(event, False, f"{settled.actor or 'Checkrein'} said no. {said}".strip())

    def _told(self, event: Event, call: ToolCall, decided: Decided, settled: Question | None) -> Reply:
        """What a person said, in the agent's words."""
        if settled is None:
            return replies.deny(event, "The agent stopped waiting for the answer.")
        if settled.state == "approved":
            edited = self._pipeline.broker.edited(decided.entry)
            if edited is not None and not replies.can_rewrite(event, edited):
                title = dialect(event.agent).title
                return replies.deny(event, f"{title} cannot be given the edited input.")
            self._calls.rewritten(call, decided, edited, time.monotonic())
            return replies.allow(event, reason=f"{settled.actor} approved it.", updated=edited)
        no = wording.answered(
            call, decided.verdict, decided.entry, settled.state, settled.actor, settled.message
        )
        return replies.deny(event, no)

    def _void(self, call: ToolCall, settled: Question, *, edited: bool) -> str:
        """Why a yes from before does not count any more; recorded where policy says so."""
        if settled.state != "approved":
            return ""
        if edited and self._pipeline.broker.edited(settled.entry) is None:
            # INVARIANT: where the arguments a person approved are lost, the others do not run.
            return wording.lost_edit(call, settled.entry, settled.actor)
        phase = self._pipeline.phase_of(call.project, call.session)
        verdict = self._pipeline.judge(call, phase=phase, approved=True).verdict
        if verdict.word != "deny":
            return ""
        # INVARIANT: what the policy of this moment refuses does not run, whatever was said before.
        why = verdict.reasons[0].text
        refused = self._pipeline.refuse(call, verdict.stage, why, verdict.remedy, verdict.risk)
        return wording.refusal(call, refused.verdict, refused.entry)
