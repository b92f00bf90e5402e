"""Whether a person is asked although a call would run: the session has read what an untrusted server wrote.

Calls ask here before they are settled; who read what is kept with the client's visit.
"""

from __future__ import annotations

from checkrein.call import Category, ToolCall, Verdict
from checkrein.core.decision import Judged

_OUTWARD = frozenset({"message", "network", "git-remote", "delete"})


def why_held(call: ToolCall, judged: Judged, source: str) -> str:
    """Why the call waits for a person; nothing when it need not. `source`: whose words were read."""
    if not source or judged.consent is not None or judged.force.settings.gateway.taint == "off":
        return ""
    if not _goes_out(call, judged.verdict) or _named_exactly(judged, call):
        return ""
    return f"This session has read what the server `{source}` returned, and this call can send or destroy."


def _goes_out(call: ToolCall, verdict: Verdict) -> bool:
    """Whether a call reaches outside or destroys something."""
    hints = call.annotations
    return (
        verdict.risk.category >= Category.high
        or hints.get("destructiveHint") is True
        or hints.get("openWorldHint") is True
        or any(each.kind in _OUTWARD for each in verdict.risk.effects)
    )


def _named_exactly(judged: Judged, call: ToolCall) -> bool:
    """Whether a person wrote a rule for just this tool of this server, knowing where its words come from."""
    rules = judged.force.policy.rules.rules
    return any(
        each.id == judged.verdict.rule and each.tool == call.tool and each.server == call.server
        for each in rules
    )
