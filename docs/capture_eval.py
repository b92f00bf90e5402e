"""Draws docs/images/eval.svg from real commands in a terminal of their own: `make picture`.

A script runs, its person is asked about one of its calls, and its story is shown.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.text import Text

TARGET = Path(__file__).parent / "images" / "eval.svg"
WIDTH = 112
SERVER = ["servers", "add", "docs", "--", "python", "-m", "checkrein.cli.demo_server"]
SETTINGS = """
[evaluation.profiles.desk]
asklist = ["docs__add_page"]
"""
SCRIPT = """\
const found = await codemode.docs__search({query: "refunds"});
console.log(found.content[0].text);
const titles = ["Refunds in short", "Refunds, the whole story"];
const added = await Promise.allSettled(titles.map((title) => codemode.docs__add_page({title})));
return added.map((each, at) => `${titles[at]}: ${each.reason?.reason ?? "added"}`);
"""


def typed(words: list[str], *answers: tuple[str, str]) -> str:
    """What a terminal shows of one of our commands; an answer is typed when its question is there."""
    ours, theirs = os.openpty()
    shown, seen, waiting = b"", 0, list(answers)
    with subprocess.Popen(
        [sys.executable, "-m", "checkrein", *words], stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        with contextlib.suppress(OSError):  # a terminal ends with an error
            while data := os.read(ours, 65536):
                shown += data
                if waiting and waiting[0][0].encode() in shown[seen:]:
                    seen = len(shown)
                    os.write(ours, waiting.pop(0)[1].encode() + b"\n")
        process.wait()
    os.close(ours)
    return f"\x1b[1m$ checkrein {' '.join(words)}\x1b[0m\n" + shown.decode().replace("\r\n", "\n")


@contextlib.contextmanager
def home() -> Iterator[Path]:
    """A home with a server of its own, both gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="cr-") as folder:
        for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"):
            os.environ[name] = f"{folder}/{name[4:-4].lower()}"
        os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        file = Path(os.environ["XDG_CONFIG_HOME"], "checkrein", "config.toml")
        file.parent.mkdir(parents=True)
        file.write_text(SETTINGS)
        desk = Path(folder, "desk")
        desk.mkdir()
        with subprocess.Popen(
            [sys.executable, "-m", "checkrein", "serve"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as server:
            server.stdout.readline()  # type: ignore[union-attr]
            os.chdir(desk)
            try:
                yield desk
            finally:
                os.chdir("/")
                server.terminate()


def main() -> None:
    with home() as desk:
        (desk / "tidy.js").write_text(SCRIPT)
        typed(SERVER, ("run it now?", "y"), ("n = not now", "y"))
        ran = typed(
            ["eval", "run", "tidy.js", "--profile", "desk"], ("Run this call?", "y"), ("Run this call?", "n")
        )
        from checkrein import knocking

        (row,) = knocking.ask(knocking.start(), "run.list", {"limit": 1})
        shown = typed(["eval", "show", row["id"][:12]])
        # Whose machine it was drawn on is nobody's business.
        parts = [ran, shown.replace(str(desk), "~/desk").replace(row["owner"], "person:ada")]
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi("\n".join(part.strip() + "\n" for part in parts).strip()))
    svg = console.export_svg(title="checkrein eval")
    # Fonts come from the reader's machine, not from a stranger's.
    TARGET.write_text(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL), encoding="utf-8")


main()
