"""How fast tokens are counted, beside reading the same text once, and what a plan for a long chat takes."""

from __future__ import annotations

import base64
import random
from pathlib import Path
from typing import Any

from bench.measure import micro, table, timed
from checkrein.doors.chat import Message, Part
from checkrein.doors.chat.compression import Settings, Weighed, preview
from checkrein.doors.chat.models import Table, shipped
from checkrein.doors.chat.tokens import count, estimate, exact

ROOT = Path(__file__).parent.parent
ROUNDS, MESSAGES = 20, 10_000
JAPANESE = "サーバーの起動に失敗しました。設定を確認してから、もう一度お試しください。\n"


def texts() -> dict[str, str]:
    """About a megabyte of each kind of text a chat holds."""
    pages = "".join(path.read_text("utf-8") for path in sorted((ROOT / "docs").glob("*.md")))
    code = "".join(path.read_text("utf-8") for path in sorted((ROOT / "src").rglob("*.py")))
    blob = base64.b64encode(random.Random(3).randbytes(750_000)).decode("ascii")
    return {
        "prose": (pages * 20)[:1_000_000],
        "code": (code * 5)[:1_000_000],
        "Japanese": JAPANESE * 9_000,
        "base64": blob,
        "one letter": "a" * 1_000_000,
    }


def speed(work: Any, text: str) -> float:
    """Megabytes a second, at the median."""
    work(text)
    return len(text.encode("utf-8")) / timed(work, [text] * ROUNDS).p50


def section() -> str:
    rows = []
    for kind, text in texts().items():
        floor = speed(lambda each: each.encode("utf-8"), text)
        fast = [speed(lambda each, name=name: count(each, name), text) for name in ("o200k", "cl100k")]
        guess = speed(estimate, text)
        rows.append([kind, *(f"{each:.0f} MB/s" for each in (*fast, guess, floor)), "≥ 5 MB/s"])
    head = ["text", "o200k", "cl100k", "estimate", "encoding it, the floor", "goal"]
    return f"## Counting tokens\n\n{table(head, rows)}\n{planning()}"


def planning() -> str:
    """What it takes to look at a chat of 10,000 messages, counted anew and counted before."""
    model = Table(shipped()).model("gpt-4o")
    said = "The tests pass again; the fault was in how the list was sorted, and only in the second run. " * 4
    talk = [
        Message(
            f"m{number}", "assistant" if number % 2 else "user", (Part(text=f"{number}: {said}"),), number
        )
        for number in range(MESSAGES)
    ]
    before = {each.id: Weighed(each.id, each.role, 90) for each in talk}
    anew = timed(lambda _: preview(talk, None, model, Settings()), range(ROUNDS))
    kept = timed(
        lambda _: preview(talk, None, model, Settings(), weigh=lambda each: before[each.id]), range(ROUNDS)
    )
    how = "" if exact() else " The tokeniser is not installed: these are estimates."
    return (
        f"A plan for {MESSAGES:,} messages: {micro(anew.p50)} with every message counted, "
        f"{micro(kept.p50)} with counts kept from before.{how}\n"
    )
