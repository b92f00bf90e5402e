"""Draws docs/images/library.svg: a program with gated tools, and what it prints: `make picture`."""

from __future__ import annotations

import io
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.syntax import Syntax
from rich.text import Text

TARGET = Path(__file__).parent / "images" / "library.svg"
PROGRAM = """\
from checkrein import Gate

gate = Gate("shop-gate", answer_with=lambda asked: "yes")

@gate.tool(needs_approval=False)
def look_up(order: int) -> str:
    return f"order {order}: two lamps, paid"

@gate.tool(needs_approval=lambda given: given["amount"] > 100)
def lower_price(order: int, amount: int) -> str:
    return f"order {order} costs {amount} less"

print(look_up(7))
print(lower_price(7, 40))
print(lower_price(7, 400))
gate.close()
"""


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="cr-") as folder:
        program = Path(folder, "shop.py")
        program.write_text(PROGRAM, encoding="utf-8")
        environment = os.environ | dict.fromkeys(("HOME", "XDG_STATE_HOME", "XDG_CONFIG_HOME"), folder)
        words = [sys.executable, str(program)]
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=True)
    console = Console(record=True, width=104, file=io.StringIO(), force_terminal=True)
    console.print(Syntax(PROGRAM, "python", theme="ansi_dark", background_color="default"))
    console.print(Text("$ python shop.py", style="bold"))
    console.print(Text(done.stdout.rstrip()))
    TARGET.write_text(console.export_svg(title="checkrein library"), encoding="utf-8")


if __name__ == "__main__":
    main()
