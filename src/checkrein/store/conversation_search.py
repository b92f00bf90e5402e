"""The index of words of conversations: what is put in is spelled already, what is asked is a safe query."""

from __future__ import annotations

from checkrein.store import Reader, Row, Transaction
from checkrein.store.conversations import HERE

WORDS, TITLES = "chat_words", "chat_title_words"
_OUT = {
    WORDS: "DELETE FROM chat_words WHERE rowid = ?",
    TITLES: "DELETE FROM chat_title_words WHERE rowid = ?",
}
_IN = {
    WORDS: "INSERT INTO chat_words (rowid, words) VALUES (?, ?)",
    TITLES: "INSERT INTO chat_title_words (rowid, words) VALUES (?, ?)",
}


def index(tx: Transaction, table: str, number: int, words: str) -> None:
    """The words of one message or title; empty takes it out."""
    tx.execute(_OUT[table], (number,))
    if words:
        tx.execute(_IN[table], (number, words))


def find_messages(reader: Reader, query: str, *, limit: int, archived: bool) -> list[Row]:
    """Session, title, message, role, time and parts of the newest that match; nothing is ranked."""
    return reader.query(
        "SELECT s.id, s.title, m.id, m.role, m.created_at, m.parts FROM chat_words "  # noqa: S608
        "CROSS JOIN chat_message m ON m.number = chat_words.rowid "
        "CROSS JOIN chat_session s ON s.id = m.session "
        f"WHERE chat_words MATCH ? AND s.presence = ?{'' if archived else ' AND s.archived_at IS NULL'} "
        "ORDER BY chat_words.rowid DESC LIMIT ?",
        (query, HERE, limit),
    )


def find_titles(reader: Reader, query: str, *, limit: int, archived: bool) -> list[Row]:
    """Id, title and last change of the newest sessions whose title matches."""
    return reader.query(
        "SELECT s.id, s.title, s.updated_at FROM chat_title_words "  # noqa: S608
        "CROSS JOIN chat_session s ON s.number = chat_title_words.rowid "
        "WHERE chat_title_words MATCH ? AND s.presence = ?"
        f"{'' if archived else ' AND s.archived_at IS NULL'} "
        "ORDER BY chat_title_words.rowid DESC LIMIT ?",
        (query, HERE, limit),
    )
