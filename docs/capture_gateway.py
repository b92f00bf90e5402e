"""Draws docs/images/gateway.svg from real commands in a terminal of their own: `make picture`.

A server is added and accepted, a client calls it, a person says yes, and the server turns.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.text import Text

TARGET = Path(__file__).parent / "images" / "gateway.svg"
ADD = ["servers", "add", "docs", "--", "python", "-m", "checkrein.cli.demo_server"]
# A page of this width has to hold what a server says.
WIDTH = 110


def typed(words: list[str], *answers: tuple[str, str]) -> str:
    """What a terminal shows of one of our commands; an answer is typed when its question is there."""
    ours, theirs = os.openpty()
    shown, waiting = b"", list(answers)
    with subprocess.Popen(
        [sys.executable, "-m", "checkrein", *words], stdin=theirs, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        with contextlib.suppress(OSError):  # a terminal ends with an error
            while data := os.read(ours, 65536):
                shown += data
                if waiting and waiting[0][0].encode() in shown:
                    os.write(ours, waiting.pop(0)[1].encode() + b"\n")
        process.wait()
    os.close(ours)
    return f"\x1b[1m$ checkrein {' '.join(words)}\x1b[0m\n" + shown.decode().replace("\r\n", "\n")


@contextlib.contextmanager
def home() -> Iterator[None]:
    """A home with a server of its own, both gone afterwards."""
    with tempfile.TemporaryDirectory(prefix="cr-") as folder:
        for name in ("XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_RUNTIME_DIR"):
            os.environ[name] = f"{folder}/{name[4:-4].lower()}"
        os.environ["PATH"] = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        with subprocess.Popen(
            [sys.executable, "-m", "checkrein", "serve"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
        ) as server:
            server.stdout.readline()  # type: ignore[union-attr]
            try:
                yield
            finally:
                server.terminate()


def call(tool: str, **arguments: str) -> None:
    """A client calls a tool, its person accepts, and it leaves once it hears that the tools changed."""
    from checkrein.hookclient import pump_words
    from checkrein.runtime import door_file

    with subprocess.Popen(
        pump_words(door_file()), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as pump:

        def send(**message: object) -> None:
            pump.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")  # type: ignore[union-attr]
            pump.stdin.flush()  # type: ignore[union-attr]

        about = {"protocolVersion": "2025-11-25", "capabilities": {"elicitation": {}}, "clientInfo": {}}
        send(id=1, method="initialize", params=about)
        send(method="notifications/initialized")
        send(id=2, method="tools/call", params={"name": tool, "arguments": arguments})
        for line in pump.stdout:  # type: ignore[union-attr]
            message = json.loads(line)
            if message.get("method") == "elicitation/create":
                send(id=message["id"], result={"action": "accept", "content": {}})
            elif message.get("method") == "notifications/tools/list_changed":
                break
        pump.stdin.close()  # type: ignore[union-attr]


def main() -> None:
    with home():
        parts = [typed(ADD, ("run it now?", "y"), ("n = not now", "y"))]
        call("docs__add_page", title="How refunds work")
        parts += [typed(["servers"]), typed(["servers", "review", "docs"])]
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text.from_ansi("\n".join(part.strip() + "\n" for part in parts).strip()))
    svg = console.export_svg(title="checkrein servers")
    # Fonts come from the reader's machine, not from a stranger's.
    TARGET.write_text(re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.DOTALL), encoding="utf-8")


main()
