"""What every page stands on: the pipeline to read from, and the authority to ask, as the person signed in."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from checkrein.agents import Agents
from checkrein.authority import Asked, perform
from checkrein.console.api.holders import Holders
from checkrein.console.api.streams import Streams
from checkrein.console.checking import Check
from checkrein.console.feed import Feed
from checkrein.console.peer_check import Connection, FindPeer, PeerCheck, PeerVerdict
from checkrein.console.signin import SignIn
from checkrein.errors import CheckreinError, InputError
from checkrein.peers import Peer
from checkrein.pipeline import Pipeline
from checkrein.store import Store
from checkrein.tcp_peers import TcpPeers

if TYPE_CHECKING:
    from checkrein.authority.chat import Chat
    from checkrein.authority.gateway import Gateway

_UNKNOWN = "There is no request"
_MOST_FAILURES = 20
_REFUSED_SECONDS = 60.0


class Desk:
    """One console's parts. Only signed-in pages get to `ask`."""

    def __init__(
        self,
        pipeline: Pipeline,
        agents: Agents,
        stop: Callable[[], None] | None,
        gateway: Callable[[], Gateway] | None = None,
        chat: Callable[[], Chat] | None = None,
        find_peer: FindPeer | None = None,
    ) -> None:
        self.pipeline = pipeline
        self.signin = SignIn()
        self.holders = Holders(pipeline.store, pipeline.clock)
        self._peer_check = PeerCheck(agents, find_peer or TcpPeers().find)
        self.streams = Streams()
        self.feed = Feed(pipeline.store)
        self.check = Check(pipeline)
        self.port = 0
        self._lock = threading.Lock()
        self._refused: dict[str, float] = {}
        self.failures: deque[str] = deque(maxlen=_MOST_FAILURES)
        # Whoever signed in.
        self.asked = Asked(
            pipeline, agents, Peer(0, os.geteuid()), stop, signed_in=True, gateway=gateway, chat=chat
        )

    @property
    def store(self) -> Store:
        return self.pipeline.store

    @property
    def actor(self) -> str:
        return self.asked.actor

    def now(self) -> float:
        return self.pipeline.clock()

    def judge(self, connection: Connection) -> PeerVerdict:
        """Whether the process at the other end may use this port at all."""
        return self._peer_check.judge(connection, self.port)

    def turned_away(self, shown: list[str], why: str) -> None:
        """Record a request that was not served for its process's sake, and whose token it showed, if any."""
        with contextlib.suppress(CheckreinError):
            token = self.holders.holder(shown[0]) if len(shown) == 1 else None
            what = f"a program showed the token {token.name}" if token else "a request came"
            self.refused(f"{what}, and {why}")

    def refused(self, why: str) -> None:
        """Record that somebody tried what only a signed-in person may do; a flood of it is recorded once."""
        now = time.monotonic()
        with self._lock:
            last = self._refused.get(why)
            if last is not None and now - last < _REFUSED_SECONDS:
                return
            self._refused[why] = now
        with contextlib.suppress(CheckreinError):
            self.asked.agents.refused("console", why)

    def failed(self, error: Exception) -> None:
        """A page failed through no fault of its reader; kept for the health page."""
        where = traceback.extract_tb(error.__traceback__)[-1:]
        place = "".join(f" ({Path(each.filename).name}:{each.lineno})" for each in where)
        self.failures.append(f"{type(error).__name__}: {str(error)[:200]}{place}")

    def hosts(self) -> frozenset[str]:
        return frozenset({f"127.0.0.1:{self.port}", f"localhost:{self.port}"})

    def connected(self) -> list[dict[str, Any]]:
        """The MCP clients at the gateway now."""
        return self.asked.gateway().clients() if self.asked.gateway is not None else []

    def asked_by(self, peer: Peer, token: str) -> Asked:
        """What a program asks that shows a token: as the process it is, not as somebody who signed in."""
        return msgspec.structs.replace(self.asked, peer=peer, token=token, signed_in=False)

    def ask(self, verb: str, **params: Any) -> Any:
        """Have the authority do something, or raise why not."""
        return perform(self.asked, verb, params)

    def offered(self, verb: str, **params: Any) -> Any:
        """The same, but None where this server does not know the request."""
        try:
            return self.ask(verb, **params)
        except InputError as error:
            if error.message.startswith(_UNKNOWN):
                return None
            raise
