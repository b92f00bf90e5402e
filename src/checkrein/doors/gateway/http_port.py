"""The gateway's port on loopback: open while a client has a token for it, and not a moment without.

The gateway looks after it. What comes in there is served by `front_http`, loaded when it is first needed.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from checkrein.agents import Agents
from checkrein.errors import CheckreinError
from checkrein.peers import Peer
from checkrein.pipeline import Pipeline

if TYPE_CHECKING:
    from checkrein.doors.gateway.front_http import HttpFront
    from checkrein.doors.gateway.hub import Hub
    from checkrein.doors.gateway.tokens import Tokens


class HttpPort:
    """Lives on the gateway's loop; `port` and `busy` may be read from any thread."""

    def __init__(self, pipeline: Pipeline, agents: Agents, say: Callable[[str], None]) -> None:
        self._pipeline, self._agents, self._say = pipeline, agents, say
        self._front: HttpFront | None = None
        self._tokens: Tokens | None = None

    @property
    def port(self) -> int | None:
        """None while it is closed."""
        front = self._front
        return front.port if front is not None else None

    @property
    def busy(self) -> int:
        front = self._front
        return front.busy if front is not None else 0

    async def look(self, hub: Hub) -> None:
        """Open or close it as it should be now."""
        from checkrein.doors.gateway.tokens import Tokens

        settings = self._pipeline.policies.of("", "gateway").settings.gateway
        if self._tokens is None:
            self._tokens = Tokens(self._pipeline.store, settings.calls_per_minute, time.monotonic)
        wanted = bool(settings.http_port) and self._tokens.exist()
        if wanted and self._front is None:
            await self._open(hub, self._tokens, settings.http_port)
        elif not wanted:
            await self.close()

    async def _open(self, hub: Hub, tokens: Tokens, port: int) -> None:
        from checkrein.doors.gateway.front_http import HttpFront

        front = HttpFront(hub, tokens, self._say, speaks=self._speaks)
        try:
            found = await front.open(port)
        except (OSError, CheckreinError) as error:
            self._say(f"/mcp cannot be opened: {error}")
            return
        self._front = front
        self._say(f"/mcp on 127.0.0.1:{found}")

    def _speaks(self, peer: Peer) -> bool:
        return not self._agents.run_by_agent(peer, itself=True)

    def revoke(self, owner: str) -> None:
        """What the client has open ends at once."""
        if self._front is not None:
            self._front.revoke(owner)

    async def close(self) -> None:
        front, self._front = self._front, None
        if front is not None:
            await front.close()
