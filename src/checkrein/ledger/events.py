"""What each event says: the fields a record holds, masked and cut to size. Pure."""

from __future__ import annotations

from typing import Any

from checkrein.call import ToolCall, Verdict, canonical, reason_lines
from checkrein.ledger.call_secrets import NO_SECRETS, CallSecrets
from checkrein.ledger.redact import MAX_DEPTH, Redactor

# Longer than any word that could be a secret.
_MARGIN = 2_048
# As JSON spells it: two escapes of six.
_LONGEST_LETTER = 12
# So many parts of a value are cut one by one.
_FEW = 64
# So much of a call is looked at for secrets, however little of it is kept: more than reasons ever quote.
_LOOKED_AT = 65_536


def decided(call: ToolCall, verdict: Verdict, redactor: Redactor, most: int) -> dict[str, Any]:
    """A verdict with everything that explains it."""
    return recorded(call, verdict, redactor, most)[0]


def recorded(
    call: ToolCall, verdict: Verdict, redactor: Redactor, most: int
) -> tuple[dict[str, Any], CallSecrets]:
    """The same, and the call's secrets, for what is recorded about it later."""
    arguments, secrets = kept_call(call.arguments, redactor, most)
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
        "input": arguments,
        "argument_hash": call.argument_hash,
        # INVARIANT: a secret found in a call is masked in all that is recorded about the call.
        **(_about(verdict, redactor, secrets) if secrets else _explained(verdict, redactor)),
    }, secrets


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
    told = _about(verdict, redactor, NO_SECRETS)
    _said[id(verdict)] = verdict, redactor, told
    return told


def _about(verdict: Verdict, redactor: Redactor, secrets: CallSecrets) -> dict[str, Any]:
    risk, trust = verdict.risk, verdict.trust

    def masked(text: str) -> str:
        return redactor.text(secrets.quoted(text))

    return {
        "risk": risk.word,
        "complexity": risk.complexity,
        "domains": list(dict.fromkeys(risk.domains)),
        # The domain that held the call back: the one with the least trust.
        "domain": min(trust, key=trust.__getitem__) if trust else next(iter(risk.domains), ""),
        "effects": [
            {"kind": effect.kind, "scope": effect.scope, "target": masked(effect.target)}
            for effect in risk.effects
        ],
        "trust": trust,
        "autonomy": verdict.autonomy,
        "verdict": verdict.word,
        "decision": verdict.decision,
        "stage": verdict.stage,
        "rule": verdict.rule,
        "reasons": _masked(reason_lines(verdict.reasons), redactor, secrets),
        "remedy": masked(verdict.remedy) if secrets else verdict.remedy,
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


def _masked(texts: list[str], redactor: Redactor, secrets: CallSecrets) -> list[str]:
    """Reasons quote what the agent wrote. One look at all is enough where there is nothing to mask."""
    if secrets:
        return [redactor.text(secrets.quoted(text)) for text in texts]
    whole = "\n".join(texts)
    return texts if redactor.text(whole) == whole else [redactor.text(text) for text in texts]


def kept(value: Any, redactor: Redactor, most: int, secrets: CallSecrets = NO_SECRETS) -> Any:
    """The value masked, or the beginning of it; no more is looked at than could be kept.

    `secrets`: those of the call the value belongs to.
    """
    few = _beginning(value, most)
    return _cut_masked(secrets.value(redactor.value(few)), few, value, most)


def kept_call(value: Any, redactor: Redactor, most: int) -> tuple[Any, CallSecrets]:
    """A call's arguments as `kept` has them, and the secrets in all of them that reasons may quote."""
    few = _beginning(value, most)
    masked, secrets = redactor.find(few)
    if few is not value and most < _LOOKED_AT:
        more = redactor.find(_beginning(value, _LOOKED_AT))[1]
        masked, secrets = more.value(masked), secrets | more
    return _cut_masked(masked, few, value, most), secrets


def _cut_masked(masked: Any, few: Any, value: Any, most: int) -> Any:
    return cut(masked, most) if few is value else cut(masked, most, value)


def _beginning(value: Any, most: int) -> Any:
    """The value itself, or as much of it as could be kept."""
    # INVARIANT: what somebody sends, however long, holds up no other call while it is recorded.
    room = 2 * most + _MARGIN
    if not isinstance(value, dict) or not 0 < len(value) <= _FEW:
        return trimmed(value, room)
    # As they are cut: each has its own share.
    parts = _shared(value, 2 * (most // len(value)) + _MARGIN)
    # INVARIANT: nothing is left out, unsaid, of what fits as a whole.
    return value if parts is value or trimmed(value, room) is value else parts


def _shared(value: dict[Any, Any], room: int) -> dict[Any, Any]:
    """The value itself where each part of it is short, else a copy of their beginnings."""
    parts = {key: trimmed(item, room) for key, item in value.items()}
    for key, item in value.items():
        if parts[key] is not item:
            return parts
    return value


def trimmed(value: Any, most: int) -> Any:
    """The value itself where it is short, else a copy of its beginning."""
    if isinstance(value, str) and len(value) <= most:
        return value
    room = [most]
    copy = _begun(value, room)
    return value if room[0] >= 0 else copy


def _begun(value: Any, room: list[int], depth: int = MAX_DEPTH) -> Any:
    """A copy until there is no more room, which then is below zero."""
    if isinstance(value, str):
        room[0] -= len(value)
        return value if room[0] >= 0 else _whole_words(value, len(value) + room[0])
    room[0] -= 1
    if isinstance(value, dict):
        found: dict[Any, Any] = {}
        for key, item in value.items():
            room[0] -= len(key) if isinstance(key, str) else 1
            if room[0] < 0:
                break
            # What masking leaves out whole need not be looked at.
            found[key] = _begun(item, room, depth - 1) if depth else item
        return found
    if isinstance(value, (list, tuple)):
        items: list[Any] = []
        for item in value:
            if room[0] < 0:
                break
            items.append(_begun(item, room, depth - 1) if depth else item)
        return tuple(items) if isinstance(value, tuple) else items
    return value


def _whole_words(text: str, most: int) -> str:
    """The beginning of a text without the word it ends in: half a secret would not be seen to be one."""
    most = max(0, most)
    end = next((at for at in range(most, max(0, most - _MARGIN), -1) if text[at - 1].isspace()), 0)
    return text[: end or max(0, most - _MARGIN)]


def cut(value: Any, most: int, whole: Any = None) -> Any:
    """The value, or its beginning where it is longer than `most` bytes as JSON; what is cut is said.

    `whole`: what the value is the beginning of.
    """
    whole = value if whole is None else whole
    if whole is value and isinstance(value, str) and len(value) * _LONGEST_LETTER + 2 <= most:
        return value
    text = canonical(value)
    size = len(text if whole is value else canonical(whole))
    if max(len(text), size) <= most:
        return value
    if isinstance(value, str):
        return f"{value[:most]}[cut: {len(whole) if isinstance(whole, str) else size} characters]"
    if isinstance(value, dict) and isinstance(whole, dict) and len(value) == len(whole) <= _FEW:
        share = most // max(1, len(value))
        parts = zip(value.items(), whole.values(), strict=True)
        return {key[:200]: cut(item, share, was) for (key, item), was in parts}
    return f"{text[:most].decode(errors='replace')}[cut: {size} bytes]"
