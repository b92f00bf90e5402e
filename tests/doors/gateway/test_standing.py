"""What policy says about a tool before it is called."""

import pytest

from checkrein.doors.gateway.catalogue import Offered
from checkrein.doors.gateway.schemas import ANYTHING
from checkrein.doors.gateway.standing import always_denied, call_of
from checkrein.store.rules import add_rule


def offered(tool="draft", server="mail", annotations=None):
    return Offered(server, tool, f"{server}__{tool}", {"name": tool}, "h", annotations or {}, ANYTHING)


@pytest.fixture
def write(pipeline):
    def rule(**body):
        number = len(pipeline.store.query("SELECT id FROM rule")) + 1
        pipeline.store.write(lambda tx: add_rule(tx, f"r{number}", body, 1.0))

    return rule


def test_a_tool_nobody_wrote_about_is_listed(pipeline, project):
    assert not always_denied(pipeline, offered(), project)


def test_a_rule_is_heard_at_once(pipeline, project, write):
    write(tool="draft", server="mail", action="allow", priority=50)
    assert not always_denied(pipeline, offered(), project)
    write(tool="draft", server="mail", action="deny", priority=10)
    assert always_denied(pipeline, offered(), project)
    assert not always_denied(pipeline, offered(server="post"), project)


def test_looking_is_recorded_nowhere(pipeline, project):
    before = pipeline.store.query("SELECT count(*) FROM record")
    always_denied(pipeline, offered(), project)
    assert pipeline.store.query("SELECT count(*) FROM record") == before


@pytest.mark.invariant("nothing that could run or ask is left out of a list")
def test_a_deny_that_depends_on_arguments_leaves_the_tool_listed(pipeline, project, write):
    write(tool="draft", action="deny", when=[{"path": "to", "equals": "boss"}])
    assert not always_denied(pipeline, offered(), project)


@pytest.mark.parametrize("action", ["allow", "ask"])
def test_a_condition_that_could_let_it_pass_leaves_the_tool_listed(pipeline, project, write, action):
    write(tool="draft", action=action, priority=1, when=[{"path": "to", "equals": "boss"}])
    write(tool="draft", action="deny", priority=2)
    assert not always_denied(pipeline, offered(), project)


def test_a_deny_before_what_could_let_it_pass_holds(pipeline, project, write):
    write(tool="draft", action="deny", priority=1)
    write(tool="draft", action="allow", priority=2, when=[{"path": "to", "equals": "boss"}])
    assert always_denied(pipeline, offered(), project)


def test_an_expired_deny_and_one_that_is_used_up_deny_nothing(pipeline, project, write, clock):
    write(tool="draft", action="deny", expires_at=clock.now - 1)
    write(tool="draft", action="deny", uses=1)
    assert not always_denied(pipeline, offered(), project)


def test_a_profile_without_the_tool_denies_it(pipeline, project, user_settings):
    user_settings('[doors.gateway]\nprofile = "p"\n[profiles.p]\nallow = ["mail__read*"]\n')
    assert always_denied(pipeline, offered("draft"), project)
    assert not always_denied(pipeline, offered("read_all"), project)


def test_settings_that_cannot_be_used_deny_but_hide_nothing(pipeline, project, user_settings):
    user_settings("nonsense = [")
    assert pipeline.judge(call_of(offered(), project)).verdict.stage == "settings"
    assert not always_denied(pipeline, offered(), project)
