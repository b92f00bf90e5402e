"""The hook door: an agent's event comes in, its native answer goes out.

The server calls `handle` for every hook; what is decided is decided in the pipeline.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any, Protocol

import msgspec

from checkrein.agents import Agents, Marks, own_user
from checkrein.approval import wording
from checkrein.approval.families import family_of
from checkrein.asking import Remember
from checkrein.authority.phase import switch
from checkrein.call import ToolCall
from checkrein.doors.hooks import replies, statusline, trustfiles
from checkrein.doors.hooks.calls import Calls
from checkrein.doors.hooks.dialects import dialect
from checkrein.doors.hooks.events import Event, glimpse, read
from checkrein.doors.hooks.guard import would_remove_us
from checkrein.doors.hooks.registrations import recognise
from checkrein.doors.hooks.replies import Reply
from checkrein.doors.hooks.resuming import Found, Resuming
from checkrein.doors.hooks.routing import Choice, choose
from checkrein.errors import CheckreinError, InputError
from checkrein.judged import Decided
from checkrein.ledger.entries import fold
from checkrein.peers import Peer, lineage
from checkrein.pipeline import Pipeline
from checkrein.settings.project import project_of
from checkrein.store import Transaction, records
from checkrein.store.agents import Session, end_session
from checkrein.store.grants import end_session_grants
from checkrein.store.questions import ASKED, Question, asked_about, waiting
from checkrein.wire import Request

_TICK = 1.0
_UNREADABLE = "(unreadable)"
_TOO_LONG = "The call is longer than 8 MiB, which we do not read."


class Waiting(Protocol):
    """The hook process at the other end of the line."""

    deadline: float

    def still_here(self) -> bool:
        """Whether it waits still; tells it that we do."""
        ...


class HookDoor:
    """Every agent's hooks, over one pipeline."""

    def __init__(self, pipeline: Pipeline, agents: Agents) -> None:
        self.pipeline, self.agents = pipeline, agents
        self.calls, self.resuming = Calls(pipeline.store), Resuming(pipeline)
        self.user = own_user()
        self._failures: dict[str, int] = {}

    def handle(self, request: Request, peer: Peer, line: Waiting | None) -> Reply:
        """Answer one hook. `line` is missing for reports that come late, from the spool."""
        _, agent, mode = request.words[:3]
        if mode == "status":
            return statusline.render(self.pipeline, request.body)
        try:
            if "TRUNCATED" in request.facts:
                raise InputError(_TOO_LONG)
            event = read(agent, request.body)
        except InputError as error:
            return self._unreadable(agent, mode, request, error)
        if mode == "gate" and event.kind not in ("call", "config", "expansion"):
            return self._unreadable(agent, mode, request, InputError(f"{event.name!r} is nothing we gate."))
        handler = getattr(self, f"_{event.kind}", None)
        if handler is None:
            return replies.silent()
        try:
            if not event.session:
                raise InputError("The hook payload has no session id.")
            reply: Reply = handler(event, request.facts, peer, line)
        except InputError as error:
            return self._unreadable(agent, mode, request, error)
        return reply

    def expire(self) -> None:
        """Questions nobody answered in time are a no."""
        now = self.pipeline.clock()
        for question in waiting(self.pipeline.store):
            if question.expires_at <= now and not self.pipeline.broker.is_awaited(question.entry):
                self._settle(question.entry, "expired", "timeout")

    # -- what is judged -------------------------------------------------------------------------------

    def _call(self, event: Event, facts: dict[str, str], peer: Peer, line: Waiting | None) -> Reply:
        session = self._session(event, facts, peer)
        call = self._tool_call(event, session)
        found = self.resuming.question(call, peer)
        if found is not None and line is not None:
            return self._resumed(event, call, found, session, peer, line)
        decided = self.calls.heard(call, time.monotonic()) or self._decided(call)
        self.calls.opened(call, decided, time.monotonic())
        if decided.verdict.word == "deny":
            return replies.deny(event, wording.refusal(call, decided.verdict, decided.entry))
        if decided.verdict.word == "ask":
            return self._asked(event, call, decided, session, peer, line)
        if call.tool == "Agent":
            return self._routed(event, call, decided)
        return replies.allow(event, reason=decided.verdict.reasons[0].text)

    def _decided(self, call: ToolCall) -> Decided:
        phase = self.pipeline.phase_of(call.project, call.session)
        wanted = _phase_wanted(call)
        if wanted and wanted in self.pipeline.policies.of(call.project).settings.phases:
            # INVARIANT: the model cannot switch the phase.
            return self.pipeline.refuse(
                call, "phase", "Only a person switches the phase.", f"A person types /{wanted}."
            )
        hold = self._hold(call) if call.tool == "Agent" else ""
        return self.pipeline.decide(call, phase=phase, hold=hold, asking=True)

    def _asked(
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
        if line is None or not self.pipeline.broker.reachable:
            self._settle(decided.entry, "cancelled", "none", "nobody could be reached")
            return replies.deny(event, wording.unreachable(call, decided.verdict, decided.entry))
        settled = self._answer(decided.entry, call, peer, line)
        return self._told(event, call, decided, settled)

    def _told(self, event: Event, call: ToolCall, decided: Decided, settled: Question | None) -> Reply:
        """What a person said, in the agent's words."""
        if settled is None:
            return replies.deny(event, "The agent stopped waiting for the answer.")
        if settled.state == "approved":
            edited = self.pipeline.broker.edited(decided.entry)
            if edited is not None and not replies.can_rewrite(event, edited):
                title = dialect(event.agent).title
                return replies.deny(event, f"{title} cannot be given the edited input.")
            self._changed(call, decided, edited)
            return replies.allow(event, reason=f"{settled.actor} approved it.", updated=edited)
        return replies.deny(event, self._no(call, decided, settled))

    def _resumed(
        self, event: Event, call: ToolCall, found: Found, session: Session, peer: Peer, line: Waiting
    ) -> Reply:
        """The hook waited for an earlier server: it goes on waiting, or hears what was said meanwhile."""
        decided, asked = found.decided, found.question.state == ASKED
        self.calls.opened(call, decided, time.monotonic())
        if asked and replies.can_ask(dialect(event.agent)) and session.attended:
            return replies.ask(event, wording.question(call, decided.verdict, decided.entry))
        line.deadline -= found.age
        settled = self._answer(decided.entry, call, peer, line)
        why = self._void(call, settled, edited=found.edited) if settled else ""
        return replies.deny(event, why) if why else self._told(event, call, decided, settled)

    def _void(self, call: ToolCall, settled: Question, *, edited: bool) -> str:
        """Why a yes from before does not count any more; recorded where policy says so."""
        if settled.state != "approved":
            return ""
        if edited and self.pipeline.broker.edited(settled.entry) is None:
            # INVARIANT: where the arguments a person approved are lost, the others do not run.
            return wording.lost_edit(call, settled.entry, settled.actor)
        phase = self.pipeline.phase_of(call.project, call.session)
        verdict = self.pipeline.judge(call, phase=phase, approved=True).verdict
        if verdict.word != "deny":
            return ""
        # INVARIANT: what the policy of this moment refuses does not run, whatever was said before.
        why = verdict.reasons[0].text
        refused = self.pipeline.refuse(call, verdict.stage, why, verdict.remedy, verdict.risk)
        return wording.refusal(call, refused.verdict, refused.entry)

    def _permission(self, event: Event, facts: dict[str, str], peer: Peer, line: Waiting | None) -> Reply:
        """The agent shows its dialog; whoever answers first, there or here, is heard."""
        session = self._session(event, facts, peer)
        call = self._tool_call(event, session)
        if line is None:
            return replies.silent()
        found = asked_about(self.pipeline.store, call.binding)
        before = None if found else self.resuming.answer(call, peer)
        settled = before.question if before else None
        if found:
            settled = self._answer(found[0].entry, call, peer, line, native=True)
        # What was answered in the agent's own dialog needs no second answer.
        if settled is None or settled.channel == "agent":
            return replies.silent()
        why = self._void(call, settled, edited=before is not None and before.edited)
        if why:
            return replies.permission(event, False, why)
        edited = self.pipeline.broker.edited(settled.entry)
        if settled.state == "approved" and (edited is None or replies.can_rewrite(event, edited)):
            return replies.permission(event, True, updated=edited)
        said = settled.message or {"expired": "Nobody answered in time."}.get(settled.state, "")
        return replies.permission(event, False, f"{settled.actor or 'Checkrein'} said no. {said}".strip())

    def _changed(self, call: ToolCall, decided: Decided, updated: dict[str, Any] | None) -> None:
        """The call will be reported as it ran; without an id nothing else says which one it was."""
        if updated is not None and not call.call_id:
            ran = msgspec.structs.replace(call, arguments=updated)
            self.calls.opened(ran, decided, time.monotonic())

    def _answer(
        self, entry: str, call: ToolCall, peer: Peer, line: Waiting, *, native: bool = False
    ) -> Question | None:
        """The settled question; None when the hook, or the agent that ran it, went away before that."""
        broker, family = self.pipeline.broker, _family(peer)
        with broker.awaiting(entry, call):
            # A hook may outlive its agent, and then nobody would do what it is told.
            while line.still_here() and _family(peer) == family:
                settled = broker.wait(entry, _TICK)
                if settled is not None:
                    return settled
                if time.monotonic() >= line.deadline or self._is_over(entry):
                    self._settle(entry, "expired", "timeout")
        # A call may be heard twice: what another hook still waits for stays asked.
        if not native and not broker.is_awaited(entry):
            self._settle(entry, "cancelled", "agent", "the agent stopped waiting")
        return None

    def _is_over(self, entry: str) -> bool:
        now = self.pipeline.clock()
        return any(each.entry == entry and each.expires_at <= now for each in waiting(self.pipeline.store))

    def _settle(self, entry: str, answer: str, channel: str, message: str = "") -> None:
        """Record that a question ended without a person; somebody may have been quicker."""
        try:
            self.pipeline.answer(entry, answer, actor="", channel=channel, message=message)
        except InputError:
            return

    def _no(self, call: ToolCall, decided: Decided, settled: Question) -> str:
        return wording.answered(
            call, decided.verdict, decided.entry, settled.state, settled.actor, settled.message
        )

    # -- sub-agents get the model their task deserves --------------------------------------------------

    def _hold(self, call: ToolCall) -> str:
        """Why the user takes over: everybody below has failed."""
        choice = self._choice(call, None)
        return f"{choice.reason}; nobody is left above." if choice.name == "user" else ""

    def _routed(self, event: Event, call: ToolCall, decided: Decided) -> Reply:
        trust = min(decided.verdict.trust.values(), default=None)
        choice = self._choice(call, trust)
        data = {"persona": choice.name, "model": choice.model, "reason": choice.reason}
        updated = {**call.arguments, "model": choice.model}
        given = "model" not in call.arguments and replies.can_rewrite(event, updated) and bool(choice.model)
        self._note(decided.entry, "routed", {**data, "applied": given})
        text = f"Routed to {choice.name} ({choice.model}): {choice.reason}."
        if given:
            self._changed(call, decided, updated)
            return replies.allow(event, reason=text, updated=updated)
        return replies.allow(event, reason=decided.verdict.reasons[0].text, context=text)

    def _choice(self, call: ToolCall, trust: float | None) -> Choice:
        settings = self.pipeline.policies.of(call.project).settings.model
        return choose(call, trust, self._failures.get(call.session, 0), settings)

    # -- what is reported -----------------------------------------------------------------------------

    def _done(self, event: Event, facts: dict[str, str], peer: Peer, line: Waiting | None) -> Reply:
        session = self._session(event, facts, peer)
        # INVARIANT: what an agent runs earns no trust by reporting, nor does its report stand for a yes.
        why = "" if line is None else self.agents.not_its_hook(session, peer, _is_our_line)
        if why:
            self.agents.refused("report", why)
            return replies.silent()
        call = self._tool_call(event, session)
        entry = self.calls.ended(call)
        if entry is None:
            data = {"project": call.project, "session": call.session, "tool": call.name, "agent": call.agent}
            self.pipeline.note("unjudged", data)
            return replies.silent()
        self._answered_in_dialog(entry, call)
        self.pipeline.finish(entry, event.outcome or "unknown", output=event.output, evidence=event.evidence)
        if call.tool == "Agent" and event.outcome in ("success", "failure"):
            failed = event.outcome == "failure"
            self._failures[call.session] = self._failures.get(call.session, 0) + 1 if failed else 0
        return replies.silent()

    _failed = _done

    def _answered_in_dialog(self, entry: str, ran: ToolCall) -> None:
        """A call that was asked about and ran was approved in the agent's own dialog."""
        found = fold(records.of_entries(self.pipeline.store, [entry]))
        if found and found[0].verdict == "ask" and found[0].answer is None:
            try:
                remember = self._native_memory(entry, ran)
                self.pipeline.answer(entry, "approved", actor=self.user, channel="agent", remember=remember)
            except InputError:
                return

    def _native_memory(self, entry: str, ran: ToolCall) -> Remember | None:
        """How far a yes in the agent's own dialog reaches, as the user set it."""
        call = self.pipeline.broker.call(entry)
        reach = self.pipeline.policies.of(ran.project).settings.approval.remember_native
        # INVARIANT: a call that was changed in the dialog is no yes to the one we asked about.
        if reach == "once" or call is None or call.argument_hash != ran.argument_hash:
            return None
        risk = self.pipeline.judge(call).verdict.risk
        return Remember(what="family") if family_of(risk) is not None else None

    def _session_start(self, event: Event, facts: dict[str, str], peer: Peer, _line: Waiting | None) -> Reply:
        session = self._session(event, facts, peer, again=True)
        if event.source != "compact":
            self.pipeline.start_session(session.project, session.id, session.agent)
        return replies.silent()

    def _session_end(self, event: Event, facts: dict[str, str], peer: Peer, _line: Waiting | None) -> Reply:
        session = self._session(event, facts, peer)
        self._withdraw(session, over=True)
        now = self.pipeline.clock()

        def end(tx: Transaction) -> None:
            end_session(tx, session.agent, session.id, now)
            end_session_grants(tx, session.id, now)

        self.pipeline.store.write(end)
        self.pipeline.end_session(session.project, session.id)
        trustfiles.write(self.pipeline, session.project)
        self._failures.pop(session.id, None)
        return replies.silent()

    def _stop(self, event: Event, facts: dict[str, str], peer: Peer, _line: Waiting | None) -> Reply:
        session = self._session(event, facts, peer)
        self._withdraw(session)
        trustfiles.write(self.pipeline, session.project)
        return replies.silent()

    def _withdraw(self, session: Session, *, over: bool = False) -> None:
        """Questions the agent's own dialog answered with no (it tells nobody), or that nobody waits for."""
        in_dialog = replies.can_ask(dialect(session.agent)) and session.attended
        for question in waiting(self.pipeline.store, session.id):
            coming = not over and not in_dialog and self.resuming.may_come_back(question)
            if not coming and not self.pipeline.broker.is_awaited(question.entry):
                self._settle(question.entry, "cancelled", "agent", "refused or interrupted in the agent")

    # -- what a person says to the agent --------------------------------------------------------------

    def _prompt(self, event: Event, facts: dict[str, str], peer: Peer, line: Waiting | None) -> Reply:
        session = self._session(event, facts, peer)
        self._withdraw(session)
        return self._expansion(event, facts, peer, line) if event.command else replies.silent()

    def _expansion(self, event: Event, facts: dict[str, str], peer: Peer, _line: Waiting | None) -> Reply:
        """A slash command a person typed: ours switch the phase, at once, for this session."""
        session = self._session(event, facts, peer)
        name = event.command.rpartition(":")[2]
        # A switch that comes late, from the spool, is not what the person wants by now.
        if _line is None or name not in self.pipeline.policies.of(session.project).settings.phases:
            return replies.silent()
        why = self.agents.begun_by_another(session) or self.agents.not_its_hook(session, peer, _is_our_line)
        if why:
            self.agents.refused("phase.set", why)
            return replies.block(event, f"Only a person switches the phase, and {why}.")
        switch(self.pipeline, name, self.user, event.agent, session=session.id)
        return replies.inform(event, f"The phase is now {name}: {_MEANING.get(name, '')}")

    def _config(self, event: Event, facts: dict[str, str], peer: Peer, _line: Waiting | None) -> Reply:
        session = self._session(event, facts, peer)
        why = would_remove_us(self.pipeline.store, event.agent, event.file, session.project)
        if not why:
            return replies.silent()
        data = {"project": session.project, "session": session.id, "file": event.file, "reason": why}
        self.pipeline.note("settings_change_refused", data)
        remedy = f"A person can remove them with `checkrein uninstall {event.agent}`."
        return replies.block(event, f"Checkrein keeps its hooks: {why}. {remedy}")

    # -- whom we talk to ------------------------------------------------------------------------------

    def _session(self, event: Event, facts: dict[str, str], peer: Peer, *, again: bool = False) -> Session:
        """The session an event belongs to; its project is where it was first seen."""
        known = self.agents.known(event.agent, event.session)
        if known is not None and not again:
            return known
        folder = next((facts[name] for name in facts if name.endswith("_PROJECT_DIR")), event.cwd)
        try:
            project = known.project if known else project_of(folder or Path.home())
        except (OSError, ValueError):
            raise InputError("The folder in the hook payload cannot be used.") from None
        return self.agents.meet(event.agent, event.session, project, peer, marks_of(event.agent), facts)

    def _tool_call(self, event: Event, session: Session) -> ToolCall:
        return ToolCall(
            tool=event.tool,
            server=event.server,
            arguments=event.arguments,
            agent=event.agent,
            user=self.user,
            session=event.session,
            project=session.project,
            cwd=event.cwd or session.project,
            call_id=event.call_id,
        )

    def _unreadable(self, agent: str, mode: str, request: Request, error: InputError) -> Reply:
        """Refused and recorded; reports nobody can read are recorded only."""
        seen = glimpse(request.body)
        folder = seen.get("cwd", "") if seen.get("cwd", "").startswith("/") else ""
        try:
            project = project_of(folder) if folder else ""
        except (OSError, ValueError):
            project = folder = ""
        call = ToolCall(
            tool=seen.get("tool", _UNREADABLE),
            agent=agent,
            user=self.user,
            session=seen.get("session", ""),
            project=project,
            cwd=folder,
        )
        if mode != "gate":
            self.pipeline.note("unreadable", {"agent": agent, "mode": mode, "reason": error.message})
            return replies.silent()
        decided = self.pipeline.refuse(call, "floor", f"The call cannot be read: {error.message}", _REPORT)
        try:
            return replies.refuse_unread(agent, wording.refusal(call, decided.verdict, decided.entry))
        except CheckreinError:
            return Reply(stderr=f"{error}\n".encode(), exit_code=2)

    def _note(self, entry: str, kind: str, data: dict[str, Any]) -> None:
        self.pipeline.store.write(lambda tx: self.pipeline.ledger.append(tx, kind, data, entry=entry))


_REPORT = "If the agent is not at fault, run `checkrein doctor`."
_MEANING = {
    "planning": "reading and documents; no source changes, no commands.",
    "building": "reading, writing and running, as far as trust reaches.",
    "auditing": "reading only.",
}


def _family(peer: Peer) -> list[tuple[int, str]]:
    """The hook, the shell that runs it, and the agent that waits for both; whatever they call themselves."""
    return [(each.pid, each.started) for each in lineage(peer.pid)[:3]]


def _is_our_line(words: list[str]) -> bool:
    """Whether these are the words of a shell that an agent runs our hook with."""
    return len(words) > 2 and words[1].startswith("-") and recognise(" ".join(words[2:])) is not None


def _phase_wanted(call: ToolCall) -> str:
    """The phase a model would switch to by running the person's slash command itself."""
    if call.tool not in ("Skill", "SlashCommand"):
        return ""
    for name in ("skill", "command", "name"):
        value = call.arguments.get(name)
        if isinstance(value, str) and value:
            return value.strip().lstrip("/").partition(" ")[0].rpartition(":")[2]
    return ""


def marks_of(agent: str) -> Marks:
    """How the agent's process is recognised, from its table."""
    table = dialect(agent)
    return Marks(
        names=table.process.names,
        scripts=table.process.scripts,
        headless=table.headless.flags,
        process_fact=table.process.fact,
        attended_fact=next(iter(table.headless.environment), ""),
    )
