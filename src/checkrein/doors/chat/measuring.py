"""How long a conversation is, and making it shorter, because a person asks."""

from __future__ import annotations

import asyncio

import msgspec

from checkrein.doors.chat import (
    Session,
    gauge,
    history,
    models,
)
from checkrein.doors.chat.compressing import fixed_tokens, outcome_view
from checkrein.doors.chat.engine import Engine, Facts
from checkrein.doors.chat.tools import turned_on


class Measuring(Engine):
    """Tokens and compression of one conversation."""

    def tokens(self, *, session: str, input: str = "", model: str = "") -> Facts:  # noqa: A002 - as above
        """How much of the model's context is used, and by what."""
        found = self._sessions.get(session)
        _, picked = self._chosen(found, input, model)
        known = models.load().model(picked.model)
        system, definitions = self._do(self._fixed(found))
        path, snapshot = self._compressing.standing(session)
        limits = self._compressing.settings(found, known, self._settings().chat)
        return gauge.gauge(
            path, snapshot, model=known, settings=limits, system=system, tools=definitions, pending=input
        ) | {"ref": picked.ref}

    async def _fixed(self, session: Session) -> tuple[str, list[Facts]]:
        """What goes with every request of a session: its instructions and tools."""
        offered = turned_on(await self._tools().tools(session.project), session.tools_off)
        names = history.Names(each.name for each in offered)
        return session.system or self._settings().chat.system, [
            gauge.definition(each, names.theirs(each.name)) for each in offered
        ]

    def preview(self, *, session: str, retention: int | None = None) -> Facts:
        """What compressing would do, in numbers."""
        found = self._sessions.get(session)
        _, picked = self._chosen(found, "", "")
        known = models.load().model(picked.model)
        system, definitions = self._do(self._fixed(found))
        fixed = fixed_tokens(system, definitions, known)
        plan = self._compressing.preview(
            found, known, self._settings().chat, fixed=fixed, retention=retention
        )
        told: Facts = msgspec.to_builtins(plan)
        return told | {"saved_percent": plan.saved_percent}

    def compress(self, *, session: str, retention: int | None = None) -> Facts:
        """Put a summary in the place of older messages, for the model; the history stays."""
        return self._do(self._compressed(session, retention))

    async def _compressed(self, id: str, retention: int | None) -> Facts:  # noqa: A002 - as above
        session = await asyncio.to_thread(self._sessions.get, id)
        _, picked = self._chosen(session, "", "")
        known = models.load().model(picked.model)
        self._runs.take(id)
        try:
            system, definitions = await self._fixed(session)
            fixed = await asyncio.to_thread(fixed_tokens, system, definitions, known)
            outcome = await self._compressing.compress(
                session, picked, known, self._settings().chat, fixed=fixed, retention=retention, force=True
            )
        finally:
            self._runs.release(id)
        told = outcome_view(outcome)
        self._lines.tell(id, "compressed", **told)
        return told
