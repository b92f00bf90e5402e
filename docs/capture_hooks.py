"""Draws docs/images/hooks.svg from the real Claude Code with our hooks, asking: `make picture`.

Skipped where the client is not at hand (CHECKREIN_CLIENTS or REAL_CLIENTS name its npm folder).
"""

from __future__ import annotations

import io
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "tests"))
TARGET = ROOT / "docs" / "images" / "hooks.svg"
NAMED = {"brown": "yellow", "brightblack": "bright_black", "brightbrown": "bright_yellow"}


def drawn(screen: object) -> object:
    """A terminal's screen as styled text."""
    from rich.style import Style
    from rich.text import Text

    text = Text()
    for row in range(screen.lines):  # type: ignore[attr-defined]
        cells = [screen.buffer[row][column] for column in range(100)]  # type: ignore[attr-defined]
        if not any(cell.data.strip() for cell in cells):
            continue
        for cell in cells:
            colour = None if cell.fg == "default" else cell.fg
            if colour and re.fullmatch(r"[0-9a-f]{6}", colour):
                colour = f"#{colour}"
            text.append(cell.data, Style(color=NAMED.get(colour or "", colour), bold=cell.bold))
        text.append("\n")
    return text


def main() -> None:
    from rich.console import Console

    from e2e.clients.claude import Claude, bash
    from e2e.clients.house import House

    house = House()
    try:
        claude = Claude(house)
        house.install(claude.agent)
        with claude.sit(bash("make release && git tag v1.2.0")) as screen:
            screen.shows("Do you want to proceed?", "Checkrein asks")
            console = Console(record=True, width=100, file=io.StringIO(), force_terminal=True)
            console.print(drawn(screen._screen))
    finally:
        house.leave()
    svg = console.export_svg(title="Claude Code, with checkrein installed")
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL)
    TARGET.write_text(re.sub(r"/tmp/cr-\w+/app", "~/app", svg), encoding="utf-8")


main()
