"""Servers of other programs: every shape of file, their placeholders, and where plain secrets go."""

import sys
import tomllib
from pathlib import Path

import pytest

from checkrein.errors import ConfigError
from checkrein.settings import Settings
from checkrein.settings.check import apply
from checkrein.settings.server_imports import (
    SOURCES,
    Found,
    found_in,
    is_ours,
    places,
    plain_name,
    plan,
    profiles_in,
)
from checkrein.settings.servers import ServerSpec, check_name

VALUE = "ghp_abcdefghijklmnopqrstuvwxyz0123456789"


def planned(document, path="/home/ada/x.json", existing=None, **more):
    return plan(
        found_in(document, Path(path)),
        existing or {},
        home="/home/ada",
        is_secret=lambda key, value: VALUE in value or "TOKEN" in key.upper(),
        **more,
    )


def one(raw, path="/home/ada/x.json", key="mcpServers", **document):
    (item,) = planned({key: {"s": raw}, **document}, path)
    return item


@pytest.mark.parametrize("source", SOURCES)
def test_every_program_has_places(source):
    found = places(source, Path("/home/ada"), Path("/home/ada/shop"))
    assert found
    assert all(each.is_absolute() for each in found)


def test_claude_code_has_users_and_projects():
    document = {
        "mcpServers": {"a": {"command": "x"}},
        "projects": {
            "/home/ada/shop": {"mcpServers": {"b": {"command": "y"}}},
            "/home/ada/other": {},
            "/odd": 3,
        },
    }
    first, second = found_in(document, Path("/home/ada/.claude.json"))
    assert (first.name, first.folder) == ("a", "")
    assert (second.name, second.folder, second.where) == (
        "b",
        "/home/ada/shop",
        "/home/ada/.claude.json (/home/ada/shop)",
    )


def test_an_editors_own_settings_hold_them_deeper():
    assert [each.name for each in found_in({"mcp": {"servers": {"a": {}}}}, Path("/x"))] == ["a"]


@pytest.mark.parametrize("document", [[], "x", None])
def test_a_file_that_is_no_object_is_refused(document):
    with pytest.raises(ConfigError):
        found_in(document, Path("/x"))


def test_our_own_entry_is_left_out():
    for name, raw in {
        "Checkrein": {},
        "gate": {"command": "/opt/bin/checkrein-hook", "args": ["/d", "mcp"]},
        "g": {"command": "uvx", "args": ["checkrein", "mcp"]},
        "h": {"command": "python3", "args": ["-I", "/lib/checkrein/hookclient/client.py", "/d", "mcp"]},
    }.items():
        assert is_ours(name, raw), name
        assert planned({"mcpServers": {name: raw}})[0].state == "ours"
    assert not is_ours("rein", {"command": "checkrein-like", "args": [1, None]})


def test_plain_secrets_move_to_the_store():
    item = one(
        {
            "command": "x",
            "args": ["--token", "abc", f"--key={VALUE}", "file.txt"],
            "env": {"GH_TOKEN": VALUE, "A": "${GH_TOKEN}", "LEVEL": "debug", "N": 3, "B": True},
        }
    )
    assert item.state == "new"
    assert item.entry["env"] == {
        "GH_TOKEN": "${keyring:s.GH_TOKEN}",
        "A": "${GH_TOKEN}",
        "LEVEL": "debug",
        "N": "3",
        "B": "true",
    }
    assert item.entry["args"] == ["--token", "${keyring:s.argument-2}", "${keyring:s.argument-3}", "file.txt"]
    assert item.secrets == {"s.GH_TOKEN": VALUE, "s.argument-2": "abc", "s.argument-3": f"--key={VALUE}"}
    assert VALUE not in f"{item} {item.shown()}"
    assert "debug" not in str(item.shown())


def test_headers_too():
    item = one({"type": "http", "url": "https://x.test/mcp", "headers": {"X-Auth-Token": "abc"}})
    assert item.entry["headers"] == {"X-Auth-Token": "${keyring:s.X-Auth-Token}"}


@pytest.mark.parametrize(
    "said",
    [
        {"oauth": {"clientId": "mine", "clientSecret": "abc", "scopes": ["a", "b"], "enabled": True}},
        {"auth": {"CLIENT_ID": "mine", "CLIENT_SECRET": "abc", "scopes": ["a", "b"]}},
    ],
)
def test_a_client_registered_for_another_program(said):
    item = one({"type": "http", "url": "https://x.test/mcp", **said})
    assert item.entry["oauth"] == {
        "clientId": "mine",
        "clientSecret": "${keyring:s.clientSecret}",
        "scope": "a b",
    }
    assert item.secrets == {"s.clientSecret": "abc"} and "abc" not in f"{item} {item.shown()}"


