"""A conversation in a terminal: the answer as it comes, one line for each call, notices.

INVARIANT: nothing a model or a tool says reaches the terminal but as text.
"""

from __future__ import annotations

from typing import Any

import click

from checkrein.cli.terminal import dim, plain, shortened

Facts = dict[str, Any]
_LONGEST = 100


class Screen:
    """`apart`: the answer alone goes to standard output, everything about it to standard error."""

    def __init__(self, *, apart: bool = False, silent: bool = False) -> None:
        self._apart, self._silent = apart, silent
        self._midline = self._thinking = False
        self._shown: dict[str, str] = {}

    @property
    def all_text(self) -> str:
        return "\n\n".join(each for each in self._shown.values() if each)

    def say(self, text: str = "") -> None:
        """A line of its own."""
        self._end_line()
        click.echo(text, err=self._apart)

    def _end_line(self) -> None:
        if self._midline:
            click.echo()
        self._midline = self._thinking = False

    def text(self, message: str, delta: str) -> None:
        """More of an answer."""
        if self._thinking:
            self._end_line()
        self._shown[message] = self._shown.get(message, "") + delta
        if not self._silent:
            click.echo(plain(delta), nl=False)
            self._midline = not delta.endswith("\n")

    def reasoning(self, delta: str) -> None:
        """What a model thinks aloud is no part of its answer."""
        if self._silent or self._apart:
            return
        if not self._thinking:
            self._end_line()
        click.echo(dim(plain(delta)), nl=False)
        self._midline = self._thinking = True

    def whole(self, message: Facts) -> None:
        """An answer as it was kept: what of it was not shown yet is shown now."""
        if message["role"] != "assistant":
            return
        text, shown = text_of(message), self._shown.get(message["id"], "")
        if text.startswith(shown) and text != shown:
            self.text(message["id"], text[len(shown) :])
        if not self._silent:
            self._end_line()

    def call(self, call: Facts) -> None:
        self.say(dim(f"-> {plain(call['name'])} {plain(shortened(call['arguments'], _LONGEST))}"))

    def result(self, call: Facts) -> None:
        """How a call ended, on one line."""
        status, took = call["status"], call.get("milliseconds")
        time = f" in {took} ms" if took is not None else ""
        if status == "completed":
            told = f"   done{time}: {_result(call.get('output'))}"
        elif status == "denied":
            # What the model is told of it: a person's no says more than why they were asked.
            why = str(call.get("error") or call.get("reason") or "")
            told = f"   refused: {why.removeprefix('Refused. ')}"
        else:
            told = f"   {status}{time}: {call.get('error') or _result(call.get('output'))}"
        self.say(dim(plain(" ".join(told.split("\n")))))

    def notice(self, text: str) -> None:
        self.say(dim(plain(text)))


def text_of(message: Facts) -> str:
    return "".join(part.get("text", "") for part in message["parts"] if part.get("kind", "text") == "text")


def transcript(messages: list[Facts]) -> list[str]:
    """Messages as they are read again later."""
    lines: list[str] = []
    for each in messages:
        text = text_of(each)
        calls = [part for part in each["parts"] if part.get("kind") == "tool_invocation"]
        files = [part for part in each["parts"] if part.get("kind") == "attachment"]
        if text or files:
            who = {"user": "You", "assistant": each.get("model") or "Assistant"}.get(
                each["role"], each["role"]
            )
            lines.append(click.style(plain(f"{who}:"), bold=True))
            lines += [plain(text)] if text else []
            lines += [dim(plain(f"[attached: {_attached(part)}]")) for part in files]
        lines += [dim(plain(f"-> {part['tool_name']} {part.get('status', '')}")) for part in calls]
        if each.get("state", "completed") not in ("completed", "streaming"):
            lines.append(dim(plain(f"({each['state']}) {each.get('error', '')}")))
    return lines


def _attached(part: Facts) -> str:
    """What a file is called, on one line."""
    data = part.get("data")
    name = data.get("name") if isinstance(data, dict) else ""
    return " ".join(str(name or part.get("mime_type") or "a file").split())[:_LONGEST]


def _result(output: Any) -> str:
    """What a tool said, on one line."""
    content = output.get("content") if isinstance(output, dict) else None
    if isinstance(content, list):
        texts = [each.get("text") for each in content if isinstance(each, dict)]
        joined = " ".join(each for each in texts if isinstance(each, str))
        if joined:
            return shortened({"command": joined}, _LONGEST)
    return shortened({"command": output} if isinstance(output, str) else output, _LONGEST)
