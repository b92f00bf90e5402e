"""Why a script stopped: the kind, the words, the line."""

import json

import pytest

from checkrein.execute.python_failures import of_types
from checkrein.execute.sandbox import Failed, Limits
from patience import PATIENCE
from scripts import run


@pytest.mark.parametrize(
    ("source", "kind", "line"),
    [
        ("x = 1\ndef f(:\n    pass", "syntax", 2),
        ("x = 1\ndel x", "unsupported", 2),
        ("class A(Exception):\n    pass", "unsupported", 1),
        ("def f():\n    yield 1", "unsupported", 2),
        ("x = 1\nimport statistics", "unsupported", 2),
        ("def f():\n    return 1 / 0\n\nf()", "error", 2),
        ("raise ValueError('é')", "error", 1),
        ("x = 'a' * 10 ** 9", "memory", 1),
        ("while True:\n    pass", "time", 0),
        ("try:\n    while True:\n        pass\nexcept BaseException:\n    pass", "time", 0),
        ("def f():\n    return f()\nf()", "error", 2),
        ("while True:\n    print('x' * 1000)", "output", 0),
        ("float('nan')", "error", 0),
        ("\udcff", "syntax", 0),
        ("#" * (65 << 10), "syntax", 0),
        ("raise KeyboardInterrupt()", "error", 1),
    ],
)
def test_the_kind_and_the_line(source, kind, line):
    failed = run(source, limits=Limits(seconds=0.5 if kind == "time" else PATIENCE))
    assert isinstance(failed, Failed)
    assert (failed.kind, failed.line) == (kind, line)
    assert failed.message


def test_unsupported_syntax_is_named_and_nothing_ran():
    seen = []
    failed = run("await fs__read(path='a')\nx = 1\ndel x", seen=seen)
    assert failed == Failed("unsupported", "Scripts cannot use the 'del' statement.", 3)
    assert seen == []


def test_output_before_a_failure_is_kept():
    assert run("print('so far')\n1 / 0").output == "so far\n"


def row(code, message, *, line=1, column=1, severity="error"):
    return {
        "code": code,
        "message": message,
        "severity": severity,
        "location": {"row": line, "column": column},
    }


def test_the_type_check_in_few_words():
    found = [row("unresolved-reference", f"Name `x{i}` used when not defined", line=i) for i in range(1, 9)]
    fault = of_types(json.dumps(found), "x\n" * 9)
    assert fault.line == 1
    assert fault.message.count("\n") == 5
    assert fault.message.endswith("and 3 more")


def test_what_is_right_here_is_no_fault():
    found = [
        row("invalid-syntax", "`return` statement outside of a function"),
        row("x", "anything", severity="warning"),
        row("missing-argument", "No argument", column=7),
    ]
    assert of_types(json.dumps(found), "await f({'a': 1})") is None
    assert of_types(json.dumps(found), "await f(1)").kind == "types"


def test_a_check_we_cannot_read_is_a_fault():
    assert of_types("what", "x").kind == "types"
    assert of_types("[1]", "x").kind == "types"
