"""The programs that check the test suite: which invariants have tests, which failures may be run again."""

import subprocess
import sys
from pathlib import Path

import pytest
from tools.invariants import Mark, Naming, faults, listed_unnamed, marks, namings
from tools.run_tests import may_retry

from patience import PATIENCE

ROOT = Path(__file__).parent.parent


def write(folder, name, text):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def test_a_mark_is_named_by_its_first_sentence(tmp_path):
    write(tmp_path, "a.py", "# INVARIANT: one yes,\n# one run. More about it.\nrun()\n")
    write(
        tmp_path,
        "b.py",
        "try:\n    x()\nexcept E:  # noqa: X INVARIANT: an error is a deny.\n    # not this\n",
    )
    write(
        tmp_path, "c.py", '"""Does a thing.\n\nINVARIANT: nothing leaves\nbefore its record; so there.\n"""\n'
    )
    write(tmp_path, "d.c", "/* INVARIANT: no answer is a deny. */\nint x;\n")
    assert [(mark.path, mark.words) for mark in marks(tmp_path)] == [
        ("a.py", "one yes, one run"),
        ("b.py", "an error is a deny"),
        ("c.py", "nothing leaves before its record"),
        ("d.c", "no answer is a deny"),
    ]


def test_tests_name_marks_by_decorator_parameter_or_module(tmp_path):
    write(
        tmp_path / "tests",
        "test_a.py",
        'import pytest\n@pytest.mark.invariant("one")\ndef test_x(): ...\n'
        '@pytest.mark.parametrize("y", [pytest.param(1, marks=pytest.mark.invariant("two"))])\n'
        "def test_y(y): ...\n",
    )
    write(
        tmp_path / "tests", "slow/test_b.py", 'import pytest\npytestmark = pytest.mark.invariant("three")\n'
    )
    found = namings(tmp_path / "tests")
    assert [(each.words, each.node, each.quick) for each in found] == [
        ("three", "tests/slow/test_b.py", False),
        ("one", "tests/test_a.py::test_x", True),
        ("two", "tests/test_a.py::test_y", True),
    ]


STRICT, LOOSE = Mark("one", "policy/rules.py", 3), Mark("two", "cli/inbox.py", 4)
QUICK, SLOW = Naming("one", "tests/test_a.py", "test_x"), Naming("one", "tests/slow/test_a.py", "test_x")


@pytest.mark.parametrize(
    ("found", "named", "unnamed", "said"),
    [
        ([STRICT], [QUICK], set(), []),
        ([STRICT], [], set(), ["no test names it"]),
        ([STRICT], [], {"one"}, ["no test names it"]),
        ([STRICT], [SLOW], set(), ["no test in the quick tier"]),
        ([LOOSE], [], {"two"}, []),
        ([LOOSE], [], set(), ["no test names it"]),
        ([LOOSE], [Naming("two", "tests/test_a.py", "x")], {"two"}, ["remove this line, a test names it"]),
        ([], [QUICK], {"two"}, ["the source does not have", "the mark is gone"]),
    ],
)
def test_every_way_a_mark_can_lack_its_test_is_a_fault(found, named, unnamed, said):
    wrong = faults(found, named, unnamed)
    assert len(wrong) == len(said)
    assert all(words in fault for words, fault in zip(said, wrong, strict=True))


def test_the_list_of_invariants_without_a_test_only_shrinks():
    assert len(listed_unnamed()) <= 138


def test_safety_properties_and_faults_are_never_run_again(tmp_path):
    write(
        tmp_path / "tests",
        "test_a.py",
        'import pytest\n@pytest.mark.invariant("one")\ndef test_x(): ...\ndef test_y(): ...\n',
    )
    tests = tmp_path / "tests"
    assert not may_retry("tests/test_a.py::test_x", tests)
    assert not may_retry("tests/test_a.py::test_x[3]", tests)
    assert not may_retry("tests/faults/test_crash.py::test_y", tests)
    assert not may_retry("tests/faults/slow/test_crash.py::test_y", tests)
    assert may_retry("tests/test_a.py::test_y[a::b]", tests)


def run(folder, *arguments):
    return subprocess.run(
        [sys.executable, "-m", "tools.run_tests", "-q", "-p", "no:cacheprovider", *arguments, str(folder)],
        cwd=ROOT,
        check=False,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def test_a_run_ends_with_what_it_cost(tmp_path):
    write(tmp_path, "test_one.py", "def test_one(): ...\n")
    ended = run(tmp_path, "--times")
    assert ended.returncode == 0
    assert "1 tests · " in ended.stdout
    assert "s processor" in ended.stdout
