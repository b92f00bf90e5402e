"""How long it takes to find calls among a million, beside a primary-key read of raw sqlite3."""

from __future__ import annotations

import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from bench.measure import micro, table, timed
from bench.recording import CALL, VERDICT
from checkrein.ledger.checkpoints import Signer
from checkrein.ledger.events import decided
from checkrein.ledger.query import Filter, entries, entry
from checkrein.ledger.record import Ledger, new_id
from checkrein.ledger.redact import Redactor
from checkrein.ledger.terms import terms_of
from checkrein.store.sqlite import SqliteStore

COUNT, STEP, LOOK_UPS = 1_000_000, 5_000, 60
START = 1_700_000_000.0
TOOLS = ("Bash", "Read", "Edit", "Write", "Grep", "search", "fetch", "query")
DECISIONS = ("auto_approved", "logged_only", "human_required", "blocked")
DOMAINS = ("file_read", "file_write", "test_run", "git_local", "shell_exec", "package", "network")


def build(ledger: Ledger, now: list[float]) -> list[str]:
    """A million calls of 40 projects and 5,000 sessions; every tenth has its outcome recorded."""
    base = decided(CALL, VERDICT, Redactor(), 65536)
    ids: list[str] = []
    finished = {
        "project": "",
        "session": "",
        "outcome": "success",
        "evidence": "",
        "output": None,
        "trust": {},
        "latency_ms": 5,
    }

    def some(tx: Any, first: int) -> None:
        for number in range(first, first + STEP):
            now[0] = START + number * 10
            ids.append(new_id(now[0]))
            data = base | {
                "project": f"/home/ada/project-{number % 40}",
                "session": f"session-{number % 5000}",
                "tool": random.choice(TOOLS),
                "decision": random.choices(DECISIONS, (60, 25, 13, 2))[0],
                "domains": [random.choice(DOMAINS)],
            }
            ledger.append(tx, "decided", data, entry=ids[-1], terms=terms_of(data))
            if number % 10 == 0:
                ledger.append(tx, "finished", finished, entry=ids[-1])

    for first in range(0, COUNT, STEP):
        ledger.store.write(lambda tx, first=first: some(tx, first))
        if first % 100_000 == 0:
            sys.stderr.write(f"\r  building the ledger: {first:,} of {COUNT:,}")
    sys.stderr.write("\r" + " " * 60 + "\r")
    return ids


def section() -> str:
    random.seed(11)
    with tempfile.TemporaryDirectory(prefix="checkrein-bench-") as name:
        folder, now = Path(name), [START]
        store = SqliteStore.open(folder)
        ledger = Ledger(store, Signer(folder), lambda: now[0])
        ids = build(ledger, now)
        store.write(ledger.file)
        end = now[0]

        def page(**wanted: Any) -> Any:
            return lambda _: list(entries(store, Filter(**wanted), 30))

        project, session = "/home/ada/project-17", "session-4242"
        looked = {
            "one call by id": lambda number: entry(store, ids[number]),
            "newest 30": page(),
            "30 of a project": page(project=project),
            "30 of a session": page(session=session),
            "30 of a tool": page(tool="Edit"),
            "30 blocked": page(decision="blocked"),
            "30 of a domain": page(domain="package"),
            "30 of an hour a month ago": page(since=end - 30 * 86_400, until=end - 30 * 86_400 + 3600),
            "30 blocked of a project": page(project=project, decision="blocked"),
            "30 of a project and a domain": page(project=project, domain="package"),
            "30 of a tool in the last day": page(tool="Edit", since=end - 86_400),
        }
        numbers = [random.randrange(COUNT) for _ in range(LOOK_UPS)]
        floor = timed(lambda n: store.query("SELECT body FROM record WHERE seq = ?", (n + 1,)), numbers)
        rows = []
        for label, look in looked.items():
            taken = timed(look, numbers)
            rows.append([label, micro(taken.p50), micro(taken.p99), "≤ 10 ms"])
        store.close()
    text = f"One row by primary key, the floor: {micro(floor.p50)} p50.\n"
    return f"## Looking up among {COUNT:,} calls\n\n{table(['look-up', 'p50', 'p99', 'goal'], rows)}\n{text}"
