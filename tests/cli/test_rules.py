import json


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
    assert "4 record(s)" in run("audit", "verify")


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
