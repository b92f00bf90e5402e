"""Runs every measurement and writes docs/performance.md: `make bench`."""

from __future__ import annotations

import os
import platform
import re
import sqlite3
import sys
from pathlib import Path

from bench import (
    asking,
    chat,
    chat_sessions,
    chat_tokens,
    console,
    deciding,
    gateway,
    hooks,
    library,
    looking_up,
    recording,
    risk,
)
from bench import eval as scripts

TARGET = Path(__file__).parent.parent / "docs" / "performance.md"
SECTIONS = {
    "hooks": hooks.section,
    "asking": asking.section,
    "console": console.section,
    "gateway": gateway.section,
    "eval": scripts.section,
    "library": library.section,
    "chat": chat.section,
    "chat_sessions": chat_sessions.section,
    "chat_tokens": chat_tokens.section,
    "risk": risk.section,
    "deciding": deciding.section,
    "recording": recording.section,
    "looking_up": looking_up.section,
}
_MARKED = re.compile(r"<!-- (\w+) -->\n(.*?)(?=<!-- \w+ -->|\Z)", re.DOTALL)
OPENING = """# Performance

Written by `make bench`; do not edit. Trust the ratios: each figure stands beside its floor from the same
run on the same machine ({machine}).

"""


def main() -> None:
    wanted = sys.argv[1:] or list(SECTIONS)
    if unknown := sorted(set(wanted) - set(SECTIONS)):
        sys.exit(f"There is no measurement called {unknown[0]}; there are: {', '.join(SECTIONS)}.")
    pieces = {}
    for name in wanted:
        print(f"measuring {name} ...", file=sys.stderr)
        pieces[name] = SECTIONS[name]()
        print(pieces[name])
    machine = f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {os.cpu_count()} cores"
    TARGET.write_text(page(TARGET.read_text("utf-8"), pieces, machine), encoding="utf-8")


def page(before: str, pieces: dict[str, str], machine: str) -> str:
    """The page with these sections measured anew; the others stay, each from a run of its own."""
    kept = dict(_MARKED.findall(before))
    found = {name: pieces.get(name) or kept.get(name, "") for name in SECTIONS}
    body = "\n".join(f"<!-- {name} -->\n{text.strip()}\n" for name, text in found.items() if text)
    return OPENING.format(machine=machine) + body


if __name__ == "__main__":
    main()
