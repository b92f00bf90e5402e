"""Puts verdicts on the record, and what follows them: each in one transaction with all that it changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from checkrein import earning
from checkrein.approval.broker import Broker
from checkrein.asking import Asking
from checkrein.call import ToolCall
from checkrein.errors import NotFoundError
from checkrein.judged import Judged, UsedUp, on_the_disk
from checkrein.ledger import events
from checkrein.ledger.entries import Entry, fold
from checkrein.ledger.mirror import Mirror
from checkrein.ledger.record import Ledger
from checkrein.ledger.terms import terms_of
from checkrein.sessions import Sessions
from checkrein.store import Store, Transaction, records
from checkrein.store.rules import use_rule

FollowUp = Callable[[Transaction, Entry], dict[str, Any] | None]


class Recording:
    """The way of verdicts to the ledger."""

    def __init__(
        self,
        store: Store,
        ledger: Ledger,
        mirror: Mirror,
        asking: Asking,
        broker: Broker,
        sessions: Sessions,
    ) -> None:
        self._store, self._ledger, self._mirror = store, ledger, mirror
        self._asking, self._broker, self._sessions = asking, broker, sessions

    def settle(self, entry: str, call: ToolCall, judged: Judged, asking: bool) -> None:
        """Commit a verdict; only then it may leave."""
        verdict = judged.verdict
        # INVARIANT: a verdict leaves only after its record is committed.
        self._store.write(
            lambda tx: self.record(tx, entry, call, judged, asking),
            durable=on_the_disk(verdict),
            alone=judged.alone,
        )
        self._sessions.note(call.session, verdict)
        if verdict.word == "ask" and asking:
            self._broker.keep(entry, call)

    def record(self, tx: Transaction, entry: str, call: ToolCall, judged: Judged, asking: bool) -> None:
        """A verdict and all that it uses up; raises UsedUp where another call was quicker."""
        verdict, force = judged.verdict, judged.force
        if verdict.rule in force.counted and not use_rule(tx, verdict.rule or ""):
            raise UsedUp
        # INVARIANT: a yes that counts its uses is used once for every call it lets pass.
        if judged.consent and not self._asking.use(tx, judged.consent):
            raise UsedUp
        if judged.book.bad:
            earning.set_aside(tx, self._ledger, call.project, judged.book.bad)
        data = events.decided(call, verdict, force.redactor, force.settings.retention.input_bytes)
        self._ledger.append(tx, "decided", data, entry=entry, terms=terms_of(data))
        if (
            verdict.word == "ask"
            and asking
            and not self._asking.ask(tx, entry, call, force.patience(call.door))
        ):
            raise UsedUp
        if verdict.word == "deny":
            self._mirror.follow(tx)

    def follow_up(self, entry: str, kind: str, data_for: FollowUp, *, durable: bool = False) -> None:
        """What came after a verdict; `data_for` says it, or nothing where there is nothing to say."""

        def follow(tx: Transaction) -> None:
            found = fold(records.of_entries(tx, [entry]))
            if not found:
                raise NotFoundError(f"There is no call {entry!r}.")
            data = data_for(tx, found[0])
            if data is not None:
                self._ledger.append(tx, kind, data, entry=entry)
                self._mirror.follow(tx)

        self._store.write(follow, durable=durable)
