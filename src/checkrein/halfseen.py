"""Rules on a call of which only the record is left: values there may be masked or cut.

What a condition cannot see is never guessed: a rule that looks at such a value matches, or does not, and
both are followed to the end. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
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


class HalfSeen:
    """A recorded call's arguments: which of them are what the agent sent."""

    def __init__(self, given: Any, argument_hash: str) -> None:
        # INVARIANT: arguments whose hash is the recorded one are the agent's own, whatever they look like.
        self.is_whole = isinstance(given, dict) and digest(given) == argument_hash
        # Changed, and no mark says where: then nothing in it can be relied on.
        self._is_lost = not self.is_whole and (not isinstance(given, dict) or not _is_marked(given))
        self._given = given

    def shows(self, condition: Condition) -> bool:
        """Whether everything the condition looks at is there."""
        if self.is_whole:
            return True
        only_presence = all(name == "exists" for name, _ in condition.tests)
        return not self._is_lost and _shows(self._given, condition.steps, only_presence)


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


class Candidates:
    """A rule set, asked which of its rules could decide a call that is seen in part."""

    def __init__(self, rules: RuleSet) -> None:
        self._rules = rules.rules
        self._named: dict[tuple[str | None, str], tuple[Rule, ...]] = {}

    def of(self, call: ToolCall, seen: HalfSeen, now: float, resolve: Resolve | None) -> list[Rule | None]:
        """Every rule that may be the first to match, and None where it may be that none does."""
        possible: list[Rule | None] = []
        for rule in self._fitting(call):
            if (rule.expires_at is not None and now >= rule.expires_at) or rule.uses == 0:
                continue
            answer = _matches(rule, call, seen, resolve)
            if answer is not False:
                possible.append(rule)
            if answer is True:
                return possible
        return [*possible, None]

    def _fitting(self, call: ToolCall) -> Iterable[Rule]:
        """The rules whose server and name fit, in order; calls of one tool share the answer."""
        key = (call.server, call.tool)
        if key not in self._named:
            self._named[key] = tuple(
                each for each in self._rules if RuleSet([bare(each)]).match(call, 0.0) is not None
            )
        return self._named[key]


def bare(rule: Rule) -> Rule:
    """The rule without anything that could keep it from matching but its name."""
    return msgspec.structs.replace(rule, when=(), expires_at=None, uses=None)


def _matches(rule: Rule, call: ToolCall, seen: HalfSeen, resolve: Resolve | None) -> bool | None:
    """Whether the rule matches; None where that cannot be told. As in `rules`, but for what is not seen."""
    hidden, doubt = False, False
    for condition in rule.when:
        if not seen.shows(condition):
            hidden = True
            continue
        answer, _ = holds(condition, Context(call, resolve), every=rule.action == "allow")
        if answer == "no":
            return False
        doubt = doubt or answer == "unknown"
    if doubt and rule.action == "allow":
        return False
    return None if hidden else True
