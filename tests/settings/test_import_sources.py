"""Files of other programs: every shape of them, and the one entry that leads back to us."""

from pathlib import Path

import pytest

from checkrein.errors import ConfigError
from checkrein.settings.import_sources import SOURCES, found_in, is_ours, places
from importing import planned


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
