"""Verdicts that would come out the same: the same risk, the same policy, the same trust, a moment ago.

Deciding is pure, so a verdict may be given again while nothing it was made from has changed. The pipeline
asks for every call; what is compared is the very objects the verdict was made from.
"""

from __future__ import annotations

from typing import Any

import msgspec

from checkrein.call import Effect, Risk, ToolCall, Verdict
from checkrein.classify.tools import says_nothing
from checkrein.earning import Book
from checkrein.memory import Known
from checkrein.policies import InForce

KEPT = 1_024
# Trust decays by the day; nothing else depends on the hour.
SECONDS = 60.0


class Given(msgspec.Struct, frozen=True):
    """A verdict, when it was given, and by what."""

    force: InForce
    book: Book
    at: float
    verdict: Verdict

    def holds(self, force: InForce, now: float) -> bool:
        return self.force is force and 0 <= now - self.at < SECONDS


class _Allowed(msgspec.Struct, frozen=True):
    """A plain yes to a tool whatever its arguments, and what else had a say in it."""

    given: Given
    cwd: str
    annotations: dict[str, Any]
    history: tuple[Effect, ...]
    # How often trust had been written.
    trust: int


class Repeats:
    """The verdicts given lately."""

    def __init__(self) -> None:
        self._given: dict[int, tuple[Risk, str | None, str, Given]] = {}
        self._allowed: dict[tuple[str, str | None, str], _Allowed] = {}

    def find(self, call: ToolCall, force: InForce, trust: int | None, now: float) -> Given | None:
        """The yes to a call whose arguments name no path and no host: it need not be classified again."""
        found = self._allowed.get((call.project, call.server, call.tool))
        # INVARIANT: risk and trust come out the same where all they are made from is the same.
        if (
            found is not None
            and found.given.holds(force, now)
            and found.trust == trust
            and found.history == call.history
            and found.annotations == call.annotations
            and found.cwd == call.cwd
            and says_nothing(call.arguments)
        ):
            return found.given
        return None

    def get(self, call: ToolCall, risk: Risk, force: InForce, book: Book, now: float) -> Verdict | None:
        found = self._given.get(id(risk))
        # INVARIANT: a verdict is repeated only while everything it was made from is the very same.
        if (
            found is not None
            and found[0] is risk
            and found[1:3] == (call.server, call.tool)
            and found[3].book is book
            and found[3].holds(force, now)
        ):
            return found[3].verdict
        return None

    def keep(self, call: ToolCall, known: Known, given: Given, trust: int | None) -> None:
        """Remember a verdict that no argument and no clock has a say in."""
        policy = given.force.policy
        if not policy.rules.is_plain(call) or not policy.project_rules.is_plain(call):
            return
        if len(self._given) >= KEPT or len(self._allowed) >= KEPT:
            self._given.clear()
            self._allowed.clear()
        self._given[id(known.risk)] = known.risk, call.server, call.tool, given
        silent = call.server is not None and not known.led and says_nothing(call.arguments)
        if silent and trust is not None and given.verdict.word == "allow":
            made = _Allowed(given, call.cwd, call.annotations, call.history, trust)
            self._allowed[call.project, call.server, call.tool] = made
