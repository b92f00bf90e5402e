"""Effects into a judgement: how bad each is, which domains they belong to, how complex the line was.

Called at the end of every classification, by shell lines and tools alike.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from checkrein.call import GLOBAL_DOMAIN, Category, Effect, Reason, Risk
from checkrein.classify.findings import Finding, Part
from checkrein.classify.tables import data

MAX_EFFECTS = 64
PLAIN_CEILING = 0.6
"""A line we understand never gets more complex than this; above 0.64 a low line would ask."""


@cache
def _judgements() -> dict[str, Category]:
    rows = data("_effects")["category"]
    return {
        f"{kind} {scope}": Category[word] for kind, scopes in rows.items() for scope, word in scopes.items()
    }


@cache
def _domains() -> dict[str, str]:
    rows = data("_effects")["domain"]
    return {f"{kind} {scope}": domain for kind, scopes in rows.items() for scope, domain in scopes.items()}


def category(kind: str, scope: str) -> Category:
    """How bad an effect is by itself; one nobody wrote down is medium."""
    table = _judgements()
    found = table.get(f"{kind} {scope}")
    return found if found is not None else table.get(f"{kind} any", Category.medium)


def domain(effect: Effect) -> str:
    if effect.scope.startswith("mcp:"):
        return effect.scope
    table = _domains()
    return table.get(f"{effect.kind} {effect.scope}") or table.get(f"{effect.kind} any", "shell_exec")


def domains(effects: Iterable[Effect], fallback: str = "file_read") -> tuple[str, ...]:
    """Every domain the effects touch; reading is implied by anything stronger."""
    found = {domain(effect) for effect in effects}
    if len(found) > 1:
        found.discard("file_read")
    if len(found) > 1:
        found.discard("git_read")
    # INVARIANT: a test run that hides something else is not a test run
    if "shell_exec" in found:
        found.discard("test_run")
    return tuple(sorted(found)) or (fallback,)


def complexity(parts: int, nesting: int, dynamic: int, opaque: bool) -> float:
    """0..1 from the parse: plain lines approach 0.6, opaque ones start at 0.8."""
    load = 0.06 * (parts - 1) + 0.08 * nesting + 0.08 * dynamic
    plain = 0.1 + (PLAIN_CEILING - 0.1) * (load / (1 + load))
    return round(min(1.0, 0.8 + 0.2 * plain / PLAIN_CEILING) if opaque else plain, 3)


def risk(
    part: Part, *, complexity: float, fallback: str = "file_read", extra: tuple[Finding, ...] = ()
) -> Risk:
    """The Risk of everything found in `part`, plus what flows added."""
    # The worst first: what does not fit any more must not be what matters.
    findings = sorted([*part.all(), *extra], key=lambda finding: -finding.category)
    unique = dict.fromkeys(finding.effect for finding in findings)
    effects = tuple(effect for effect in unique if effect.kind != "note")
    worst = max((finding.category for finding in findings), default=Category.low)
    reasons = [Reason(f"{finding.why} ({finding.category.name})") for finding in extra]
    if part.children:
        reasons += [Reason(f"{finding.why} ({finding.category.name})") for finding in part.findings[:20]]
        reasons += [child.reason() for child in part.children[:60]]
    elif not reasons or part.findings:
        reasons.append(part.reason())
    return Risk(
        category=worst,
        domains=domains(effects, fallback) if fallback != GLOBAL_DOMAIN or effects else (GLOBAL_DOMAIN,),
        effects=effects[:MAX_EFFECTS],
        complexity=complexity,
        reasons=tuple(reasons),
    )
