"""Trust earned in a (project, domain): rises with successes, falls with failures, fades when idle.

Pure arithmetic on frozen states; the clock comes in as an argument. A score is stored as it was at the
last operation and decay is computed from there, so looking at it twice never decays it twice.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Protocol

import msgspec

from checkrein.call import GLOBAL_DOMAIN
from checkrein.settings import Trust as TrustSettings

DAY = 86_400.0
DAILY_DECAY = 0.999
FIRST_RATE = 0.05
LATER_RATE = 0.02
FASTEST_RATE = 0.10
# A score never reaches 1: some doubt always remains, whatever floating point rounds to.
HIGHEST = math.nextafter(1.0, 0.0)
_SLACK = 1e-9


class TrustState(msgspec.Struct, frozen=True, kw_only=True):
    """A domain's record; `score` is the score right after the last operation."""

    score: float
    successes: int = 0
    failures: int = 0
    total_operations: int = 0
    last_operated_at: float | None = None
    is_warming_up: bool = False
    warmup_remaining: int = 0


class TrustModel(Protocol):
    """How evidence becomes a score. The default is `SeedTrust`."""

    def fresh(self, inherited: float) -> TrustState: ...
    def score(self, state: TrustState, now: float) -> float: ...
    def session_started(self, state: TrustState, now: float) -> TrustState: ...
    def succeeded(self, state: TrustState, now: float) -> TrustState: ...
    def failed(self, state: TrustState, now: float) -> TrustState: ...


class SeedTrust:
    """Gains 5 % of the missing trust at first, 2 % later, double after a pause; loses 15 % at a failure."""

    def __init__(self, settings: TrustSettings) -> None:
        self.settings = settings

    def fresh(self, inherited: float) -> TrustState:
        """A domain starts from what it read: the inherited `_global` score."""
        return TrustState(score=inherited)

    def idle_days(self, state: TrustState, now: float) -> int:
        """Whole days since the last operation; a clock that went backwards counts as none."""
        if state.last_operated_at is None:
            return 0
        return max(0, math.floor((now - state.last_operated_at) / DAY))

    def score(self, state: TrustState, now: float) -> float:
        """The score today: frozen while hibernating, then fading a little each day."""
        late = self.idle_days(state, now) - self.settings.hibernation_days
        faded = state.score * DAILY_DECAY**late if late > 0 else state.score
        return min(faded, HIGHEST)

    def session_started(self, state: TrustState, now: float) -> TrustState:
        """After a pause longer than hibernation the next operations learn at double rate."""
        if (
            self.idle_days(state, now) <= self.settings.hibernation_days
            or not self.settings.warmup_operations
        ):
            return state
        return msgspec.structs.replace(
            state, is_warming_up=True, warmup_remaining=self.settings.warmup_operations
        )

    def succeeded(self, state: TrustState, now: float) -> TrustState:
        before = self.score(state, now)
        rate = FIRST_RATE if state.total_operations < self.settings.boost_threshold else LATER_RATE
        rate *= 2 if state.is_warming_up else 1
        after = _operated(state, before + (1 - before) * rate, now)
        return msgspec.structs.replace(after, successes=state.successes + 1)

    def failed(self, state: TrustState, now: float) -> TrustState:
        after = _operated(state, self.score(state, now) * self.settings.failure_decay, now)
        return msgspec.structs.replace(after, failures=state.failures + 1)


def _operated(state: TrustState, score: float, now: float) -> TrustState:
    """One more operation, successful or not: failures use up warm-up operations too."""
    remaining = max(0, state.warmup_remaining - 1) if state.is_warming_up else 0
    return msgspec.structs.replace(
        state,
        score=min(score, HIGHEST),
        total_operations=state.total_operations + 1,
        last_operated_at=now,
        is_warming_up=remaining > 0,
        warmup_remaining=remaining,
    )


def implausible(state: TrustState, inherited: float) -> str:
    """Why a stored state cannot be what the rules produce, or nothing. Such a state must not be used."""
    counts = (state.successes, state.failures, state.total_operations, state.warmup_remaining)
    if not 0.0 <= state.score < 1.0:
        return f"score {state.score!r} is outside 0..1"
    if min(counts) < 0 or state.successes + state.failures > state.total_operations:
        return "its counts contradict each other"
    # No number of successes lifts a score faster than the fastest rate does.
    bound = 1 - (1 - max(inherited, 0.0)) * (1 - FASTEST_RATE) ** min(state.successes, 10_000)
    if state.score > bound + _SLACK:
        return f"score {state.score:.4f} is more than {state.successes} successes can earn ({bound:.4f})"
    return ""


class Scores(msgspec.Struct, frozen=True):
    """The scores a decision reads: a domain's own, else the `_global` one."""

    by_domain: Mapping[str, float]
    fallback: float

    def of(self, domain: str) -> float:
        found = self.by_domain.get(domain)
        return self.by_domain.get(GLOBAL_DOMAIN, self.fallback) if found is None else found
