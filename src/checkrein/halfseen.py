"""Rules on a call of which only the record is left: values there may be masked or cut.

What a condition cannot see is never guessed: a rule that looks at such a value matches, or does not, and
both are followed to the end. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from checkrein.call import ToolCall, digest
from checkrein.ledger.redact import TOO_DEEP
from checkrein.ledger.secrets import MASK
from checkrein.policy.conditions import Condition, Context, Resolve, holds
from checkrein.policy.rules import Rule, RuleSet

_CUT = re.compile(r"\[cut: \d+ (?:characters|bytes)\]\Z")
# A name this long was cut itself, and may stand for another.
_LONGEST_NAME = 200
# Where a condition looks, and whether it only asks if something is there.
Look = tuple[tuple[str | int, ...], bool]


def look_of(condition: Condition) -> Look:
    return condition.steps, all(name == "exists" for name, _ in condition.tests)


class HalfSeen:
    """A recorded call's arguments: which of them are what the agent sent."""

    def __init__(self, given: Any, argument_hash: str) -> None:
        # INVARIANT: arguments whose hash is the recorded one are the agent's own, whatever they look like.
        self.is_whole = isinstance(given, dict) and digest(given) == argument_hash
        # Changed, and no mark says where: then nothing in it can be relied on.
        self._is_lost = not self.is_whole and (not isinstance(given, dict) or not _is_marked(given))
        self._given = given
        self._known: dict[Look, bool] = {}

    def shows(self, look: Look) -> bool:
        """Whether everything a condition looks at is there."""
        if self.is_whole:
            return True
        if self._is_lost:
            return False
        # Many rules look at the same place.
        known = self._known.get(look)
        if known is None:
            known = self._known[look] = _shows(self._given, *look)
        return known


def _shows(value: Any, steps: tuple[str | int, ...], only_presence: bool) -> bool:
    if not steps:
        return only_presence or not _is_marked(value)
    if isinstance(value, str):
        return not _is_marked(value)
    step, rest = steps[0], steps[1:]
    if isinstance(value, Mapping):
        if step != "*" and str(step) in value:
            return _shows(value[str(step)], rest, only_presence)
        return not any(_is_marked_name(name) for name in value)
    if isinstance(value, list):
        if step == "*":
            return all(_shows(item, rest, only_presence) for item in value)
        if isinstance(step, int) and step < len(value):
            return _shows(value[step], rest, only_presence)
    return True


def _is_marked(value: Any) -> bool:
    if isinstance(value, str):
        return MASK in value or TOO_DEEP in value or _CUT.search(value) is not None
    if isinstance(value, Mapping):
        return any(_is_marked_name(name) or _is_marked(item) for name, item in value.items())
    return isinstance(value, list) and any(map(_is_marked, value))


def _is_marked_name(name: str) -> bool:
    return MASK in name or len(name) >= _LONGEST_NAME


class _Candidate(msgspec.Struct, frozen=True):
    """A rule, where each of its conditions looks, and the rule by its name alone."""

    rule: Rule
    looks: tuple[tuple[Condition, Look], ...]
    named: RuleSet


class Candidates:
    """A rule set, asked which of its rules could decide a call that is seen in part."""

    def __init__(self, rules: RuleSet) -> None:
        self._all = [
            _Candidate(each, tuple((one, look_of(one)) for one in each.when), RuleSet([bare(each)]))
            for each in rules.rules
        ]
        self._fitting: dict[tuple[str | None, str], list[_Candidate]] = {}

    def rules_for(self, call: ToolCall) -> RuleSet:
        """The rules whose server and name fit; the others have no say in the call."""
        return RuleSet([each.rule for each in self._named(call)])

    def of(self, call: ToolCall, seen: HalfSeen, now: float, resolve: Resolve | None) -> list[Rule | None]:
        """Every rule that may be the first to match, and None where it may be that none does."""
        possible: list[Rule | None] = []
        for each in self._named(call):
            rule = each.rule
            if (rule.expires_at is not None and now >= rule.expires_at) or rule.uses == 0:
                continue
            answer = _matches(each, call, seen, resolve)
            if answer is not False:
                possible.append(rule)
            if answer is True:
                return possible
        return [*possible, None]

    def _named(self, call: ToolCall) -> list[_Candidate]:
        """Calls of one tool share the answer."""
        key = (call.server, call.tool)
        if key not in self._fitting:
            self._fitting[key] = [each for each in self._all if each.named.match(call, 0.0) is not None]
        return self._fitting[key]


def bare(rule: Rule) -> Rule:
    """The rule without anything that could keep it from matching but its name."""
    return msgspec.structs.replace(rule, when=(), expires_at=None, uses=None)


def _matches(candidate: _Candidate, call: ToolCall, seen: HalfSeen, resolve: Resolve | None) -> bool | None:
    """Whether the rule matches; None where that cannot be told. As in `rules`, but for what is not seen."""
    allow = candidate.rule.action == "allow"
    hidden, doubt = False, False
    for condition, look in candidate.looks:
        if not seen.shows(look):
            hidden = True
            continue
        answer, _ = holds(condition, Context(call, resolve), every=allow)
        if answer == "no":
            return False
        doubt = doubt or answer == "unknown"
    if doubt and allow:
        return False
    return None if hidden else True
