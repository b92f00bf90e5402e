"""A decision on its way to the record: the request, its evaluation, the recorded verdict. Values only.

Doors make requests; the pipeline evaluates and commits them.
"""

from __future__ import annotations

import msgspec

from checkrein import earning
from checkrein.asking import PEOPLE, Consent
from checkrein.call import Category, ToolCall, Verdict
from checkrein.policies import InForce
from checkrein.store.questions import Question


class DecisionRequest(msgspec.Struct, frozen=True):
    """A call, and what only its door knows about it."""

    call: ToolCall
    phase: str | None = "building"
    # Policy the caller has resolved already, for exactly this call's project, door, phase and profile.
    policy: InForce | None = None
    # Why a person is asked although policy allows the call.
    ask_reason: str = ""
    # The untrusted server whose output this session has read.
    tainted_by: str = ""
    # Whether a person released exactly this call.
    released: bool = False


class Decided(msgspec.Struct, frozen=True):
    """A verdict and the entry it is recorded under."""

    entry: str
    verdict: Verdict
    # Whether the question waits for an answer.
    asked: bool = False


class Judged(msgspec.Struct, frozen=True):
    """A verdict that is not recorded yet, what it was judged by, and the earlier approval it rests on."""

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


class Evaluation(msgspec.Struct, frozen=True):
    """A verdict that nobody may hear before it is committed."""

    entry: str
    request: DecisionRequest
    verdict: Verdict
    # None: not even the policy could be read, so the refusal cannot be recorded.
    judged: Judged | None
    # Whether committing it opens a question.
    asks: bool = False

    @property
    def durable(self) -> bool:
        """Whether committing it waits for the disk."""
        return on_the_disk(self.verdict) or self.verdict.word == "ask"

    @property
    def plain(self) -> bool:
        """Whether it is an allow whose record is one of many and waits for no disk."""
        return self.judged is not None and self.judged.alone and not self.durable


class UsedUp(Exception):  # noqa: N818 - not a fault: another call took the last use, or the last room
    pass


# The stages whose allow is something a person wrote, or said about such a call before.
_PERSONS_STAGES = frozenset({"rules", "profile", "grant", "release", "approval"})


def is_persons_word(said: Verdict | Question) -> bool:
    """Whether a yes rests on a person's own word.

    That is an allow by a rule, a profile entry, a grant, a release or an approval, and a question that a
    person approved. A score, low risk, and a door that lets unnamed calls pass are no person's word.
    """
    if isinstance(said, Question):
        return said.state == "approved" and said.channel in PEOPLE
    return said.word == "allow" and said.stage in _PERSONS_STAGES


def on_the_disk(verdict: Verdict) -> bool:
    """A deny, and an allow of high risk, are on the disk before they are answered."""
    return verdict.word == "deny" or (verdict.word == "allow" and verdict.risk.category >= Category.high)
