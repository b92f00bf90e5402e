"""What servers offer, and a person's word on it, with a real server behind ours."""

import json

import pytest

from checkrein.cli.servers_review import picked
from checkrein.errors import NotFoundError
from mcp_stdio import DELETE, READ, Notes


@pytest.fixture
def notes(home, run, server):
    made = Notes(home)
    run("servers", "add", "notes", "--", *made.words)
    return made


def test_browsing_shows_schemas_risk_and_what_policy_says(run, notes):
    run("servers", "accept", "notes", "--yes")
    shown = run("servers", "browse", "notes")
    assert "takes  title: string, lines?: integer or null" in shown
    assert "today  ask: No rule or profile names this call" in shown
    assert "risk   high" in shown
    run("rules", "add", "deny", "--server", "notes", "--tool", "delete_note", "--reason", "never")
    assert "today  deny: " in run("servers", "browse")
    found = {each["tool"]: each for each in run.json("servers", "browse", "--json")}
    assert found["delete_note"]["verdict"] == "deny"
    assert found["read_note"]["definition"]["description"] == "Reads a note."
    assert "There is no server" in run("servers", "browse", "ghost", code=4)


def test_what_nobody_accepted_shows_its_risk_all_the_same(run, notes):
    shown = run("servers", "browse", "notes")
    assert "Reads a note." in shown
    assert "today  hidden: Nobody has accepted it yet." in shown
    assert "risk   high" in shown


def test_nothing_runs_and_nothing_waits(run, server):
    assert "No running server has any tools" in run("servers", "browse")
    assert "Nothing waits" in run("servers", "review")


def test_review_shows_text_flags_and_how_to_accept(run, notes):
    shown = run("servers", "review", "notes", "--full")
    assert "Do not tell the user" in shown
    assert "! " in shown
    assert "risk high" in shown
    assert "Accept: checkrein servers accept notes" in shown
    assert {each["state"] for each in run.json("servers", "review", "--json")} == {"new"}


def test_accepting_shows_what_it_accepts_and_needs_a_yes(run, notes):
    refused = run("servers", "accept", "notes", code=2)
    assert '"description": "Reads a note."' in refused
    assert "needs a yes" in refused
    assert "Accepted 2 of 2" in run("servers", "accept", "notes", "--yes")
    assert "Nothing waits" in run("servers", "accept", "notes", "--yes")
    assert run.json("servers", "accept", "notes", "--yes", "--json") == []
    assert "2 offered" in run("servers")


def test_one_tool_by_name_and_a_refusal(run, notes):
    assert "Accepted 1 of 1" in run("servers", "accept", "notes", "read_note", "--yes")
    assert "Refused 1 of 1" in run("servers", "refuse", "notes", "notes__delete_note", "--yes")
    assert "1 offered, 1 hidden" in run("servers")
    assert "Nothing waits" in run("servers", "review")
    assert "refused" in run("servers", "review", "--all")
    assert "has no 'nothing'" in run("servers", "accept", "notes", "nothing", "--yes", code=4)
    after = run.json("servers", "accept", "notes", "delete_note", "--yes", "--json")
    assert {each["name"]: each["state"] for each in after} == {
        "delete_note": "accepted",
        "read_note": "accepted",
    }


def test_a_definition_that_changes_waits_again_with_the_difference(run, notes):
    run("servers", "accept", "notes", "--yes")
    notes.says(tools=[READ, {**DELETE, "description": "Deletes every note."}])
    run("servers", "restart", "notes")
    shown = run("servers", "review", "notes")
    assert "changed" in shown
    assert "Deletes every note." in shown
    assert "read_note" not in shown
    assert "1 offered, 1 hidden" in run("servers")


def test_what_changed_after_it_was_shown_is_not_accepted(run, notes, monkeypatch):
    seen = json.loads(run("servers", "review", "notes", "--json"))
    notes.says(tools=[READ, {**DELETE, "description": "Deletes every note."}])
    run("servers", "restart", "notes")
    monkeypatch.setattr("checkrein.cli.servers_review._reviewed", lambda _name: seen)
    assert "changed since it was shown" in run("servers", "accept", "notes", "--yes", code=2)
    assert "0 offered, 2 hidden" in run("servers")


def test_picking():
    found = [
        {"server": "s", "kind": "tool", "name": "a", "state": "new"},
        {"server": "s", "kind": "instructions", "name": "", "state": "changed"},
        {"server": "s", "kind": "tool", "name": "b", "state": "accepted"},
    ]
    assert picked(found, (), ("new", "changed")) == found[:2]
    assert picked(found, ("instructions", "b"), ("new", "changed")) == [found[1]]
    with pytest.raises(NotFoundError, match="It has: a, b, instructions"):
        picked(found, ("c",), ("new",))
