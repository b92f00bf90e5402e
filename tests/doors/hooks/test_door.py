"""The hook door over a real pipeline: every kind of event, answered in the agent's own words."""

import pytest

from doors.hooks.agent import ATTENDED, reason, said


def test_allow_and_deny_in_the_agents_words(agent):
    assert said(agent.call("ls")) == "allow"
    answer = agent.call("curl https://x.example", call="t2")
    assert (said(answer), answer[2]) == ("deny", 2)
    assert answer[1].strip() == reason(answer)
    assert [each.decision for each in agent.entries()] == ["logged_only", "blocked"]


def test_ac_032_a_refusal_names_the_call_its_risk_the_reason_and_the_way_out(agent):
    text = reason(agent.call("curl https://x.example"))
    assert "curl https://x.example" in text
    assert "Risk: critical. Decision: blocked" in text
    assert "talks to x.example" in text
    assert "What helps:" in text


def test_the_same_call_heard_twice_is_one_entry(agent):
    agent.call("ls")
    agent.call("ls")
    assert len(agent.entries()) == 1


@pytest.mark.invariant("a verdict is repeated for exactly the same call only, whatever id a payload claims")
def test_a_reused_id_with_other_arguments_is_judged_again(agent):
    assert said(agent.call("ls")) == "allow"
    assert said(agent.call("curl https://x.example")) == "deny"
    assert len(agent.entries()) == 2


def test_a_tool_of_a_server_keeps_its_server(agent):
    agent.call(tool="mcp__mail__send", arguments={"to": "x"}, mcp_server={"name": "mail", "source": "user"})
    assert (agent.entries()[0].server, agent.entries()[0].tool_name) == ("mail", "mcp__mail__send")


def test_events_we_do_not_know_pass_in_silence(agent):
    assert agent.send("MessageDisplay") == ("", "", 0)
    assert agent.send("SubagentStart", agent_type="Explore") == ("", "", 0)


def test_the_status_line(agent):
    agent.call("pytest")
    agent.done("pytest")
    agent.call("make release", call="t2", facts=ATTENDED)
    line = agent.send("", "status", workspace={"project_dir": agent.project})[0]
    assert line.startswith("checkrein building · ")
    assert "test_run 0.33" in line
