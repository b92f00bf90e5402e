"""Who may come in over HTTP: added, found, revoked. Only the hash of a token is ever kept."""

from __future__ import annotations

import hashlib
import secrets

import msgspec

from checkrein.errors import InputError, NotFoundError
from checkrein.store import Reader, Transaction

TABLE = "gateway_client"
# What a token looks like: what it is for, whose it is (no secret), then the secret.
PREFIX = "ckrein"
_COLUMNS = "id, name, hash, made_at, made_by, revoked_at, revoked_by"


class GatewayClient(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody with a token. Names are unique among the living, ids for ever."""

    id: str
    name: str
    hash: str
    made_at: float
    made_by: str
    revoked_at: float | None = None
    revoked_by: str = ""


def new_token() -> tuple[str, str]:
    """An id for a client and its token, which is shown once and kept nowhere."""
    made = secrets.token_hex(6)
    return made, f"{PREFIX}_{made}_{secrets.token_urlsafe(32)}"


def hash_of(token: str) -> str:
    """What is kept of a token. Tokens are long and random, so one round is enough."""
    return hashlib.sha256(token.encode()).hexdigest()


def add_client(tx: Transaction, client: GatewayClient) -> None:
    """Raises InputError when a living client has the name."""
    if any(each.name == client.name for each in living_clients(tx)):
        raise InputError(
            f"There is a client {client.name!r} already.",
            remedy=f"Take another name, or run `checkrein clients revoke {client.name}` first.",
        )
    tx.execute(
        f"INSERT INTO gateway_client ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, NULL, '')",  # noqa: S608
        (client.id, client.name, client.hash, client.made_at, client.made_by),
    )


def living_clients(reader: Reader) -> list[GatewayClient]:
    """Those that were not revoked, oldest first."""
    sql = f"SELECT {_COLUMNS} FROM gateway_client WHERE revoked_at IS NULL ORDER BY made_at, id"  # noqa: S608
    return [_client(row) for row in reader.query(sql)]


def all_clients(reader: Reader) -> list[GatewayClient]:
    """The revoked ones too, oldest first."""
    sql = f"SELECT {_COLUMNS} FROM gateway_client ORDER BY made_at, id"  # noqa: S608
    return [_client(row) for row in reader.query(sql)]


def revoke_client(tx: Transaction, name: str, actor: str, now: float) -> GatewayClient:
    """The living client of this name, or with this id, as it was; its token opens nothing any more."""
    found = [each for each in living_clients(tx) if name in (each.name, each.id)]
    if not found:
        raise NotFoundError(
            f"There is no client {name!r}.", remedy="Run `checkrein clients list` to see them."
        )
    tx.execute(
        "UPDATE gateway_client SET revoked_at = ?, revoked_by = ? WHERE id = ?", (now, actor, found[0].id)
    )
    return found[0]


def _client(row: tuple[object, ...]) -> GatewayClient:
    return msgspec.convert(dict(zip(_COLUMNS.split(", "), row, strict=True)), GatewayClient)
