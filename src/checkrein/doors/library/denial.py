"""What a program hears when a call does not run: refused, or waiting for a person. No I/O."""

from __future__ import annotations

from typing import Any

from checkrein.call import Verdict
from checkrein.doors.library.pending import Pending


class Denied(Exception):  # noqa: N818 - an answer, not a fault
    """Raised where a call is refused, by policy or by a person. Its text is written for the model."""

    def __init__(
        self, text: str, *, verdict: Verdict, entry: str, reason: str = "", state: str = "refused"
    ) -> None:
        super().__init__(text)
        self.text, self.verdict, self.entry, self.state = text, verdict, entry, state
        self.reason = reason or verdict.reasons[0].text

    def __reduce__(self) -> Any:
        return _denied, (self.text, self.verdict, self.entry, self.reason, self.state)


def _denied(text: str, verdict: Verdict, entry: str, reason: str, state: str) -> Denied:
    return Denied(text, verdict=verdict, entry=entry, reason=reason, state=state)


class Refusal(str):
    """A refusal as a tool's result: text the model reads, for programs that want no exception."""

    __slots__ = ("denied",)
    denied: Denied

    @classmethod
    def of(cls, denied: Denied) -> Refusal:
        made = cls(denied.text)
        made.denied = denied
        return made


class Suspended(Exception):  # noqa: N818 - a state, not a fault
    """Raised (or returned) where a call waits: for a person's yes, or for what its tool asked to be told.

    `pending` is everything needed to go on, also in another process: `gate.resume(pending)`.
    """

    def __init__(self, pending: Pending) -> None:
        super().__init__(pending.text)
        self.pending = pending

    def __reduce__(self) -> Any:
        return Suspended, (self.pending,)

    @property
    def entry(self) -> str:
        return self.pending.entry

    @property
    def payload(self) -> Any:
        return self.pending.payload
