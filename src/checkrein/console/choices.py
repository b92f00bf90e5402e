"""What a person can choose from: the projects, tools and domains there are records of."""

from __future__ import annotations

from checkrein.store import Reader
from checkrein.store.agents import newest_sessions
from checkrein.store.trust import projects as trusted

MOST = 200
_SESSIONS = 200


def values(reader: Reader, name: str, most: int = MOST) -> list[str]:
    """Every value calls are filed under, found by leaping through the index: a long ledger costs no more."""
    found: list[str] = []
    begin, end = f"{name}:", f"{name};"
    while len(found) < most:
        sql = "SELECT min(term) FROM lookup WHERE term > ? AND term < ?"
        term = reader.query(sql, (begin, end))[0][0]
        if term is None:
            break
        found.append(term[len(name) + 1 :])
        begin = term
    return [each for each in found if each]


def projects(reader: Reader) -> list[str]:
    """Projects with calls, trust or sessions."""
    sessions = (each.project for each in newest_sessions(reader, limit=_SESSIONS))
    return sorted({*values(reader, "project"), *trusted(reader)[:MOST], *sessions} - {""})
