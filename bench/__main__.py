"""Runs every measurement and writes docs/performance.md: `make bench`."""

from __future__ import annotations

import os
import platform
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
OPENING = """# Performance

Written by `make bench`; do not edit. Trust the ratios: each figure stands beside its floor from the same
run on the same machine ({machine}).

"""


def main() -> None:
    wanted = sys.argv[1:] or list(SECTIONS)
    pieces = []
    for name in wanted:
        print(f"measuring {name} ...", file=sys.stderr)
        pieces.append(SECTIONS[name]())
        print(pieces[-1])
    if len(wanted) == len(SECTIONS):
        machine = (
            f"Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}, {os.cpu_count()} cores"
        )
        TARGET.write_text(OPENING.format(machine=machine) + "\n".join(pieces), encoding="utf-8")


main()
