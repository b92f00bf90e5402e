"""Tokens of programs that use the HTTP API: made, found, revoked. Only the hash of one is ever kept."""

from __future__ import annotations

import secrets

import msgspec

from checkrein.errors import InputError, NotFoundError
from checkrein.store import Reader, Transaction

TABLE = "api_token"
# What a token looks like: what it is for, whose it is (no secret), then the secret.
PREFIX = "ckapi"
_COLUMNS = "id, name, hash, may_change, may_answer, made_at, made_by, used_at, revoked_at, revoked_by"


class ApiToken(msgspec.Struct, frozen=True, kw_only=True):
    """A program's way in, and what it may do. Names are unique among the living, ids for ever."""

    id: str
    name: str
    hash: str
    may_change: bool
    may_answer: bool
    made_at: float
    made_by: str
    used_at: float | None = None
    revoked_at: float | None = None
    revoked_by: str = ""


def new_api_token() -> tuple[str, str]:
    """An id and a token, which is shown once and kept nowhere."""
    made = secrets.token_hex(6)
    return made, f"{PREFIX}_{made}_{secrets.token_urlsafe(32)}"


def add_api_token(tx: Transaction, token: ApiToken) -> None:
    """Raises InputError when a living one has the name."""
    if any(each.name == token.name for each in living_api_tokens(tx)):
        raise InputError(
            f"There is a token {token.name!r} already.",
            remedy=f"Take another name, or run `checkrein chat token revoke {token.name}` first.",
        )
    tx.execute(
        f"INSERT INTO api_token ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, NULL, NULL, '')",  # noqa: S608
        (
            token.id,
            token.name,
            token.hash,
            int(token.may_change),
            int(token.may_answer),
            token.made_at,
            token.made_by,
        ),
    )


def living_api_tokens(reader: Reader) -> list[ApiToken]:
    """Those that were not revoked, oldest first."""
    sql = f"SELECT {_COLUMNS} FROM api_token WHERE revoked_at IS NULL ORDER BY made_at, id"  # noqa: S608
    return [_token(row) for row in reader.query(sql)]


def all_api_tokens(reader: Reader) -> list[ApiToken]:
    """The revoked ones too, oldest first."""
    sql = f"SELECT {_COLUMNS} FROM api_token ORDER BY made_at, id"  # noqa: S608
    return [_token(row) for row in reader.query(sql)]


def note_use(tx: Transaction, token_id: str, now: float) -> None:
    tx.execute("UPDATE api_token SET used_at = ? WHERE id = ?", (now, token_id))


def revoke_api_token(tx: Transaction, name: str, actor: str, now: float) -> ApiToken:
    """The living token of this name, or with this id, as it was; it opens nothing any more."""
    found = [each for each in living_api_tokens(tx) if name in (each.name, each.id)]
    if not found:
        raise NotFoundError(
            f"There is no token {name!r}.", remedy="Run `checkrein chat token list` to see them."
        )
    tx.execute("UPDATE api_token SET revoked_at = ?, revoked_by = ? WHERE id = ?", (now, actor, found[0].id))
    return found[0]


def _token(row: tuple[object, ...]) -> ApiToken:
    return msgspec.convert(dict(zip(_COLUMNS.split(", "), row, strict=True)), ApiToken, strict=False)
