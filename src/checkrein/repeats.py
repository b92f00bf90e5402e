"""Verdicts that would come out the same: the same risk, the same policy, the same trust, a moment ago.

Deciding is pure, so a verdict may be given again while nothing it was made from has changed. The pipeline
asks for every call; what is compared is the very objects the verdict was made from.
"""

from __future__ import annotations

import msgspec

from checkrein.call import Risk, ToolCall, Verdict
from checkrein.earning import Book
from checkrein.policies import InForce

KEPT = 1_024
# Trust decays by the day; nothing else depends on the hour.
SECONDS = 60.0


class _Given(msgspec.Struct, frozen=True):
    server: str | None
    tool: str
    risk: Risk
    force: InForce
    book: Book
    at: float
    verdict: Verdict


class Repeats:
    """The verdicts given lately."""

    def __init__(self) -> None:
        self._given: dict[int, _Given] = {}

    def get(self, call: ToolCall, risk: Risk, force: InForce, book: Book, now: float) -> Verdict | None:
        found = self._given.get(id(risk))
        # INVARIANT: a verdict is repeated only while everything it was made from is the very same.
        if (
            found is not None
            and found.risk is risk
            and found.server == call.server
            and found.tool == call.tool
            and found.force is force
            and found.book is book
            and 0 <= now - found.at < SECONDS
        ):
            return found.verdict
        return None

    def keep(
        self, call: ToolCall, risk: Risk, force: InForce, book: Book, now: float, verdict: Verdict
    ) -> None:
        """Remember a verdict that no argument and no clock has a say in."""
        policy = force.policy
        if not policy.rules.is_plain(call) or not policy.project_rules.is_plain(call):
            return
        if len(self._given) >= KEPT:
            self._given.clear()
        self._given[id(risk)] = _Given(call.server, call.tool, risk, force, book, now, verdict)
