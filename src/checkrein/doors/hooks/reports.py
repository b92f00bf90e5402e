"""What an agent reports: how a call ended, that a session began, paused or is over. Nobody is held up by it.

The door calls it for every such event, also for those that come late, from the spool.
"""

from __future__ import annotations

from checkrein.approval.families import family_of
from checkrein.asking import Remember
from checkrein.call import ToolCall
from checkrein.core.lifecycle import State, state_of
from checkrein.doors.hooks import replies, trustfiles
from checkrein.doors.hooks.callers import Callers
from checkrein.doors.hooks.calls import Calls
from checkrein.doors.hooks.events import Event
from checkrein.doors.hooks.replies import Reply
from checkrein.doors.hooks.subagents import Subagents
from checkrein.doors.hooks.waiting import Questions, Waiting
from checkrein.errors import InputError
from checkrein.ledger.query import get_entry
from checkrein.peers import Peer
from checkrein.pipeline import Pipeline
from checkrein.store import Transaction
from checkrein.store.agents import end_session
from checkrein.store.grants import end_session_grants


class Reports:
    """Reports on their way to the record."""

    def __init__(
        self,
        pipeline: Pipeline,
        callers: Callers,
        calls: Calls,
        questions: Questions,
        subagents: Subagents,
    ) -> None:
        self._pipeline, self._callers = pipeline, callers
        self._calls, self._questions, self._subagents = calls, questions, subagents

    def ended(self, event: Event, facts: dict[str, str], peer: Peer, line: Waiting | None) -> Reply:
        """A call ran, or failed: its outcome is recorded, and trust learns from it."""
        session, late = self._callers.session(event, facts, peer), line is None
        call = self._callers.call(event, session)
        entry = self._calls.ended(call)
        if entry is None:
            data = {"project": call.project, "session": call.session, "tool": call.name, "agent": call.agent}
            self._pipeline.note("unjudged", data)
            return replies.silent()
        if event.outcome == "denied":
            # INVARIANT: a person's no in the agent's own dialog is a no on the record, and no failure.
            if late or not self._questions.refuse(entry, self._callers.user):
                self._pipeline.finish(entry, "denied", evidence=event.evidence)
            return replies.silent()
        # INVARIANT: a report answers only what was asked in the agent's own dialog.
        if not late and self._questions.in_dialog(session, entry):
            self._answered_in_dialog(entry, call)
        # INVARIANT: a report that comes late, from a file, earns no trust.
        self._pipeline.finish(
            entry,
            event.outcome or "unknown",
            output=event.output,
            evidence=event.evidence,
            arguments=call.arguments,
            earns=not late,
        )
        if call.tool == "Agent":
            self._subagents.ended(call.session, event.outcome)
        return replies.silent()

    def session_start(self, event: Event, facts: dict[str, str], peer: Peer, _line: Waiting | None) -> Reply:
        """A session begins; one that only made its memory shorter goes on."""
        session = self._callers.session(event, facts, peer, again=True)
        if event.source != "compact":
            self._pipeline.start_session(session.project, session.id, session.agent)
        return replies.silent()

    def stop(self, event: Event, facts: dict[str, str], peer: Peer, _line: Waiting | None) -> Reply:
        """The agent has done what it was told, and waits for its person."""
        session = self._callers.session(event, facts, peer)
        self._questions.refused_in_dialog(session, self._callers.user)
        self._questions.withdraw(session)
        trustfiles.write(self._pipeline, session.project)
        return replies.silent()

    def session_end(self, event: Event, facts: dict[str, str], peer: Peer, _line: Waiting | None) -> Reply:
        """A session is over, with everything that was said for it alone."""
        session = self._callers.session(event, facts, peer)
        self._questions.withdraw(session, over=True)
        now = self._pipeline.clock()

        def end(tx: Transaction) -> None:
            end_session(tx, session.agent, session.id, now)
            end_session_grants(tx, session.id, now)

        self._pipeline.store.write(end)
        self._pipeline.end_session(session.project, session.id)
        trustfiles.write(self._pipeline, session.project)
        self._subagents.forget(session.id)
        return replies.silent()

    def _answered_in_dialog(self, entry: str, ran: ToolCall) -> None:
        """A call that was asked about and ran was approved in the agent's own dialog."""
        found = get_entry(self._pipeline.store, entry)
        if found is not None and state_of(found) is State.asked:
            try:
                remember, user = self._native_memory(entry, ran), self._callers.user
                self._pipeline.answer(entry, "approved", actor=user, channel="agent", remember=remember)
            except InputError:
                return

    def _native_memory(self, entry: str, ran: ToolCall) -> Remember | None:
        """How far a yes in the agent's own dialog reaches, as the user set it."""
        call = self._pipeline.broker.call(entry)
        reach = self._pipeline.policies.of(ran.project).settings.approval.remember_native
        # INVARIANT: a call that was changed in the dialog is no yes to the one we asked about.
        if reach == "once" or call is None or call.argument_hash != ran.argument_hash:
            return None
        risk = self._pipeline.judge(call).verdict.risk
        return Remember(what="family") if family_of(risk) is not None else None
