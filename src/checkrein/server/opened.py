"""What a server opens on first need: the gateway, chat, the console. Each once, and in order to the end."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from checkrein.agents import Agents
from checkrein.errors import StoreError
from checkrein.pipeline import Pipeline
from checkrein.store import conversation_runs
from checkrein.store.api_tokens import API_TOKENS
from checkrein.store.gateway_clients import CLIENTS
from checkrein.store.runs import unfinished_runs

if TYPE_CHECKING:
    from checkrein.console.serving import Console
    from checkrein.doors.chat.chat import Chat
    from checkrein.doors.gateway.gateway import Gateway
    from checkrein.doors.gateway.guests import Guest


class Opened:
    """Asked from any thread. Nothing opens any more once `ended` is set."""

    def __init__(
        self,
        pipeline: Pipeline,
        agents: Agents,
        say: Callable[[str], None],
        ended: threading.Event,
        stop: Callable[[], None],
    ) -> None:
        self._pipeline, self._agents, self._say, self._ended, self._stop = pipeline, agents, say, ended, stop
        self._gateway: Gateway | None = None
        self._gateway_lock = threading.Lock()
        self._chat: Chat | None = None
        self._chat_lock = threading.Lock()
        self._console: Console | None = None
        self._console_lock = threading.Lock()

    @property
    def busy(self) -> bool:
        """Whether a call or an answer is under way; who is merely connected may stay so for days."""
        return bool((self._gateway and self._gateway.busy) or (self._chat and self._chat.busy))

    def gateway(self) -> Gateway:
        """The door for MCP clients, which opens for the first one."""
        with self._gateway_lock:
            self._check()
            if self._gateway is None:
                from checkrein.doors.gateway.gateway import Gateway

                made = Gateway(self._pipeline, self._agents, self._say)
                made.open()
                self._gateway = made
            return self._gateway

    def chat(self) -> Chat:
        """Conversations, with the gateway's tools."""
        with self._chat_lock:
            self._check()
            if self._chat is None:
                from checkrein.doors.chat.chat import Chat

                self.gateway()
                made = Chat(self._pipeline, self._guest, self._say)
                made.open()
                self._chat = made
            return self._chat

    def _guest(self) -> Guest:
        """What chat reaches servers by, also while everything ends: its calls are not failed by that."""
        return (self._gateway or self.gateway()).guest("chat")

    def console(self) -> Console:
        """The console, and with it the HTTP API."""
        with self._console_lock:
            self._check()
            if self._console is None:
                from checkrein.console.serving import Console

                port = self._pipeline.policies.loaded("").settings.console.port
                made = Console(self._pipeline, self._agents, self._stop, self.gateway, self.chat)
                made.start(port)
                self._say(f"console on 127.0.0.1:{made.port}")
                self._console = made
            return self._console

    def console_address(self) -> str:
        """Where the console is, for who is signed in already; nothing while it does not run."""
        return f"{self._console.address}/" if self._console else ""

    def api_address(self) -> str:
        return self.console().address

    def open_awaited(self) -> None:
        """Who comes over HTTP finds a port, and what was put away goes on, unasked."""
        store = self._pipeline.store
        try:
            if CLIENTS.living(store) or unfinished_runs(store):
                self.gateway()
            if conversation_runs.unfinished_runs(store):
                self.chat()
            if API_TOKENS.living(store):
                self.console()
        except Exception as error:  # noqa: BLE001 - the hooks go on without it
            self._say(f"what somebody waits for cannot start: {type(error).__name__}: {error}")

    def close_console(self) -> None:
        with self._console_lock:
            if self._console is not None:
                self._console.stop()

    def close(self) -> None:
        """INVARIANT: chat ends before the gateway that has its tools, both before the store."""
        for lock, name in ((self._chat_lock, "_chat"), (self._gateway_lock, "_gateway")):
            with lock:
                made: Chat | Gateway | None = getattr(self, name)
                try:
                    if made is not None:
                        made.close()
                except Exception as error:  # noqa: BLE001 - the socket must go all the same
                    self._say(f"{name[1:]} did not stop well: {type(error).__name__}: {error}")

    def _check(self) -> None:
        if self._ended.is_set():
            raise StoreError("The server is stopping.", remedy="Try again in a moment.")
