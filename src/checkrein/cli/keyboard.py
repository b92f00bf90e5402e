"""Keys a person presses in the inbox: one key for one answer, or a whole line where a reason is wanted."""

from __future__ import annotations

import os
import select
import sys
import termios
import time
import tty
from types import TracebackType

from checkrein.cli.terminal import say

ONE_KEY = "asAjkqv?"
_END = b"\x04"


class Keyboard:
    """What was pressed, as commands: `a`, `s`, `d why`, `a ID`; nothing where there is no terminal."""

    def __init__(self) -> None:
        self._is_there = sys.stdin.isatty()
        self._begun = ""
        self._before: list[object] | None = None

    def __enter__(self) -> Keyboard:
        if self._is_there:
            self._before = termios.tcgetattr(sys.stdin.fileno())
            tty.setcbreak(sys.stdin.fileno())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._before is not None:
            termios.tcsetattr(sys.stdin.fileno(), termios.TCSADRAIN, self._before)  # type: ignore[arg-type]

    def lines(self, seconds: float) -> list[str]:
        """What was pressed within this time."""
        if not self._is_there:
            time.sleep(seconds)
            return []
        handle = sys.stdin.fileno()
        if not select.select([handle], [], [], seconds)[0]:
            return []
        pressed = os.read(handle, 65_536)
        if not pressed or pressed == _END:
            return ["q"]
        return self._commands(pressed.decode("utf-8", "replace"))

    def _commands(self, pressed: str) -> list[str]:
        """A lone key counts at once; a key with a space behind it, and a no, wait for the end of the line."""
        found: list[str] = []
        text, self._begun = self._begun + pressed, ""
        while text:
            if text[0] in ONE_KEY and text[1:2] != " ":
                found.append(text[0])
                text = text[1:].removeprefix("\n")
                continue
            line, end, rest = text.partition("\n")
            if not end:
                self._begin(text, pressed)
                break
            found.append(line.strip())
            text = rest
        return found

    def _begin(self, text: str, pressed: str) -> None:
        if text in ("d", "D"):
            say("No, because (Enter sends it):")
            text = f"{text} "
        if pressed == "\x7f":
            text = text[:-2]
        self._begun = text
