"""Which program shows a token of the HTTP API, what it may do, and how much it may still ask this minute.

Tokens are compared by hash, in constant time, and never kept or said.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from checkrein.doors.gateway.tokens import Bucket
from checkrein.store import Store
from checkrein.store.api_tokens import API_TOKENS, ApiToken, note_use
from checkrein.store.tokens import is_token

PER_MINUTE = 600
# Wrong tokens of all programs together.
WRONG_PER_MINUTE = 60
_LONGEST = 256
_NOTED_SECONDS = 60.0


class Holders:
    """The living tokens, as the store has them; read again only when the table was written to."""

    def __init__(
        self, store: Store, clock: Callable[[], float], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._store, self._clock, self._monotonic = store, clock, monotonic
        self._lock = threading.Lock()
        self._living: dict[str, ApiToken] = {}
        self._buckets: dict[str, Bucket] = {}
        self._wrong = Bucket(WRONG_PER_MINUTE, monotonic())
        self._noted: dict[str, float] = {}
        self._seen: int | None = -1

    def holder(self, authorization: str) -> ApiToken | None:
        """Who shows this `Authorization` header; nobody unless the token is whole and not revoked."""
        scheme, _, rest = authorization.partition(" ")
        token = rest.strip().encode("utf-8", "replace").decode()
        if scheme.lower() != "bearer" or len(token) > _LONGEST:
            return None
        found = self._current().get(API_TOKENS.id_in(token))
        # INVARIANT: only a whole token that was not revoked lets anybody in.
        return found if found is not None and is_token(token, found.hash) else None

    def is_living(self, token_id: str) -> bool:
        return token_id in self._current()

    def take(self, token_id: str) -> float:
        """Count a request: 0 when it may go on, else the seconds to wait. No id for a wrong token."""
        now = self._monotonic()
        with self._lock:
            if not token_id:
                return self._wrong.take(now)
            return self._buckets.setdefault(token_id, Bucket(PER_MINUTE, now)).take(now)

    def note(self, token_id: str) -> None:
        """Keep when it was used last, to the minute."""
        now = self._clock()
        with self._lock:
            if now - self._noted.get(token_id, float("-inf")) < _NOTED_SECONDS:
                return
            self._noted[token_id] = now
        self._store.write(lambda tx: note_use(tx, token_id, now))

    def _current(self) -> dict[str, ApiToken]:
        seen = self._store.writes_to(API_TOKENS.table)
        with self._lock:
            if seen is None or seen != self._seen:
                self._living = {each.id: each for each in API_TOKENS.living(self._store)}
                self._buckets = {name: each for name, each in self._buckets.items() if name in self._living}
                self._seen = seen
            return self._living
