"""What is suspicious about a rule list: rules that can never match, repeat another, or allow too much."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from checkrein.call import split_name
from checkrein.policy.conditions import Condition
from checkrein.policy.patterns import Pattern, pattern
from checkrein.policy.rules import Rule

_WIDE = 3
_SHELLS = ("Bash", "PowerShell")


class Finding(msgspec.Struct, frozen=True):
    rule: str
    kind: str
    message: str


def lint(rules: Sequence[Rule], now: float) -> list[Finding]:
    """Findings in the order of evaluation; `rules` must be sorted as they are evaluated."""
    found: list[Finding] = []
    for index, rule in enumerate(rules):
        found += _alone(rule, now)
        for earlier in rules[:index]:
            finding = _against(rule, earlier)
            if finding:
                found.append(finding)
                break
    return found


def _alone(rule: Rule, now: float) -> list[Finding]:
    found = []
    if rule.expires_at is not None and rule.expires_at <= now:
        found.append(Finding(rule.id, "never", "has expired and can never match again"))
    if rule.uses == 0:
        found.append(Finding(rule.id, "never", "has no uses left and can never match again"))
    if rule.tool == "":
        found.append(Finding(rule.id, "never", "names an empty tool, which no agent calls"))
    if rule.server == "":
        found.append(Finding(rule.id, "never", "names an empty server; leave it out to mean every server"))
    if rule.server is not None and "*" in rule.server:
        found.append(
            Finding(rule.id, "literal", f"server {rule.server!r} is literal: `*` matches no other server")
        )
    if rule.tool is not None and "*" in rule.tool:
        found.append(Finding(rule.id, "literal", f"tool {rule.tool!r} is exact: write pattern for `*`"))
    if (
        rule.server is None
        and rule.pattern
        and rule.pattern.startswith("mcp")
        and not rule.pattern.startswith("mcp__")
    ):
        found.append(Finding(rule.id, "literal", "matches no server's tool; write mcp__* or mcp__SERVER__*"))
    if "?" in (rule.tool or rule.pattern or ""):
        found.append(Finding(rule.id, "literal", "`?` is a plain question mark, not a wildcard"))
    if rule.action == "allow" and not rule.when and _is_wide(rule):
        found.append(
            Finding(rule.id, "wide", "allows far more than one tool; name the tools or add conditions")
        )
    if rule.action == "allow" and rule.tool in _SHELLS and any(map(_is_open_ended, rule.when)):
        message = "also allows whatever follows on the line (`make x; rm -rf y`); use equals or matches ^...$"
        found.append(Finding(rule.id, "wide", message))
    if rule.action != "allow" and rule.when and rule.pattern is not None and _is_wide(rule):
        paths = ", ".join(f"`{condition.path}`" for condition in rule.when)
        message = (
            f"also {rule.action}s every call that has no {paths}; add exists = true to leave those alone"
        )
        if not any(name == "exists" for condition in rule.when for name, _ in condition.tests):
            found.append(Finding(rule.id, "wide", message))
    return found


def _is_open_ended(condition: Condition) -> bool:
    """A test on a command line that says nothing about its end."""
    return condition.path == "command" and any(
        name in ("starts_with", "contains") or (name == "matches" and not str(wanted).endswith("$"))
        for name, wanted in condition.tests
    )


def _is_wide(rule: Rule) -> bool:
    if rule.pattern is None:
        return False
    parsed = pattern(rule.pattern)
    literal = len(parsed.prefix.removeprefix("mcp__")) + len(parsed.suffix) + sum(map(len, parsed.pieces))
    return parsed.wild and literal < _WIDE


def _against(rule: Rule, earlier: Rule) -> Finding | None:
    if earlier.expires_at is not None or earlier.uses is not None:
        return None
    server, names = _scope(rule)
    earlier_server, earlier_names = _scope(earlier)
    if earlier_server not in (None, server) or not earlier_names.covers(names):
        return None
    if _means_full_names(rule) and not _means_full_names(earlier) and earlier.pattern != "*":
        return None
    if earlier.when == rule.when and earlier.action == rule.action:
        return Finding(rule.id, "duplicate", f"adds nothing to {earlier.id} ({earlier.label})")
    if not earlier.when:
        return Finding(rule.id, "shadowed", f"never decides: {earlier.id} ({earlier.label}) comes first")
    return None


def _means_full_names(rule: Rule) -> bool:
    """Whether the rule's pattern is also held against `mcp__server__tool`, as `RuleSet` does."""
    return rule.server is None and pattern(rule.pattern or "").prefix.startswith("mcp__")


def _scope(rule: Rule) -> tuple[str | None, Pattern]:
    if rule.tool is not None:
        server, tool = (rule.server, rule.tool) if rule.server is not None else split_name(rule.tool)
        return server, Pattern(tool, (), "", False)
    return rule.server, pattern(rule.pattern or "")
