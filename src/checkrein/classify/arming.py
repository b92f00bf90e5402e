"""Files that something else will execute: writing one is judged by what it arms.

Names only; reading such a file is nothing special.
"""

from __future__ import annotations

import re
from functools import cache

from checkrein.classify.tables import data


@cache
def _rows() -> list[tuple[re.Pattern[str], str]]:
    rows = []
    for words, patterns in data("_arming").items():
        body = "|".join(re.escape(p).replace(r"\*", "[^/]*") for p in patterns)
        rows.append((re.compile(f"/(?:{body})$"), words))
    return rows


def what(path: str) -> str:
    """What a write to `path` arms, as the end of a sentence; empty when nothing runs it by itself."""
    full = f"/{path.lstrip('/')}"
    return next((words for pattern, words in _rows() if pattern.search(full)), "")


def scope(words: str) -> str:
    """Build files are part of ordinary work: armed, but no worse than another change to the project."""
    return "armed-build" if "build or install" in words else "armed"
