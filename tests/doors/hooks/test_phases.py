"""The phase is switched by a person who types it, and by nobody else."""

import json
import os

import pytest

from checkrein.peers import Peer
from checkrein.store import records
from checkrein.wire import Request
from doors.hooks.agent import reason, said


def test_ac_027_a_typed_phase_holds_from_the_next_call_on(agent):
    assert said(agent.call("pytest")) == "allow"
    agent.send("UserPromptExpansion", command_name="auditing", command_args="", prompt="/auditing")
    assert said(agent.call("pytest", call="t2")) == "deny"
    agent.send("UserPromptExpansion", command_name="checkrein:building", command_args="", prompt="x")
    assert said(agent.call("pytest", call="t3")) == "allow"
    changed = [row for row in records.after(agent.pipeline.store, 0) if row[2] == "phase_changed"]
    assert len(changed) == 3


def test_a_phase_typed_in_one_session_leaves_the_others_alone(agent):
    agent.send("UserPromptExpansion", command_name="auditing", command_args="", prompt="/auditing")
    assert agent.pipeline.phase_of(agent.project, "other") == "building"


def test_other_slash_commands_are_none_of_our_business(agent):
    assert agent.send("UserPromptExpansion", command_name="review", command_args="", prompt="x") == (
        "",
        "",
        0,
    )


@pytest.mark.invariant("the model cannot switch the phase")
@pytest.mark.parametrize("name", ["building", "checkrein:building", "/building now"])
def test_the_model_cannot_switch_the_phase(agent, name):
    answer = agent.call(tool="Skill", arguments={"skill": name})
    assert said(answer) == "deny"
    assert "Only a person" in reason(answer)


def test_a_prompt_is_where_other_agents_have_their_slash_commands(agent):
    agent.send("UserPromptSubmit", agent="codex", prompt="/auditing")
    assert agent.pipeline.phase_of(agent.project, "s-1") == "auditing"


def test_a_phase_without_a_session_is_nobodys(agent):
    agent.send("UserPromptExpansion", session_id="", command_name="auditing", prompt="/auditing")
    assert agent.pipeline.phase_of("", "") is None


def test_a_phase_switch_from_the_spool_comes_too_late(agent):
    body = {"session_id": "s-1", "cwd": agent.project, "hook_event_name": "UserPromptSubmit"}
    request = Request(
        "0.1.0", ("hook", "codex", "tell", "5"), {}, json.dumps(body | {"prompt": "/auditing"}).encode()
    )
    agent.door.handle(request, Peer(0, os.geteuid()), None)
    assert agent.pipeline.phase_of(agent.project, "s-1") == "building"
