"""How long it takes to open a long conversation and to find words among a million messages.

Beside each stands what plain SQL takes in the same run: a SELECT of the rows, a LIKE over all of them.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.measure import micro, table, timed
from checkrein.doors.chat import Message, Part, Session
from checkrein.doors.chat.bundles import Bundle, keep, renewed
from checkrein.doors.chat.rows import columns
from checkrein.doors.chat.sessions import Sessions
from checkrein.store.conversations import MESSAGE
from checkrein.store.sqlite import SqliteStore

COUNT, STEP, LONG, ROUNDS = 1_000_000, 20_000, 10_000, 15
VOCABULARY, WORDS = 20_000, 24
CJK = "東京 京都 都に に行 行く く"
SCAN = "SELECT id FROM chat_message WHERE parts LIKE ? ORDER BY number DESC"
# What is asked, and what a plain scan would look for.
ASKED = {
    "a rare word": ("zebracorn", "%zebracorn%"),
    "a word of every message": ("message", "%message%"),
    "two common words": ("message answer", "%message%answer%"),
    "two common words never together": ("question answer", "%question%answer%"),
    "a rare and a common word": ("message zebracorn", "%message%zebracorn%"),
    "the beginning of a common word": ("mess", "%mess%"),
    "one letter": ("m", "%m%"),
    "a Japanese word": ("京都", "%京都%"),
    "a Japanese phrase": ("東京都に行く", "%東京都に行く%"),
    "nothing that is there": ("nowhereatall", "%nowhereatall%"),
}


def section() -> str:
    random.seed(7)
    with tempfile.TemporaryDirectory(prefix="checkrein-bench-") as name:
        store = SqliteStore.open(Path(name))
        sessions = Sessions(store, time.time)
        opened = opening(sessions)
        build(sessions)
        rows = [found(sessions, label, *asked) for label, asked in ASKED.items()]
        store.close()
    head = ["search", "p50", "p99", "a LIKE over all, once", "ratio", "goal"]
    return (
        f"## Conversations\n\n{opened}\n"
        f"The newest 50 of {COUNT:,} messages, with what matched marked:\n\n{table(head, rows)}"
    )


def opening(sessions: Sessions) -> str:
    """A session of 10,000 messages as values, beside reading its rows."""
    said = "The tests pass again; the fault was in how the list was sorted, and only in the second run. " * 4
    talk = [
        Message(f"m{n}", "user", (Part(text=f"{n}: {said}"),), n, parent=f"m{n - 1}" if n else "")
        for n in range(LONG)
    ]
    long = Session(id="x", title="long", created_at=1.0, updated_at=1.0, head=f"m{LONG - 1}")
    made = keep(sessions, renewed(Bundle(session=long, messages=talk), time.time()))
    select = f"SELECT {', '.join(MESSAGE)} FROM chat_message WHERE session = ? ORDER BY sequence"
    plain = timed(lambda _: sessions.store.query(select, (made.id,)), range(ROUNDS))
    ours = timed(lambda _: sessions.path(made.id), range(ROUNDS))
    return (
        f"A session of {LONG:,} messages opens in {micro(ours.p50)} p50, {micro(ours.p99)} p99 (≤ 200 ms). "
        f"Reading its rows takes {micro(plain.p50)}: {ours.p50 / plain.p50:.1f} times that.\n"
    )


def build(sessions: Sessions) -> None:
    """A million messages of 1,000 sessions: rows and their spelled words, written in bulk."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    vocabulary = ["".join(random.choices(letters, k=random.randint(3, 9))) for _ in range(VOCABULARY)]
    pool = random.choices(vocabulary, [1 / (n + 1) for n in range(VOCABULARY)], k=2_000_000)
    talks = [sessions.create(f"Talk {number}").id for number in range(1000)]
    blank = columns(Message("", "user"), MESSAGE)
    names = ["number", "session", *blank]
    (first,) = sessions.store.query("SELECT max(number) + 1 FROM chat_message")[0]
    into = f"INSERT INTO chat_message ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})"

    def some(tx: Any, start: int) -> None:
        rows, words = [], []
        for number in range(start, start + STEP):
            at = random.randrange(len(pool) - WORDS)
            text = f"{' '.join(pool[at : at + WORDS])} message {'answer' if number % 2 else 'question'}"
            text += " zebracorn" if number % 250_000 == 17 else ""
            japanese = number % 10 == 0
            said = f'[{{"text":"{text}{" 東京都に行く" if japanese else ""}"}}]'
            own = {
                **blank,
                "id": f"n{number}",
                "parts": said,
                "sequence": number,
                "created_at": float(number),
            }
            rows.append((first + number, talks[number % 1000], *own.values()))
            words.append((first + number, f"{text} {CJK}" if japanese else text))
        tx.execute_many(into, rows)
        tx.execute_many("INSERT INTO chat_words (rowid, words) VALUES (?, ?)", words)

    for start in range(0, COUNT, STEP):
        sessions.store.write(lambda tx, start=start: some(tx, start))
        sys.stderr.write(f"\r  building conversations: {start:,} of {COUNT:,}")
    sys.stderr.write("\r" + " " * 60 + "\r")


def found(sessions: Sessions, label: str, query: str, like: str) -> list[str]:
    ours = timed(lambda _: sessions.search(query), range(ROUNDS))
    plain = timed(lambda _: sessions.store.query(SCAN, (like,)), range(1))
    ratio = f"{plain.p50 / ours.p50:,.0f} times faster"
    return [label, micro(ours.p50), micro(ours.p99), micro(plain.p50), ratio, "≤ 100 ms"]
