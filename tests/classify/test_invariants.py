"""Every safety property that is marked in the code has a test of the same name."""

from __future__ import annotations

import re
from pathlib import Path

import checkrein.classify

SOURCE = Path(checkrein.classify.__file__).parent
TESTS = Path(__file__).parent


def test_every_marked_invariant_has_a_test_of_the_same_name():
    tests = "\n".join(path.read_text(encoding="utf-8") for path in TESTS.glob("test_*.py"))
    for path in SOURCE.glob("*.py"):
        for text in re.findall(r"INVARIANT: ([^\n\"]+)", path.read_text(encoding="utf-8")):
            name = re.sub(r"[^a-z0-9]+", "_", text.lower().replace("'s", "s")).strip("_")
            assert f"def test_{name}(" in tests, f"{path.name}: {text}"


def test_deciding_does_no_io():
    """Deciding imports nothing that could read, write or connect."""
    for path in SOURCE.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        found = re.findall(
            r"^\s*(?:import|from) (asyncio|socket|sqlite3|subprocess|threading|http|urllib)\b", text, re.M
        )
        assert not found, path.name
