"""What an agent hears over HTTP when its call cannot be judged, or is refused without words."""

import json

import pytest

from checkrein.doors.hooks.replies import Reply
from checkrein.server.http import HttpHooks
from server.over_http import post


@pytest.fixture
def answering(home):
    """The port of HTTP hooks that are answered by this function."""
    (home / "state" / "checkrein").mkdir(parents=True)
    made = []

    def start(handle):
        made.append(HttpHooks(0, handle))
        return made[-1].port

    yield start
    for each in made:
        each.stop()


@pytest.mark.invariant("an error is a no in the agent's own words")
def test_an_error_in_the_door_is_a_no_in_the_agents_words(answering, pre):
    def broken(_request, _line):
        raise RuntimeError("boom")

    port = answering(broken)
    status, body = post(port, pre("ls"))
    said = json.loads(body)["hookSpecificOutput"]
    assert (status, said["permissionDecision"]) == (200, "deny")
    assert "boom" in said["permissionDecisionReason"]
    assert post(port, pre("ls"), "/hooks/claude-code/tell")[0] == 403
    assert post(port, pre("ls"), "/hooks/nobody/gate")[0] == 403


@pytest.mark.invariant("a refusal is never an empty answer, which agents take for an agreement")
@pytest.mark.parametrize("words", [b"", b"not now"])
def test_a_refusal_is_never_an_empty_answer(answering, pre, words):
    port = answering(lambda _request, _line: Reply(b"", words, 2))
    assert post(port, pre("ls")) == (403, words or b"Refused.")
