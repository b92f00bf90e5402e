"""Puts outcomes on the record and learns from them. The pipeline hands over one, or a few at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from checkrein import earning
from checkrein.call import OUTCOMES
from checkrein.core import lifecycle
from checkrein.core.entry_secrets import EntrySecrets
from checkrein.core.lifecycle import Event, State
from checkrein.errors import InputError, NotFoundError
from checkrein.ledger import events
from checkrein.ledger.entries import Entry
from checkrein.ledger.mirror import Mirror
from checkrein.ledger.query import get_entry
from checkrein.ledger.record import Ledger
from checkrein.policies import InForce, Policies
from checkrein.store import Transaction
from checkrein.store.questions import end_question


class About(msgspec.Struct, frozen=True):
    """What an outcome is about: a call that has none yet."""

    project: str
    session: str
    domains: tuple[str, ...]
    began: float
    ran: bool = True


class Outcome(msgspec.Struct, frozen=True):
    """What became of a call; `about` spares looking it up, for who decided it and reports once."""

    entry: str
    outcome: str
    output: Any = None
    evidence: str = ""
    about: About | None = None
    # Whether a success raises trust.
    earns: bool = True
    # The call's arguments, where a report repeats them.
    arguments: dict[str, Any] | None = None


class Finishing:
    """Outcomes, each in the transaction that learns from it. Reported twice, one counts once."""

    def __init__(
        self,
        policies: Policies,
        ledger: Ledger,
        mirror: Mirror,
        clock: Callable[[], float],
        secrets: EntrySecrets,
    ) -> None:
        self._policies, self._ledger, self._mirror, self._clock = policies, ledger, mirror, clock
        self._limit = earning.CreditLimit()
        self._secrets = secrets

    def work(self, outcomes: Sequence[Outcome], *, missing: bool) -> Callable[[Transaction], None]:
        """What to do in a transaction; `missing`: whether a call that is not on the record is an error."""
        for each in outcomes:
            known(each.outcome, OUTCOMES, "outcome")

        def finish(tx: Transaction) -> None:
            lessons, forces = earning.Lessons(tx, self._limit), dict[str, InForce]()
            for each in outcomes:
                about = each.about or self._unfinished(tx, each.entry, missing=missing)
                if about is not None:
                    if about.project not in forces:
                        forces[about.project] = self._policies.of(about.project)
                    self._finish(tx, about, each, lessons, forces[about.project])
            lessons.keep()
            self._mirror.follow(tx, len(outcomes))

        return finish

    def dropped(self, found: Entry, evidence: str, reason: str) -> dict[str, Any]:
        """The outcome of an approval that is not used: nothing ran, and nothing is learned."""
        force = self._policies.of(found.project)
        kept = self._kept(Outcome(found.id, "cancelled", reason), force)
        took = self._clock() - datetime.fromisoformat(found.timestamp).timestamp()
        return events.finished(found.project, found.session_id, "cancelled", kept, evidence, {}, took)

    def _unfinished(self, tx: Transaction, entry: str, *, missing: bool) -> About | None:
        """What the record says of a call that has no outcome yet."""
        found = get_entry(tx, entry)
        if found is None and missing:
            raise NotFoundError(f"There is no call {entry!r}.")
        if found is None:
            return None
        # What an agent of its own ran is on the record as it was, also where we had refused it.
        by_agent, state = found.door == "hooks", lifecycle.state_of(found)
        if not lifecycle.may(found, Event.finish) and not (by_agent and lifecycle.may(found, Event.report)):
            return None
        # INVARIANT: an approval nobody claimed has no outcome, but in an agent that runs its tools itself.
        if state is State.approved and not by_agent:
            return None
        if state in (State.approved, State.claimed):
            end_question(tx, entry, self._clock())
        began = datetime.fromisoformat(found.started_at or found.timestamp).timestamp()
        return About(
            found.project, found.session_id, tuple(found.domains), began, ran=found.status != "denied"
        )

    def _finish(
        self, tx: Transaction, about: About, done: Outcome, lessons: earning.Lessons, force: InForce
    ) -> None:
        now = self._clock()
        trust: dict[str, float] = {}
        if about.ran and (done.outcome == "failure" or (done.outcome == "success" and done.earns)):
            trust = lessons.learn(about.project, about.domains, done.outcome, force.settings, now)
        kept = self._kept(done, force)
        data = events.finished(
            about.project, about.session, done.outcome, kept, done.evidence, trust, now - about.began
        )
        self._ledger.append(tx, "finished", data, entry=done.entry)

    def _kept(self, done: Outcome, force: InForce) -> Any:
        """An output as it is recorded, without the secrets of the call it belongs to."""
        if done.output is None:
            return None
        secrets = self._secrets.of(done.entry, force.redactor, reported=done.arguments)
        return events.kept(done.output, force.redactor, force.settings.retention.output_bytes, secrets)


def known(word: str, words: Sequence[str], what: str) -> None:
    """Refuse a word that means nothing here."""
    if word not in words:
        raise InputError(f"{word!r} is not an {what}.", remedy=f"Use {', '.join(words)}.")
