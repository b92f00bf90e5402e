"""Deciding: a call, its risk, the policy and the trust go in, a verdict comes out. Pure.

Order: floor, phase, rules, profile, then (where neither rule nor profile spoke) trust gate and autonomy.
The most restrictive word wins, except that a person's explicit allow outranks earned trust. Nothing
outranks the floor. An error in any stage is `blocked`, with its reason.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from checkrein.call import Category, Decision, Reason, Risk, ToolCall, Verdict, Word
from checkrein.policy import phases, profiles
from checkrein.policy.autonomy import autonomy, decision_for
from checkrein.policy.conditions import Resolve
from checkrein.policy.profiles import Profile
from checkrein.policy.rules import Match, RuleSet
from checkrein.policy.trust import Scores
from checkrein.settings import Settings

Unmatched = Literal["earned", "ask", "allow"]
UNKNOWN_RISK = Risk(category=Category.critical, complexity=1.0)
# Refused before anything looked at it. To everything that reads the category all the same it is critical.
UNJUDGED = Risk(category=Category.critical, domains=(), complexity=1.0, judged=False)
_SEVERITY: tuple[Word, ...] = ("allow", "ask", "deny")
_DECISION_OF: dict[Word, Decision] = {"allow": "auto_approved", "ask": "human_required", "deny": "blocked"}


class Policy(msgspec.Struct, frozen=True):
    """What people wrote, compiled: everything a decision needs besides the call, its risk and the trust."""

    settings: Settings
    rules: RuleSet
    project_rules: RuleSet
    profile: Profile | None = None
    phase: str | None = "building"
    unmatched: Unmatched = "earned"
    fault: str = ""


class _Spoken(msgspec.Struct, frozen=True):
    """A stage's word on the call."""

    stage: str
    decision: Decision
    reason: Reason
    remedy: str = ""
    rule: str | None = None


def decide(
    call: ToolCall,
    risk: Risk,
    policy: Policy,
    trust: Scores,
    *,
    now: float,
    resolve: Resolve | None = None,
    released: bool = False,
    approved: bool = False,
) -> Verdict:
    """The verdict on a call. `approved`: a person said yes to it; `released`: even past the floor, once."""
    scores: dict[str, float] = {}
    value: float | None = None
    stage = "floor"
    try:
        scores = {domain: trust.of(domain) for domain in risk.domains}
        _in_bounds(risk, scores)
        value = autonomy(risk.category, risk.complexity, min(scores.values()), policy.settings.risk)
        spoken = _floor(risk, policy, released)
        if spoken is None:
            stage = "phase"
            spoken = _phase(risk, policy)
        if spoken is None:
            stage = "rules"
            consent = _RELEASED if released else _APPROVED if approved else None
            spoken = _written(call, policy, now, resolve, consent)
        if spoken is None:
            stage = "trust"
            spoken = _earned(risk, policy, scores, value)
    except Exception as error:  # noqa: BLE001 - INVARIANT: an error in any stage is the most restrictive answer
        spoken = failed(stage, error)
    return Verdict(
        decision=spoken.decision,
        stage=spoken.stage,
        risk=risk,
        reasons=(spoken.reason, *risk.reasons),
        remedy=spoken.remedy,
        rule=spoken.rule,
        autonomy=value,
        trust=scores,
    )


def refuse(stage: str, reason: str, remedy: str, risk: Risk = UNJUDGED) -> Verdict:
    """A blocked verdict for a call that was not, or could not be, judged."""
    return Verdict(
        decision="blocked", stage=stage, risk=risk, reasons=(Reason(reason), *risk.reasons), remedy=remedy
    )


def failed(stage: str, error: Exception) -> _Spoken:
    text = f"Deciding failed in the {stage} stage: {type(error).__name__}: {error}"
    return _Spoken(stage, "blocked", Reason(text), "Report this; until it is fixed such calls are refused.")


def _in_bounds(risk: Risk, scores: dict[str, float]) -> None:
    """Numbers outside their scale (NaN, too) would slip past every comparison below."""
    if not Category.low <= risk.category <= Category.critical or not 0 <= risk.complexity <= 1:
        raise ValueError(f"risk {risk.category!r} with complexity {risk.complexity!r} is not on the scale")
    for domain, score in scores.items():
        if not 0 <= score <= 1:
            raise ValueError(f"trust {score!r} in {domain} is outside 0..1")


