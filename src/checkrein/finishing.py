"""Puts outcomes on the record and learns from them. The pipeline hands over one, or a few at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any

import msgspec

from checkrein import earning
from checkrein.call import OUTCOMES
from checkrein.errors import InputError, NotFoundError
from checkrein.ledger import events
from checkrein.ledger.entries import fold
from checkrein.ledger.mirror import Mirror
from checkrein.ledger.record import Ledger
from checkrein.policies import InForce, Policies
from checkrein.store import Transaction, records


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


class Finishing:
    """Outcomes, each in the transaction that learns from it. Reported twice, one counts once."""

    def __init__(
        self, policies: Policies, ledger: Ledger, mirror: Mirror, clock: Callable[[], float]
    ) -> None:
        self._policies, self._ledger, self._mirror, self._clock = policies, ledger, mirror, clock

    def work(self, outcomes: Sequence[Outcome], *, missing: bool) -> Callable[[Transaction], None]:
        """What to do in a transaction; `missing`: whether a call that is not on the record is an error."""
        for each in outcomes:
            known(each.outcome, OUTCOMES, "outcome")

        def finish(tx: Transaction) -> None:
            lessons, forces = earning.Lessons(tx), dict[str, InForce]()
            for each in outcomes:
                about = each.about or self._unfinished(tx, each.entry, missing=missing)
                if about is not None:
                    if about.project not in forces:
                        forces[about.project] = self._policies.of(about.project)
                    self._finish(tx, about, each, lessons, forces[about.project])
            lessons.keep()
            self._mirror.follow(tx, len(outcomes))

        return finish

    def _unfinished(self, tx: Transaction, entry: str, *, missing: bool) -> About | None:
        """What the record says of a call that has no outcome yet."""
        found = fold(records.of_entries(tx, [entry]))
        if not found and missing:
            raise NotFoundError(f"There is no call {entry!r}.")
        if not found or found[0].completed_at is not None:
            return None
        began = datetime.fromisoformat(found[0].started_at or found[0].timestamp).timestamp()
        ran = found[0].status != "denied"
        return About(found[0].project, found[0].session_id, tuple(found[0].domains), began, ran)

    def _finish(
        self, tx: Transaction, about: About, done: Outcome, lessons: earning.Lessons, force: InForce
    ) -> None:
        now = self._clock()
        trust: dict[str, float] = {}
        if done.outcome in ("success", "failure") and about.ran:
            trust = lessons.learn(about.project, about.domains, done.outcome, force.settings, now)
        kept = events.kept(done.output, force.redactor, force.settings.retention.output_bytes)
        data = events.finished(
            about.project, about.session, done.outcome, kept, done.evidence, trust, now - about.began
        )
        self._ledger.append(tx, "finished", data, entry=done.entry)


def known(word: str, words: Sequence[str], what: str) -> None:
    """Refuse a word that means nothing here."""
    if word not in words:
        raise InputError(f"{word!r} is not an {what}.", remedy=f"Use {', '.join(words)}.")