def test_what_we_have_no_place_for_in_a_sign_in_is_said():
    item = one({"url": "https://x.test/mcp", "oauth": {"clientId": "mine", "tokenUrl": "https://y.test"}})
    assert (item.state, item.entry["oauth"]) == ("new", {"clientId": "mine"})
    assert "Not taken over: oauth.tokenUrl." in item.notes
    assert "oauth" not in one({"url": "https://x.test/mcp", "oauth": {"enabled": False}}).entry


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


def test_other_words_for_the_same():
    item = one(
        {"command": ["npx", "-y"], "args": ["p"], "type": "local", "timeout": 60000, "alwaysAllow": ["x"]}
    )
    assert item.entry == {"command": "npx", "args": ["-y", "p"], "timeout": 60.0}
    assert item.notes == ("Not taken over: alwaysAllow.",)
    assert one({"serverUrl": "https://x.test", "disabled": True}).entry == {
        "url": "https://x.test",
        "enabled": False,
    }


def test_nobody_vouches_for_a_server_by_way_of_an_import():
    assert "trusted" not in one({"command": "x", "trusted": True}).entry


def test_what_cannot_be_taken_over_says_why():
    for raw in ("x", {}, {"command": "x", "args": "y"}, {"url": "ftp://x"}):
        item = one(raw)
        assert item.state == "broken"
        assert item.notes


@pytest.mark.parametrize(
    ("name", "plain"),
    [("microsoft/markitdown", "microsoft-markitdown"), ("My Server!", "My-Server"), ("a__b_", "a_b")],
)
def test_names_are_made_fit(name, plain):
    assert plain_name(name) == plain
    check_name(plain)
    (item,) = planned({"mcpServers": {name: {"command": "x"}}})
    assert (item.name, item.was, item.notes) == (plain, name, (f"It is called {plain} here.",))


def test_a_name_of_which_nothing_is_left_is_broken():
    assert planned({"mcpServers": {"日本": {"command": "x"}}})[0].state == "broken"


def test_a_name_that_is_taken_is_a_clash_unless_it_may_change():
    existing = {"s": ServerSpec(name="s", command="other")}
    document = {"mcpServers": {"s": {"command": "x"}}}
    assert planned(document, existing=existing)[0].state == "clash"
    (item,) = planned(document, existing=existing, rename=True)
    assert (item.state, item.name) == ("new", "s-2")


def test_renaming_keeps_secrets_apart():
    existing = {"s": ServerSpec(name="s", command="other")}
    document = {"mcpServers": {"s": {"command": "x", "env": {"TOKEN": "abc"}}}}
    (item,) = planned(document, existing=existing, rename=True)
    assert item.secrets == {"s-2.TOKEN": "abc"}
    again = {**existing, "s-2": ServerSpec(name="s-2", command="x", env={"TOKEN": "${keyring:s-2.TOKEN}"})}
    assert planned(document, existing=again, rename=True)[0].state == "same"


def test_the_same_server_in_two_files_is_one():
    raw = {"command": "x"}
    found = [Found("s", raw, "/a"), Found("s", raw, "/b"), Found("S", {"command": "y"}, "/c")]
    items = plan(found, {}, home="/h", is_secret=lambda *_: False)
    assert [each.state for each in items] == ["new", "same", "clash"]


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


def test_evaluation_profiles_become_text_for_our_settings():
    document = {
        "servers": {},
        "evaluation": {
            "defaultProfile": "careful",
            "profiles": {
                "careful": {"allowlist": ["time__*"], "asklist": ["x__y"], "elicitationFallback": "allow"},
                "other": {"denylist": ['a"b'], "extends": "careful"},
            },
        },
    }
    text = profiles_in(document, "mcp.json")
    settings = apply(Settings(), tomllib.loads(text))
    assert settings == apply(Settings(), {"evaluation": document["evaluation"]})
    assert settings.profiles["careful"].allow == ("time__*",)
    assert settings.doors["eval"].profile == "careful"
    assert profiles_in({"servers": {}}, "x") == profiles_in([], "x") == ""
    with pytest.raises(ConfigError):
        profiles_in({"evaluation": {"nonsense": 1}}, "x")
