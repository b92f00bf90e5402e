"""The console as the server starts it: uvicorn in a thread of its own, on loopback, until it is stopped."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from checkrein.agents import Agents
from checkrein.console import signin_file
from checkrein.console.app import build
from checkrein.console.desk import Desk
from checkrein.console.guard import CONNECTION
from checkrein.console.peer_check import Connection, FindPeer
from checkrein.errors import StoreError
from checkrein.peers import peer_of
from checkrein.pipeline import Pipeline
from checkrein.runtime import LOOPBACK, console_socket_path, listen_on_loopback, listen_on_path

if TYPE_CHECKING:
    from checkrein.authority.chat import Chat
    from checkrein.authority.gateway import Gateway

_START_SECONDS, _STOP_SECONDS = 10.0, 3.0
_BACKLOG = 128


class Protocol(H11Protocol):
    """HTTP whose requests carry the connection they came by."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        line: socket.socket = transport.get_extra_info("socket")
        # The kernel itself says who connected to a Unix socket.
        peer = peer_of(line) if line.family == socket.AF_UNIX else None
        self.app_state = {**self.app_state, CONNECTION: Connection(self.client, peer)}


class Console:
    """Pages over one pipeline. Safe to `start` once; `link` is for a person only."""

    def __init__(
        self,
        pipeline: Pipeline,
        agents: Agents,
        stop: Callable[[], None] | None = None,
        gateway: Callable[[], Gateway] | None = None,
        chat: Callable[[], Chat] | None = None,
        find_peer: FindPeer | None = None,
    ) -> None:
        self.desk = Desk(pipeline, agents, stop, gateway, chat, find_peer)
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self._sockets: list[socket.socket] = []
        self.socket = ""

    @property
    def port(self) -> int:
        return self.desk.port

    def start(self, port: int) -> int:
        """Listen, on another port where this one is taken; the port that was found."""
        on_port = _listening(port)
        self.desk.port = on_port.getsockname()[1]
        self._sockets = [on_port, *self._listen_on_path()]
        signin_file.clear()
        self._server = uvicorn.Server(
            uvicorn.Config(
                build(self.desk),
                loop="asyncio",
                http=Protocol,
                ws="none",
                lifespan="on",
                log_config=None,
                log_level="critical",
                access_log=False,
                server_header=False,
                proxy_headers=False,
                timeout_keep_alive=15,
                timeout_graceful_shutdown=1,
            )
        )
        self._thread = threading.Thread(
            target=self._server.run, args=(self._sockets,), name="checkrein-console", daemon=True
        )
        self._thread.start()
        deadline = time.monotonic() + _START_SECONDS
        while not self._server.started:
            if not self._thread.is_alive() or time.monotonic() > deadline:
                raise StoreError("The console could not be started.", remedy="Run `checkrein doctor`.")
            time.sleep(0.005)
        return self.desk.port

    @property
    def address(self) -> str:
        return f"http://{LOOPBACK}:{self.desk.port}"

    def link(self) -> str:
        """A one-time address to sign in with: good for a minute, for one browser."""
        return f"{self.address}/signin/{self.desk.signin.link()}"

    def sign_in_file(self) -> str:
        """Path of a page that signs the browser in which opens it: as good as a link, and as long."""
        path = signin_file.new_path()
        secret = self.desk.signin.link(partial(signin_file.remove, path))
        signin_file.write(path, self.address, secret)
        return str(path)

    def _listen_on_path(self) -> list[socket.socket]:
        """A socket for SSH: the system does not show which process forwards a connection to a port."""
        path = console_socket_path()
        try:
            found = listen_on_path(path, _BACKLOG)
        except (OSError, StoreError):
            # The port is there all the same.
            return []
        self.socket = str(path)
        return [found]

    def stop(self) -> None:
        """End the open pages' lines, then listening."""
        server, self._server = self._server, None
        if server is None or self._thread is None:
            return
        self.desk.feed.stop()
        self.desk.streams.stop()
        server.should_exit = True
        self._thread.join(_STOP_SECONDS)
        if self._thread.is_alive():
            server.force_exit = True
            self._thread.join(_STOP_SECONDS)
        self.desk.check.join(_STOP_SECONDS)
        for each in self._sockets:
            each.close()
        if self.socket:
            with contextlib.suppress(OSError):
                Path(self.socket).unlink()


def _listening(port: int) -> socket.socket:
    found = listen_on_loopback((port, 0), _BACKLOG)
    if found is None:
        raise StoreError("No loopback port can be had for the console.", remedy="Run `checkrein doctor`.")
    return found
