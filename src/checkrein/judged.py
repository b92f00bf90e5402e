"""Verdicts on their way to the record: values the pipeline hands to doors and takes back. No I/O."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from checkrein import earning
from checkrein.asking import Consent
from checkrein.call import Category, ToolCall, Verdict
from checkrein.policies import InForce


class Decided(msgspec.Struct, frozen=True):
    """A verdict and the entry it is recorded under."""

    entry: str
    verdict: Verdict
    # Whether the question waits for an answer.
    asked: bool = False


class Judged(msgspec.Struct, frozen=True):
    """A verdict that is not recorded yet, what it was judged by, and the earlier yes it rests on."""

    verdict: Verdict
    force: InForce
    book: earning.Book
    consent: Consent | None = None

    @property
    def alone(self) -> bool:
        """Whether recording it is one record and nothing else: a plain allow."""
        return (
            self.verdict.word == "allow"
            and self.consent is None
            and not self.book.bad
            and self.verdict.rule not in self.force.counted
        )


Hold = str | Callable[[Judged], str]
Asks = bool | Callable[[], bool]


class Considered(msgspec.Struct, frozen=True):
    """A verdict on its way to the record, and how to come to another where a yes was used up meanwhile."""

    entry: str
    call: ToolCall
    judged: Judged
    asking: bool
    again: Callable[[], Decided]

    @property
    def durable(self) -> bool:
        """Whether recording it waits for the disk."""
        return on_the_disk(self.judged.verdict) or self.judged.verdict.word == "ask"


class UsedUp(Exception):  # noqa: N818 - not a fault: another call took the last use, or the last room
    pass


def on_the_disk(verdict: Verdict) -> bool:
    """A deny, and an allow of high risk, are on the disk before they are answered."""
    return verdict.word == "deny" or (verdict.word == "allow" and verdict.risk.category >= Category.high)
