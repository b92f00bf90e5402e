"""Draws docs/images/demo.svg from a real run of `checkrein demo` in a terminal of its own: `make picture`."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

TARGET = Path(__file__).parent / "images" / "demo.svg"


def run(command: list[str]) -> str:
    """What the command shows on a terminal."""
    ours, theirs = os.openpty()
    with subprocess.Popen(command, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # a terminal ends with an error
            while data := os.read(ours, 65536):
                shown += data
        process.wait()
    return shown.decode().replace("\r\n", "\n")


def main() -> None:
    text = run([sys.executable, "-m", "checkrein", "demo", "--fast"])
    console = Console(record=True, width=120, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi(text.strip()))
    svg = console.export_svg(title="checkrein demo")
    # Fonts come from the reader's machine, not from a stranger's.
    TARGET.write_text(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL), encoding="utf-8")


main()
