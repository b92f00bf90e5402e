"""What the pictures of terminals share: a home of their own, commands with their answers, an SVG."""

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

IMAGES = Path(__file__).parent / "images"


def shown(words: list[str], *answers: tuple[str, str]) -> str:
    """What a terminal shows of one of our commands; an answer is typed when its question is there."""
    ours, theirs = os.openpty()
    found, seen, waiting = b"", 0, list(answers)
    with subprocess.Popen(
        [sys.executable, "-m", "checkrein", *words], stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        with contextlib.suppress(OSError):  # a terminal ends with an error
            while data := os.read(ours, 65536):
                found += data
                if waiting and waiting[0][0].encode() in found[seen:]:
                    seen = len(found)
                    os.write(ours, waiting.pop(0)[1].encode() + b"\n")
        process.wait()
    os.close(ours)
    return found.decode().replace("\r\n", "\n")


def typed(words: list[str], *answers: tuple[str, str]) -> str:
    """The same, with the command as it was typed."""
    return f"\x1b[1m$ checkrein {' '.join(words)}\x1b[0m\n{shown(words, *answers)}"


@contextlib.contextmanager
def home(settings: str = "") -> Iterator[Path]:
    """A home with a server of its own and a desk to work at, all gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="cr-") as folder:
        for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"):
            os.environ[name] = f"{folder}/{name[4:-4].lower()}"
        os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        file = Path(os.environ["XDG_CONFIG_HOME"], "checkrein", "config.toml")
        file.parent.mkdir(parents=True)
        file.write_text(settings, encoding="utf-8")
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


def draw(name: str, title: str, parts: list[str], width: int) -> None:
    """Save what a terminal showed as a picture."""
    console = Console(record=True, width=width, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi("\n".join(part.strip() + "\n" for part in parts).strip()))
    # Fonts come from the reader's machine, not from a stranger's.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", console.export_svg(title=title), flags=re.DOTALL)
    (IMAGES / name).write_text(svg, encoding="utf-8")
