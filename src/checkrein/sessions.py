"""What a session did before: the effects that matter to later calls of it, so that a flow cannot be split up.

Kept in memory and read back from the ledger when a session is met again; `pipeline` asks for every call.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable

import msgspec

from checkrein.call import Effect, Verdict
from checkrein.ledger.entries import Entry
from checkrein.ledger.query import Filter, entries
from checkrein.store import Reader

SESSIONS = 512
LOOK_BACK = 2_000
# Sessions that were named and have not called yet.
_MOST_NEW = 4_096
# How many effects of a kind are worth remembering: one secret is as bad as ten.
_MOST = {"secret": 8, "download": 512, "write": 2_048}


class Sessions:
    """The delicate effects of recent sessions, by session id."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._known: dict[str, dict[str, dict[Effect, None]]] = {}
        self._told: dict[str, tuple[Effect, ...]] = {}
        self._new: set[str] = set()
        # INVARIANT: what one thread notes is there for the next call, whoever reads the same session back.
        self._lock = threading.Lock()

    def begin(self, session: str) -> None:
        """One that was given its name a moment ago, by us: there is nothing of it to read back."""
        with self._lock:
            if len(self._new) >= _MOST_NEW:
                # Of these everything is read, to find that there is nothing.
                self._new.clear()
            self._new.add(session)

    def history(self, session: str) -> tuple[Effect, ...]:
        """Earlier effects of the session; nothing for calls that name none."""
        if not session:
            return ()
        with self._lock:
            kept = self._of(session)
            told = self._told.get(session)
            if told is None:
                told = self._told[session] = tuple(effect for kind in kept.values() for effect in kind)
            return told

    def note(self, session: str, verdict: Verdict) -> None:
        """Remember what a call does that was not refused; one that was asked about may have run."""
        if not session or verdict.word == "deny" or not any(map(_kind, verdict.risk.effects)):
            return
        with self._lock:
            if _keep(self._of(session), verdict.risk.effects):
                self._told.pop(session, None)

    def _of(self, session: str) -> dict[str, dict[Effect, None]]:
        kept = self._known.pop(session, None)
        if kept is None:
            kept = {kind: {} for kind in _MOST}
            for entry in self._recorded(session):
                if entry.verdict != "deny":
                    _keep(kept, msgspec.convert(entry.effects, tuple[Effect, ...]))
            if len(self._known) >= SESSIONS:
                oldest = next(iter(self._known))
                self._known.pop(oldest)
                self._told.pop(oldest, None)
        self._known[session] = kept
        return kept

    def _recorded(self, session: str) -> Iterable[Entry]:
        # INVARIANT: a name is new once; whoever is met again later is read back.
        if session in self._new:
            self._new.discard(session)
            return ()
        return entries(self._reader, Filter(session=session), LOOK_BACK)


def _keep(kept: dict[str, dict[Effect, None]], effects: Iterable[Effect]) -> bool:
    """Add what is worth remembering; whether there was anything new."""
    before = sum(map(len, kept.values()))
    for effect in effects:
        kind = _kind(effect)
        # INVARIANT: many writes never push out a secret that was read.
        if kind and (len(kept[kind]) < _MOST[kind] or effect in kept[kind]):
            kept[kind][effect] = None
    return sum(map(len, kept.values())) != before


def _kind(effect: Effect) -> str:
    """What it is remembered as; nothing where it does not matter later."""
    kind = "secret" if effect.scope == "secret" else effect.kind
    return kind if kind in _MOST else ""
