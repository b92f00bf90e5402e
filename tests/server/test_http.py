"""HTTP hooks: the same answers, for those who show the token and are no browser."""

import json
import socket

import pytest

from checkrein.server.http import token_file
from patience import PATIENCE, until
from server.over_http import post


@pytest.fixture
def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture
def web(home, user_settings, port, project, stopped):
    user_settings(f"[server]\nhttp_port = {port}\n")
    stopped.start()
    stopped.ask("phase.set", name="building", project=project)
    log = home / "state/checkrein/server.log"
    until(lambda: log.exists() and "HTTP hooks on" in log.read_text())
    return stopped


def test_a_call_is_judged_and_recorded(web, port, pre):
    status, body = post(port, pre("ls"))
    assert (status, json.loads(body)["hookSpecificOutput"]["permissionDecision"]) == (200, "allow")
    status, body = post(port, pre("curl https://x.example", call="t2"))
    assert (status, json.loads(body)["hookSpecificOutput"]["permissionDecision"]) == (200, "deny")
    assert len(web.records("decided")) == 2


def test_a_call_that_is_too_long_is_refused_in_the_agents_words_and_recorded(web, port, pre):
    """A status code alone is an agreement to the agent."""
    status, body = post(port, pre("ls", padding="x" * (9 << 20)))
    assert (status, json.loads(body)["hookSpecificOutput"]["permissionDecision"]) == (200, "deny")
    assert [each["data"]["decision"] for each in web.records("decided")] == ["blocked"]


def test_a_refusal_without_words_of_its_own_is_no_agreement(web, port, pre):
    status, body = post(port, pre("ls"), "/hooks/nobody/gate")
    assert (status, b"not an agent we know" in body) == (403, True)


def test_a_report_over_http_is_taken_and_gives_nothing(web, port, pre):
    post(port, pre("pytest"))
    event = pre("pytest") | {"hook_event_name": "PostToolUse", "tool_response": {"stdout": "ok"}}
    assert post(port, event, "/hooks/claude-code/tell") == (200, b"{}")
    assert web.records("request_refused")
    assert not web.records("finished")


@pytest.mark.parametrize(
    ("status", "headers", "path"),
    [
        (401, {"Authorization": None}, "/hooks/claude-code/gate"),
        (401, {"Authorization": "Bearer wrong"}, "/hooks/claude-code/gate"),
        (403, {"Origin": "https://evil.example"}, "/hooks/claude-code/gate"),
        (403, {"Origin": "null"}, "/hooks/claude-code/gate"),
        (403, {"Host": "evil.example"}, "/hooks/claude-code/gate"),
        (404, {}, "/hooks/claude-code/status"),
        (404, {}, "/"),
        (411, {"Content_Length": "-1"}, "/hooks/claude-code/gate"),
    ],
)
def test_strangers_browsers_and_odd_requests_are_turned_away(web, port, pre, status, headers, path):
    assert post(port, pre("ls"), path, **headers)[0] == status
    assert not web.records("decided")


def test_it_is_closed_unless_asked_for(serving, port):
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)
    assert not token_file().exists()


def test_the_token_is_the_owners_alone(web):
    assert token_file().stat().st_mode & 0o077 == 0


def test_a_taken_port_is_named_and_hooks_go_on(home, user_settings, stopped, pre, port):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", port))
        taken.listen()
        user_settings(f"[server]\nhttp_port = {port}\n")
        stopped.start()
        assert stopped.hook(pre("ls"))[2] == 0
        until(lambda: "cannot be used" in (home / "state/checkrein/server.log").read_text())
