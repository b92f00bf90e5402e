"""Syntax into words: what bash would make of quotes, escapes, tildes, variables and substitutions."""

from __future__ import annotations

import pytest

from checkrein.call import Category, tool_call
from checkrein.classify import classify
from checkrein.classify.expand import SECRET_NAME, Expander, ansi, environment
from checkrein.classify.shell import parser
from checkrein.classify.words import DYNAMIC, GLOB, HOLE, LITERAL, OPEN, SECRET, UNKNOWN, Word

VARIABLES = {"x": Word("rm"), "two": Word("a b"), "who": Word(HOLE, OPEN)}


def words(text):
    """The words of `echo TEXT`, and the shell text that was run on the way."""
    ran = []

    def run(source):
        ran.append(source if isinstance(source, str) else source.text.decode())
        return UNKNOWN

    expander = Expander(
        lookup=lambda name: VARIABLES.get(name, Word(HOLE, OPEN)),
        run_node=run,
        run_text=run,
        assign=VARIABLES.__setitem__,
        home="/home/dev",
    )
    command = parser().parse(f"echo {text}".encode()).root_node.children[0]
    found = [word for child in command.children[1:] for word in expander.words(child)]
    return found, ran


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain", ["plain"]),
        ("'a b'", ["a b"]),
        ('"a b"', ["a b"]),
        ("r''m", ["rm"]),
        ('r"m"', ["rm"]),
        ("\\rm", ["rm"]),
        ("$'\\x72\\155'", ["rm"]),
        ("~/a", ["/home/dev/a"]),
        ("'~/a'", ["~/a"]),
        ("~root/a", ["/home/root/a"]),
        ("$x", ["rm"]),
        ("${x}dir", ["rmdir"]),
        ("$two", ["a", "b"]),
        ('"$two"', ["a b"]),
        ("a{b,c}", ["ab", "ac"]),
        ("'a{b,c}'", ["a{b,c}"]),
        ("'$x'", ["$x"]),
        ('"\\$x"', ["$x"]),
        ("${x:-other}", ["rm"]),
    ],
)
def test_what_is_certain_is_resolved(text, expected):
    found, _ = words(text)
    assert [word.text for word in found] == expected
    assert {word.kind for word in found} == {LITERAL}


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("*.py", GLOB),
        ("a?c", GLOB),
        ("'*.py'", LITERAL),
        ("\\*.py", LITERAL),
        ("$who", OPEN),
        ("a$who", OPEN),
        ("$((1 + 2))", OPEN),
        ("${#x}", OPEN),
        ("$(ls)", DYNAMIC),
        ("`ls`", DYNAMIC),
        ("${!x}", DYNAMIC),
        ("${x//r/}", DYNAMIC),
    ],
)
def test_what_is_not_certain_says_so(text, kind):
    found, _ = words(text)
    assert [word.kind for word in found] == [kind]


@pytest.mark.parametrize(
    "text",
    [
        "$(boom)",
        "`boom`",
        '"$(boom)"',
        '"`boom`"',
        "${who:-$(boom)}",
        "${who:-`boom`}",
        "<(boom)",
        "$((1 + $(boom)))",
        "a$(boom)b",
    ],
)
def test_every_hidden_command_is_met(text):
    _, ran = words(text)
    assert any("boom" in source for source in ran)


@pytest.mark.parametrize("text", ["'$(boom)'", "'`boom`'", '"\\$(boom)"', "\\$x"])
def test_quoted_text_is_not_run(text):
    assert words(text)[1] == []


def test_a_default_may_be_assigned():
    words("${fresh:=rm}")
    assert VARIABLES.pop("fresh") == Word("rm")


def test_ansi_strings_are_read_like_bash_reads_them():
    assert ansi(r"\x41\101\u0041\n\t\\\'") == "AAA\n\t\\'"
    assert ansi(r"\cA") == "\x01"
    assert HOLE in ansi(r"\uf8ff")


def test_a_variable_nobody_set_is_the_users_own():
    assert environment("HOME", "/home/dev", "/p") == Word("/home/dev")
    assert environment("PWD", "/home/dev", "/p") == Word("/p")
    assert environment("ANYTHING", "/home/dev", None).kind == OPEN
    assert environment("GITHUB_TOKEN", "/home/dev", None).taint == SECRET
    assert environment("TOKENIZER", "/home/dev", None).taint == 0


def test_secret_names_are_whole_words():
    assert all(
        map(SECRET_NAME.search, ("API_KEY", "DB_PASSWORD", "GH_TOKEN", "MYSECRET", "aws_secret_access_key"))
    )
    assert not any(
        map(SECRET_NAME.search, ("TOKENS_PER_SECOND_MAX", "KEYBOARD", "PATH", "MONKEY", "SECRETARY"))
    )


@pytest.mark.parametrize(
    "command",
    ["echo ${x#$(rm x)}", "echo ${x^^$(rm x)}", "cat <<E\n`rm -rf x`\nE", 'a=(.env x); cat "${a[@]}"']
    + ['f() { cat "$@"; }; f .env a', 'set -- .env a; cat "$@"', "cat .e${x}nv", "cat ~/.s${u}sh/id_rs${u}a"],
)
def test_what_bash_would_expand_is_expanded(command):
    risk = classify(tool_call({"tool": "Bash", "arguments": {"command": command}, "project": "/p"}))
    assert risk.category >= Category.high
