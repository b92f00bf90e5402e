"""A program's call that a person said yes to: redeemed, or refused; and what a program may report.

A gate with a store of its own calls this; `library` does for one that asks the server.
"""

from __future__ import annotations

from typing import Any

import msgspec

from checkrein.call import ToolCall
from checkrein.core.decision import Decided
from checkrein.core.lifecycle import UNDER_WAY, state_of
from checkrein.core.redemption import Approval, Rejected, redeem
from checkrein.errors import InputError
from checkrein.ledger.query import get_entry
from checkrein.pipeline import Pipeline


class Taken(msgspec.Struct, frozen=True):
    """The arguments of a call that may run now; or why it may not."""

    arguments: dict[str, Any] | None = None
    refused: Decided | None = None


def take(pipeline: Pipeline, entry: str, call: ToolCall, phase: str, *, again: bool = False) -> Taken:
    """Use up a yes. `again`: running the call twice does no harm."""
    # INVARIANT: a program's call runs with the arguments that were approved, once.
    found = redeem(pipeline, Approval(entry, call, phase, repeatable=again))
    if isinstance(found, Rejected):
        return Taken(refused=found.decided)
    return Taken(found.arguments)


def may_report(pipeline: Pipeline, entry: str, outcome: str) -> None:
    """INVARIANT: nothing is learned from a call that nobody let run."""
    found = get_entry(pipeline.store, entry) if outcome in ("success", "failure") else None
    if found is None or found.completed_at is not None:
        return
    if state_of(found) not in UNDER_WAY:
        raise InputError(f"{entry} may not have run: nobody said yes to it.", remedy="Resume it instead.")
