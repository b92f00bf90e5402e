import io
import json

import pytest

from checkrein.authority.phase import switch
from checkrein.call import tool_call
from checkrein.cli import checkrein
from checkrein.cli.rules import _progress
from checkrein.pipeline import Pipeline
from checkrein.settings.sources import state_dir
from checkrein.store.sqlite import SqliteStore


def listed(run):
    return [rule["id"] for rule in run.json("rules", "list", "--json")]


def add(run, *words):
    return run.json("rules", "add", *words, "--json")["id"]


def test_a_rule_is_added_shown_edited_and_removed(run):
    rule = add(run, "deny", "--pattern", "delete_*", "--server", "fs", "--reason", "never from an agent")
    shown = run.json("rules", "show", rule, "--json")
    assert (shown["action"], shown["pattern"], shown["server"], shown["priority"]) == (
        "deny",
        "delete_*",
        "fs",
        100,
    )
    assert shown["created_at"] == shown["updated_at"]
    run("rules", "edit", rule, "--action", "ask", "--tool", "delete_file", "--clear", "server")
    shown = run.json("rules", "show", rule, "--json")
    assert (shown["action"], shown["tool"], shown["pattern"], shown["server"]) == (
        "ask",
        "delete_file",
        None,
        None,
    )
    assert "never from an agent" in run("rules", "show", rule)
    run("rules", "rm", rule)
    assert listed(run) == []
    assert "no stored rule" in run("rules", "rm", rule, code=4)
    assert "no stored rule" in run("rules", "show", rule, code=4)
    assert "no stored rule" in run("rules", "edit", rule, "--tool", "x", code=4)


def test_what_cannot_be_right_is_refused_and_nothing_is_lost(run):
    assert "neither" in run("rules", "add", "deny", code=3)
    assert "both" in run("rules", "add", "deny", "--tool", "x", "--pattern", "y*", code=3)
    assert "empty" in run("rules", "add", "deny", "--pattern", "", code=3)
    assert "not JSON" in run("rules", "add", "deny", "--tool", "x", "--when", "{", code=2)
    assert "not a test" in run("rules", "add", "deny", "--tool", "x", "--when", '{"a": {"equal": 1}}', code=3)
    assert "matches" in run(
        "rules", "add", "deny", "--tool", "x", "--when", '{"a": {"matches": "(?=x)"}}', code=3
    )
    assert listed(run) == []
    rule = add(run, "ask", "--tool", "x")
    run("rules", "edit", rule, "--when", '{"a": {"gt": "b"}}', code=3)
    run("rules", "edit", rule, "--uses", "-1", code=3)
    assert run.json("rules", "show", rule, "--json")["when"] == []


def test_rules_are_moved_in_the_order(run):
    first, second, third = (add(run, "ask", "--tool", name) for name in "abc")
    assert listed(run) == [first, second, third]
    run("rules", "move", third, "--before", second)
    assert listed(run) == [first, third, second]
    run("rules", "move", first, "--after", second)
    assert listed(run) == [third, second, first]
    run("rules", "move", first, "--priority", "1")
    assert listed(run) == [first, third, second]
    assert "Say where" in run("rules", "move", first, code=2)
    assert "no stored rule" in run("rules", "move", first, "--before", "nobody", code=4)


def test_every_change_is_on_the_record(run):
    rule = add(run, "ask", "--tool", "x")
    run("rules", "edit", rule, "--tool", "y")
    run("rules", "move", rule, "--priority", "5")
    run("rules", "rm", rule)
    assert "8 record(s)" in run("audit", "verify")


def test_lint_finds_what_is_suspicious(run, user_settings):
    assert "Nothing to complain" in run("rules", "lint")
    user_settings('[[rules]]\naction = "allow"\npattern = "*"\nid = "wide"')
    rule = add(run, "deny", "--tool", "rm")
    found = run.json("rules", "lint", "--json", code=1)
    assert {(each["rule"], each["kind"]) for each in found} == {("wide", "wide"), (rule, "shadowed")}


def test_a_new_rule_that_can_never_decide_is_pointed_out(run):
    add(run, "allow", "--pattern", "read_*")
    done = run.runner.invoke(
        __import__("checkrein.cli").cli.checkrein, ["rules", "add", "deny", "--tool", "read_x"]
    )
    assert "never decides" in done.stderr


