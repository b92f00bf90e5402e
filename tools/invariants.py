"""Checks that every `INVARIANT` in the source has a test that names it (`make invariants`).

A mark in the source reads `# INVARIANT: <sentence>`. A test names it with
`@pytest.mark.invariant("<the same first sentence>")`. Run as a program, this module fails on a mark that no
test names, on a name that no mark has, and on a mark whose only tests are outside the quick tier.
Marks that still lack a test stand in `tools/unnamed_invariants.txt`. That list may only shrink.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "checkrein"
TESTS = ROOT / "tests"
UNNAMED = ROOT / "tools" / "unnamed_invariants.txt"
SLOW_TIERS = {"slow", "e2e"}
# Every mark of these packages, and of the modules beside them, needs a test in the quick tier.
STRICT = (
    "approval/",
    "authority/",
    "classify/",
    "doors/gateway/",
    "doors/hooks/",
    "ledger/",
    "policy/",
    "store/",
)

_MARK = re.compile(r"INVARIANT: ?")
# What begins or ends a line of a comment or docstring, in Python, C and JavaScript.
_COMMENT_EDGE = re.compile(r'^\s*(?:#|//|/?\*+(?!/))?\s?|\s*(?:\*/|""")\s*$')
_SENTENCE_END = re.compile(r"(?<=[^.\s])(?:\. |\.$|: |; )")


@dataclass(frozen=True)
class Mark:
    """One `INVARIANT` in the source."""

    words: str
    path: str  # relative to the package
    line: int

    @property
    def strict(self) -> bool:
        """Whether the mark must have a test, instead of possibly standing in the list of those without."""
        return "/" not in self.path or self.path.startswith(STRICT)


@dataclass(frozen=True)
class Naming:
    """One test that names an invariant."""

    words: str
    path: str  # relative to the repository
    test: str  # the function; empty where the whole module names it

    @property
    def node(self) -> str:
        """What pytest is given to run this test."""
        return f"{self.path}::{self.test}" if self.test else self.path

    @property
    def quick(self) -> bool:
        """Whether `make test` runs it."""
        return not SLOW_TIERS & set(Path(self.path).parts)


def marks(source: Path = SOURCE) -> list[Mark]:
    """Every mark of the source, in the order of the files."""
    found = []
    for path in sorted(source.rglob("*")):
        if path.suffix in {".py", ".c", ".js"}:
            lines = path.read_text(encoding="utf-8").splitlines()
            for number, line in enumerate(lines):
                if _MARK.search(line):
                    words = _first_sentence(lines, number)
                    found.append(Mark(words, path.relative_to(source).as_posix(), number + 1))
    return found


def _first_sentence(lines: list[str], start: int) -> str:
    """The mark's name: its comment up to the end of the first sentence or clause."""
    before, text = _MARK.split(lines[start], maxsplit=1)
    text = _COMMENT_EDGE.sub("", text).strip()
    is_comment = "#" in before or before.rstrip().endswith(("//", "*"))
    beside_code = is_comment and not before.lstrip().startswith(("#", "/", "*"))
    closed = beside_code or lines[start].rstrip().endswith(("*/", '"""'))
    for line in lines[start + 1 : start + 8]:
        if closed or _SENTENCE_END.search(text) or _MARK.search(line):
            break
        stripped = _COMMENT_EDGE.sub("", line).strip()
        if not (line.lstrip().startswith(("#", "//", "*")) if is_comment else stripped):
            break
        text, closed = f"{text} {stripped}", line.rstrip().endswith(("*/", '"""'))
    return _SENTENCE_END.split(text, maxsplit=1)[0].strip().rstrip(".")


def namings(tests: Path = TESTS) -> list[Naming]:
    """Every `pytest.mark.invariant(...)` of the tests."""
    found = []
    for path in sorted(tests.rglob("test_*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        where = path.relative_to(tests.parent).as_posix()
        for node in tree.body:
            # A decorator names its own function; `pytestmark` names every test of the module.
            found += [Naming(words, where, getattr(node, "name", "")) for words in _words_in(node)]
    return found


def _words_in(node: ast.stmt) -> Iterator[str]:
    for each in ast.walk(node):
        if isinstance(each, ast.Call) and ast.unparse(each.func) == "pytest.mark.invariant":
            for argument in each.args:
                yield ast.literal_eval(argument)


def faults(found: list[Mark], named: list[Naming], unnamed: set[str]) -> list[str]:
    """What is wrong, a sentence each; empty when every mark has its test."""
    words = {mark.words for mark in found}
    quick = {naming.words for naming in named if naming.quick}
    slow = {naming.words for naming in named} - quick
    wrong = [
        f"{naming.node} names an invariant that the source does not have: {naming.words}"
        for naming in named
        if naming.words not in words
    ]
    for mark in found:
        at = f"src/checkrein/{mark.path}:{mark.line}"
        if mark.words in slow:
            wrong.append(f"{at}: no test in the quick tier names it: {mark.words}")
        elif mark.words not in quick and (mark.strict or mark.words not in unnamed):
            wrong.append(f"{at}: no test names it: {mark.words}")
    remove = f"{UNNAMED.name}: remove this line"
    wrong += [f"{remove}, a test names it: {each}" for each in sorted(unnamed & quick)]
    wrong += [f"{remove}, the mark is gone: {each}" for each in sorted(unnamed - words)]
    return wrong


def listed_unnamed() -> set[str]:
    """The marks that are known to lack a test."""
    return {line for line in UNNAMED.read_text(encoding="utf-8").splitlines() if line}


def main() -> int:
    """Print what is wrong and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.invariants", description=__doc__)
    parser.add_argument("--list", metavar="PREFIX", help="print the marks below this path and their tests")
    options = parser.parse_args()
    found, named = marks(), namings()
    if options.list is not None:
        for mark in found:
            if mark.path.startswith(options.list):
                print(f"{mark.path}:{mark.line}: {mark.words}")
                print(*(f"    {each.node}" for each in named if each.words == mark.words), sep="\n")
        return 0
    wrong = faults(found, named, listed_unnamed())
    print(*wrong, sep="\n")
    tested = {naming.words for naming in named}
    print(
        f"{len(found)} invariants, {sum(mark.words in tested for mark in found)} named by a test, "
        f"{sum(mark.strict for mark in found)} of them must be; {len(wrong)} faults."
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
