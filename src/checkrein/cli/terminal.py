"""How things look in a terminal: colours when there is one, tables, trees, and times as people write them."""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

import click
import msgspec

from checkrein.call import Reason, Verdict
from checkrein.errors import InputError

COLOUR = {"allow": "green", "ask": "yellow", "deny": "red"}
_AGO = re.compile(r"(\d+)\s*([smhdw])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86_400, "w": 604_800}
_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    r"\U000e0000-\U000e0fff]"
)


def plain(text: str) -> str:
    """Text that came from an agent, with what could drive the terminal made visible."""
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def say(text: str = "") -> None:
    click.echo(text)


def say_json(value: Any) -> None:
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    click.echo(plain_json(text).encode())


def plain_json(text: str) -> str:
    """The same JSON, with what could drive the terminal escaped: it can stand in its strings alone."""
    return _CONTROL.sub(lambda found: _escaped(found[0].encode("utf-16-be")), text)


def _escaped(units: bytes) -> str:
    return "".join(f"\\u{units[at : at + 2].hex()}" for at in range(0, len(units), 2))


def word(value: str, width: int = 0) -> str:
    return click.style(value.upper().ljust(width), fg=COLOUR[value], bold=True)


def fact(name: str, value: Any, width: int = 19) -> None:
    """A name and its value on one line; what is not text is shown as JSON."""
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    click.echo(f"{name:<{width}} {plain(text)}")


def dim(text: str) -> str:
    return click.style(text, dim=True)


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Columns as wide as they need to be; an empty table says so by its head alone."""
    lines = [[plain(cell) for cell in row] for row in rows]
    widths = [max(len(line[at]) for line in [list(head), *lines]) for at in range(len(head))]
    click.echo(dim("  ".join(name.ljust(width) for name, width in zip(head, widths, strict=True)).rstrip()))
    for line in lines:
        click.echo("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())


def tree(reasons: Sequence[Reason], indent: str = "") -> None:
    """A reason tree, drawn."""
    for number, reason in enumerate(reasons, start=1):
        last = number == len(reasons)
        click.echo(f"{indent}{'└─' if last else '├─'} {plain(reason.text)}")
        tree(reason.children, f"{indent}{'   ' if last else '│  '}")


def show_verdict(verdict: Verdict, title: str) -> None:
    """A verdict as `explain` prints it: the word, who decided, the reasons, and what a person can do."""
    by = f"{verdict.stage}, rule {verdict.rule}" if verdict.rule else verdict.stage
    say(f"{word(verdict.word)} {plain(title)}")
    say(f"{verdict.decision} {dim(f'decided by {by}')}")
    tree(verdict.reasons)
    risk = verdict.risk
    effects = [" ".join(filter(None, (each.kind, each.scope, each.target))) for each in risk.effects]
    if effects:
        say(f"effects: {plain('; '.join(effects[:12]))}" + (" …" if len(effects) > 12 else ""))
    facts = [f"risk {risk.category.name}", f"complexity {risk.complexity:.2f}"]
    facts += [f"trust {score:.2f} in {domain}" for domain, score in verdict.trust.items()]
    if verdict.autonomy is not None:
        facts.append(f"autonomy {verdict.autonomy:.2f}")
    say(dim(" · ".join(facts)))
    if verdict.remedy:
        say(verdict.remedy)


def shortened(value: Any, longest: int = 60) -> str:
    """What a call was about, on one line: its command, else its arguments as JSON."""
    command = value.get("command") if isinstance(value, dict) else None
    text = command if isinstance(command, str) else msgspec.json.encode(value).decode()
    text = " ".join(text.split())
    return text if len(text) <= longest else f"{text[: longest - 3]}..."


def bar(share: float, width: int = 20) -> str:
    filled = round(share * width)
    return "█" * filled + "░" * (width - filled)


def moment(text: str | None, *, ahead: bool = False) -> float | None:
    """A time from `2h`, `7d` (ago, or ahead) or ISO 8601 (local unless it says otherwise)."""
    if text is None:
        return None
    ago = _AGO.fullmatch(text.strip())
    if ago:
        distance = int(ago[1]) * _SECONDS[ago[2]]
        return time.time() + (distance if ahead else -distance)
    try:
        return datetime.fromisoformat(text).astimezone().timestamp()
    except (ValueError, OverflowError):
        raise InputError(f"{text!r} is not a time.", remedy="Write 2h, 7d or 2027-01-31T18:00.") from None
