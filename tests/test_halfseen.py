import pytest

from checkrein.call import ToolCall, digest
from checkrein.halfseen import Candidates, HalfSeen, look_of
from checkrein.ledger.events import cut
from checkrein.ledger.redact import Redactor
from checkrein.policy.conditions import conditions
from checkrein.policy.rules import RuleSet, rule

TOKEN = "ghp_" + "a1" * 18


def seen(arguments, most=65536):
    """The arguments as the ledger keeps them."""
    return HalfSeen(cut(Redactor().value(arguments), most), digest(arguments))


def shows(arguments, path, most=65536, **test):
    (condition,) = conditions([{"path": path, **(test or {"equals": 1})}])
    return seen(arguments, most).shows(look_of(condition))


@pytest.mark.invariant(
    "arguments whose hash is the recorded one are the agent's own, whatever they look like"
)
def test_what_was_kept_whole_is_seen_whole_whatever_it_looks_like():
    assert seen({"command": "echo '[masked]' '[cut: 3 bytes]'"}).is_whole
    assert shows({"command": "echo [masked]"}, "command")
    assert not seen({"command": f"git clone https://{TOKEN}@x.example"}).is_whole


@pytest.mark.parametrize(
    ("arguments", "path", "expected"),
    [
        ({"command": f"curl {TOKEN}", "timeout": 5}, "command", False),
        ({"command": f"curl {TOKEN}", "timeout": 5}, "timeout", True),
        ({"command": f"curl {TOKEN}", "timeout": 5}, "missing", True),
        ({"command": f"curl {TOKEN}"}, "command.deeper", False),
        ({"headers": {"Authorization": TOKEN, "Accept": "x"}}, "headers.Accept", True),
        ({"headers": {"Authorization": TOKEN, "Accept": "x"}}, "headers.Authorization", False),
        ({"headers": {"Authorization": TOKEN, "Accept": "x"}}, "headers", False),
        ({"password": 1234, "n": 1}, "password", False),
        ({"items": ["a", TOKEN, "c"]}, "items[0]", True),
        ({"items": ["a", TOKEN, "c"]}, "items[1]", False),
        ({"items": ["a", TOKEN, "c"]}, "items[*]", False),
        ({"items": ["a", TOKEN, "c"]}, "items[9]", True),
        ({"items": [{"id": 1, "token": TOKEN}]}, "items[*].id", True),
        ({f"{TOKEN}": 1, "n": 1}, "n", True),
        ({f"{TOKEN}": 1, "n": 1}, "other", False),
    ],
)
def test_only_what_is_masked_is_hidden(arguments, path, expected):
    assert shows(arguments, path) is expected


def test_what_is_cut_is_hidden():
    long = {"text": "x" * 500, "n": 1}
    assert not shows(long, "text", most=200)
    assert shows(long, "n", most=200)
    many = {f"key {number}": "x" * 10 for number in range(100)}
    assert not shows(many, "key 3", most=100)
    assert not shows({"items": list(range(500)), "n": 1}, "items[0]", most=100)
    assert not shows({"a" * 300: 1, "b": "x" * 500}, "c", most=200)


def test_that_a_hidden_value_is_there_can_be_told():
    assert shows({"token": TOKEN}, "token", exists=True)
    assert not shows({"token": TOKEN}, "token.inner", exists=True)
    assert not shows({"token": TOKEN}, "token", exists=True, equals="x")


def test_a_change_without_a_mark_hides_everything():
    (condition,) = conditions([{"path": "n", "equals": 1}])
    assert not HalfSeen({"n": 1}, digest({"n": 2})).shows(look_of(condition))
    assert not HalfSeen("[cut: 9 bytes]", digest({"n": 1})).shows(look_of(condition))


def possible(*raw, arguments, tool="Bash", server=None):
    made = [rule(each, id=f"r{number}") for number, each in enumerate(raw)]
    kept = Redactor().value(arguments)
    call = ToolCall(tool=tool, server=server, arguments=kept)
    found = Candidates(RuleSet(made)).of(call, HalfSeen(kept, digest(arguments)), 100.0, None)
    return [each and each.id for each in found]


SECRET = {"command": f"curl {TOKEN}", "timeout": 5}


def test_every_rule_that_may_decide_is_followed():
    hidden = [{"path": "command", "contains": "x"}]
    assert possible({"action": "deny", "tool": "Bash", "when": hidden}, arguments=SECRET) == ["r0", None]
    assert possible(
        {"action": "deny", "tool": "Bash", "when": hidden},
        {"action": "allow", "tool": "Bash", "when": [{"path": "timeout", "equals": 5}]},
        {"action": "ask", "pattern": "*"},
        arguments=SECRET,
    ) == ["r0", "r1"]


def test_one_plain_no_settles_it():
    when = [{"path": "command", "contains": "x"}, {"path": "timeout", "gt": 9}]
    assert possible({"action": "deny", "tool": "Bash", "when": when}, arguments=SECRET) == [None]


def test_what_cannot_be_tested_means_what_it_always_means():
    when = [{"path": "absent", "equals": 1}]
    assert possible({"action": "deny", "tool": "Bash", "when": when}, arguments=SECRET) == ["r0"]
    assert possible({"action": "allow", "tool": "Bash", "when": when}, arguments=SECRET) == [None]
    both = [*when, {"path": "command", "contains": "x"}]
    assert possible({"action": "allow", "tool": "Bash", "when": both}, arguments=SECRET) == [None]


def test_rules_of_other_tools_and_times_do_not_count():
    assert possible(
        {"action": "deny", "tool": "Read"},
        {"action": "deny", "tool": "Bash", "server": "s"},
        {"action": "deny", "tool": "Bash", "expires_at": 50},
        {"action": "deny", "tool": "Bash", "uses": 0},
        {"action": "deny", "pattern": "mcp__mail__*"},
        arguments=SECRET,
    ) == [None]
    assert possible(
        {"action": "deny", "pattern": "mcp__mail__*"}, arguments=SECRET, tool="send", server="mail"
    ) == ["r0"]
