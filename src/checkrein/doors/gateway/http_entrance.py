"""Who may come in over HTTP: looked at for every request before anything of it is read.

The HTTP front asks. A token says whose client it is; who stands behind a connection is found out only where
an answer would count as a person's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from checkrein.doors.gateway import http_headers
from checkrein.doors.gateway.http_answers import CLOSE, Pairs, busy, no
from checkrein.doors.gateway.http_exchange import Exchange
from checkrein.doors.gateway.http_headers import Found, Head
from checkrein.doors.gateway.http_line import Line
from checkrein.doors.gateway.messages import HEADER_MISMATCH
from checkrein.doors.gateway.tokens import Holder, Shown, Tokens
from checkrein.peers import Peer
from checkrein.tcp_peers import TcpPeers

PATH, HEALTH = "/mcp", "/health"
_CHALLENGE: Pairs = ((b"www-authenticate", b'Bearer realm="checkrein"'),)


class Entrance:
    """Raises Refused for whoever is not let in. `requests`: how many of one client may be under way."""

    def __init__(self, tokens: Tokens, requests: int, speaks: Callable[[Peer], bool] | None) -> None:
        """`speaks`: whether an answer given by that process counts as a person's; asked in another thread."""
        self._tokens, self._requests, self._speaks = tokens, requests, speaks
        self.tcp_peers = TcpPeers()
        self._port = 0
        self._names: frozenset[bytes] = frozenset()

    def open(self, port: int) -> None:
        """The port it belongs to; who asks for another is not let in."""
        self._port, self._names = port, http_headers.hosts(port)

    def let_in(self, exchange: Exchange, line: Line) -> Holder | None:
        """Who asks for something that takes a token; None for who asks how we are."""
        head = exchange.turn.head
        found, refusal = head.found()
        if refusal is not None:
            raise no(*refusal, code=HEADER_MISMATCH, headers=CLOSE)
        refusal = http_headers.foreign(found, self._names)
        if refusal is not None:
            raise no(*refusal)
        if head.path == HEALTH and head.method == "GET":
            return None
        if head.path != PATH:
            raise no(404, f"There is nothing here; the gateway is at {PATH}.")
        holder = self._known(head, found)
        exchange.holder, line.known = holder, True
        holder.under_way += 1
        wait = holder.bucket.take(exchange.began)
        if wait:
            raise busy("Too many requests.", wait)
        if holder.under_way > self._requests:
            raise busy("Too many requests are under way.", 1.0)
        return holder

    def _known(self, head: Head, found: Found) -> Holder:
        if head.shown is None:
            head.shown = Shown(found.get(b"authorization", b""))
        holder = self._tokens.holder_again(head.shown)
        if holder is None:
            why = "A token is needed; `checkrein clients add NAME` makes one."
            raise no(401, why, headers=_CHALLENGE)
        return holder

    async def is_person(self, line: Line | None) -> bool:
        """Whether this connection is a person's own client, and not something an agent runs."""
        if self._speaks is None or line is None:
            return self._speaks is None
        if line.speaks is None:
            line.speaks = await asyncio.to_thread(self._judge, line.address)
        return line.speaks

    def _judge(self, address: tuple[str, int]) -> bool:
        peer = self.tcp_peers.find(address, self._port)
        return peer is not None and self._speaks is not None and self._speaks(peer)
