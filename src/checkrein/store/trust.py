"""Trust records by project and domain."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from checkrein.store import Reader, Transaction

FIELDS = (
    "score",
    "successes",
    "failures",
    "total_operations",
    "last_operated_at",
    "is_warming_up",
    "warmup_remaining",
)
_LIST = ", ".join(FIELDS)


def trust_of(reader: Reader, project: str, domains: Sequence[str] | None = None) -> dict[str, dict[str, Any]]:
    """A project's domains, all or some of them, as plain fields."""
    only = "" if domains is None else f" AND domain IN ({', '.join('?' * len(domains))})"
    sql = f"SELECT domain, {_LIST} FROM trust WHERE project = ?{only} ORDER BY domain"  # noqa: S608
    rows = reader.query(sql, (project, *(domains or ())))
    return {row[0]: _fields(row[1:]) for row in rows}


def projects(reader: Reader) -> list[str]:
    return [row[0] for row in reader.query("SELECT DISTINCT project FROM trust ORDER BY project")]


def put_trust(tx: Transaction, project: str, domain: str, fields: dict[str, Any]) -> None:
    values = [fields[name] for name in FIELDS]
    updates = ", ".join(f"{name} = excluded.{name}" for name in FIELDS)
    tx.execute(
        f"INSERT INTO trust (project, domain, {_LIST}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) "  # noqa: S608
        f"ON CONFLICT (project, domain) DO UPDATE SET {updates}",
        (project, domain, *values),
    )


def delete_trust(tx: Transaction, project: str, domain: str | None = None) -> int:
    """Forget one domain or, without one, the whole project."""
    if domain is None:
        return tx.execute("DELETE FROM trust WHERE project = ?", (project,))
    return tx.execute("DELETE FROM trust WHERE project = ? AND domain = ?", (project, domain))


def _fields(row: tuple[Any, ...]) -> dict[str, Any]:
    fields = dict(zip(FIELDS, row, strict=True))
    fields["is_warming_up"] = bool(fields["is_warming_up"])
    return fields
