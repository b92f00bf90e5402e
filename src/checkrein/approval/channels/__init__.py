"""Ways to reach a person who is elsewhere. A channel takes a notice and delivers it, or says why not.

Channels know no store and no pipeline: `checkrein.notifying` hands them what to say, in their own threads.
"""

from __future__ import annotations

import secrets
from typing import Any, Protocol

import msgspec


class Notice(msgspec.Struct, frozen=True):
    """Something a person should hear of: in words, and as data for programs."""

    event: str
    title: str
    body: str
    facts: dict[str, Any] = {}
    # The same however often and wherever it is sent, so that a receiver can tell a repetition.
    number: str = msgspec.field(default_factory=lambda: secrets.token_hex(8))


class Undelivered(Exception):  # noqa: N818 - an answer of the world outside, not a fault of ours
    """A notice did not arrive; `lasting` where trying again would not help."""

    def __init__(self, why: str, *, lasting: bool = False) -> None:
        super().__init__(why)
        self.lasting = lasting


class Channel(Protocol):
    """One way out. `name` says which, with nothing secret in it."""

    name: str

    def deliver(self, notice: Notice) -> None:
        """Deliver, or raise Undelivered."""
        ...
