"""Placeholders of editors and bundles: folders are filled in, what is asked for becomes a secret to set."""

import sys

from importing import one, planned


def test_an_editors_inputs_become_secrets_to_set():
    item = one(
        {"command": "${userHome}/bin/x", "args": ["${workspaceFolder}"], "env": {"K": "${input:my key}"}},
        path="/home/ada/shop/.vscode/mcp.json",
        key="servers",
        inputs=[{"id": "my key", "type": "promptString", "password": True}],
    )
    assert item.entry == {
        "command": "/home/ada/bin/x",
        "args": ["/home/ada/shop"],
        "cwd": "/home/ada/shop",
        "env": {"K": "${keyring:s.my-key}"},
    }
    assert item.needs == ("s.my-key",)


def test_a_users_own_file_has_no_project_folder():
    item = one({"command": "x", "args": ["${workspaceFolder}"]})
    assert item.state == "broken"
    assert "workspaceFolder" in item.notes[0]


def test_a_bundle():
    document = {
        "manifest_version": "0.4",
        "name": "local-files",
        "server": {
            "type": "node",
            "mcp_config": {
                "command": "node",
                "args": ["${__dirname}/server/index.js", "${user_config.folders}", "--n=${user_config.n}"],
                "env": {"KEY": "${user_config.api_key}", "H": "${HOME}${/}x"},
                "platform_overrides": {sys.platform: {"command": "own-node"}, "win32": {"command": "no"}},
            },
        },
        "user_config": {
            "folders": {"type": "directory", "multiple": True, "default": ["${HOME}/a", "/b"]},
            "n": {"type": "number", "default": 3},
            "api_key": {"type": "string", "sensitive": True, "default": "never"},
        },
    }
    (item,) = planned(document, "/opt/bundle/manifest.json")
    assert item.name == "local-files"
    assert item.entry == {
        "command": "own-node",
        "args": ["/opt/bundle/server/index.js", "/home/ada/a", "/b", "--n=3"],
        "env": {"KEY": "${keyring:local-files.api_key}", "H": "/home/ada/x"},
    }
    assert item.needs == ("local-files.api_key",)
