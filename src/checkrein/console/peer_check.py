"""Decides whether the process at the other end of a connection may use the console's port.

The guard asks for every request: pages, forms, open lines, signing in, static files and `/api/v1`. A secret
is looked at only afterwards, so one that was read in a command line or a file opens nothing for its reader.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import msgspec

from checkrein import peers
from checkrein.agents import Agents
from checkrein.peers import Peer, Process

Address = tuple[str, int]
# The process whose connection from this address leads to our port.
FindPeer = Callable[[Address, int], Peer | None]
_UNKNOWN = "its process cannot be found"


class Connection:
    """One connection from accept to close; what was found at its other end is kept here."""

    def __init__(self, address: Address | None, peer: Peer | None = None) -> None:
        """`peer`: who connected, where the kernel says so itself (a Unix socket)."""
        self.address, self.peer = address, peer
        self.process = peers.process(peer.pid) if peer is not None else None


class PeerVerdict(msgspec.Struct, frozen=True):
    """`refusal` says why a request is not served; it is empty for a person's own program."""

    peer: Peer
    refusal: str = ""


class PeerCheck:
    """Safe to use from several threads; takes some milliseconds the first time a connection is seen."""

    def __init__(self, agents: Agents, find: FindPeer) -> None:
        self._agents, self._find = agents, find

    def judge(self, connection: Connection, port: int) -> PeerVerdict:
        """Only the search is kept for the connection: who is an agent is asked again for every request."""
        # INVARIANT: a process that is unknown, another user's or run by a gated agent is served nothing.
        peer = self._peer(connection, port)
        if peer is None:
            return PeerVerdict(Peer(0, -1), _UNKNOWN)
        if peer.uid != os.geteuid():
            return PeerVerdict(peer, "it is another user's")
        return PeerVerdict(peer, self._agents.not_a_person(peer))

    def _peer(self, connection: Connection, port: int) -> Peer | None:
        # INVARIANT: the process found for a connection counts for that connection only, while it lives.
        if connection.peer is not None and _lives(connection.process):
            return connection.peer
        if connection.address is None:
            return None
        found = self._find(connection.address, port)
        connection.process = peers.process(found.pid) if found is not None else None
        connection.peer = found
        return found


def _lives(process: Process | None) -> bool:
    return process is not None and peers.is_alive(process.pid, process.started)
