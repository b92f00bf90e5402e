"""Payloads nobody can read: refused at the gate, recorded in any case.

The door calls it where it cannot judge.
"""

from __future__ import annotations

from checkrein.approval import wording
from checkrein.call import ToolCall
from checkrein.doors.hooks import replies
from checkrein.doors.hooks.dialects import dialect
from checkrein.doors.hooks.events import glimpse
from checkrein.doors.hooks.replies import Reply
from checkrein.errors import CheckreinError, InputError
from checkrein.pipeline import Pipeline
from checkrein.policy import UNKNOWN_RISK
from checkrein.settings.project import project_of
from checkrein.wire import Request

_UNREADABLE = "(unreadable)"
_REPORT = "If the agent is not at fault, run `checkrein doctor`."


class Unreadable:
    """What we could not read, on its way to the record."""

    def __init__(self, pipeline: Pipeline, user: str) -> None:
        self._pipeline, self._user = pipeline, user

    def answer(self, request: Request, error: InputError, agent: str) -> Reply:
        """Refused and recorded; reports nobody can read are recorded only. `agent`: whose payload it is."""
        _, registered, mode = request.words[:3]
        if mode != "gate":
            self._pipeline.note("unreadable", {"agent": agent, "mode": mode, "reason": error.message})
            return replies.silent()
        call = self._glimpsed(agent, request.body)
        why, remedy = f"The call cannot be read: {error.message}", _REPORT
        if agent != registered:
            # Somebody who never installed us for this program must learn who stops it, and what to do.
            table = dialect(agent)
            why = f"{table.title} ran the hook of {dialect(registered).title}. {why}"
            remedy = table.guest_remedy
        # A call nobody can read is judged by the floor: it is critical.
        decided = self._pipeline.refuse(call, "floor", why, remedy, UNKNOWN_RISK)
        try:
            return replies.refuse_unread(agent, wording.refusal(call, decided.verdict, decided.entry))
        except CheckreinError:
            return Reply(stderr=f"{error}\n".encode(), exit_code=2)

    def _glimpsed(self, agent: str, body: bytes) -> ToolCall:
        """As much of the call as can be seen, for the record."""
        seen = glimpse(body)
        folder = seen.get("cwd", "") if seen.get("cwd", "").startswith("/") else ""
        try:
            project = project_of(folder) if folder else ""
        except (OSError, ValueError):
            project = folder = ""
        return ToolCall(
            tool=seen.get("tool", _UNREADABLE),
            agent=agent,
            user=self._user,
            session=seen.get("session", ""),
            project=project,
            cwd=folder,
        )
