"""Chat's thread and loop, and the parts that work there. What can be asked of it is in its subclasses."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import secrets
import threading
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from checkrein.agents import user_name
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
from checkrein.errors import InputError, StoreError
from checkrein.pipeline import Pipeline
from checkrein.settings import Settings

T = TypeVar("T")
Facts = dict[str, Any]
_ANSWER_SECONDS, _STOP_SECONDS = 330.0, 10.0


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
        calling = Calling(pipeline, self._sessions, self._lines, tools, _me())
        self._calling = calling
        agent = Agent(
            pipeline, self._sessions, self._lines, self._providers, tools, calling, self._compressing
        )
        self._agent = agent
        self._runs = Runs(agent, self._sessions, self._lines, secrets.token_hex(8), say)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._ending: asyncio.Event | None = None
        self._thread: threading.Thread | None = None

    def open(self) -> None:
        """Begin; returns when it can be asked. Runs that wait go on."""
        up = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(up,), name="checkrein-chat", daemon=True)
        self._thread.start()
        up.wait()
        if self._loop is None:
            raise StoreError("Chat could not be started.", remedy="Run `checkrein doctor`.")

    def _run(self, up: threading.Event) -> None:
        try:
            asyncio.run(self._serve(up))
        except Exception as error:  # noqa: BLE001 - the other doors go on without it
            self._say(f"chat ended: {type(error).__name__}: {error}")
        finally:
            self._loop = None
            up.set()

    async def _serve(self, up: threading.Event) -> None:
        self._ending = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        # Before anybody asks: what a crash left half imported or half deleted is nobody's.
        await asyncio.to_thread(self._sessions.sweep)
        # Before anybody is heard: a session whose run waits is not taken for a free one.
        await self._runs.resume()
        up.set()
        try:
            await self._ending.wait()
        finally:
            await self._runs.close()
            with contextlib.suppress(Exception):
                await self._providers.close()

    def close(self) -> None:
        """Keep what was written, and end."""
        loop, ending, thread = self._loop, self._ending, self._thread
        if loop is not None and ending is not None:
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(ending.set)
        if thread is not None:
            thread.join(_STOP_SECONDS)

    @property
    def busy(self) -> int:
        """Answers under way."""
        return len(self._runs.live)

    def _do(self, work: Coroutine[Any, Any, T]) -> T:
        loop = self._loop
        if loop is None:
            work.close()
            raise StoreError("Chat is not running.", remedy="Run `checkrein doctor`.")
        future = asyncio.run_coroutine_threadsafe(work, loop)
        try:
            return future.result(_ANSWER_SECONDS)
        except concurrent.futures.TimeoutError:
            future.cancel()
            raise StoreError("Chat did not answer in time.", remedy="Try again.") from None
        except concurrent.futures.CancelledError:
            raise StoreError("The server is stopping.", remedy="Try again in a moment.") from None

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


def _me() -> str:
    import os

    return user_name(os.geteuid())
