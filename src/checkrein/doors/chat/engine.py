"""Chat's thread and loop, and the parts that work there. What can be asked of it is in its subclasses."""

from __future__ import annotations

import asyncio
import contextlib
import secrets
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from checkrein.agents import own_user
from checkrein.doors.chat import (
    Session,
    routing,
)
from checkrein.doors.chat.agent import Agent
from checkrein.doors.chat.calling import Calling
from checkrein.doors.chat.compressing import Compressing
from checkrein.doors.chat.events import Lines
from checkrein.doors.chat.providers import Picked, Providers
from checkrein.doors.chat.runs import Runs
from checkrein.doors.chat.sessions import Sessions
from checkrein.doors.chat.tools import NoTools, Tools
from checkrein.errors import InputError
from checkrein.own_loop import OwnLoop
from checkrein.pipeline import Pipeline
from checkrein.settings import Settings

T = TypeVar("T")
Facts = dict[str, Any]
_ANSWER_SECONDS = 330.0


class Engine:
    """Started on first need; safe to call from any thread."""

    def __init__(
        self,
        pipeline: Pipeline,
        tools: Callable[[], Tools] = NoTools,
        say: Callable[[str], None] = lambda _text: None,
        *,
        providers: Providers | None = None,
    ) -> None:
        self._pipeline, self._say, self._tools = pipeline, say, tools
        self._sessions = Sessions(pipeline.store, pipeline.clock)
        self._lines = Lines(secrets.token_hex(4))
        self._providers = providers or Providers(self._usable)
        self._compressing = Compressing(self._sessions, self._providers)
        calling = Calling(pipeline, self._sessions, self._lines, tools, own_user())
        self._calling = calling
        agent = Agent(
            pipeline, self._sessions, self._lines, self._providers, tools, calling, self._compressing
        )
        self._agent = agent
        self._runs = Runs(agent, self._sessions, self._lines, secrets.token_hex(8), say)
        self._own = OwnLoop("checkrein-chat", "Chat", self._serve, say)

    def open(self) -> None:
        """Begin; returns when it can be asked. Runs that wait go on."""
        self._own.open()

    async def _serve(self, own: OwnLoop) -> None:
        # Before anybody asks: what a crash left half imported or half deleted is nobody's.
        await asyncio.to_thread(self._sessions.sweep)
        # Before anybody is heard: a session whose run waits is not taken for a free one.
        await self._runs.resume()
        own.up()
        try:
            await own.ending.wait()
        finally:
            await self._runs.close()
            with contextlib.suppress(Exception):
                await self._providers.close()

    def close(self) -> None:
        """Keep what was written, and end."""
        self._own.close()

    @property
    def busy(self) -> int:
        """Answers under way."""
        return len(self._runs.live)

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        return self._own.do(work, _ANSWER_SECONDS)

    def _settings(self) -> Settings:
        return self._pipeline.policies.of("", "chat").settings

    def _usable(self) -> Settings:
        """INVARIANT: no model is asked past a proxy or a certificate that a broken file would have named."""
        force = self._pipeline.policies.of("", "chat")
        if force.policy.fault:
            raise InputError(
                f"The settings cannot be used: {force.policy.fault}", remedy="Run `checkrein config check`."
            )
        return force.settings

    def _chosen(self, session: Session, text: str, model: str) -> tuple[routing.Choice, Picked]:
        """INVARIANT: the model that is picked is the model that answers."""
        own = f"{session.provider}/{session.model}" if session.provider and session.model else session.model
        settings = self._settings()
        choice = routing.choose(text, model or own, settings.chat, settings.model)
        return choice, self._providers.pick(choice.ref)
