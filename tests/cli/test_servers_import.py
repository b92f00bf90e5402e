"""`checkrein servers import` from real files of other programs, into a real server of ours."""

import json
from pathlib import Path

import pytest

from checkrein.settings.secrets import list_secrets
from checkrein.settings.servers import read_servers
from mcp_stdio import Notes

TOKEN = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"


@pytest.fixture
def claude(home):
    """Claude Code's own file with two servers and our own entry."""
    path = home / ".claude.json"
    servers = {
        "gh": {"type": "stdio", "command": "serve-gh", "args": ["a b"], "env": {"GITHUB_TOKEN": TOKEN}},
        "checkrein": {"command": "checkrein-hook", "args": ["door", "mcp"]},
    }
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


def test_a_dry_run_shows_everything_and_changes_nothing(run, claude):
    before = claude.read_bytes()
    shown = run("servers", "import", "--from", "claude-code", "--dry-run")
    assert "serve-gh 'a b'" in shown
    assert "Goes into the secret store: gh.GITHUB_TOKEN." in shown
    assert "left out" in shown
    assert str(claude) in shown
    assert TOKEN not in shown
    found = run.json("servers", "import", "--from", "claude-code", "--dry-run", "--json")
    assert [each["state"] for each in found["servers"]] == ["new", "ours"]
    assert found["imported"] == []
    assert (read_servers().servers, list_secrets(), claude.read_bytes()) == ({}, {}, before)


def test_importing_writes_one_change_and_starts_what_it_brought(run, server, home):
    notes = Notes(home)
    path = home / "mine.json"
    command, *args = notes.words
    path.write_text(json.dumps({"mcpServers": {"notes": {"command": command, "args": args}}}))
    assert "needs a yes" in run("servers", "import", "--from", str(path), code=2)
    assert "needs a yes" in run("servers", "import", "--from", str(path), "--json", code=2)
    assert "Imported 1 server(s)." in run("servers", "import", "--from", str(path), "--yes")
    assert len(run.json("servers", "review", "notes", "--json")) == 2
    assert "there already" in run("servers", "import", "--from", str(path), "--yes")


def test_secrets_go_to_the_store(run, server, claude):
    run("servers", "import", "--from", "claude-code", "--yes")
    assert read_servers().servers["gh"].env == {"GITHUB_TOKEN": "${keyring:gh.GITHUB_TOKEN}"}
    assert list(list_secrets()) == ["gh.GITHUB_TOKEN"]
    assert TOKEN not in run("audit", "export", "--format", "jsonl")


def test_a_taken_name_stops_everything_unless_it_may_change(run, server, claude):
    run("servers", "add", "gh", "--no-start", "--", "another")
    said = run("servers", "import", "--from", "claude-code", "--yes", code=0)
    assert "name taken" in said
    both = json.loads(claude.read_text())
    both["mcpServers"]["more"] = {"command": "x"}
    claude.write_text(json.dumps(both))
    assert "These names are taken: gh" in run("servers", "import", "--from", "claude-code", "--yes", code=2)
    assert list(read_servers().servers) == ["gh"]
    run("servers", "import", "--from", "claude-code", "--only", "more", "--yes")
    run("servers", "import", "--from", "claude-code", "--rename", "--yes")
    assert sorted(read_servers().servers) == ["gh", "gh-2", "more"]


def test_an_editors_file_with_comments_and_inputs(run, server, project):
    path = Path(project, ".vscode", "mcp.json")
    path.parent.mkdir()
    path.write_text('{ // mine\n "servers": {"Play W": {"command": "x", "env": {"K": "${input:k}"},},},}')
    shown = run("servers", "import", "--from", "vscode", "--yes")
    assert "It is called Play-W here." in shown
    assert "checkrein servers secret set Play-W.k" in shown
    assert read_servers().servers["Play-W"].cwd == project


def test_profiles_are_written_out_for_the_settings(run, home):
    path = home / ".config" / "codemode-bridge" / "mcp.json"
    path.parent.mkdir(parents=True)
    evaluation = {"defaultProfile": "safe", "profiles": {"safe": {"allowlist": ["time__*"]}}}
    path.write_text(json.dumps({"servers": {}, "evaluation": evaluation}))
    shown = run("servers", "import", "--from", "codemode-bridge")
    assert '[profiles.safe]\nallow = ["time__*"]' in shown
    assert "config.toml" in shown
    assert "There are no servers in it." in shown


@pytest.mark.parametrize(
    ("content", "code", "part"),
    [
        (None, 4, "There is no"),
        (b"{ nonsense", 3, "not valid JSON"),
        (b"\xff\xfe\x00", 2, "UTF-8"),
        (b"[]", 3, "is not an object"),
    ],
)
def test_files_that_cannot_be_read(run, home, content, code, part):
    path = home / "odd.json"
    if content is not None:
        path.write_bytes(content)
    assert part in run("servers", "import", "--from", str(path), code=code)


def test_a_broken_file_of_ours_is_said_first(run, claude, home):
    ours = home / "config" / "checkrein" / "servers.json"
    ours.parent.mkdir(parents=True)
    ours.write_text("{")
    assert "not valid JSON" in run("servers", "import", "--from", "claude-code", code=2)
