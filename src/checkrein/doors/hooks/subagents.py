"""Sub-agents get the model their task deserves, a better one after failures, and in the end the user.

The door asks before and after it judges the call that starts one; reports say how it ended.
"""

from __future__ import annotations

import time
from typing import Any

from checkrein.call import ToolCall
from checkrein.core.decision import Decided, is_persons_word
from checkrein.doors.hooks import replies
from checkrein.doors.hooks.calls import Calls
from checkrein.doors.hooks.events import Event
from checkrein.doors.hooks.replies import Reply
from checkrein.doors.hooks.routing import Choice, choose
from checkrein.pipeline import Pipeline


class Subagents:
    """The sub-agents of every session, and how many failed in a row."""

    def __init__(self, pipeline: Pipeline, calls: Calls) -> None:
        self._pipeline, self._calls = pipeline, calls
        self._failures: dict[str, int] = {}

    def ask_reason(self, call: ToolCall) -> str:
        """Why the user takes over: everybody below has failed."""
        choice = self._choice(call, None)
        return f"{choice.reason}; nobody is left above." if choice.name == "user" else ""

    def routed(self, event: Event, call: ToolCall, decided: Decided) -> Reply:
        """The call may run: with the routed model, unless the agent chose one or cannot be given it."""
        trust = min(decided.verdict.trust.values(), default=None)
        choice = self._choice(call, trust)
        data = {"persona": choice.name, "model": choice.model, "reason": choice.reason}
        updated = {**call.arguments, "model": choice.model}
        # The change is ours: where that would overrule the agent's own checks, the call stays as it is.
        given = "model" not in call.arguments and replies.can_rewrite(event, updated) and bool(choice.model)
        self._note(decided.entry, {**data, "applied": given})
        text = f"Routed to {choice.name} ({choice.model}): {choice.reason}."
        if given:
            self._calls.rewritten(call, decided, updated, time.monotonic())
            return replies.allow(event, reason=text, updated=updated)
        persons, reason = is_persons_word(decided.verdict), decided.verdict.reasons[0].text
        return replies.allow(event, persons=persons, reason=reason, context=text)

    def ended(self, session: str, outcome: str) -> None:
        """One more failure in a row, or none any more; what is neither counts for nothing."""
        if outcome in ("success", "failure"):
            failed = outcome == "failure"
            self._failures[session] = self._failures.get(session, 0) + 1 if failed else 0

    def forget(self, session: str) -> None:
        """The session is over."""
        self._failures.pop(session, None)

    def _choice(self, call: ToolCall, trust: float | None) -> Choice:
        settings = self._pipeline.policies.of(call.project).settings.model
        return choose(call, trust, self._failures.get(call.session, 0), settings)

    def _note(self, entry: str, data: dict[str, Any]) -> None:
        ledger = self._pipeline.ledger
        self._pipeline.store.write(lambda tx: ledger.append(tx, "routed", data, entry=entry))
