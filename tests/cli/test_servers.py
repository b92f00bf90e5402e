"""`checkrein servers` as a user meets it: a real server of ours, a real MCP server behind it."""

import json
import os
import pty
import select
import subprocess
import sys

import pytest

from checkrein.cli.servers import servers
from checkrein.settings.secrets import list_secrets
from checkrein.settings.servers import read_servers, servers_file
from mcp_stdio import Notes

TOKEN = "hunter2-hunter2-hunter2"


@pytest.fixture
def notes(home):
    return Notes(home)


@pytest.fixture
def added(run, server, notes):
    run("servers", "add", "notes", "--", *notes.words)
    return notes


def typed(words, answers):
    """Run it on a terminal and type each answer when its question appears; all that was on the screen."""
    pid, person = pty.fork()
    if pid == 0:
        os.execv(sys.executable, [sys.executable, "-m", "checkrein", *words])
    screen, since = b"", 0
    waiting = list(answers)
    try:
        while select.select([person], [], [], 30)[0]:
            try:
                data = os.read(person, 65_536)
            except OSError:
                break
            if not data:
                break
            screen += data
            if waiting and waiting[0][0].encode() in screen[since:]:
                since = len(screen)
                os.write(person, waiting.pop(0)[1].encode())
    finally:
        _, status = os.waitpid(pid, 0)
        os.close(person)
    return screen.decode(), os.waitstatus_to_exitcode(status)


def test_without_servers_it_says_how_to_begin(run, server):
    assert "checkrein servers add NAME" in run("servers")
    assert run.json("servers", "--json")["servers"] == run.json("servers", "list", "--json")["servers"] == []


def test_a_server_is_started_where_none_runs(run):
    assert "No servers yet." in run.apart("servers")
    run.apart("down")


def test_adding_shows_the_command_starts_it_and_shows_what_it_offers(run, server, notes):
    shown = run("servers", "add", "notes", "--", *notes.words)
    assert f"It will run:            {notes.line}" in shown
    assert "notes: ready" in shown
    assert "read_note" in shown
    assert "high" in shown
    assert "! " in shown
    assert "checkrein servers accept notes" in shown
    listed = run("servers")
    assert "0 offered, 2 hidden" in listed
    assert "servers review" in listed


def test_secrets_on_the_command_line_do_not_reach_the_file(run, server, notes, monkeypatch):
    monkeypatch.setenv("OTHER_TOKEN", f"{TOKEN}-other")
    shown = run(
        *("servers", "add", "notes", "--env", f"API_TOKEN={TOKEN}", "--env", "OTHER_TOKEN"),
        *("--env", "LEVEL=debug", "--", *notes.words),
    )
    assert TOKEN not in shown + servers_file().read_text() + run("servers", "--json")
    assert read_servers().servers["notes"].env["LEVEL"] == "debug"
    assert list(list_secrets()) == ["notes.API_TOKEN", "notes.OTHER_TOKEN"]
    assert TOKEN not in run("audit", "export", "--format", "jsonl")


def test_its_lines_are_shown_with_secrets_masked(run, server, notes):
    token = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"
    run("servers", "add", "notes", "--env", f"API_TOKEN={token}", "--", *notes.words)
    lines = run("servers", "logs", "notes", "-n", "5")
    assert "it began with" in lines
    assert token not in lines
    assert run.json("servers", "logs", "notes", "--json")


def test_adding_on_a_terminal_asks_before_it_runs_and_before_anything_is_accepted(run, server, notes):
    answers = [
        ("API_TOKEN", f"{TOKEN}\n"),
        ("run it now?", "y\n"),
        ("n = not now", "s\n"),
        ("n = not now", "y\n"),
    ]
    screen, code = typed(["servers", "add", "notes", "--env", "API_TOKEN", "--", *notes.words], answers)
    assert code == 0, screen
    assert TOKEN not in screen
    assert "Reads a note." in screen
    assert "Accepted 2 of 2" in screen
    assert "2 offered" in run("servers")


def test_a_no_on_the_terminal_adds_nothing(run, server, notes):
    screen, code = typed(["servers", "add", "notes", "--", *notes.words], [("run it now?", "n\n")])
    assert code == 1, screen
    assert read_servers().servers == {}


def test_not_now_leaves_it_for_later(run, server, notes):
    answers = [("run it now?", "y\n"), ("n = not now", "n\n")]
    screen, code = typed(["servers", "add", "notes", "--", *notes.words], answers)
    assert (code, "Later: checkrein servers accept notes" in screen) == (0, True)


def test_every_option_of_adding(run, server, project):
    run(
        *("servers", "add", "far", "--url", "https://mcp.example.test/mcp", "--no-start", "--oauth"),
        *("--header", "X-Api-Key: abc123abc123", "--timeout", "5", "--share", "client", "--trusted"),
        *("--description", "far away"),
    )
    found = read_servers().servers["far"]
    assert found.headers == {"X-Api-Key": "${keyring:far.X-Api-Key}"}
    assert (found.oauth, found.timeout, found.share, found.trusted) == (True, 5.0, "client", True)
    assert (found.enabled, found.description) == (False, "far away")
    assert "stopped (by you)" in run("servers")
    made = run.json(
        "servers", "add", "near", "--no-start", "--json", "--cwd", ".", "--inherit", "A", "--", "x"
    )
    assert (made["cwd"], made["inherit"]) == (project, ["A"])


