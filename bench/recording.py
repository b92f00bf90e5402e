"""How fast the ledger takes records at full durability, beside raw sqlite3 with the same bytes."""

from __future__ import annotations

import json
import sqlite3
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.measure import micro, table, timed
from checkrein.call import Category, Reason, Risk, Verdict, tool_call
from checkrein.ledger.checkpoints import Signer
from checkrein.ledger.events import decided
from checkrein.ledger.record import Ledger, new_id
from checkrein.ledger.redact import Redactor
from checkrein.ledger.terms import terms_of
from checkrein.pipeline import Pipeline
from checkrein.store.sqlite import SqliteStore

GROUP, GROUPS, ALONE = 64, 150, 400
CALL = tool_call(
    {
        "tool": "Bash",
        "arguments": {"command": "git status --short && npm test"},
        "project": "/home/ada/shop",
        "session": "0d5f3c1e-7a51-4a2e-9a52-0f5f5d1f9b11",
        "agent": "bench",
    }
)
VERDICT = Verdict(
    decision="logged_only",
    stage="autonomy",
    risk=Risk(
        category=Category.low, domains=("file_read",), reasons=(Reason("`git status` only reads: low risk."),)
    ),
    reasons=(Reason("Autonomy 0.60 from low risk, complexity 0.50 and trust 0.50 in `file_read`."),),
    autonomy=0.6,
    trust={"file_read": 0.5},
)


def raw_database(folder: Path) -> sqlite3.Connection:
    """The floor: one table, one index, write-ahead log, full synchronisation."""
    database = sqlite3.connect(folder / "raw.db", isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.execute("CREATE TABLE record (seq INTEGER PRIMARY KEY, at REAL, entry TEXT, body TEXT)")
    database.execute("CREATE INDEX record_entry ON record (entry)")
    return database


def raw_insert(database: sqlite3.Connection, body: str, count: int) -> None:
    database.execute("BEGIN IMMEDIATE")
    for _ in range(count):
        row = (time.time(), new_id(time.time()), body)
        database.execute("INSERT INTO record (at, entry, body) VALUES (?, ?, ?)", row)
    database.execute("COMMIT")


def section() -> str:
    with tempfile.TemporaryDirectory(prefix="checkrein-bench-") as name:
        folder = Path(name)
        store = SqliteStore.open(folder / "state")
        ledger = Ledger(store, Signer(folder / "state"))
        redactor = Redactor()
        raw = raw_database(folder)
        body = decided(CALL, VERDICT, redactor, 65536)
        text, found_by = json.dumps(body), terms_of(body)
        masking = timed(lambda _: decided(CALL, VERDICT, redactor, 65536), range(ALONE))

        def append(tx: Any) -> int:
            data = decided(CALL, VERDICT, redactor, 65536)
            return ledger.append(tx, "decided", data, entry=new_id(time.time()), terms=terms_of(data))

        def group(_: int) -> None:
            for future in [store.submit(append, durable=True) for _ in range(GROUP)]:
                future.result()

        def chained(tx: Any) -> int:
            return ledger.append(tx, "decided", body, entry=new_id(time.time()), terms=found_by)

        ours = timed(group, range(GROUPS))
        floor = timed(lambda _: raw_insert(raw, text, GROUP), range(GROUPS))
        alone = timed(lambda _: store.write(chained, durable=True), range(ALONE))
        raw_alone = timed(lambda _: raw_insert(raw, text, 1), range(ALONE))
        pipeline = Pipeline(store, folder / "state")
        whole = timed(lambda _: pipeline.decide(CALL), range(ALONE * 2))
        pipeline.close()
        raw.close()
    rows = [
        [
            f"groups of {GROUP}, each record masked, chained, indexed",
            rate(ours.p50, GROUP),
            rate(floor.p50, GROUP),
            "≥ 10,000/s",
        ],
        [
            "one by one, each chained",
            rate(alone.p50, 1),
            rate(raw_alone.p50, 1),
            f"≥ 70 % of raw: {raw_alone.p50 / alone.p50:.0%}",
        ],
    ]
    head = ["full durability", "ledger, records/s", "raw sqlite3, rows/s", "goal"]
    whole_call = f"{micro(whole.p50)} p50, {micro(whole.p99)} p99"
    return (
        f"## Recording\n\n{table(head, rows)}\n"
        f"Building and masking an event takes {micro(masking.p50)}. A whole low-risk decision (settings, "
        f"rules, trust, classify, decide, mask, record) takes {whole_call}.\n"
    )


def rate(p50: float, count: int) -> str:
    return f"{count / p50 * 1e6:,.0f}"
