"""What the store shows of tampering: triggers that are not the schema's, rows whose records are gone."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from functools import cache

from checkrein.store import Reader
from checkrein.store.sqlite import migrations

_TRIGGERS = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger' ORDER BY name"
# Tables whose rows are written with a record of their entry.
_OF_ENTRIES = ("question", "grants", "release")
_COUNTERS = ("filed", "mirror")
_FEW = 5


def trigger_faults(reader: Reader) -> list[str]:
    """Every trigger that is missing, changed or not ours."""
    if not reader.query("SELECT 1 FROM sqlite_schema WHERE name = 'record'"):
        return []
    wanted = _wanted()
    found = {row[0]: _plain(row[1]) for row in reader.query(_TRIGGERS)}
    faults = [f"the trigger {name} is missing" for name in wanted if name not in found]
    faults += [
        f"the trigger {name} was changed" for name in wanted if found.get(name, wanted[name]) != wanted[name]
    ]
    return faults + [f"the trigger {name} is not ours" for name in found if name not in wanted]


def leftovers(reader: Reader) -> list[str]:
    """Rows that were written with a record which is not there any more."""
    found = []
    for table in _OF_ENTRIES:
        sql = (
            f"SELECT x.entry FROM {table} x WHERE x.entry <> '' AND NOT EXISTS "  # noqa: S608
            f"(SELECT 1 FROM record r WHERE r.entry = x.entry) LIMIT {_FEW}"
        )
        entries = ", ".join(row[0] for row in reader.query(sql))
        if entries:
            found.append(f"the table {table} knows calls that have no record: {entries}")
    marks = ", ".join("?" * len(_COUNTERS))
    sql = (
        f"SELECT what, number FROM change WHERE what IN ({marks}) "  # noqa: S608
        "AND number > (SELECT coalesce(max(seq), 0) FROM record)"
    )
    for what, number in reader.query(sql, _COUNTERS):
        found.append(f"the counter `{what}` stands at record {number}, which is not there")
    return found


@cache
def _wanted() -> dict[str, str]:
    with closing(sqlite3.connect(":memory:")) as database:
        for step in migrations():
            database.executescript(step)
        return {name: _plain(sql) for name, sql in database.execute(_TRIGGERS).fetchall()}


def _plain(sql: str) -> str:
    return re.sub(r"\s+", " ", sql or "").strip()
