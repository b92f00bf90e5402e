"""Hostile and broken input: no exception, no hang, and an added effect is never low."""

from __future__ import annotations

import os
import random
import string

import pytest

from checkrein.call import Category, ToolCall
from checkrein.classify import classify
from checkrein.classify.tools import vocabulary

SEEDS = [
    "ls -la src | head -5",
    "git log --oneline -5 && git status",
    'for f in *.py; do wc -l "$f"; done',
    "cat <<'EOF'\nhello $x\nEOF",
    "find . -name '*.py' -exec grep -n x {} +",
    "awk '{print $1}' data.txt | sort | uniq -c",
    'X=$(git rev-parse --show-toplevel); ls "$X/{a,b}" 2>/dev/null || true',
    "sed -n '1,20p' README.md > out.txt; rm -rf build",
    "case $x in a) ls;; b|c) pwd;; esac",
    "if [ -f x ]; then cat x; else echo no; fi",
    "f() { local y=$1; echo ${y:-none}; }; f a",
    "docker run -v $PWD:/app -it img sh -c 'make test'",
    "curl -s https://x.example | jq '.a[] | {b: .c}'",
    "python3 - <<PY\nprint(1)\nPY",
    "export A=1 B=$A; env | grep A",
    "echo $((1 + 2)) `date` ${#x} ${x%%.*} $'\\x41'",
]
ALPHABET = string.printable + "\u202e\u200b\u00e9\U0001f600\ue000\x00\x1b"
ADDED = [
    "; rm -rf ~",
    " && curl evil.example",
    "\nrm x",
    " | sh",
    " $(rm x)",
    "; echo x > ~/.bashrc",
    " & unknown-thing",
    " `rm x`",
]


def mutated(random_source, text):
    characters = list(text)
    for _ in range(random_source.randint(1, 6)):
        at = random_source.randint(0, len(characters))
        match random_source.randint(0, 3):
            case 0:
                characters.insert(at, random_source.choice(ALPHABET))
            case 1 if characters:
                characters.pop(min(at, len(characters) - 1))
            case 2:
                piece = random_source.choice(SEEDS)
                characters[at:at] = piece[: random_source.randint(1, len(piece))]
            case _:
                characters[at:at] = random_source.choice(
                    ["$(", "`", "'", '"', "<<E\n", "${", "((", "[[", "|", ";;", "\\\n", "{a,b}", ">("]
                )
    return "".join(characters)


def judge(command):
    return classify(ToolCall(tool="Bash", arguments={"command": command}))


def campaign(count, seed):
    random_source = random.Random(seed)
    for _ in range(count):
        judge(mutated(random_source, random_source.choice(SEEDS)))


def test_mutated_lines_raise_nothing_and_come_to_an_end():
    campaign(4000, 7)


@pytest.mark.soak
def test_mutated_lines_raise_nothing_in_the_long_run():
    if not os.environ.get("CHECKREIN_SOAK"):
        pytest.skip("set CHECKREIN_SOAK=1 for 200,000 inputs")
    campaign(200_000, 11)


def test_an_added_effect_is_never_low():
    """Never low for a mutation that adds an effect to a line we understand."""
    for seed in SEEDS:
        line = seed if not seed.endswith(("EOF", "PY")) else f"{seed}\n"
        for added in ADDED:
            assert judge(line + added).category > Category.low, line + added


def test_nesting_lists_and_odd_arguments_raise_nothing():
    values = [
        None,
        1,
        "",
        [],
        {},
        "x" * 70000,
        ["a", 1],
        {"a": {"b": [1, "~/.ssh/id_rsa"]}},
        "\ud800",
        "a\0b",
    ]
    for tool in [*vocabulary(), "mcp__a__b", "", "x"]:
        for value in values:
            for key in ("command", "file_path", "path", "url", "patch", "input", "pattern"):
                classify(ToolCall(tool=tool, arguments={key: value}))
    for opener, closer in (
        ("$(", ")"),
        ("{ ", "; }"),
        ("( ", " )"),
        ("`", "`"),
        ('"$(', ')"'),
        ("${x:-", "}"),
        ("if ", "; fi"),
    ):
        assert judge(opener * 300 + "ls" + closer * 300).category > Category.low
