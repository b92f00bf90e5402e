"""What holds for the source of the classifier as a whole."""

from __future__ import annotations

import re
from pathlib import Path

import checkrein.classify

SOURCE = Path(checkrein.classify.__file__).parent


def test_deciding_does_no_io():
    """Deciding imports nothing that could read, write or connect."""
    for path in SOURCE.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        found = re.findall(
            r"^\s*(?:import|from) (asyncio|socket|sqlite3|subprocess|threading|http|urllib)\b", text, re.M
        )
        assert not found, path.name
