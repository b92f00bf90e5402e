"""The hook door: an agent's event comes in, its native answer goes out.

The server calls `handle` for every hook; what is decided is decided in the pipeline.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from checkrein.agents import Agents
from checkrein.approval import wording
from checkrein.call import ToolCall
from checkrein.core.decision import Decided, is_persons_word
from checkrein.doors.hooks import phases, replies, statusline
from checkrein.doors.hooks.asking import Asking
from checkrein.doors.hooks.callers import Callers
from checkrein.doors.hooks.calls import Calls
from checkrein.doors.hooks.dialects import dialect
from checkrein.doors.hooks.events import Event, decode, event_of, speaker
from checkrein.doors.hooks.guard import would_remove_us
from checkrein.doors.hooks.replies import Reply
from checkrein.doors.hooks.reports import Reports
from checkrein.doors.hooks.resuming import Resuming
from checkrein.doors.hooks.subagents import Subagents
from checkrein.doors.hooks.unreadable import Unreadable
from checkrein.doors.hooks.waiting import Questions, Waiting
from checkrein.errors import InputError
from checkrein.peers import Peer
from checkrein.pipeline import Pipeline
from checkrein.speakers import HookSpeaker
from checkrein.store.agents import Session
from checkrein.wire import Request

Handler = Callable[[Event, dict[str, str], Peer, Waiting | None], Reply]
_GATED = ("call", "config", "expansion")
# What gives something counts only as the agent's own word; by the name a refusal is recorded under.
_GIVING = {
    "done": "report",
    "failed": "report",
    "session_end": "session end",
    "stop": "stop",
    "prompt": "prompt",
    "expansion": "phase.set",
}
# What may come late, from the spool: the end of a call that is on the record.
_MAY_BE_LATE = frozenset({"done", "failed"})
_REFUSALS_KEPT = 1_024
_TOO_LONG = "The call is longer than 8 MiB, which we do not read."


class HookDoor:
    """Every agent's hooks, over one pipeline."""

    def __init__(self, pipeline: Pipeline, agents: Agents, speaker: HookSpeaker) -> None:
        self.pipeline, self.agents, self._speaker = pipeline, agents, speaker
        self._refused: dict[tuple[str, str, str, str], None] = {}
        self._callers, self._calls = Callers(agents), Calls(pipeline.store)
        self._resuming = Resuming(pipeline)
        self._questions = Questions(pipeline, self._resuming)
        self._asking = Asking(pipeline, self._callers, self._calls, self._resuming, self._questions)
        self._subagents = Subagents(pipeline, self._calls)
        self._phases = phases.Phases(pipeline, agents, self._callers)
        self._unreadable = Unreadable(pipeline, self._callers.user)
        reports = Reports(pipeline, self._callers, self._calls, self._questions, self._subagents)
        # Every kind of event we do something about, by the name the agents' tables have for it.
        self._handlers: dict[str, Handler] = {
            "call": self._call,
            "permission": self._permission,
            "done": reports.ended,
            "failed": reports.ended,
            "session_start": reports.session_start,
            "session_end": reports.session_end,
            "stop": reports.stop,
            "prompt": self._prompt,
            "expansion": self._phases.typed,
            "config": self._config,
        }

    def handle(self, request: Request, peer: Peer, line: Waiting | None) -> Reply:
        """Answer one hook. `line` is missing for reports that come late, from the spool."""
        _, agent, mode = request.words[:3]
        if mode == "status":
            return statusline.render(self.pipeline, request.body)
        try:
            if "TRUNCATED" in request.facts:
                raise InputError(_TOO_LONG)
            raw = decode(request.body)
            agent = speaker(agent, raw)
            event = event_of(agent, raw)
            if mode == "gate" and event.kind not in _GATED:
                raise InputError(f"{event.name!r} is nothing we gate.")
            handler = self._handlers.get(event.kind)
            if handler is None:
                return replies.silent()
            if not event.session:
                raise InputError("The hook payload has no session id.")
            # INVARIANT: what comes from the spool ends a call that is on the record, and nothing else.
            if line is None and event.kind not in _MAY_BE_LATE:
                return replies.silent()
            if line is not None and event.kind in _GIVING:
                session = self._callers.speaking(event, request.facts, peer)
                if why := self._speaker.refusal(session, peer, line.words, line.streams):
                    return self._unheard(event, session, why)
            return handler(event, request.facts, peer, line)
        except InputError as error:
            return self._unreadable.answer(request, error, agent)

    def _unheard(self, event: Event, session: Session, why: str) -> Reply:
        """An event that is not the agent's own word: recorded once for each reason, and without effect."""
        verb = _GIVING[event.kind]
        mark = (session.agent, session.id, verb, why)
        if mark not in self._refused:
            while len(self._refused) >= _REFUSALS_KEPT:
                del self._refused[next(iter(self._refused))]
            self._refused[mark] = None
            self.agents.refused(verb, why)
        return self._phases.refused(event, session, why)

    def _call(self, event: Event, facts: dict[str, str], peer: Peer, line: Waiting | None) -> Reply:
        """A call that has not run yet: the verdict, in the agent's words."""
        session = self._callers.session(event, facts, peer)
        call = self._callers.call(event, session)
        found = self._resuming.question(call, peer)
        # INVARIANT: an answer is told to no process that could not have waited for it.
        if found and line and not self._speaker.refusal(session, peer, line.words, line.streams):
            return self._asking.resumed(event, call, found, session, peer, line)
        decided = self._calls.heard(call, time.monotonic()) or self._decided(event, call, session, line)
        self._calls.opened(call, decided, time.monotonic())
        if decided.verdict.word == "deny":
            return replies.deny(event, wording.refusal(call, decided.verdict, decided.entry))
        if decided.verdict.word == "ask":
            return self._asking.asked(event, call, decided, session, peer, line)
        if call.tool == "Agent":
            return self._subagents.routed(event, call, decided)
        persons = is_persons_word(decided.verdict)
        return replies.allow(event, persons=persons, reason=decided.verdict.reasons[0].text)

    def _permission(self, event: Event, facts: dict[str, str], peer: Peer, line: Waiting | None) -> Reply:
        """The agent is about to ask its person about a call, or to refuse it where there is none."""
        session = self._callers.session(event, facts, peer)
        call = self._callers.call(event, session)
        if line is None:
            return replies.silent()
        answered = self._asking.answered(event, call, peer, line)
        if answered is not None:
            return answered
        return self._judged_anew(event, call, session, peer, line)

    def _judged_anew(
        self, event: Event, call: ToolCall, session: Session, peer: Peer, line: Waiting
    ) -> Reply:
        """A call that a check of the agent's own stopped, after a verdict it may not have heard.

        INVARIANT: an earlier verdict is no yes to a call that the agent's own check stopped.
        """
        if not dialect(event.agent).asks_after_blocks(event.mode):
            return replies.silent()
        verdict = self.pipeline.judge(call, phase=self.pipeline.phase_of(call.project, call.session)).verdict
        if verdict.word == "allow" and not is_persons_word(verdict):
            return replies.silent()
        decided = self._decided(event, call, session, line)
        before = self._calls.judged_anew(call, decided)
        if before is not None:
            self.pipeline.finish(before, "unknown", evidence="judged anew")
        if decided.verdict.word == "deny":
            return replies.deny(event, wording.refusal(call, decided.verdict, decided.entry))
        if decided.verdict.word == "ask":
            return self._asking.asked_anew(event, call, decided, session, peer, line)
        return replies.allow(event, persons=is_persons_word(decided.verdict))

    def _decided(self, event: Event, call: ToolCall, session: Session, line: Waiting | None) -> Decided:
        phase = self.pipeline.phase_of(call.project, call.session)
        wanted = phases.wanted(call)
        if wanted and wanted in self.pipeline.policies.of(call.project).settings.phases:
            # INVARIANT: the model cannot switch the phase.
            return self.pipeline.refuse(
                call, "phase", "Only a person switches the phase.", f"A person types /{wanted}."
            )
        reason = self._subagents.ask_reason(call) if call.tool == "Agent" else ""
        can_ask = self._asking.can_ask(event, session, line)
        return self.pipeline.decide(call, phase=phase, ask_reason=reason, asking=can_ask)

    def _prompt(self, event: Event, facts: dict[str, str], peer: Peer, line: Waiting | None) -> Reply:
        """What a person says to the agent; what was asked before is not waited for any more."""
        session = self._callers.session(event, facts, peer)
        self._questions.withdraw(session)
        return self._phases.typed(event, facts, peer, line) if event.command else replies.silent()

    def _config(self, event: Event, facts: dict[str, str], peer: Peer, _line: Waiting | None) -> Reply:
        """The agent's settings changed: our hooks stay in them."""
        session = self._callers.session(event, facts, peer)
        why = would_remove_us(self.pipeline.store, event.agent, event.file, session.project)
        if not why:
            return replies.silent()
        data = {"project": session.project, "session": session.id, "file": event.file, "reason": why}
        self.pipeline.note("settings_change_refused", data)
        remedy = f"A person can remove them with `checkrein uninstall {event.agent}`."
        return replies.block(event, f"Checkrein keeps its hooks: {why}. {remedy}")
