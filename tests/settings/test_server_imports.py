"""What becomes of servers of other programs: new, there already, a clash of names, or why they are broken."""

import pytest

from checkrein.settings.import_sources import Found
from checkrein.settings.server_imports import plain_name, plan
from checkrein.settings.servers import ServerSpec, check_name
from importing import one, planned


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
