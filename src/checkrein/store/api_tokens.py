"""Tokens of programs that use the HTTP API: made, found, revoked."""

from __future__ import annotations

from checkrein.store import Transaction
from checkrein.store.tokens import Holder, TokenTable


class ApiToken(Holder, frozen=True, kw_only=True):
    """A program's way in, and what it may do."""

    may_change: bool
    may_answer: bool
    used_at: float | None = None


API_TOKENS = TokenTable(ApiToken, "api_token", prefix="ckapi", noun="token", command="checkrein chat token")


def note_use(tx: Transaction, token_id: str, now: float) -> None:
    tx.execute("UPDATE api_token SET used_at = ? WHERE id = ?", (now, token_id))
