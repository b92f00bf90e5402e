"""What was learned about servers while they ran. A fact holds for a fingerprint; another server's is none."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

import msgspec

from checkrein.store import Store, Transaction

Clock = Callable[[], float]


class _Value(msgspec.Struct, frozen=True):
    fingerprint: str
    words: list[str]


class Facts:
    """Facts as lists of words, by server and name."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store, self._clock = store, clock

    def get(self, server: str, fact: str, fingerprint: str) -> frozenset[str]:
        """What is known; nothing when it was learned of another server by this name, or cannot be read."""
        rows = self._store.query(
            "SELECT value FROM server_fact WHERE server = ? AND fact = ?", (server, fact)
        )
        try:
            found = msgspec.json.decode(rows[0][0], type=_Value) if rows else None
        except msgspec.MsgspecError:
            return frozenset()
        return frozenset(found.words) if found and found.fingerprint == fingerprint else frozenset()

    def put(self, server: str, fact: str, fingerprint: str, words: frozenset[str]) -> Future[None]:
        """Keep a fact; whoever calls need not wait."""
        value = msgspec.json.encode(_Value(fingerprint, sorted(words))).decode()
        now = self._clock()

        def work(tx: Transaction) -> None:
            tx.execute(
                "INSERT INTO server_fact (server, fact, value, learned_at) VALUES (?, ?, ?, ?) "
                "ON CONFLICT (server, fact) DO UPDATE SET value = excluded.value, "
                "learned_at = excluded.learned_at",
                (server, fact, value, now),
            )

        return self._store.submit(work)

    def forget(self, server: str) -> Future[int]:
        """Everything about a server by this name."""
        return self._store.submit(
            lambda tx: tx.execute("DELETE FROM server_fact WHERE server = ?", (server,))
        )
