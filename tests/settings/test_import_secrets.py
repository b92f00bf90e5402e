"""Plain secrets of other programs' files: every place they stand in, and that nothing shows them."""

import pytest

from importing import VALUE, one


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
