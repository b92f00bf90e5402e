"""Finds tools by what they do: words of names, descriptions and parameters, stemmed, in SQLite's memory.

Called by `search_tools`. Any text is a query; nothing here is written to disk.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable

import msgspec

_WORD = re.compile(r"[^\W_]+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+|[^\W\d_A-Za-z]+")
# What a server can make us index, and a script make us look for.
_LONGEST_TEXT, _MOST_PARAMETERS = 4000, 200
_LONGEST_QUERY, _MOST_WORDS, _LONGEST_WORD, MOST_FOUND = 1000, 32, 64, 100


class Searchable(msgspec.Struct, frozen=True):
    """A tool, as far as it can be searched."""

    name: str
    description: str = ""
    parameters: tuple[str, ...] = ()


class Search:
    """An index of tools that does not change; make another when they do."""

    def __init__(self, tools: Iterable[Searchable]) -> None:
        self._names: list[str] = []
        self._index = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        self._index.execute(
            "CREATE VIRTUAL TABLE tool USING fts5(title, description, parameters,"
            " content='', tokenize='porter unicode61')"
        )
        rows = [self._row(number, tool) for number, tool in enumerate(tools)]
        self._index.execute("BEGIN")
        self._index.executemany(
            "INSERT INTO tool(rowid, title, description, parameters) VALUES (?, ?, ?, ?)", rows
        )
        self._index.execute("COMMIT")

    def _row(self, number: int, tool: Searchable) -> tuple[int, str, str, str]:
        self._names.append(tool.name)
        parameters = " ".join(tool.parameters[:_MOST_PARAMETERS])
        return number, _spread(tool.name), _spread(tool.description), _spread(parameters)

    def find(self, query: str, limit: int) -> list[str]:
        """Names of tools, best first: all the words, then some of them, then their beginnings."""
        words = [word[:_LONGEST_WORD] for word in _WORD.findall(query[:_LONGEST_QUERY])[:_MOST_WORDS]]
        limit = max(0, min(limit, MOST_FOUND))
        if not words or not limit:
            return []
        found = self._match(" AND ".join(map(_asked, words)), limit)
        if len(found) < limit:
            found += self._match(" OR ".join(map(_asked, words)), limit)
        if not found:
            found = self._match(" OR ".join(map(_beginning, words)), limit)
        return [self._names[number] for number in list(dict.fromkeys(found))[:limit]]

    def _match(self, expression: str, limit: int) -> list[int]:
        rows = self._index.execute(
            "SELECT rowid FROM tool WHERE tool MATCH ? ORDER BY bm25(tool, 3.0, 1.0, 0.4), rowid LIMIT ?",
            (expression, limit),
        )
        return [number for (number,) in rows]

    def close(self) -> None:
        self._index.close()


def _spread(text: str) -> str:
    """The words of a text, and the parts of those that are written together."""
    return " ".join(
        " ".join(dict.fromkeys((word, *_PART.findall(word)))) for word in _WORD.findall(text[:_LONGEST_TEXT])
    )


# INVARIANT: what reaches the index's query language is letters and digits, each word in quotes.
def _asked(word: str) -> str:
    parts = [f'"{part}"' for part in _PART.findall(word)]
    return f'"{word}"' if len(parts) < 2 else f'("{word}" OR ({" AND ".join(parts)}))'


def _beginning(word: str) -> str:
    return f'"{word}"*'