def test_a_client_registered_at_the_provider(run, server):
    shown = run(
        *("servers", "add", "mail", "--url", "https://mcp.example.test/mcp", "--no-start"),
        *("--oauth-client-id", "mine", "--oauth-client-secret", TOKEN),
        *("--oauth-scope", "read", "--oauth-scope", "write"),
    )
    assert "signing in as client:   mine" in shown and "http://127.0.0.1/callback" in shown
    assert TOKEN not in shown + servers_file().read_text() + run("servers", "--json")
    found = read_servers().servers["mail"].client
    assert (found.client_id, found.client_secret) == ("mine", "${keyring:mail.clientSecret}")
    assert (found.scope, list(list_secrets())) == ("read write", ["mail.clientSecret"])
    run(
        *("servers", "add", "two", "--url", "https://mcp.example.test/mcp", "--no-start"),
        *("--oauth-client-id", "mine", "--oauth-client-secret", "${env:MINE}"),
        *("--oauth-redirect-uri", "http://localhost:8123/cb"),
    )
    found = read_servers().servers["two"].client
    assert (found.client_secret, found.redirect_uri) == ("${env:MINE}", "http://localhost:8123/cb")


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (
            ("x", "--url", "https://a.test", "--oauth-client-id", "i", "--oauth-client-secret"),
            "nobody is here",
        ),
        (("x", "--url", "https://a.test", "--oauth-client-secret", "${env:A}"), "Give the `clientId`"),
        (("x",), "Give a command or --url"),
        (("x", "--url", "https://a.test", "--", "y"), "Give a command or --url"),
        (("a b", "--", "y"), "server's name"),
        (("x", "--env", "NOT_SET_ANYWHERE", "--", "y"), "is not set here"),
        (("x", "--url", "https://a.test", "--header", "secret-without-a-name"), "--header needs a name"),
        (("x", "--url", "http://a.test", "--header", "A: b"), "unencrypted"),
        (("x", "--timeout", "-1", "--", "y"), "above 0"),
    ],
)
def test_what_cannot_be_added(run, words, part):
    said = run("servers", "add", *words, code=3 if "name" in part and "a b" in words else 2)
    assert part in said
    assert "secret-without" not in said
    assert not servers_file().exists()


def test_a_server_that_does_not_start_says_so_and_what_to_do(run, server, notes):
    notes.says(ends=3)
    said = run("servers", "add", "notes", "--", *notes.words, code=1)
    assert "exit status 3" in said
    assert "checkrein servers remove notes" in said
    assert "exit status 3" in run("servers")
    assert "exit status 3" in run("servers", "test", "notes", code=1)


def test_adding_for_scripts(run, server, notes):
    made = run.json("servers", "add", "notes", "--json", "--", *notes.words)
    assert made["status"]["state"] == "ready"
    assert [each["name"] for each in made["pending"]] == ["delete_note", "read_note"]


def test_a_server_with_nothing_to_accept(run, server, notes):
    notes.says(tools=[])
    assert "nothing to accept" in run("servers", "add", "notes", "--", *notes.words)


def test_stopping_starting_restarting(run, added):
    assert "notes: stopped" in run("servers", "stop", "notes")
    assert "stopped (by you)" in run("servers")
    assert run.json("servers", "start", "notes", "--json")["state"] == "ready"
    assert "notes: ready" in run("servers", "restart", "notes")
    assert "There is no server 'ghost'" in run("servers", "restart", "ghost", code=4)


def test_testing_leaves_nothing_behind(run, added):
    shown = run("servers", "test", "notes")
    assert "It answers: notes 1.2" in shown
    assert "2 tool(s)" in shown
    running = subprocess.run(["pgrep", "-f", str(added.program)], capture_output=True, text=True, check=False)
    assert len(running.stdout.split()) == 1
    assert len(run.json("servers", "test", "notes", "--json")["tools"]) == 2


def test_removing(run, added):
    assert "needs a yes" in run("servers", "remove", "notes", code=2)
    assert run.json("servers", "remove", "notes", "--yes", "--json") == {"name": "notes", "secrets": []}
    assert "No servers yet." in run("servers")


def test_a_broken_file_says_where_and_what_was_good_stays(run, added):
    text = servers_file().read_text()
    servers_file().write_text(text.replace('"command"', '"comand"'))
    said = run("servers", code=3)
    assert "Did you mean `command`?" in said
    assert "line 4" in said
    assert "ready" in said
    assert "Did you mean" in run("servers", "add", "b", "--no-start", "--", "x", code=2)
    assert run("servers", "browse", "notes")
    assert json.loads(servers_file().read_text())["mcpServers"]["notes"]["comand"]


def test_an_agent_may_look_and_change_nothing(run, added, agent):
    done = agent.run("servers", "remove", "notes", "--yes")
    assert done.returncode == 7
    assert "Only a person" in done.stderr
    done = agent.run("servers", "accept", "notes", "--yes")
    assert done.returncode == 7
    assert "notes" in agent.run("servers", "--json").stdout
    assert read_servers().servers["notes"]


@pytest.mark.parametrize("name", sorted(servers.commands))
def test_every_command_explains_itself(run, name):
    assert len(run("servers", name, "--help").splitlines()) > 4
