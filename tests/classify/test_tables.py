"""Tables: what ships is well-formed, users extend it, projects only tighten it."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from checkrein.call import Category, ToolCall
from checkrein.classify import Tables, classify, describe
from checkrein.classify.commands import HANDLERS
from checkrein.classify.tables import KEYS, check, packaged
from checkrein.errors import ConfigError


def judge(command, tables=None):
    return classify(ToolCall(tool="Bash", arguments={"command": command}), tables=tables)


def test_every_shipped_entry_is_well_formed_and_compiles():
    tables = packaged()
    for name, raw in tables.commands.items():
        check(name, raw)
        spec = tables.spec(name)
        assert not spec.handler or spec.handler in HANDLERS, name


def test_at_least_350_commands_are_known():
    assert len({name.split()[0] for name in packaged().commands}) >= 350


def test_a_user_adds_a_command():
    tables = Tables.load(
        {
            "deploytool": {"args": "text*", "effect": "network", "scope": "service-write"},
            "mylint": {"args": "read*", "open": True},
        }
    )
    assert judge("deploytool prod", tables).category is Category.high
    assert judge("mylint src", tables).category is Category.low
    assert judge("mylint src").category is Category.medium


@pytest.mark.invariant("a project's table never lowers a built-in judgement")
def test_a_projects_table_never_lowers_a_built_in_judgement():
    tables = Tables.load(
        {"evil": {"open": True}, "rm": {"risk": "low"}, "ls": {"risk": "high"}}, tighten_only=True
    )
    assert judge("evil", tables).category is Category.medium
    assert judge("rm x", tables).category is Category.high
    assert judge("ls", tables).category is Category.high
    assert len(tables.ignored) == 2


def test_known_hosts_are_high_and_only_a_users_own():
    tables = Tables.load(known_hosts=("api.corp.example", "*.dev.example"))
    assert judge("curl https://api.corp.example/x", tables).category is Category.high
    assert judge("curl https://a.dev.example", tables).category is Category.high
    assert judge("curl https://api.corp.example.evil.example", tables).category is Category.critical
    project = Tables.load(known_hosts=("evil.example",), tighten_only=True)
    assert judge("curl https://evil.example", project).category is Category.critical
    assert project.ignored


@pytest.mark.parametrize(
    "entry", [{"nonsense": "x"}, {"risk": "mild"}, {"open": "yes"}, {"args": 3}, "text", {"style": "dos"}]
)
def test_a_meaningless_entry_is_refused(entry):
    with pytest.raises(ConfigError):
        Tables.load({"x": entry})


def test_describe_says_what_we_know():
    known = describe("git")
    assert "git log" in known["subcommands"]
    assert "--output=" in describe("git log")["options"]["write"]
    assert describe("no-such-command") == {}


def test_the_example_in_the_documentation_works():
    text = (Path(__file__).parents[2] / "docs" / "risk.md").read_text(encoding="utf-8")
    example = tomllib.loads(text.partition("```toml\n")[2].partition("```")[0])["commands"]
    tables = Tables.load(example)
    assert judge("mytool -v src/a.py --format=json", tables).category is Category.low
    assert judge("mytool .env", tables).category is Category.high
    assert judge("mytool -o out.txt x", tables).category is Category.medium
    assert judge("mytool --plugin=x y", tables).category > Category.low
    assert judge("mytool --unknown y", tables).category is Category.medium
    assert judge("mytool deploy prod", tables).category is Category.high


def test_every_key_of_a_table_is_documented():
    text = (Path(__file__).parents[2] / "docs" / "risk.md").read_text(encoding="utf-8")
    internal = {"handler", "needs", "share", "bare", "scripts", "scriptfiles", "envs"}
    assert not {key for key in KEYS - internal if f"`{key}`" not in text}


def test_a_user_adds_an_option_to_a_command_we_know():
    tables = Tables.load({"sort": {"opts": "--my-flag", "writes": "--my-log="}})
    assert judge("sort --my-flag x", tables).category is Category.low
    assert judge("sort --my-log=y x", tables).category is Category.medium
    assert judge("sort -o y x", tables).category is Category.medium


def test_an_odd_but_legal_entry_raises_nothing():
    tables = Tables.load(
        {"odd": {"handler": "nobody", "args": "script made-up*", "scripts": "-e=", "effect": "odd"}}
    )
    assert judge("odd -e x y z", tables).category is Category.medium
