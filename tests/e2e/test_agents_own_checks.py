"""What the agents themselves say of our plugin and our hooks; no model is needed for that."""

import json
import os
import subprocess
from pathlib import Path

from checkrein.doors.hooks import files, install, plugin, presence
from checkrein.doors.hooks.registrations import registrations
from checkrein.hookclient import client_command
from e2e.clients import npm
from patience import PATIENCE


def ours(agent, mode, seconds):
    return client_command(Path("/state/door"), agent, mode, seconds)


def test_claude_code_accepts_the_plugin(tmp_path):
    claude = npm.program("@anthropic-ai/claude-code", "claude")
    folder = tmp_path / "plugin"
    plugin.write_plugin(folder, command=ours)
    environment = {"HOME": str(tmp_path), "PATH": os.environ["PATH"], "DISABLE_AUTOUPDATER": "1"}

    def validate(path):
        return subprocess.run(
            [claude, "plugin", "validate", path],
            check=False,
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )

    good = validate(folder)
    assert good.returncode == 0, good.stdout + good.stderr
    # Only what a public catalogue would want on top: this folder is for one computer.
    assert "Found 1 plugin directory warning" in good.stdout
    assert "ICON_MISSING" in good.stdout
    (folder / ".claude-plugin" / "plugin.json").write_text('{"name": 1}')
    assert validate(folder).returncode != 0


def hooks_as_codex_sees_them(home, folder):
    requests = [
        {"id": 0, "method": "initialize", "params": {"clientInfo": {"name": "test", "version": "1"}}},
        {"method": "initialized"},
        {"id": 1, "method": "hooks/list", "params": {"cwds": [str(folder)]}},
    ]
    process = subprocess.Popen(
        [npm.program("@openai/codex", "codex"), "app-server"],
        env={"HOME": str(home), "CODEX_HOME": str(home / ".codex"), "PATH": os.environ["PATH"]},
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        process.stdin.write("".join(json.dumps(request) + "\n" for request in requests))
        process.stdin.flush()
        answers = (json.loads(line) for line in process.stdout)
        (listed,) = next(answer for answer in answers if answer.get("id") == 1)["result"]["data"]
        return listed
    finally:
        process.stdin.close()
        process.terminate()
        process.wait(PATIENCE)
        process.stdout.close()


def trust_in_codex(home, folder, hashes):
    lines = [f"[projects.{json.dumps(str(folder))}]", 'trust_level = "trusted"']
    for key, trusted in hashes.items():
        lines += [f"[hooks.state.{json.dumps(key)}]", f"trusted_hash = {json.dumps(trusted)}"]
    files.write(home / ".codex" / "config.toml", "\n".join(lines) + "\n", 0o600)


def test_codex_agrees_about_hooks_hashes_and_trust(tmp_path, home):
    folder = tmp_path / "work"
    folder.mkdir()
    install.apply(install.plan("codex", "project", folder, command=ours))
    trust_in_codex(home, folder, {})
    listed = hooks_as_codex_sees_them(home, folder)
    assert (listed["warnings"], listed["errors"]) == ([], [])
    assert len(listed["hooks"]) == len(registrations("codex"))
    assert presence.codex_trusted("project", folder) != ""
    # Trusted as Codex hashes them, they are trusted as we do.
    trust_in_codex(home, folder, {hook["key"]: hook["currentHash"] for hook in listed["hooks"]})
    trusted = hooks_as_codex_sees_them(home, folder)
    assert {hook["trustStatus"] for hook in trusted["hooks"]} == {"trusted"}
    assert presence.codex_trusted("project", folder) == ""
    install.apply(install.plan("codex", "project", folder, command=ours, wait=900))
    changed = {hook["trustStatus"] for hook in hooks_as_codex_sees_them(home, folder)["hooks"]}
    assert "modified" in changed
    assert presence.codex_trusted("project", folder) != ""
