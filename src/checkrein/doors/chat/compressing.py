"""Compresses a conversation: by itself before a request that would be too long, or because a person asks.

The plan and the summary are `compression`'s; here are the conversation, its model and what is kept of it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from checkrein.doors.chat import Message, Session, Snapshot, compression, models
from checkrein.doors.chat.compression import Outcome, Plan, Settings, Wanted, Weighed
from checkrein.doors.chat.providers import Picked, Providers
from checkrein.doors.chat.sessions import Sessions
from checkrein.doors.chat.summaries import checked_template
from checkrein.doors.chat.tokens import breakdown, counted
from checkrein.errors import CheckreinError
from checkrein.ledger.record import new_id
from checkrein.settings import Chat

_SUMMARY_SECONDS = 300.0
_MOST_WEIGHED = 100_000


class Compressing:
    """Summaries of conversations, kept beside them."""

    def __init__(self, sessions: Sessions, providers: Providers) -> None:
        self._sessions, self._providers = sessions, providers
        self._weights: dict[tuple[str, str], Weighed] = {}

    def settings(self, session: Session, model: models.Model, chat: Chat) -> Settings:
        """The session's, else the model's, else the file's, else ours."""
        own = Wanted(
            threshold=session.threshold,
            retention_tokens=session.retention_tokens,
            auto_compress=session.auto_compress,
        )
        kept = chat.retention_tokens if chat.retention_tokens >= 0 else None
        everywhere = Wanted(threshold=chat.threshold, retention_tokens=kept, auto_compress=chat.auto_compress)
        return compression.chosen(model, session=own, everywhere=everywhere)

    def standing(self, session: str) -> tuple[list[Message], Snapshot | None]:
        """The branch that is shown, and the summary in force for it."""
        path = self._sessions.path(session)
        return path, compression.latest(path, self._sessions.snapshots(session))

    def weigh(self, message: Message, encoding: str) -> Weighed:
        """A message for a plan, counted once: what is kept is not written any more."""
        key = message.id, encoding
        known = self._weights.get(key)
        if known is not None and not known.open:
            return known
        found = compression.weighed(message, encoding)
        if message.state != "streaming" and not found.open:
            if len(self._weights) >= _MOST_WEIGHED:
                self._weights.clear()
            self._weights[key] = found
        return found

    def preview(
        self,
        session: Session,
        model: models.Model,
        chat: Chat,
        *,
        fixed: int,
        pending: str = "",
        retention: int | None = None,
        force: bool = True,
    ) -> Plan:
        """What compressing now would do."""
        path, snapshot = self.standing(session.id)
        return compression.preview(
            path,
            snapshot,
            model,
            self.settings(session, model, chat),
            fixed_tokens=fixed,
            pending_tokens=counted(pending, model.encoding).tokens if pending else 0,
            retention_override=retention,
            force=force,
            weigh=lambda each: self.weigh(each, model.encoding),
        )

    async def compress(
        self,
        session: Session,
        picked: Picked,
        model: models.Model,
        chat: Chat,
        *,
        fixed: int,
        retention: int | None = None,
        force: bool = False,
    ) -> Outcome:
        """Carry it out: the whole history stays and, if all went well, there is a summary of it."""
        path, snapshot = await asyncio.to_thread(self.standing, session.id)
        plan = await asyncio.to_thread(
            lambda: self.preview(session, model, chat, fixed=fixed, retention=retention, force=force)
        )

        async def ask(text: str) -> str:
            async with asyncio.timeout(_SUMMARY_SECONDS):
                try:
                    return await _asked_once(await self._providers.model(picked), text)
                except CheckreinError:
                    raise
                except Exception as error:
                    raise CheckreinError(self._providers.explain(error).text) from error

        outcome = await compression.compress(
            path,
            snapshot,
            plan,
            ask,
            snapshot_id=new_id(self._sessions.clock()),
            now=self._sessions.clock(),
            model=model,
            template=checked_template(chat.template),
        )
        if outcome.snapshot is not None:
            await asyncio.to_thread(self._sessions.add_snapshot, session.id, outcome.snapshot)
        return outcome


def outcome_view(outcome: Outcome) -> dict[str, Any]:
    """An outcome as it is told."""
    return {
        "compressed": outcome.compressed,
        "original_tokens": outcome.original_tokens,
        "new_tokens": outcome.new_tokens,
        "reason": outcome.reason,
        "failed": outcome.failed,
        "summarised": len(outcome.plan.summarised) if outcome.compressed else 0,
        "summary": outcome.snapshot.text if outcome.snapshot is not None else "",
    }


def fixed_tokens(system: str, definitions: Sequence[Any], model: models.Model) -> int:
    """What goes with every request: instructions and tool definitions."""
    return breakdown((), instructions=system, tools=definitions, encoding=model.encoding).total


async def _asked_once(model: Any, text: str) -> str:
    """What a model answers to one question, without tools and in one piece."""
    from pydantic_ai.direct import model_request
    from pydantic_ai.messages import ModelRequest, TextPart, UserPromptPart

    answer = await model_request(model, [ModelRequest(parts=[UserPromptPart(text)])])
    return "".join(each.content for each in answer.parts if isinstance(each, TextPart))
