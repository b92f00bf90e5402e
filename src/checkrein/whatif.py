"""The core as a tool: what would the verdict be, and why. A pure what-if that reads and writes no state.

`explain()` takes the same words as a line of `checkrein explain --jsonl` and gives the same answer.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from checkrein.call import Category, Effect, Reason, Risk, ToolCall, Verdict, reason_lines, tool_call
from checkrein.classify import Tables, classify
from checkrein.errors import CheckreinError, InputError, RuleError
from checkrein.policy import Policy, Unmatched, decide
from checkrein.policy.load import NO_RULES
from checkrein.policy.profiles import Profile, profile
from checkrein.policy.rules import RuleSet, rule
from checkrein.policy.trust import Scores
from checkrein.settings import Settings
from checkrein.settings.check import apply

_POLICY_KEYS = ("rules", "profile", "phase", "unmatched", "settings")
_RISK_KEYS = ("category", "domains", "complexity", "effects")
_UNMATCHED: tuple[Unmatched, ...] = ("earned", "ask", "allow")


class Line(msgspec.Struct, forbid_unknown_fields=True):
    """One question; everything but the call is optional."""

    call: dict[str, Any]
    policy: msgspec.Raw = msgspec.Raw(b"{}")
    trust: dict[str, Any] | None = None
    risk: dict[str, Any] | None = None


_decode = msgspec.json.Decoder(Line).decode
_encode = msgspec.json.Encoder().encode


def explain(
    call: Mapping[str, Any],
    policy: Mapping[str, Any] | None = None,
    trust: Mapping[str, Any] | None = None,
    risk: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The verdict on a call under a policy, as plain data; raises InputError, RuleError or ConfigError."""
    try:
        text = _encode(policy or {})
    except (TypeError, UnicodeError) as error:
        raise InputError(f"`policy` must be what JSON can hold: {error}") from None
    return as_json(_judge(Line(dict(call), msgspec.Raw(text), dict(trust or {}), dict(risk or {}))))


def explain_line(text: bytes | str) -> bytes:
    """One line of JSON in, one line of JSON out; what is wrong with a line is its answer."""
    try:
        return _encode(as_json(_judge(_decode(text))))
    except CheckreinError as error:
        return _encode({"error": error.as_json()})
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        return _encode({"error": InputError(f"This line is not a question: {error}").as_json()})


def _judge(line: Line) -> Verdict:
    _only(line.call, "call", ToolCall.__struct_fields__)
    call = tool_call({**line.call, "history": _history(line.call.get("history"))})
    policy = _policy(bytes(line.policy))
    judged = _risk(call, line.risk or {}, policy.settings)
    return decide(call, judged, policy, _scores(line.trust or {}, policy.settings), now=time.time())


def _risk(call: ToolCall, given: Mapping[str, Any], settings: Settings) -> Risk:
    """The classifier's risk, with the keys given in its place."""
    known_hosts = settings.network.known_hosts
    judged = classify(call, tables=Tables.load(settings.commands, known_hosts=known_hosts))
    if not given:
        return judged
    _only(given, "risk", _RISK_KEYS)
    changes: dict[str, Any] = {}
    if "category" in given:
        if not isinstance(given["category"], str) or given["category"] not in Category.__members__:
            raise InputError(
                f"`risk.category` is {given['category']!r}.", remedy="Use low, medium, high or critical."
            )
        changes["category"] = Category[given["category"]]
    if "domains" in given:
        domains = given["domains"]
        if not isinstance(domains, list) or not domains or not all(isinstance(d, str) and d for d in domains):
            raise InputError("`risk.domains` must be a list of names, not empty.")
        changes["domains"] = tuple(domains)
    if "effects" in given:
        try:
            changes["effects"] = msgspec.convert(given["effects"], tuple[Effect, ...])
        except msgspec.ValidationError as error:
            raise InputError(f"`risk.effects`: {error}") from None
    if "complexity" in given:
        changes["complexity"] = _fraction("risk.complexity", given["complexity"])
    said = ", ".join(sorted(changes))
    return msgspec.structs.replace(
        judged, **changes, reasons=(Reason(f"Given with the question: {said}."), *judged.reasons)
    )


