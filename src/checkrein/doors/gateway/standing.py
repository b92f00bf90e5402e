"""What policy says about an offered tool before anybody calls it; recorded nowhere.

People read it when they browse servers; listing leaves out what no arguments could ever get past.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakKeyDictionary

import msgspec

from checkrein.call import ToolCall, reason_lines
from checkrein.doors.gateway.catalogue import Offered
from checkrein.pipeline import Pipeline
from checkrein.policy import profiles
from checkrein.policy.rules import RuleSet

DOOR = "gateway"
# By the rules they were made from, so that they go when those do.
_certain: WeakKeyDictionary[RuleSet, RuleSet] = WeakKeyDictionary()


def standing(pipeline: Pipeline, offered: Offered, project: str) -> dict[str, Any]:
    """The verdict of this moment on a call without arguments, in words for a person."""
    try:
        verdict = pipeline.judge(call_of(offered, project)).verdict
    except Exception as error:  # noqa: BLE001 - what cannot be judged is refused, here as in a call
        why = f"It cannot be judged: {type(error).__name__}."
        return {"word": "deny", "stage": "error", "why": why, "risk": "critical"}
    why = " ".join(reason_lines(verdict.reasons[:1]))
    return {"word": verdict.word, "stage": verdict.stage, "why": why, "risk": verdict.risk.category.name}


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
