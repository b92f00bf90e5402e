"""Other programs run the hook of Claude Code: known by their payloads, judged or refused by name."""

import json

import pytest
from ground import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from checkrein.doors.hooks.dialects import AGENTS, GUESTS, dialect
from checkrein.doors.hooks.events import read
from checkrein.errors import InputError

CURSOR = {
    "conversation_id": "c-1",
    "generation_id": "g-1",
    "hook_event_name": "preToolUse",
    "cursor_version": "3.21.16",
    "workspace_roots": ["/home/ada/app"],
    "user_email": "ada@example.com",
    "cwd": "",
    "tool_name": "Shell",
    "tool_input": {"command": "ls"},
    "tool_use_id": "t1",
}
VSCODE = {
    "timestamp": "2026-11-19T10:00:00.000Z",
    "hook_event_name": "PreToolUse",
    "session_id": "v-1",
    "cwd": "/home/ada/app",
    "tool_name": "create_file",
    "tool_input": {"filePath": "/home/ada/app/notes.md", "content": "x"},
    "tool_use_id": "t1",
}
GROK = {
    "hookEventName": "PreToolUse",
    "sessionId": "g-1",
    "cwd": "/home/ada/app",
    "workspaceRoot": "/home/ada/app",
    "toolName": "bash",
    "toolInput": {"command": "ls"},
}
CLAUDE = {
    "session_id": "s-1",
    "cwd": "/home/ada/app",
    "permission_mode": "default",
    "hook_event_name": "PreToolUse",
    "tool_name": "Bash",
    "tool_input": {"command": "ls"},
    "tool_use_id": "t1",
}


def told(payload, agent="claude-code"):
    return read(agent, json.dumps(payload).encode())


def send(agent, payload, mode="gate"):
    there = {key: agent.project for key in ("cwd", "workspaceRoot") if payload.get(key)}
    if "workspace_roots" in payload:
        there["workspace_roots"] = [agent.project]
    return agent.raw(json.dumps(payload | there).encode(), mode)


# -- Cursor: its own dialect -----------------------------------------------------------------------------


def test_cursor_is_read_in_its_own_words():
    event = told(CURSOR)
    assert (event.agent, event.kind, event.tool, event.session) == ("cursor", "call", "Bash", "c-1")
    assert (event.cwd, event.arguments) == ("/home/ada/app", {"command": "ls"})
    without = {key: value for key, value in CURSOR.items() if key != "cursor_version"}
    assert told(without) == event


def test_a_byte_order_mark_is_no_part_of_a_payload():
    assert read("claude-code", b"\xef\xbb\xbf" + json.dumps(CURSOR).encode()) == told(CURSOR)


def test_cursor_is_judged_and_answered_in_its_own_words(agent):
    assert send(agent, CURSOR) == ({}, "", 0)
    answer, stderr, code = send(agent, CURSOR | {"tool_input": {"command": "curl https://x.example"}})
    assert (answer["permission"], code) == ("deny", 2)
    assert "x.example" in stderr
    assert [(each.agent, each.tool_name, each.verdict) for each in agent.entries()] == [
        ("cursor", "Bash", "allow"),
        ("cursor", "Bash", "deny"),
    ]


def test_what_cursor_reports_is_credited(agent):
    send(agent, CURSOR | {"tool_input": {"command": "pytest"}})
    done = CURSOR | {"hook_event_name": "postToolUse", "tool_input": {"command": "pytest"}}
    assert send(agent, done | {"tool_output": '{"exitCode":0}'}, "tell") == ("", "", 0)
    (found,) = agent.entries()
    assert (found.result, found.agent) == ("success", "cursor")


def test_cursors_broken_payload_is_refused_by_name(agent):
    _, stderr, code = send(agent, CURSOR | {"tool_name": 7})
    assert code == 2
    assert "Cursor ran the hook of Claude Code." in stderr and "checkrein install cursor" in stderr


# -- VS Code and Grok Build: guests ----------------------------------------------------------------------


@pytest.mark.invariant("a guest's call is judged only where what its tool does is certain")
def test_vs_codes_certain_tools_are_judged(agent):
    event = told(VSCODE)
    assert (event.agent, event.tool) == ("vscode", "Write")
    assert event.arguments == {"file_path": "/home/ada/app/notes.md", "content": "x"}
    edit = {"filePath": "/a", "oldString": "x", "newString": "y", "explanation": "why"}
    event = told(VSCODE | {"tool_name": "replace_string_in_file", "tool_input": edit})
    assert (event.tool, event.arguments) == (
        "Edit",
        {"file_path": "/a", "old_string": "x", "new_string": "y"},
    )
    inside = {"filePath": f"{agent.project}/.git/hooks/pre-commit", "content": "x"}
    _, stderr, code = send(agent, VSCODE | {"tool_input": inside})
    assert (code, agent.entries()[0].agent, agent.entries()[0].tool_name) == (2, "vscode", "Write")
    assert "cannot be read" not in stderr


@pytest.mark.invariant("a guest's call is judged only where what its tool does is certain")
@pytest.mark.parametrize(
    "change",
    [
        {"tool_name": "run_in_terminal", "tool_input": {"command": "ls"}},
        {"tool_name": "Bash", "tool_input": {"command": "ls"}},
        {"tool_name": "mcp__mail__create_file"},
        {"tool_input": {"filePath": "/a", "content": "x", "mode": "0777"}},
        {"tool_input": {"filePath": "/a"}},
        {"tool_input": {"filePath": ["/a"], "content": "x"}},
        {"tool_input": {"file_path": "/a", "content": "x"}},
        {"tool_input": None},
        {"session_id": None},
        {"hook_event_name": "PreEverything"},
        {"hook_event_name": None},
    ],
    ids=str,
)
def test_what_vs_code_does_besides_is_refused_by_name_with_what_to_do(agent, change):
    answer, stderr, code = send(agent, {k: v for k, v in (VSCODE | change).items() if v is not None})
    assert code == 2
    assert "VS Code ran the hook of Claude Code." in stderr and "chat.hookFilesLocations" in stderr
    assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"
    assert [(each.verdict, each.agent) for each in agent.entries()] == [("deny", "vscode")]


