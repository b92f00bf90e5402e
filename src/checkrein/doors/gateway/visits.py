"""Sessions of the gateway's clients: the questions each has left, and whose untrusted words it has read.

The hub opens and closes them. What matters later is stored; a client that comes back after a restart goes on.
"""

from __future__ import annotations

import asyncio
import contextlib
import secrets
import time
from collections import defaultdict
from concurrent.futures import Future

from checkrein.call import digest
from checkrein.doors.gateway.clients import Visit
from checkrein.errors import CheckreinError
from checkrein.pipeline import Pipeline
from checkrein.store import gateway_state as stored
from checkrein.store.gateway_state import KeptSession

# Requests of one stateless client with no longer pause than this belong to one session.
SESSION_PAUSE = 3_600.0
# What was left by sessions that never ended goes after this.
_LEFT_SECONDS = 7 * 86_400.0
_MOST_VISITS = 4_096


class Visits:
    """Every session that is open. Lives on the gateway's loop."""

    def __init__(self, pipeline: Pipeline) -> None:
        self._pipeline, self._store = pipeline, pipeline.store
        self._by_owner: dict[str, Visit] = {}
        self._began, self._ending = pipeline.clock(), False
        old = self._began - _LEFT_SECONDS
        self._store.submit(lambda tx: stored.drop_old_sessions(tx, old))
        # Sessions of an earlier server, by who was in them.
        self._before: dict[str, list[KeptSession]] = defaultdict(list)
        for each in stored.kept_sessions(self._store):
            self._before[each.reader].append(each)

    def open(self, client: str, reader: str) -> Visit:
        """The session of a connection that is new."""
        visit = Visit(f"mcp-{digest([client])[:16]}", reader)
        self._pipeline.sessions.begin(visit.session)
        return self._as_before(visit)

    def of_owner(self, owner: str) -> Visit:
        """The session that a stateless client's requests belong to."""
        now = time.monotonic()
        found = self._by_owner.get(owner)
        if found is None or now - found.last_used > SESSION_PAUSE:
            if found is not None:
                self.close(found)
            while len(self._by_owner) >= _MOST_VISITS:
                del self._by_owner[next(iter(self._by_owner))]
            found = self._by_owner[owner] = self._as_before(Visit(f"mcp-{secrets.token_hex(8)}", owner))
            self._pipeline.sessions.begin(found.session)
        found.last_used = now
        return found

    def _as_before(self, visit: Visit) -> Visit:
        before = self._before.get(visit.reader, [])
        # An answer to what an earlier session asked is for whoever was in it.
        visit.earlier = frozenset(each.session for each in before)
        tainted = [each.tainted_by for each in before if each.tainted_by]
        # INVARIANT: a reader of untrusted words is still one after a restart.
        # An agent that comes back has lost its session and not what it read, unless it was away for long.
        if tainted and self._pipeline.clock() - self._began < SESSION_PAUSE:
            visit.tainted_by = tainted[-1]
            self._keep(visit)
        return visit

    async def taint(self, visit: Visit, server: str) -> None:
        """The session has read what this server returned; stored before anybody hears more."""
        if visit.tainted_by != server:
            visit.tainted_by, visit.kept = server, False
        await self.keep(visit)

    async def keep(self, visit: Visit) -> None:
        """Store that this session matters later: it is tainted, or has left a question."""
        if not visit.kept:
            # Where the store cannot take it, whatever comes next tries again.
            with contextlib.suppress(CheckreinError):
                await asyncio.shield(asyncio.wrap_future(self._keep(visit)))

    def _keep(self, visit: Visit) -> Future[None]:
        kept, now = KeptSession(visit.session, visit.reader, visit.tainted_by), self._pipeline.clock()

        def noted(done: Future[None]) -> None:
            visit.kept = (
                not done.cancelled() and done.exception() is None and visit.tainted_by == kept.tainted_by
            )

        written = self._store.submit(lambda tx: stored.put_session(tx, kept, now))
        written.add_done_callback(noted)
        return written

    def close(self, visit: Visit) -> None:
        """Its client left, and does not come back to this session."""
        if not self._ending and (visit.tainted_by or visit.kept):
            self._store.submit(lambda tx: stored.drop_session(tx, visit.session))

    def end(self) -> None:
        """This server ends; what its clients left and read is for the next one."""
        self._ending = True

    def turn_out(self, owner: str) -> None:
        """The owner may not come in any more."""
        if (visit := self._by_owner.pop(owner, None)) is not None:
            self.close(visit)
