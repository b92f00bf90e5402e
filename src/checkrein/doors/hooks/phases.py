"""Slash commands that switch the phase: typed by a person they do, run by the model they are refused.

The door calls `typed` for what a person types, and `wanted` for every call of a model.
"""

from __future__ import annotations

from checkrein.agents import Agents
from checkrein.authority.phase import switch
from checkrein.call import ToolCall
from checkrein.doors.hooks import replies
from checkrein.doors.hooks.callers import Callers
from checkrein.doors.hooks.events import Event
from checkrein.doors.hooks.replies import Reply
from checkrein.doors.hooks.waiting import Waiting
from checkrein.peers import Peer
from checkrein.pipeline import Pipeline
from checkrein.store.agents import Session

_MEANING = {
    "planning": "reading and documents; no source changes, no commands.",
    "building": "reading, writing and running, as far as trust reaches.",
    "auditing": "reading only.",
}


class Phases:
    """The phase of every session, as its person switches it."""

    def __init__(self, pipeline: Pipeline, agents: Agents, callers: Callers) -> None:
        self._pipeline, self._agents, self._callers = pipeline, agents, callers

    def typed(self, event: Event, facts: dict[str, str], peer: Peer, _line: Waiting | None) -> Reply:
        """A slash command a person typed: ours switch the phase, at once, for this session."""
        session = self._callers.session(event, facts, peer)
        name = self._named(event, session)
        if not name:
            return replies.silent()
        if why := self._agents.begun_by_another(session):
            self._agents.refused("phase.set", why)
            return self.refused(event, session, why)
        switch(self._pipeline, name, self._callers.user, event.agent, session=session.id)
        return replies.inform(event, f"The phase is now {name}: {_MEANING.get(name, '')}")

    def refused(self, event: Event, session: Session, why: str) -> Reply:
        """Block a phase command that does not hold, so that nobody believes it does; silence for the rest."""
        if not self._named(event, session):
            return replies.silent()
        return replies.block(event, f"Only a person switches the phase, and {why}.")

    def _named(self, event: Event, session: Session) -> str:
        """The phase a slash command names; nothing for other commands."""
        name = event.command.rpartition(":")[2]
        return name if name in self._pipeline.policies.of(session.project).settings.phases else ""


def wanted(call: ToolCall) -> str:
    """The phase a model would switch to by running the person's slash command itself."""
    if call.tool not in ("Skill", "SlashCommand"):
        return ""
    for name in ("skill", "command", "name"):
        value = call.arguments.get(name)
        if isinstance(value, str) and value:
            return value.strip().lstrip("/").partition(" ")[0].rpartition(":")[2]
    return ""
