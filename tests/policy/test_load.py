import msgspec
import pytest

from checkrein.call import Category, Risk, ToolCall
from checkrein.errors import ConfigError
from checkrein.policy import decide
from checkrein.policy.load import compile_policy, file_rules
from checkrein.policy.rules import rule
from checkrein.policy.trust import Scores
from checkrein.settings import DOORS, Settings
from checkrein.settings.check import apply

DENY = {"tool": "x", "action": "deny"}
WITH_A_PROFILE_THAT_IS_GONE = msgspec.structs.replace(DOORS["hooks"], profile="gone")


def test_file_rules_are_named_by_their_place():
    made = file_rules([DENY, {**DENY, "id": "mine"}], "file")
    assert [(each.id, each.origin) for each in made] == [("file#1", "file"), ("mine", "file")]
    assert file_rules([DENY], "project", "project")[0].origin == "project"


@pytest.mark.parametrize(
    "raws",
    [
        [{"action": "deny"}],
        [DENY, {**DENY, "pattern": "y"}],
        [{**DENY, "uses": 3}],
        [{**DENY, "id": "a"}, {**DENY, "id": "a"}],
        [{**DENY, "id": "file#2"}, DENY],
        [{**DENY, "when": {"x": {"gt": "5"}}}],
    ],
)
def test_a_file_rule_that_cannot_be_right_is_refused_with_its_place(raws):
    with pytest.raises(ConfigError) as caught:
        file_rules(raws, "file")
    assert caught.value.key.startswith("rules")
    assert caught.value.remedy


@pytest.mark.invariant("a project's rule never goes by the name of a person's")
def test_a_projects_rule_never_goes_by_the_name_of_a_persons():
    made = file_rules([{**DENY, "id": "grant-1"}, {**DENY, "id": "file#1"}], "project", "project")
    assert [each.id for each in made] == ["project#grant-1", "project#file#1"]


def test_on_equal_priority_a_file_speaks_before_the_store():
    settings = apply(Settings(), {"rules": [DENY]})
    policy = compile_policy(settings, stored=[rule({"tool": "x", "action": "allow"}, id="s1")])
    assert [each.id for each in policy.rules.rules] == ["file#1", "s1"]
    first = compile_policy(settings, stored=[rule({"tool": "x", "action": "allow", "priority": 1}, id="s1")])
    assert [each.id for each in first.rules.rules] == ["s1", "file#1"]


@pytest.mark.parametrize("door", DOORS)
def test_a_door_brings_its_profile_and_its_answer_to_unnamed_calls(door):
    settings = apply(Settings(), {"profiles": {"p": {"deny": ["x"]}}, "doors": {door: {"profile": "p"}}})
    policy = compile_policy(settings, door=door)
    assert (policy.profile.name, policy.unmatched) == ("p", DOORS[door].unmatched)
    assert compile_policy(Settings(), door=door).profile is None


@pytest.mark.invariant("a profile that is gone lets nothing pass")
@pytest.mark.parametrize(
    "broken",
    [
        {"settings": Settings(rules=({"action": "deny"},))},
        {"project_rules": [{"action": "deny"}]},
        {"door": "window"},
        {"named": "gone"},
        {"settings": Settings(doors=DOORS | {"hooks": WITH_A_PROFILE_THAT_IS_GONE})},
        {"fault": "the file is broken"},
    ],
)
def test_what_cannot_be_compiled_blocks_every_call(broken):
    policy = compile_policy(**{"settings": Settings(), **broken})
    assert policy.fault
    verdict = decide(ToolCall(tool="Read"), Risk(category=Category.low), policy, Scores({}, 1.0), now=0.0)
    assert (verdict.word, verdict.stage) == ("deny", "settings")
    assert policy.fault in verdict.reasons[0].text


def test_a_projects_rules_stand_beside_the_users():
    policy = compile_policy(Settings(), project_rules=[DENY])
    assert len(policy.rules) == 0
    assert [each.origin for each in policy.project_rules.rules] == ["project"]