def test_a_call_can_be_tried_against_the_rules(run):
    rule = add(run, "deny", "--tool", "pay", "--when", json.dumps({"amount": {"gt": 100}}))
    assert run.json("rules", "test", "pay", "--args", '{"amount": 500}', "--json")["rule"] == rule
    assert run.json("rules", "test", "pay", "--args", '{"amount": 5}', "--json")["rule"] is None
    assert "missing" in run.json("rules", "test", "pay", "--json")["doubt"]
    assert run("rules", "test", "other") == "No rule matches.\n"
    assert f"{rule} decides" in run("rules", "test", "pay")


def test_a_rule_can_expire(run):
    rule = add(run, "allow", "--tool", "x", "--expires", "2h")
    assert run.json("rules", "test", "x", "--json")["rule"] == rule
    run("rules", "edit", rule, "--expires", "2020-01-01T00:00:00Z")
    assert run.json("rules", "test", "x", "--json")["rule"] is None
    assert "not a time" in run("rules", "add", "allow", "--tool", "x", "--expires", "soon", code=2)


def test_broken_settings_are_said_not_hidden(run, user_settings):
    user_settings("[[rules]]\naction = 'maybe'\ntool = 'x'")
    assert "rules[1]" in run("rules", "list", code=3)


TRIED = """
[[rules]]
action = "allow"
tool = "Bash"
when = [{ path = "command", starts_with = "make " }]
"""


@pytest.fixture
def day(project):
    """A few calls on the record."""
    pipeline = Pipeline(SqliteStore.open(state_dir()), state_dir())
    switch(pipeline, "building", "ada", "terminal")
    for command in ("make x", "make y", "git status", "make z TOKEN=ghp_" + "a1" * 18):
        raw = {"tool": "Bash", "arguments": {"command": command}, "project": project, "cwd": project}
        pipeline.decide(tool_call(raw))
    pipeline.close()


def test_rules_are_tried_before_they_count(run, home, day):
    file = home / "rules.toml"
    file.write_text(TRIED)
    lines = run("rules", "try", str(file), "--last", "100").splitlines()
    assert lines[0] == "2 calls would no longer ask, 1 cannot be told because what matters is masked or cut."
    assert [line.split("  ")[1] for line in lines[1:3]] == ["ASK → ALLOW"] * 2
    assert "make y" in lines[1]
    assert "tried#1" in lines[1]
    assert "cannot tell" in lines[3]
    assert "ghp_" not in "".join(lines)
    found = run.json("rules", "try", str(file), "--json", "--last", "3")
    assert (found["calls"], found["counts"]) == (3, {"ask to allow": 1, "unchanged": 1, "cannot tell": 1})
    assert run.json("rules", "try", str(file), "--json", "--project", str(home))["calls"] == 0
    assert run.json("rules", "list", "--json") == []


def test_only_rules_are_tried(run, home, day):
    file = home / "rules.toml"
    file.write_text(f"[trust]\ninitial_score = 0.5\n{TRIED}")
    done = run.runner.invoke(checkrein, ["rules", "try", str(file)], prog_name="checkrein")
    assert "only [[rules]] are tried, not trust" in done.stderr
    file.write_text("rules = 3")
    assert "list of tables" in run("rules", "try", str(file), code=3)
    file.write_text("[[rules]]\naction = 'deny'")
    assert "Rule 1" in run("rules", "try", str(file), code=3)
    assert "not valid TOML" in (file.write_text("="), run("rules", "try", str(file), code=3))[1]
    assert "does not exist" in run("rules", "try", str(home / "none"), code=2)


def test_trying_needs_no_record(run, home):
    (home / "rules.toml").write_text(TRIED)
    assert run("rules", "try", str(home / "rules.toml")) == "None of 0 calls would be decided otherwise.\n"


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_what_takes_a_while_shows_how_far_it_is(monkeypatch):
    shown = Terminal()
    monkeypatch.setattr("sys.stderr", shown)
    with _progress(5000) as step:
        step(500, 4000)
        step(4000, 4000)
    assert "Trying" in shown.getvalue()
    assert "100%" in shown.getvalue()
    with _progress(10) as step:
        assert step is None