@pytest.mark.parametrize("change", [{}, {"toolName": "Read"}, {"hookEventName": "pre_tool_use"}], ids=str)
def test_grok_is_refused_by_name_with_what_to_do(agent, change):
    answer, stderr, code = send(agent, GROK | change)
    assert code == 2
    assert "Grok Build ran the hook of Claude Code." in stderr and "/hooks" in stderr
    assert answer["decision"] == "deny"
    assert [(each.verdict, each.agent) for each in agent.entries()] == [("deny", "grok")]


@pytest.mark.parametrize(
    "payload",
    [
        CURSOR | {"hook_event_name": "afterAgentResponse"},
        VSCODE | {"hook_event_name": "PostToolUse", "tool_response": "x"},
        VSCODE | {"hook_event_name": "SessionStart"},
        GROK | {"hookEventName": "PostToolUse"},
        {"hookEventName": "SessionStart", "sessionId": "g-1", "workspaceRoot": "/home/ada/app"},
    ],
    ids=lambda payload: str(payload.get("hook_event_name", payload.get("hookEventName"))),
)
def test_what_a_guest_tells_besides_calls_is_passed_over(agent, payload):
    assert send(agent, payload, "tell") == ("", "", 0)
    assert "unreadable" not in agent.kinds()


# -- nobody's shape --------------------------------------------------------------------------------------


@pytest.mark.invariant("a payload of no known shape is read in nobody's words")
@pytest.mark.parametrize(
    "payload",
    [
        {"event": "PreToolUse", "session_id": "s", "tool_name": "Bash", "tool_input": {"command": "ls"}},
        {"hookName": "tool_call", "taskId": "t", "tool_call": {"name": "run_commands"}},
        {"sessionId": "s", "toolName": "bash", "toolArgs": "{}"},
        {},
    ],
    ids=str,
)
def test_an_unknown_shape_is_refused_and_named(agent, payload):
    answer, stderr, code = agent.raw(json.dumps(payload).encode())
    assert (code, answer["hookSpecificOutput"]["permissionDecision"]) == (2, "deny")
    assert "no program we know" in stderr
    assert all(key in stderr for key in payload)


def test_claude_codes_own_payload_is_its_own():
    assert told(CLAUDE).agent == "claude-code"
    # A time alone does not make it another's: this names a permission mode.
    assert told(CLAUDE | {"timestamp": "2026-11-19T10:00:00Z"}).agent == "claude-code"


@pytest.mark.parametrize("agent", [each for each in AGENTS if each != "claude-code"])
def test_other_agents_settings_are_read_by_nobody_else(agent):
    assert dialect(agent).shapes == ()


_VALUES = st.sampled_from(
    ["", "PreToolUse", "preToolUse", "Bash", "Shell", "create_file", "/a", 7, None, [], {}]
)
_KEYS = sorted({*CURSOR, *VSCODE, *GROK, *CLAUDE, "permission_mode", "toolArgs", "event"})


@st.composite
def mixed(draw):
    """The payload of one program with keys and values of the others laid over it."""
    payload = dict(draw(st.sampled_from([CURSOR, VSCODE, GROK, CLAUDE])))
    for key in draw(st.lists(st.sampled_from(_KEYS), max_size=5)):
        other = draw(st.sampled_from([CURSOR, VSCODE, GROK, CLAUDE]))
        if draw(st.booleans()):
            payload[key] = draw(_VALUES) if draw(st.booleans()) else other.get(key)
        else:
            payload.pop(key, None)
    return payload


@pytest.mark.invariant("a payload of no known shape is read in nobody's words")
@settings(max_examples=examples(400))
@given(mixed())
def test_no_payload_is_misread(payload):
    """Whatever is read as a call has the tool and the arguments of the fields its program has."""
    try:
        event = told(payload)
    except InputError:
        return
    assert event.agent in ("claude-code", "cursor", *GUESTS)
    if event.kind != "call":
        return
    table = dialect(event.agent)
    name = next(payload[key] for key in table.fields.tool if payload.get(key) is not None)
    given_to = next(payload[key] for key in table.fields.arguments if payload.get(key) is not None)
    assert event.tool and event.session
    if event.agent in GUESTS:
        known = table.certain[name]
        assert event.tool == known.tool
        assert event.arguments == {ours: given_to[theirs] for theirs, ours in known.arguments.items()}
    else:
        assert event.tool == table.tools.get(name, name) and event.arguments == given_to


@pytest.mark.invariant("a payload of no known shape is read in nobody's words")
def test_no_payload_passes_the_gate_unseen(agent):
    """Either it is refused with words, or a verdict on it is on the record."""

    @settings(max_examples=examples(100))
    @given(mixed())
    def passes(payload):
        before = len(agent.entries())
        if isinstance(payload.get("tool_use_id"), str):
            # A call with the same id is the same call, heard twice.
            payload = payload | {"tool_use_id": f"t{before}"}
        _, stderr, code = agent.raw(json.dumps(payload).encode())
        (found,) = agent.entries()[before:]
        if code == 0:
            assert found.verdict == "allow"
        else:
            assert (code, found.verdict == "allow") == (2, False) and stderr.strip()

    passes()