def _history(given: Any) -> Any:
    """Earlier effects: as answers give them, or in short as "read:secret" and "read:secret:.env"."""
    if not isinstance(given, list | tuple):
        return () if given is None else given
    return [_effect(each) if isinstance(each, str) else each for each in given]


def _effect(text: str) -> dict[str, str]:
    kind, _, rest = text.partition(":")
    scope, _, target = rest.partition(":")
    return {"kind": kind, "scope": scope, "target": target}


def _only(given: Mapping[str, Any], where: str, known: tuple[str, ...]) -> None:
    """A key nobody reads is a mistake somebody made."""
    for key in given:
        if key not in known:
            raise InputError(f"`{where}.{key}` is not known.", remedy=f"Known: {', '.join(known)}.")


def _fraction(name: str, value: Any) -> float:
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not 0 <= value <= 1
        or math.isnan(value)
    ):
        raise InputError(f"`{name}` is {value!r}.", remedy="It must be a number from 0 to 1.")
    return float(value)


def _scores(given: Mapping[str, Any], settings: Settings) -> Scores:
    scores = {domain: _fraction(f"trust.{domain}", value) for domain, value in given.items()}
    return Scores(scores, scores.pop("*", settings.trust.initial_score))


@functools.lru_cache(maxsize=256)
def _policy(text: bytes) -> Policy:
    """A compiled policy; lines that repeat one share it."""
    raw = msgspec.json.decode(text)
    if not isinstance(raw, dict | None):
        raise InputError("`policy` must be an object.")
    # Null is "not given" everywhere but in the phase, where it is "unset".
    raw = {key: value for key, value in (raw or {}).items() if value is not None or key == "phase"}
    _only(raw, "policy", _POLICY_KEYS)
    unmatched = raw.get("unmatched", "earned")
    if unmatched not in _UNMATCHED:
        raise InputError(f"`policy.unmatched` is {unmatched!r}.", remedy=f"Use {', '.join(_UNMATCHED)}.")
    phase = raw.get("phase", "building")
    return Policy(
        settings=apply(Settings(), raw.get("settings", {}), "policy.settings"),
        rules=_rules(raw.get("rules", [])),
        project_rules=NO_RULES,
        profile=_profile(raw.get("profile")),
        phase=phase if isinstance(phase, str) else None,
        unmatched=unmatched,
    )


def _rules(raw: Any) -> RuleSet:
    if not isinstance(raw, list):
        raise InputError("`policy.rules` must be a list.")
    rules = []
    for number, each in enumerate(raw, start=1):
        if not isinstance(each, dict):
            raise RuleError(f"Rule {number} is not an object.")
        try:
            rules.append(rule(each, id=f"r{number}"))
        except RuleError as error:
            raise RuleError(f"Rule {number}: {error.message}", remedy=error.remedy) from None
    return RuleSet(rules)


def _profile(raw: Any) -> Profile | None:
    if raw is None:
        return None
    given = {key: value for key, value in raw.items() if value is not None} if isinstance(raw, dict) else raw
    return profile("given", apply(Settings(), {"profiles": {"given": given}}, "policy.profile").profiles)


def as_json(verdict: Verdict) -> dict[str, Any]:
    """A verdict in the words of the command line and the library."""
    risk = verdict.risk
    return {
        "verdict": verdict.word,
        "decision": verdict.decision,
        "stage": verdict.stage,
        "rule": verdict.rule,
        "risk": {
            "category": risk.category.name,
            "domains": list(risk.domains),
            "effects": [msgspec.to_builtins(effect) for effect in risk.effects],
            "complexity": risk.complexity,
        },
        "trust": verdict.trust,
        "autonomy": verdict.autonomy,
        "reasons": reason_lines(verdict.reasons),
        "remedy": verdict.remedy,
        "why": [msgspec.to_builtins(reason) for reason in verdict.reasons],
    }
