"""Our answers, in the words the real clients heeded."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

import payloads
from checkrein.doors.hooks import replies
from checkrein.doors.hooks.dialects import AGENTS, GUESTS, dialect
from checkrein.doors.hooks.events import Event, read
from checkrein.doors.hooks.replies import Reply
from checkrein.errors import InputError


def event(name: str) -> Event:
    return read(name.partition("/")[0].partition(".")[0], payloads.payload(name))


EVENTS = [(path, read(payloads.agent_of(path), path.read_bytes())) for path in payloads.ALL]
CALLS = [(path, one) for path, one in EVENTS if one.kind == "call"]
every_call = pytest.mark.parametrize(
    ("path", "call"), CALLS, ids=[f"{path.parent.name}/{path.stem}" for path, _ in CALLS]
)
CLAUDE = event("claude-code/PreToolUse.Bash")
CODEX = event("codex/PreToolUse.Bash")
GEMINI = event("gemini-cli/BeforeTool.run_shell_command")
COPILOT = event("copilot-cli/preToolUse.bash")
CURSOR = read(
    "cursor",
    b'{"conversation_id":"c","hook_event_name":"preToolUse","tool_name":"Shell","tool_input":{"command":"ls"}}',
)
ONE_OF_EACH = [CLAUDE, CODEX, GEMINI, COPILOT, CURSOR]


def said(reply: Reply) -> Any:
    return json.loads(reply.stdout)


def test_claude_code():
    assert said(replies.allow(CLAUDE, reason="fine", context="hint")) == {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "allow",
            "permissionDecisionReason": "fine",
            "additionalContext": "hint",
        }
    }
    assert said(replies.allow(CLAUDE, updated={"command": "true"}))["hookSpecificOutput"]["updatedInput"] == {
        "command": "true"
    }
    assert said(replies.ask(CLAUDE, "why?")) == {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "ask",
            "permissionDecisionReason": "why?",
        }
    }
    assert replies.deny(CLAUDE, "no").exit_code == 2
    assert said(replies.deny(CLAUDE, "no"))["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_codex_is_told_nothing_when_a_call_may_run():
    assert replies.allow(CODEX, reason="fine") == replies.silent()
    assert said(replies.allow(CODEX, reason="fine", context="hint")) == {
        "hookSpecificOutput": {"hookEventName": "PreToolUse", "additionalContext": "hint"}
    }
    assert said(replies.allow(CODEX, reason="fine", updated={"command": "true"})) == {
        "hookSpecificOutput": {
            "hookEventName": "PreToolUse",
            "permissionDecision": "allow",
            "permissionDecisionReason": "fine",
            "updatedInput": {"command": "true"},
        }
    }


def test_gemini_cli_reads_only_its_own_words():
    assert said(replies.allow(GEMINI, reason="fine")) == {"decision": "allow", "reason": "fine"}
    assert said(replies.deny(GEMINI, "no")) == {"decision": "deny", "reason": "no"}
    changed = {**GEMINI.arguments, "command": "true"}
    assert said(replies.allow(GEMINI, updated=changed)) == {
        "decision": "allow",
        "hookSpecificOutput": {"hookEventName": "BeforeTool", "tool_input": changed},
    }


def test_copilot_cli_reads_the_top_level():
    assert said(replies.allow(COPILOT, persons=True, updated={"command": "true"})) == {
        "permissionDecision": "allow",
        "modifiedArgs": {"command": "true"},
    }
    assert said(replies.deny(COPILOT, "no")) == {
        "permissionDecision": "deny",
        "permissionDecisionReason": "no",
    }


def test_cursor():
    assert said(replies.deny(CURSOR, "no")) == {
        "permission": "deny",
        "user_message": "no",
        "agent_message": "no",
    }
    shell = read("cursor", b'{"conversation_id":"c","hook_event_name":"beforeShellExecution","command":"ls"}')
    for call in (CURSOR, shell):
        # Nobody has seen what its `allow` does; empty output it takes for a refusal.
        assert not replies.can_rewrite(call, persons=True)
        assert replies.allow(call, persons=True, reason="fine") == Reply(b"{}")


@every_call
def test_every_real_call_can_be_answered(path: Path, call: Event):
    for persons in (False, True):
        allowed = replies.allow(call, persons=persons, reason="fine")
        assert (allowed.exit_code, allowed.stderr) == (0, b"")
        assert allowed.stdout == b"" or isinstance(said(allowed), dict)
    denied = replies.deny(call, "because")
    assert (denied.exit_code, denied.stderr) == (2, b"because\n")
    assert "because" in denied.stdout.decode() and "deny" in denied.stdout.decode()
    changed = replies.allow(call, persons=True, updated={**call.arguments, "command": "true"})
    assert changed.exit_code == 0 and '"command":"true"' in changed.stdout.decode()
    if replies.can_ask(call):
        asked = replies.ask(call, "why?")
        assert asked.exit_code == 0 and '"ask"' in asked.stdout.decode()


@pytest.mark.invariant("a refusal is never lost")
@pytest.mark.parametrize("path_and_event", EVENTS, ids=lambda pair: f"{pair[0].parent.name}/{pair[0].stem}")
def test_a_refusal_is_never_lost(path_and_event):
    """Whatever comes to a gate can be refused: by exit status, or in the words of a permission answer."""
    _, one = path_and_event
    refused = replies.deny(one, "because")
    if one.kind == "permission":
        assert '"deny"' in refused.stdout.decode()
    else:
        assert (refused.exit_code, refused.stderr) == (2, b"because\n")


@pytest.mark.parametrize("reason", ["", " ", "\n\t"])
def test_a_refusal_always_has_words(reason):
    for call in ONE_OF_EACH:
        assert replies.deny(call, reason).stderr == b"Refused by Checkrein.\n"
        assert replies.refuse_unread(call.agent, reason).stderr.strip()


@pytest.mark.parametrize("agent", AGENTS)
def test_what_nobody_could_read_is_refused_in_the_words_of_the_gate(agent):
    call = next(one for one in ONE_OF_EACH if one.agent == agent)
    assert replies.refuse_unread(agent, "broken") == replies.deny(call, "broken")


def test_even_an_unknown_agent_is_refused():
    assert replies.refuse_unread("nobody", "broken") == Reply(b"", b"broken\n", 2)


@pytest.mark.invariant("an ask is only sent to an agent that understands it")
def test_an_ask_is_only_sent_to_an_agent_that_understands_it():
    with pytest.raises(InputError, match="Codex"):
        replies.ask(CODEX, "why?")
    assert [call.agent for call in ONE_OF_EACH if not replies.can_ask(call)] == ["codex", "cursor"]


@pytest.mark.invariant("what runs is what was approved")
def test_what_runs_is_what_was_approved():
    """Gemini CLI lays the new input over the old one: what was taken out would still be there."""
    assert GEMINI.arguments.keys() == {"command", "description"}
    assert replies.can_rewrite(GEMINI)
    assert not replies.can_rewrite(GEMINI, {"command": "true"})
    with pytest.raises(InputError, match="Gemini CLI"):
        replies.allow(GEMINI, updated={"command": "true"})
    assert replies.can_rewrite(CLAUDE, {"command": "true"})
    for name in ("claude-code/PostToolUse.Bash", "claude-code/Stop", "copilot-cli/permissionRequest.bash"):
        assert not replies.can_rewrite(event(name))
        with pytest.raises(InputError):
            replies.allow(event(name), updated={"command": "true"})


# -- what our words mean there -----------------------------------------------------------------------------

AUTO = msgspec.structs.replace(CLAUDE, mode="auto")


@pytest.mark.invariant("nothing but a person's own word overrules an agent's own checks")
@pytest.mark.parametrize("call", [AUTO, COPILOT], ids=["claude-code in auto mode", "copilot-cli"])
def test_only_a_persons_word_overrules_the_checks_of_an_agent(call):
    assert replies.allow(call, reason="earned", context="hint") == replies.silent()
    assert '"allow"' in replies.allow(call, persons=True, reason="a rule").stdout.decode()
    changed = {**call.arguments, "command": "true"}
    assert not replies.can_rewrite(call, changed)
    with pytest.raises(InputError):
        replies.allow(call, updated=changed)
    assert replies.can_rewrite(call, changed, persons=True)
    assert '"command":"true"' in replies.allow(call, persons=True, updated=changed).stdout.decode()


def test_claude_code_hears_an_earned_allow_in_every_mode_without_a_classifier():
    for mode in ("", "default", "acceptEdits", "plan", "dontAsk", "bypassPermissions"):
        call = msgspec.structs.replace(CLAUDE, mode=mode)
        assert (
            said(replies.allow(call, reason="earned"))["hookSpecificOutput"]["permissionDecision"] == "allow"
        )


@pytest.mark.invariant("an agent is not told to run a call in words nobody has seen the effect of")
def test_a_mode_nobody_has_seen_hears_no_allow():
    call = msgspec.structs.replace(CLAUDE, mode="swift")
    assert replies.allow(call, persons=True, reason="a rule") == replies.silent()
    assert not replies.can_rewrite(call, {"command": "true"}, persons=True)
    assert not replies.can_ask(call)
    assert replies.deny(call, "no").exit_code == 2


@pytest.mark.parametrize("agent", (*AGENTS, *GUESTS))
def test_a_refusal_holds_in_every_agent_and_mode(agent):
    table = dialect(agent)
    rows = [row for row in table.means if row.kind == "call"]
    assert rows and all(row.deny == "grant" for row in rows)


@pytest.mark.parametrize("name", ["PermissionRequest.Bash", "PermissionRequest.interactive"])
def test_a_permission_is_only_given_by_a_person(name):
    asked = event(f"claude-code/{name}")
    assert replies.allow(asked) == replies.silent()
    assert said(replies.allow(asked, persons=True))["hookSpecificOutput"]["decision"] == {"behavior": "allow"}


def test_an_empty_input_is_an_input():
    assert said(replies.allow(CLAUDE, updated={}))["hookSpecificOutput"]["updatedInput"] == {}


def test_an_input_that_cannot_be_written_is_not_allowed():
    for value in (object(), "\ud800"):
        with pytest.raises(InputError):
            replies.allow(CLAUDE, updated={"a": value})


def test_permission_answers():
    asked = event("claude-code/PermissionRequest.Bash")
    decision = said(replies.permission(asked, True))["hookSpecificOutput"]
    assert decision == {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}
    changed = said(replies.permission(asked, True, updated={"command": "true"}))["hookSpecificOutput"]
    assert changed["decision"] == {"behavior": "allow", "updatedInput": {"command": "true"}}
    refused = replies.permission(asked, False, "not now")
    assert (refused.exit_code, refused.stderr) == (0, b"")
    assert said(refused)["hookSpecificOutput"]["decision"] == {"behavior": "deny", "message": "not now"}
    for name in ("copilot-cli/permissionRequest.my_srv.echo", "copilot-cli.pascal/PermissionRequest.bash"):
        assert said(replies.permission(event(name), True)) == {"behavior": "allow"}
        assert said(replies.permission(event(name), False, "no")) == {"behavior": "deny", "message": "no"}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("claude-code/ConfigChange.local_settings", {"decision": "block", "reason": "no"}),
        ("claude-code/UserPromptSubmit", {"decision": "block", "reason": "no"}),
        ("claude-code/UserPromptExpansion", {"decision": "block", "reason": "no"}),
        ("codex/UserPromptSubmit", {"decision": "block", "reason": "no"}),
        ("gemini-cli/BeforeAgent", {"decision": "deny", "reason": "no"}),
        ("copilot-cli/userPromptSubmitted", {"decision": "block", "reason": "no"}),
    ],
)
def test_what_is_not_a_call_can_be_stopped(name, words):
    stopped = replies.block(event(name), "no")
    assert (said(stopped), stopped.stderr, stopped.exit_code) == (words, b"no\n", 2)


def test_telling_the_model_something():
    assert said(replies.inform(event("claude-code/SessionStart.startup"), "hint")) == {
        "hookSpecificOutput": {"hookEventName": "SessionStart", "additionalContext": "hint"}
    }
    assert said(replies.inform(event("copilot-cli/sessionStart"), "hint")) == {"additionalContext": "hint"}
    assert replies.inform(event("claude-code/Stop"), "hint") == replies.silent()
    assert replies.inform(event("claude-code/SessionStart.startup"), "") == replies.silent()


def test_no_opinion_is_no_output():
    assert replies.silent() == Reply(b"", b"", 0)


def test_long_reasons_are_cut():
    for call in ONE_OF_EACH:
        refused = replies.deny(call, "x" * 50_000, "y" * 50_000)
        longest = max(map(len, _texts(said(refused))))
        assert longest == dialect(call.agent).longest_text == 10_000
        assert refused.stderr.decode().endswith("x…\n")


def _texts(part: dict[str, Any]):
    for value in part.values():
        yield from _texts(value) if isinstance(value, dict) else [value]


@given(st.text(st.characters(), max_size=50), st.sampled_from(ONE_OF_EACH))
def test_any_reason_can_be_said(reason, call):
    """Also one that quotes half a character; and one that looks like a placeholder stays what it is."""
    for text in (reason, "$updated", "\ud800"):
        refused = replies.deny(call, text, text)
        assert refused.exit_code == 2 and refused.stderr.strip()
        msgspec.json.decode(refused.stdout)
    assert "$updated" in replies.deny(call, "$updated").stdout.decode()
