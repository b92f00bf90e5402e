"""Whose event it is: the session it belongs to, with its project, and the call it is about.

The door asks for every event, and so do those who handle it. Agents are known by their tables only.
"""

from __future__ import annotations

from pathlib import Path

from checkrein.agents import Agents, Marks, agent_process, own_user
from checkrein.call import ToolCall
from checkrein.doors.hooks.dialects import dialect
from checkrein.doors.hooks.events import Event
from checkrein.errors import InputError
from checkrein.peers import Peer
from checkrein.settings.project import project_of
from checkrein.store.agents import Session


class Callers:
    """The sessions that speak to us, all of one user."""

    def __init__(self, agents: Agents) -> None:
        self._agents, self.user = agents, own_user()

    def session(self, event: Event, facts: dict[str, str], peer: Peer, *, again: bool = False) -> Session:
        """The session an event belongs to; its project is where it was first seen."""
        known = self._agents.known(event.agent, event.session)
        if known is not None and not again:
            return known
        folder = next((facts[name] for name in facts if name.endswith("_PROJECT_DIR")), event.cwd)
        try:
            project = known.project if known else project_of(folder or Path.home())
        except (OSError, ValueError):
            raise InputError("The folder in the hook payload cannot be used.") from None
        return self._agents.meet(event.agent, event.session, project, peer, marks_of(event.agent), facts)

    def speaking(self, event: Event, facts: dict[str, str], peer: Peer) -> Session:
        """The same; the agent's process is noted where its first event came from elsewhere."""
        session = self.session(event, facts, peer)
        known = session.process or agent_process(peer.pid, marks_of(event.agent), facts) is None
        return session if known else self.session(event, facts, peer, again=True)

    def call(self, event: Event, session: Session) -> ToolCall:
        """The call an event is about."""
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
