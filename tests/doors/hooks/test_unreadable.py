"""What nobody can read is refused at the gate, and on the record in any case."""

import pytest


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b"[]",
        b"{bad",
        b"\xff\xfe{}",
        b'{"a":1}{"b":2}',
        b"[" * 3000,
        b'{"a":' * 3000 + b"1" + b"}" * 3000,
        b'{"session_id":"s","hook_event_name":"PreToolUse","tool_name":["Bash"],"tool_input":{}}',
        b'{"session_id":"s","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":"ls"}',
        b'{"session_id":7,"hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{}}',
        b'{"session_id":"s","hook_event_name":"Nonsense","tool_name":"Bash","tool_input":{}}',
        b'{"session_id":"s","hook_event_name":"PostToolUse","tool_name":"Bash","tool_input":{}}',
        b'"' + b"x" * (10 << 20) + b'"',
    ],
    ids=lambda body: repr(body[:40]),
)
def test_hostile_payloads_at_the_gate_are_refused_and_recorded(agent, body):
    stdout, stderr, code = agent.raw(body)
    assert code == 2
    assert stdout["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert "cannot be read" in stderr
    assert [(each.decision, each.stage) for each in agent.entries()] == [("blocked", "floor")]


def test_a_truncated_payload_is_refused_and_recorded(agent):
    _, stderr, code = agent.raw(b'{"session_id":"s-9","tool_name":"Write"', facts={"TRUNCATED": "1"})
    assert code == 2
    assert "8 MiB" in stderr
    assert (agent.entries()[0].session_id, agent.entries()[0].tool_name) == ("s-9", "Write")


def test_an_unreadable_report_is_recorded_and_holds_nobody_up(agent):
    assert agent.raw(b"{bad", mode="tell") == ("", "", 0)
    assert "unreadable" in agent.kinds()


def test_an_unknown_agent_is_refused_at_the_gate(agent):
    stdout, stderr, code = agent.raw(b"{}", agent="nobody")
    assert (stdout, code) == ("", 2)
    assert "not an agent we know" in stderr
