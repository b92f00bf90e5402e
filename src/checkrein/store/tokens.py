"""Tables of those who have a token: made, found, revoked. Only the hash of a token is ever kept.

The gateway's clients are one such table, the programs of the HTTP API another.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from typing import Generic, TypeVar

import msgspec

from checkrein.errors import InputError, NotFoundError
from checkrein.store import Reader, Transaction


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody with a token. Names are unique among the living, ids for ever."""

    id: str
    name: str
    hash: str
    made_at: float
    made_by: str
    revoked_at: float | None = None
    revoked_by: str = ""


H = TypeVar("H", bound=Holder)


def hash_of(token: str) -> str:
    """What is kept of a token. Tokens are long and random, so one round is enough."""
    return hashlib.sha256(token.encode()).hexdigest()


def is_token(token: str, kept: str) -> bool:
    """Whether this is the token whose hash was kept; takes as long whatever is wrong with it."""
    return hmac.compare_digest(hash_of(token), kept)


class TokenTable(Generic[H]):
    """A kind of holders, the table they are in, and how people speak of them and to them."""

    def __init__(self, kind: type[H], table: str, *, prefix: str, noun: str, command: str) -> None:
        self._kind, self.table, self._prefix = kind, table, prefix
        self._noun, self._command = noun, command
        self._fields = kind.__struct_fields__
        self._columns = ", ".join(self._fields)

    def new(self) -> tuple[str, str]:
        """An id and a token, which is shown once and kept nowhere."""
        made = secrets.token_hex(6)
        # What it is for, whose it is (no secret), then the secret.
        return made, f"{self._prefix}_{made}_{secrets.token_urlsafe(32)}"

    def id_in(self, token: str) -> str:
        """Whose it says it is; nothing when it is no token of this kind."""
        parts = token.split("_", 2)
        return parts[1] if len(parts) == 3 and parts[0] == self._prefix else ""

    def add(self, tx: Transaction, holder: H) -> None:
        """Raises InputError when a living one has the name."""
        if any(each.name == holder.name for each in self.living(tx)):
            raise InputError(
                f"There is a {self._noun} {holder.name!r} already.",
                remedy=f"Take another name, or run `{self._command} revoke {holder.name}` first.",
            )
        marks = ", ".join("?" * len(self._fields))
        sql = f"INSERT INTO {self.table} ({self._columns}) VALUES ({marks})"  # noqa: S608
        tx.execute(sql, msgspec.structs.astuple(holder))

    def living(self, reader: Reader) -> list[H]:
        """Those that were not revoked, oldest first."""
        return self._read(reader, "WHERE revoked_at IS NULL")

    def all(self, reader: Reader) -> list[H]:
        """The revoked ones too, oldest first."""
        return self._read(reader, "")

    def revoke(self, tx: Transaction, name: str, actor: str, now: float) -> H:
        """The living one of this name, or with this id, as it was; its token opens nothing any more."""
        found = [each for each in self.living(tx) if name in (each.name, each.id)]
        if not found:
            raise NotFoundError(
                f"There is no {self._noun} {name!r}.", remedy=f"Run `{self._command} list` to see them."
            )
        sql = f"UPDATE {self.table} SET revoked_at = ?, revoked_by = ? WHERE id = ?"  # noqa: S608
        tx.execute(sql, (now, actor, found[0].id))
        return found[0]

    def _read(self, reader: Reader, which: str) -> list[H]:
        sql = f"SELECT {self._columns} FROM {self.table} {which} ORDER BY made_at, id"  # noqa: S608
        return [self._holder(row) for row in reader.query(sql)]

    def _holder(self, row: tuple[object, ...]) -> H:
        # A yes or no is kept as a number.
        return msgspec.convert(dict(zip(self._fields, row, strict=True)), self._kind, strict=False)
