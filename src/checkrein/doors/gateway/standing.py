"""Tools that policy refuses whatever the arguments are: listing leaves them out. Recorded nowhere."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import msgspec

from checkrein.call import ToolCall
from checkrein.doors.gateway.catalogue import Offered
from checkrein.pipeline import Pipeline
from checkrein.policy import profiles
from checkrein.policy.rules import RuleSet

DOOR = "gateway"
# By the rules they were made from, so that they go when those do.
_certain: WeakKeyDictionary[RuleSet, RuleSet] = WeakKeyDictionary()


def always_denied(
    pipeline: Pipeline, offered: Offered, project: str, *, door: str = DOOR, profile: str = ""
) -> bool:
    """Whether a deny rule or the profile refuses it whatever the arguments are.

    INVARIANT: nothing that could run or ask is left out of a list; what is listed is judged all the same.
    """
    policy = pipeline.policies.of(project, door, profile=profile).policy
    call, now = call_of(offered, project, door), pipeline.clock()
    for rules in (policy.rules, policy.project_rules):
        match = _whatever_the_arguments(rules).match(call, now)
        if match is not None and match.rule.action == "deny":
            return True
    said = profiles.judge(policy.profile, call) if policy.profile else None
    return said is not None and said[0] == "deny"


def call_of(offered: Offered, project: str, door: str = DOOR) -> ToolCall:
    return ToolCall(
        tool=offered.tool,
        server=offered.server,
        door=door,
        project=project,
        annotations=offered.annotations,
    )


def _whatever_the_arguments(rules: RuleSet) -> RuleSet:
    """The rules as if every condition went the call's way: such an allow or ask holds, a deny does not."""
    made = _certain.get(rules)
    if made is None:
        kept = [each for each in rules.rules if each.action != "deny" or not (each.when or each.uses)]
        made = RuleSet(msgspec.structs.replace(each, when=()) for each in kept)
        _certain[rules] = made
    return made
