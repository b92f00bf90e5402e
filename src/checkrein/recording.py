"""Puts verdicts on the record, and what follows them: each in one transaction with all that it changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from checkrein import earning
from checkrein.asking import Asking
from checkrein.core import lifecycle
from checkrein.core.decision import DecisionRequest, Judged, UsedUp, on_the_disk
from checkrein.core.entry_secrets import EntrySecrets
from checkrein.core.lifecycle import Event
from checkrein.errors import NotFoundError
from checkrein.ledger import events
from checkrein.ledger.entries import Entry
from checkrein.ledger.mirror import Mirror
from checkrein.ledger.query import get_entry
from checkrein.ledger.record import Ledger
from checkrein.ledger.terms import terms_of
from checkrein.sessions import Sessions
from checkrein.store import Store, Transaction
from checkrein.store.rules import use_rule

# What the record says of a call that policy would have asked about.
NOBODY = "nobody could be asked"
FollowUp = Callable[[Transaction, Entry], dict[str, Any] | None]


class Recording:
    """The way of verdicts to the ledger."""

    def __init__(
        self,
        store: Store,
        ledger: Ledger,
        mirror: Mirror,
        asking: Asking,
        sessions: Sessions,
        secrets: EntrySecrets,
    ) -> None:
        self._store, self._ledger, self._mirror = store, ledger, mirror
        self._asking, self._sessions, self._secrets = asking, sessions, secrets

    def settle(self, entry: str, request: DecisionRequest, judged: Judged, asking: bool) -> None:
        """Commit a verdict; only then it may leave."""
        verdict = judged.verdict
        # INVARIANT: a verdict leaves only after its record is committed.
        self._store.write(
            lambda tx: self.record(tx, entry, request, judged, asking),
            durable=on_the_disk(verdict),
            alone=judged.alone,
        )
        self._sessions.note(request.call.session, verdict)

    def record(
        self, tx: Transaction, entry: str, request: DecisionRequest, judged: Judged, asking: bool
    ) -> None:
        """A verdict and all that it uses up; raises UsedUp where another call was quicker."""
        call, verdict, force = request.call, judged.verdict, judged.force
        if verdict.rule in force.counted and not use_rule(tx, verdict.rule or ""):
            raise UsedUp
        # INVARIANT: a yes that counts its uses is used once for every call it lets pass.
        if judged.consent and not self._asking.use(tx, judged.consent):
            raise UsedUp
        if judged.book.bad:
            earning.set_aside(tx, self._ledger, call.project, judged.book.bad)
        data, secrets = events.recorded(call, verdict, force.redactor, force.settings.retention.input_bytes)
        self._secrets.keep(entry, secrets)
        self._ledger.append(tx, "decided", data, entry=entry, terms=terms_of(data))
        if verdict.word == "ask" and not asking:
            # INVARIANT: a call that nobody can be asked about is over.
            said = {"answer": "cancelled", "actor": "", "channel": "none", "message": NOBODY}
            self._ledger.append(tx, "answered", said, entry=entry)
        elif verdict.word == "ask" and not self._asking.ask(
            tx, entry, call, request.phase, force.patience(call.door)
        ):
            raise UsedUp
        if verdict.word == "deny" or (verdict.word == "ask" and not asking):
            self._mirror.follow(tx)

    def follow_up(self, entry: str, event: Event, data_for: FollowUp, *, durable: bool = False) -> bool:
        """Record what came after a verdict, and say whether it was recorded: not every move is in the table.

        `data_for` gives the record, or None where somebody was quicker.
        """
        recorded = False

        def follow(tx: Transaction) -> None:
            nonlocal recorded
            recorded = False
            found = get_entry(tx, entry)
            if found is None:
                raise NotFoundError(f"There is no call {entry!r}.")
            data = data_for(tx, found) if lifecycle.may(found, event) else None
            if data is not None:
                self._ledger.append(tx, lifecycle.RECORD_OF[event], data, entry=entry)
                self._mirror.follow(tx)
                recorded = True

        self._store.write(follow, durable=durable)
        return recorded
