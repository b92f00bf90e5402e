"""What the verbs for clients and for tokens of the API share: both hand out tokens and take them back."""

from __future__ import annotations

import re
from typing import Any, TypeVar

from checkrein.authority import Asked
from checkrein.errors import InputError
from checkrein.ledger.entries import moment
from checkrein.store import Transaction
from checkrein.store.tokens import Holder, TokenTable

H = TypeVar("H", bound=Holder)
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def named(name: object, whose: str, example: str) -> str:
    """The name, which is fit to be shown and typed; raises InputError for any other."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise InputError(
            f"A {whose}'s name has letters, digits, dots, dashes and underscores, at most 64 of them.",
            remedy=f"For example: {example}",
        )
    return name


def shown(holder: Holder) -> dict[str, Any]:
    """Somebody with a token as people read it."""
    return {
        "id": holder.id,
        "name": holder.name,
        "made_at": moment(holder.made_at),
        "made_by": holder.made_by,
        "revoked_at": None if holder.revoked_at is None else moment(holder.revoked_at),
        "revoked_by": holder.revoked_by,
    }


def take_back(asked: Asked, table: TokenTable[H], name: str, kind: str) -> H:
    """Whose token it was; revoked and recorded in one step."""
    now = asked.pipeline.clock()

    def change(tx: Transaction) -> H:
        gone = table.revoke(tx, name, asked.actor, now)
        data = {"id": gone.id, "name": gone.name, "actor": asked.actor}
        asked.pipeline.ledger.append(tx, kind, data)
        return gone

    return asked.pipeline.store.write(change, durable=True)
