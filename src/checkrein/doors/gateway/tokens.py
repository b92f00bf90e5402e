"""Whose token a request over HTTP shows, and how much its holder may still send this minute.

The HTTP front asks for every request. Tokens are compared by hash, in constant time, and never kept or said.
"""

from __future__ import annotations

from collections.abc import Callable

from checkrein.store import Reader
from checkrein.store.gateway_clients import CLIENTS, GatewayClient
from checkrein.store.tokens import is_token

_LONGEST = 256


class Bucket:
    """A minute's worth of requests, filling up again as time passes."""

    __slots__ = ("_at", "_left", "_most", "_rate")

    def __init__(self, per_minute: int, now: float) -> None:
        self._most, self._rate, self._left, self._at = (
            float(per_minute),
            per_minute / 60.0,
            float(per_minute),
            now,
        )

    def take(self, now: float) -> float:
        """Take one: 0 when there was one, else the seconds until there is."""
        left = min(self._most, self._left + (now - self._at) * self._rate)
        self._at = now
        if left < 1.0:
            self._left = left
            return (1.0 - left) / self._rate
        self._left = left - 1.0
        return 0.0


class Holder:
    """A client with a token that holds now."""

    __slots__ = ("_hash", "bucket", "held", "id", "name", "under_way")

    def __init__(self, client: GatewayClient, per_minute: int, now: float) -> None:
        self.id, self.name, self._hash = client.id, client.name, client.hash
        self.bucket, self.under_way = Bucket(per_minute, now), 0
        # Bytes of its requests under way.
        self.held = 0

    def shows(self, token: str) -> bool:
        return is_token(token, self._hash)


class Shown:
    """An `Authorization` header that comes again and again: who showed it, until the table is written to."""

    __slots__ = ("authorization", "holder", "seen")

    def __init__(self, authorization: bytes) -> None:
        self.authorization = authorization
        self.holder: Holder | None = None
        self.seen: int | None = None


class Tokens:
    """The living clients, as the store has them; read again only when the table was written to."""

    def __init__(self, store: Reader, per_minute: int, clock: Callable[[], float]) -> None:
        self._store, self._per_minute, self._clock = store, per_minute, clock
        self._holders: dict[str, Holder] = {}
        self._seen: int | None = -1

    def exist(self) -> bool:
        """Whether anybody could come in at all."""
        return bool(self._current())

    def holder(self, authorization: bytes) -> Holder | None:
        """Who shows this `Authorization` header; nobody unless the token is whole and not revoked."""
        scheme, _, rest = authorization.partition(b" ")
        if scheme.lower() != b"bearer" or len(rest) > _LONGEST:
            return None
        token = rest.strip().decode("latin-1")
        found = self._current().get(CLIENTS.id_in(token))
        # INVARIANT: only a whole token that was not revoked lets anybody in.
        return found if found is not None and found.shows(token) else None

    def holder_again(self, shown: Shown) -> Holder | None:
        """As `holder`; the hash is made again only after the table was written to."""
        seen = self._store.writes_to(CLIENTS.table)
        # INVARIANT: what was found before holds while nobody wrote, so a revoked token is none at once.
        if seen is None or seen != shown.seen:
            shown.holder, shown.seen = self.holder(shown.authorization), seen
        return shown.holder

    def _current(self) -> dict[str, Holder]:
        seen = self._store.writes_to(CLIENTS.table)
        if seen is None or seen != self._seen:
            self._holders = self._read()
            self._seen = seen
        return self._holders

    def _read(self) -> dict[str, Holder]:
        now = self._clock()
        # Whoever was known keeps what is left of its minute.
        return {
            each.id: self._holders.get(each.id) or Holder(each, self._per_minute, now)
            for each in CLIENTS.living(self._store)
        }
