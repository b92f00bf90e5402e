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

from checkrein.agents import Agents
from checkrein.authority import Asked, perform
from checkrein.console.checking import Check
from checkrein.console.feed import Feed
from checkrein.console.signin import SignIn
from checkrein.errors import CheckreinError, InputError
from checkrein.peers import Peer
from checkrein.pipeline import Pipeline
from checkrein.store import Store

if TYPE_CHECKING:
    from checkrein.authority.upstream import Gateway

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
    ) -> None:
        self.pipeline = pipeline
        self.signin = SignIn()
        self.feed = Feed(pipeline.store)
        self.check = Check(pipeline)
        self.port = 0
        self._lock = threading.Lock()
        self._refused: dict[str, float] = {}
        self.failures: deque[str] = deque(maxlen=_MOST_FAILURES)
        self._asked = Asked(pipeline, agents, Peer(0, os.geteuid()), stop, signed_in=True, gateway=gateway)

    @property
    def store(self) -> Store:
        return self.pipeline.store

    @property
    def actor(self) -> str:
        return self._asked.actor

    def now(self) -> float:
        return self.pipeline.clock()

    def refused(self, why: str) -> None:
        """Record that somebody tried what only a signed-in person may do; a flood of it is recorded once."""
        now = time.monotonic()
        with self._lock:
            last = self._refused.get(why)
            if last is not None and now - last < _REFUSED_SECONDS:
                return
            self._refused[why] = now
        with contextlib.suppress(CheckreinError):
            self._asked.agents.refused("console", why)

    def failed(self, error: Exception) -> None:
        """A page failed through no fault of its reader; kept for the health page."""
        where = traceback.extract_tb(error.__traceback__)[-1:]
        place = "".join(f" ({Path(each.filename).name}:{each.lineno})" for each in where)
        self.failures.append(f"{type(error).__name__}: {str(error)[:200]}{place}")

    def hosts(self) -> frozenset[str]:
        return frozenset({f"127.0.0.1:{self.port}", f"localhost:{self.port}"})

    def connected(self) -> list[dict[str, Any]]:
        """The MCP clients at the gateway now."""
        return self._asked.gateway().clients() if self._asked.gateway is not None else []

    def ask(self, verb: str, **params: Any) -> Any:
        """Have the authority do something, or raise why not."""
        return perform(self._asked, verb, params)

    def offered(self, verb: str, **params: Any) -> Any:
        """The same, but None where this server does not know the request."""
        try:
            return self.ask(verb, **params)
        except InputError as error:
            if error.message.startswith(_UNKNOWN):
                return None
            raise
