"""What a person decided about each version of each definition, kept in the store and told to the ledger.

The catalogue asks and tells. INVARIANT: only a row that says so, word for word, makes a version accepted.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from checkrein.doors.gateway.definitions import Definition
from checkrein.errors import CheckreinError
from checkrein.ledger.record import Ledger
from checkrein.store import Store, Transaction
from checkrein.store.pins import ACCEPTED, REFUSED, SEEN, UNREADABLE, Pin, decide_pin, pins_of, see_pins

State = Literal["new", "changed", "refused", "accepted", "unreadable"]
Word = Literal["accepted", "refused"]
# A server that shows something new more often than this in an hour is not written about any more.
MOST_NOTED = 120
_AN_HOUR = 3600.0
# Of one server's versions, all that were ever seen together; what is beyond is hidden without being kept.
MOST_KEPT = 64 << 20
_Known = dict[tuple[str, str], dict[str, Pin]]


class Pins:
    """Pins of every server met so far."""

    def __init__(self, store: Store, ledger: Ledger, clock: Callable[[], float]) -> None:
        self._store, self._ledger, self._clock = store, ledger, clock
        self._known: dict[str, _Known | None] = {}
        self._noted: dict[str, deque[float]] = {}

    def load(self, server: str) -> None:
        """Read what is kept about a server; what cannot be read accepts nothing."""
        self._known[server] = None
        try:
            pins = pins_of(self._store, server)
        except CheckreinError:
            return
        known: _Known = {}
        for pin in pins:
            known.setdefault((pin.kind, pin.name), {})[pin.hash] = pin
        self._known[server] = known

    def is_read(self, server: str) -> bool:
        return self._known.get(server) is not None

    def state(self, definition: Definition) -> State:
        known = self._known.get(definition.server)
        if known is None:
            return "unreadable"
        versions = known.get((definition.kind, definition.name), {})
        pin = versions.get(definition.hash)
        if pin is not None and pin.state == ACCEPTED:
            return "accepted"
        if pin is not None and pin.state == REFUSED:
            return "refused"
        if pin is not None and pin.state == UNREADABLE:
            return "unreadable"
        return "changed" if any(each.decided_at is not None for each in versions.values()) else "new"

    def first_accepted(self, definition: Definition) -> float | None:
        """When a person first accepted any version of it that still stands."""
        times = [pin.decided_at for pin in self._versions(definition) if pin.state == ACCEPTED]
        return min((at for at in times if at is not None), default=None)

    def before(self, definition: Definition) -> Pin | None:
        """The version a person decided about last, accepted ones before refused ones."""
        decided = [
            pin
            for pin in self._versions(definition)
            if pin.state in (ACCEPTED, REFUSED) and pin.hash != definition.hash
        ]
        return max(decided, key=lambda pin: (pin.state == ACCEPTED, pin.decided_at or 0.0), default=None)

    def pin(self, definition: Definition) -> Pin | None:
        return next((pin for pin in self._versions(definition) if pin.hash == definition.hash), None)

    def see(self, server: str, definitions: Sequence[Definition]) -> None:
        """Keep and record the versions never seen before. They are hidden whether or not that succeeds."""
        known = self._known.get(server)
        if known is None:
            return
        unseen = [each for each in definitions if each.hash not in known.get((each.kind, each.name), {})]
        if not unseen or not self._has_room(known, unseen) or not self._may_note(server):
            return
        pins = [self._made(each, SEEN, None, "") for each in unseen]

        def seen(tx: Transaction) -> None:
            if fresh := see_pins(tx, pins):
                self._ledger.append(tx, "definitions_seen", _told(server, fresh, ""))

        try:
            self._store.write(seen, durable=True)
        except CheckreinError:
            return
        self.load(server)

    def decide(self, server: str, definitions: Sequence[Definition], word: Word, actor: str) -> None:
        """A person's word and its record, as one; raises when it cannot be kept, and then nothing changed."""
        pins = [self._made(each, word, self._clock(), actor) for each in definitions]

        def decided(tx: Transaction) -> None:
            for pin in pins:
                decide_pin(tx, pin)
            self._ledger.append(tx, f"definitions_{word}", _told(server, pins, actor))

        self._store.write(decided, durable=True)
        self.load(server)

    def kept(self, server: str, kind: str, name: str, hash: str) -> Definition | None:  # noqa: A002
        """A version that was seen once, so that it can be refused although nobody offers it now."""
        pin = (self._known.get(server) or {}).get((kind, name), {}).get(hash)
        return None if pin is None else Definition(server, kind, name, hash, pin.definition)  # type: ignore[arg-type]

    def _versions(self, definition: Definition) -> Iterable[Pin]:
        known = self._known.get(definition.server) or {}
        return known.get((definition.kind, definition.name), {}).values()

    def _made(self, definition: Definition, state: str, at: float | None, actor: str) -> Pin:
        kept = self.pin(definition)
        return Pin(
            definition.server,
            definition.kind,
            definition.name,
            definition.hash,
            definition.text,
            state,
            kept.seen_at if kept else self._clock(),
            at,
            actor,
        )

    def _has_room(self, known: _Known, unseen: Sequence[Definition]) -> bool:
        """INVARIANT: a server that never shows the same twice fills neither the disk nor the memory."""
        kept = sum(len(pin.definition) for versions in known.values() for pin in versions.values())
        return kept + sum(len(each.text) for each in unseen) <= MOST_KEPT

    def _may_note(self, server: str) -> bool:
        noted, now = self._noted.setdefault(server, deque(maxlen=MOST_NOTED)), self._clock()
        if len(noted) == MOST_NOTED and now - noted[0] < _AN_HOUR:
            return False
        noted.append(now)
        return True


def _told(server: str, pins: Sequence[Pin], actor: str) -> dict[str, object]:
    named = [{"kind": pin.kind, "name": pin.name, "hash": pin.hash} for pin in pins]
    return {"server": server, "actor": actor, "definitions": named}
