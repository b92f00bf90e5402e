"""`checkrein servers connect`: what is written into clients' settings; nothing else in them changes."""

import json
import tomllib

import pytest

from checkrein.cli.servers_connect import CLIENTS
from checkrein.hookclient import pump_words
from checkrein.runtime import door_file


@pytest.fixture(autouse=True)
def no_moved_folders(monkeypatch):
    for name in ("CLAUDE_CONFIG_DIR", "CODEX_HOME", "COPILOT_HOME", "GEMINI_CLI_HOME"):
        monkeypatch.delenv(name, raising=False)


def entry_in(client):
    path = CLIENTS[client].path()
    read = tomllib.loads if path.suffix == ".toml" else json.loads
    return read(path.read_text())[CLIENTS[client].top]["checkrein"]


@pytest.mark.parametrize("client", CLIENTS)
def test_showing_changes_nothing_and_writing_connects(run, client):
    path = CLIENTS[client].path()
    assert str(path) in run("servers", "connect", client)
    assert not path.exists()
    assert "wrote" in run("servers", "connect", client, "--write")
    found = entry_in(client)
    assert [found["command"], *found["args"]] == pump_words(door_file())
    assert door_file().exists()
    assert "connected already" in run("servers", "connect", client, "--write")
    assert [each.name for each in path.parent.iterdir() if "backup" in each.name] == []


def test_what_a_person_wrote_stays_and_a_copy_is_kept(run):
    path = CLIENTS["vscode"].path()
    path.parent.mkdir(parents=True)
    before = '{\n  // mine\n  "servers": {\n    "x": {"command": "y"},\n  },\n  "inputs": []\n}\n'
    path.write_text(before)
    shown = run("servers", "connect", "vscode", "--write")
    assert "// mine" in path.read_text()
    assert '"inputs": []' in path.read_text()
    assert "starts servers itself, past the gateway: x" in shown
    assert "servers import --from vscode" in shown
    (backup,) = path.parent.glob("*.checkrein-backup-*")
    assert backup.read_text() == before


def test_codex_keeps_its_other_servers(run):
    path = CLIENTS["codex"].path()
    path.parent.mkdir()
    path.write_text('model = "m"\n[mcp_servers.other]\ncommand = "y"')
    assert "past the gateway: other" in run("servers", "connect", "codex", "--write")
    found = tomllib.loads(path.read_text())
    assert found["model"] == "m"
    assert found["mcp_servers"]["other"] == {"command": "y"}
    assert found["mcp_servers"]["checkrein"]["tool_timeout_sec"] == 600


@pytest.mark.parametrize(
    "content",
    ["[broken", 'mcp_servers = {other = {command = "y"}}', '[mcp_servers.checkrein]\ncommand = "old"'],
)
def test_codex_files_we_cannot_add_to_stay_as_they_are(run, content):
    path = CLIENTS["codex"].path()
    path.parent.mkdir()
    path.write_text(content)
    assert "othing was changed" in run("servers", "connect", "codex", "--write", code=3)
    assert path.read_text() == content


@pytest.mark.parametrize("content", ["{", "[]", '{"mcpServers": []}'])
def test_json_files_we_cannot_add_to_stay_as_they_are(run, home, content):
    path = home / ".claude.json"
    path.write_text(content)
    assert "othing was changed" in run("servers", "connect", "claude-code", "--write", code=3)
    assert path.read_text() == content


def test_an_entry_of_an_earlier_installation_is_replaced(run, home):
    path = home / ".claude.json"
    path.write_text('{"mcpServers": {"checkrein": {"command": "/old/checkrein-hook"}}, "n": 1}')
    run("servers", "connect", "claude-code", "--write")
    assert entry_in("claude-code")["command"] == pump_words(door_file())[0]
    assert json.loads(path.read_text())["n"] == 1


def test_a_moved_folder_is_found(run, home, monkeypatch):
    monkeypatch.setenv("CODEX_HOME", str(home / "elsewhere"))
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(home / "cc"))
    run("servers", "connect", "codex", "--write")
    run("servers", "connect", "claude-code", "--write")
    assert (home / "elsewhere" / "config.toml").exists()
    assert (home / "cc" / ".claude.json").exists()


def test_any_other_client(run):
    assert "checkrein" in run("servers", "connect")
    assert [*run.json("servers", "connect", "--json")["args"]][-1] == "mcp"
    assert "Say which client" in run("servers", "connect", "--write", code=2)
    made = run.json("servers", "connect", "cursor", "--write", "--json")
    assert (made["written"], made["backup"]) == (True, None)
