"""What each event says: the fields a record holds, masked and cut to size. Pure."""

from __future__ import annotations

from typing import Any

from checkrein.call import ToolCall, Verdict, canonical, reason_lines
from checkrein.ledger.redact import Redactor


def decided(call: ToolCall, verdict: Verdict, redactor: Redactor, most: int) -> dict[str, Any]:
    """A verdict with everything that explains it."""
    return {
        "door": call.door,
        "agent": call.agent,
        "user": call.user,
        "project": call.project,
        "cwd": call.cwd,
        "session": call.session,
        "call_id": call.call_id,
        "server": call.server,
        "tool": call.tool,
        "name": call.name,
        "input": cut(redactor.value(call.arguments), most),
        "argument_hash": call.argument_hash,
        **_explained(verdict, redactor),
    }


# What is said about a verdict, for those that are given again and again.
_said: dict[int, tuple[Verdict, Redactor, dict[str, Any]]] = {}
_MOST_SAID = 1024


def _explained(verdict: Verdict, redactor: Redactor) -> dict[str, Any]:
    known = _said.get(id(verdict))
    # An id may be a later verdict's; only the very same one counts.
    if known is not None and known[0] is verdict and known[1] is redactor:
        return known[2]
    if len(_said) >= _MOST_SAID:
        _said.clear()
    told = _about(verdict, redactor)
    _said[id(verdict)] = verdict, redactor, told
    return told


def _about(verdict: Verdict, redactor: Redactor) -> dict[str, Any]:
    risk, trust = verdict.risk, verdict.trust
    return {
        "risk": risk.category.name,
        "complexity": risk.complexity,
        "domains": list(dict.fromkeys(risk.domains)),
        # The domain that held the call back: the one with the least trust.
        "domain": min(trust, key=trust.__getitem__) if trust else next(iter(risk.domains), ""),
        "effects": [
            {"kind": effect.kind, "scope": effect.scope, "target": redactor.text(effect.target)}
            for effect in risk.effects
        ],
        "trust": trust,
        "autonomy": verdict.autonomy,
        "verdict": verdict.word,
        "decision": verdict.decision,
        "stage": verdict.stage,
        "rule": verdict.rule,
        "reasons": _masked(reason_lines(verdict.reasons), redactor),
        "remedy": verdict.remedy,
    }


def finished(
    project: str,
    session: str,
    outcome: str,
    output: Any,
    evidence: str,
    trust: dict[str, float],
    seconds: float,
) -> dict[str, Any]:
    """An outcome, the kind of evidence for it, how long the call took, and the trust after it."""
    return {
        "project": project,
        "session": session,
        "outcome": outcome,
        "evidence": evidence,
        "output": output,
        "trust": trust,
        "latency_ms": round(max(0.0, seconds) * 1000, 3),
    }


def _masked(texts: list[str], redactor: Redactor) -> list[str]:
    """Reasons quote what the agent wrote. One look at all is enough where there is nothing to mask."""
    whole = "\n".join(texts)
    return texts if redactor.text(whole) == whole else [redactor.text(text) for text in texts]


def cut(value: Any, most: int) -> Any:
    """The value, or its beginning where it is longer than `most` bytes as JSON; what is cut is said."""
    text = canonical(value)
    if len(text) <= most:
        return value
    if isinstance(value, str):
        return f"{value[:most]}[cut: {len(value)} characters]"
    if isinstance(value, dict) and len(value) <= 64:
        share = most // max(1, len(value))
        return {key[:200]: cut(item, share) for key, item in value.items()}
    return f"{text[:most].decode(errors='replace')}[cut: {len(text)} bytes]"
