"""Trust kept in the store: what a decision reads, how an outcome changes it, and bad records set aside."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from typing import Any

import msgspec

from checkrein.call import GLOBAL_DOMAIN
from checkrein.ledger.chain import said_in
from checkrein.ledger.record import Ledger
from checkrein.policy.trust import Scores, SeedTrust, TrustModel, TrustState, implausible
from checkrein.settings import Settings
from checkrein.store import Reader, Transaction, records
from checkrein.store.trust import delete_trust, put_trust, trust_of


class Book(msgspec.Struct, frozen=True):
    """A project's trust: usable states, and why others are not."""

    states: dict[str, TrustState]
    bad: dict[str, str]
    inherited: float

    def scores(self, model: TrustModel, now: float) -> Scores:
        return Scores(
            {domain: model.score(state, now) for domain, state in self.states.items()}, self.inherited
        )


class Books:
    """Books read from a store, read again after trust was written."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._known: tuple[int | None, dict[tuple[Any, ...], Book]] = (None, {})

    def of(self, project: str, settings: Settings, domains: tuple[str, ...]) -> Book:
        writes = self._reader.writes_to("trust")
        if writes is None or writes != self._known[0] or len(self._known[1]) > _BOOKS_KEPT:
            self._known = writes, {}
        known = self._known[1]
        key = (project, settings.trust, domains)
        if key not in known:
            known[key] = book(self._reader, project, settings, domains)
        return known[key]


_BOOKS_KEPT = 256
CREDITS_A_MINUTE, CREDITS_AN_HOUR = 20, 120
MINUTE, HOUR = 60.0, 3_600.0
# So many records are looked through for the outcomes of the last hour.
_LOOK_BACK = 20_000


def model_for(settings: Settings) -> TrustModel:
    return SeedTrust(settings.trust)


def book(reader: Reader, project: str, settings: Settings, domains: Iterable[str] | None = None) -> Book:
    """The project's states, all or those of some domains; one that breaks the rules' bounds is not used."""
    initial = settings.trust.initial_score
    states: dict[str, TrustState] = {}
    bad: dict[str, str] = {}
    stored = trust_of(reader, project, None if domains is None else (*domains, GLOBAL_DOMAIN))
    # `_global` first: the others may have started from it. It has no operations, so counts say nothing of it.
    for domain in sorted(stored, key=lambda name: name != GLOBAL_DOMAIN):
        inherited = 1.0 if domain == GLOBAL_DOMAIN else max(initial, _inherited(states, initial), 0.5)
        try:
            state = msgspec.convert(stored[domain], TrustState, strict=True)
            why = implausible(state, inherited)
        except msgspec.ValidationError as error:
            why = str(error)
        if why:
            bad[domain] = why
        else:
            states[domain] = state
    return Book(states, bad, _inherited(states, initial))


def _inherited(states: dict[str, TrustState], initial: float) -> float:
    return states[GLOBAL_DOMAIN].score if GLOBAL_DOMAIN in states else initial


def set_aside(tx: Transaction, ledger: Ledger, project: str, bad: dict[str, str]) -> None:
    """Take unusable records out of use, and keep what they said in the ledger."""
    stored = trust_of(tx, project)
    for domain, why in bad.items():
        if domain in stored and delete_trust(tx, project, domain):
            data = {"project": project, "domain": domain, "reason": why, "record": stored[domain]}
            ledger.append(tx, "trust_quarantined", data)


class CreditLimit:
    """How many successes raise a domain's score in a minute and in an hour: a burst earns no more than that.

    The formula knows nothing of it, and a failure always counts. Used by the store's writer thread alone.
    """

    def __init__(self) -> None:
        self._credited: dict[tuple[str, str], deque[float]] | None = None

    def take(self, reader: Reader, project: str, domain: str, now: float) -> bool:
        """Whether one more success counts; it is counted at once."""
        if self._credited is None:
            self._credited = _credited_since(reader, now - HOUR)
        credited = self._credited.setdefault((project, domain), deque(maxlen=CREDITS_AN_HOUR))
        # INVARIANT: no burst of successes raises a score further than its limits allow.
        for most, seconds in ((CREDITS_A_MINUTE, MINUTE), (CREDITS_AN_HOUR, HOUR)):
            if len(credited) >= most and abs(now - credited[-most]) < seconds:
                return False
        credited.append(now)
        return True


def _credited_since(reader: Reader, begin: float) -> dict[tuple[str, str], deque[float]]:
    """What an earlier process credited, from the record."""
    found: dict[tuple[str, str], deque[float]] = {}
    for at, body in reversed(records.newest(reader, "finished", begin, _LOOK_BACK)):
        data = said_in(body)["data"]
        if data.get("outcome") == "success":
            for domain in data.get("trust", ()):
                credited = found.setdefault((data["project"], domain), deque(maxlen=CREDITS_AN_HOUR))
                credited.append(at)
    return found


class Lessons:
    """What outcomes teach in one transaction: read once, written once, however many there are."""

    def __init__(self, tx: Transaction, limit: CreditLimit) -> None:
        self._tx, self._limit = tx, limit
        self._states: dict[tuple[str, str], TrustState | None] = {}
        self._changed: dict[tuple[str, str], TrustState] = {}

    def learn(
        self, project: str, domains: Iterable[str], outcome: str, settings: Settings, now: float
    ) -> dict[str, float]:
        """Credit or charge each domain for a success or failure; the scores afterwards."""
        model = model_for(settings)
        after: dict[str, float] = {}
        for domain in domains:
            # INVARIANT: `_global` is read as a fallback and never credited.
            if domain == GLOBAL_DOMAIN:
                continue
            if outcome == "success" and not self._limit.take(self._tx, project, domain, now):
                continue
            state = self._state(project, domain, settings)
            if state is None:
                continue
            changed = model.succeeded(state, now) if outcome == "success" else model.failed(state, now)
            self._states[project, domain] = self._changed[project, domain] = changed
            after[domain] = changed.score
        return after

    def _state(self, project: str, domain: str, settings: Settings) -> TrustState | None:
        """The state so far, a fresh one, or nothing where the stored one cannot be used."""
        key = (project, domain)
        if key not in self._states:
            known = book(self._tx, project, settings, [domain])
            fresh = None if domain in known.bad else model_for(settings).fresh(known.inherited)
            self._states[key] = known.states.get(domain) or fresh
        return self._states[key]

    def keep(self) -> None:
        """Write what was learned."""
        for (project, domain), state in self._changed.items():
            put_trust(self._tx, project, domain, _fields(state))


def begin_session(tx: Transaction, project: str, settings: Settings, now: float) -> list[str]:
    """Start the warm-up of every domain that slept too long; their names."""
    known, model = book(tx, project, settings), model_for(settings)
    woken = []
    for domain, state in known.states.items():
        changed = model.session_started(state, now)
        if changed != state and domain != GLOBAL_DOMAIN:
            put_trust(tx, project, domain, _fields(changed))
            woken.append(domain)
    return woken


def _fields(state: TrustState) -> dict[str, Any]:
    return msgspec.structs.asdict(state)
