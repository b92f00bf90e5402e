"""A call that may not run, as the program hears it: refused by policy, or by a person. `Turn` raises it."""

from __future__ import annotations

from checkrein.approval import wording
from checkrein.call import ToolCall, Verdict
from checkrein.core.approvals import Settled
from checkrein.core.decision import Decided
from checkrein.doors.library.denial import Denied
from checkrein.policy import UNKNOWN_RISK, refuse


def refused(call: ToolCall, decided: Decided) -> Denied:
    """What policy says no to."""
    text = wording.refusal(call, decided.verdict, decided.entry)
    return Denied(text, verdict=decided.verdict, entry=decided.entry)


def said_no(call: ToolCall, entry: str, settled: Settled, was: Verdict | None) -> Denied:
    """A person's no, nobody's answer in time, or a question that was withdrawn."""
    verdict = _no(settled, was)
    text = wording.answered(call, verdict, entry, settled.state, settled.actor, settled.message)
    reason = settled.message or verdict.reasons[0].text
    return Denied(text, verdict=verdict, entry=entry, reason=reason, state=settled.state)


def _no(settled: Settled, was: Verdict | None) -> Verdict:
    """A person's no as a verdict, with what was known of the call when it was asked about."""
    who = settled.actor or "A person"
    said_so = {"denied": f"{who} said no.", "expired": "Nobody answered in time."}
    why = said_so.get(settled.state, "The question was withdrawn.")
    risk = was.risk if was is not None else UNKNOWN_RISK
    return refuse("approval", why, "Ask for something else.", risk)
