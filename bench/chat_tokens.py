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
ROUNDS, MESSAGES, SIZE = 15, 10_000, 1_000_000
JAPANESE = "サーバーの起動に失敗しました。設定を確認してから、もう一度お試しください。\n"


def texts() -> dict[str, list[str]]:
    """Megabytes of each kind of text a chat holds, no two alike: the tokeniser remembers what it has seen."""
    pages = "".join(path.read_text("utf-8") for path in sorted((ROOT / "docs").glob("*.md")))
    code = "".join(path.read_text("utf-8") for path in sorted((ROOT / "src").rglob("*.py")))
    chance = random.Random(3)
    return {
        "prose": [(pages[number:] * 20)[:SIZE] for number in range(ROUNDS)],
        "code": [(code[number:] * 5)[:SIZE] for number in range(ROUNDS)],
        "Japanese": [f"{number}: {JAPANESE}" * 8_500 for number in range(ROUNDS)],
        "base64": [base64.b64encode(chance.randbytes(SIZE * 3 // 4)).decode("ascii") for _ in range(ROUNDS)],
        "one letter": [chr(97 + number) * SIZE for number in range(ROUNDS)],
    }


def speed(work: Any, samples: list[str]) -> float:
    """Megabytes a second, at the median."""
    return len(samples[0].encode("utf-8")) / timed(work, samples).p50


def section() -> str:
    # Loading an encoding takes some 50 ms, once.
    count("", "o200k"), count("", "cl100k")
    rows = []
    for kind, samples in texts().items():
        fast = [speed(lambda each, name=name: count(each, name), samples) for name in ("o200k", "cl100k")]
        others = [speed(estimate, samples), speed(lambda each: each.encode("utf-8"), samples)]
        rows.append([kind, *(f"{each:,.0f} MB/s" for each in (*fast, *others)), "≥ 5 MB/s"])
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