def _floor(risk: Risk, policy: Policy, released: bool) -> _Spoken | None:
    if policy.fault:
        return _Spoken(
            "settings",
            "blocked",
            Reason(f"The settings cannot be used: {policy.fault}"),
            "Fix the file; `checkrein config check` says when it is good.",
        )
    # INVARIANT: critical risk is blocked whatever trust, rules and profiles say.
    if risk.category >= Category.critical and not released:
        return _Spoken(
            "floor",
            "blocked",
            Reason("Critical risk is always blocked."),
            "If you want this once, a person can release exactly this call.",
        )
    return None


def _phase(risk: Risk, policy: Policy) -> _Spoken | None:
    name = phases.phase_named(policy.phase, policy.settings.phases)
    why = phases.blocked(name, policy.settings.phases[name], risk.domains)
    if not why:
        return None
    unset = "" if name == policy.phase else " (no valid phase is set, so the strictest applies)"
    return _Spoken("phase", "blocked", Reason(f"{why}{unset}."), "A person can switch the phase.")


def _written(
    call: ToolCall, policy: Policy, now: float, resolve: Resolve | None, consent: _Spoken | None
) -> _Spoken | None:
    """What people wrote: the user's rules, a project's restrictions, the profile; the strictest wins."""
    spoken = []
    for rules in (policy.rules, policy.project_rules):
        match = rules.match(call, now, resolve)
        # INVARIANT: a project's own rule never allows.
        if match is not None and (match.rule.action != "allow" or match.rule.origin != "project"):
            spoken.append(_rule_said(match))
    said = profiles.judge(policy.profile, call) if policy.profile else None
    if said is not None:
        remedy = "" if said[0] == "allow" else "A person can change the profile."
        spoken.append(_Spoken("profile", _DECISION_OF[said[0]], Reason(f"{said[1]}."), remedy))
    if consent:
        # A person's yes is the answer to the question; only a deny still outranks it.
        spoken = [each for each in spoken if each.decision == "blocked"] or [consent]
    if spoken:
        return max(spoken, key=lambda each: _RANK[each.decision])
    if policy.unmatched == "ask":
        text = "No rule or profile names this call, and this door asks then."
        return _Spoken("unmatched", "human_required", Reason(text), "Answer, or write a rule for it.")
    if policy.unmatched == "allow":
        return _Spoken("unmatched", "auto_approved", Reason("No rule or profile names this call."))
    return None


_APPROVED = _Spoken("approval", "auto_approved", Reason("A person approved exactly this call."))
_RELEASED = _Spoken("release", "auto_approved", Reason("A person released exactly this call, once."))
_RANK: dict[Decision, int] = {decision: _SEVERITY.index(word) for word, decision in _DECISION_OF.items()}


def _rule_said(match: Match) -> _Spoken:
    rule = match.rule
    because: tuple[Reason, ...] = (Reason(rule.reason),) if rule.reason else ()
    if match.doubt:
        because += (Reason(f"{match.doubt}, and a {rule.action} rule that cannot be checked applies"),)
    remedy = "" if rule.action == "allow" else f"A person can change rule {rule.id}."
    text = f"Rule {rule.id} says {rule.label}."
    return _Spoken("rules", _DECISION_OF[rule.action], Reason(text, because), remedy, rule.id)


def _earned(risk: Risk, policy: Policy, scores: dict[str, float], value: float) -> _Spoken:
    """What the agent has earned: the trust gate first, then the autonomy thresholds."""
    settings = policy.settings
    phase = settings.phases[phases.phase_named(policy.phase, settings.phases)]
    gate = settings.autonomy.trust_gate_threshold
    for domain in phases.gated(phase, risk.domains):
        if scores[domain] <= gate:
            text = f"`{domain}` asks until trust is above {gate:g}; it is {scores[domain]:.2f}."
            return _Spoken("trust_gate", "human_required", Reason(text), _ANSWER)
    decision = decision_for(value, settings.autonomy)
    lowest = min(scores, key=scores.__getitem__)
    text = (
        f"Autonomy {value:.2f} from {risk.category.name} risk, complexity {risk.complexity:.2f} "
        f"and trust {scores[lowest]:.2f} in `{lowest}`: {_MEANING[decision]}."
    )
    return _Spoken("autonomy", decision, Reason(text), _ANSWER if decision == "human_required" else "")


_ANSWER = "Answer the question, or write a rule; successes raise trust."
_MEANING = {
    "auto_approved": "runs unasked",
    "logged_only": "runs, marked for review",
    "human_required": "a person is asked",
}
