"""Tokens of programs that use the HTTP API: a person makes one, sees who has one, takes it back.

`checkrein chat token` asks. A token is shown once, to whoever asked for it, and recorded nowhere.
"""

from __future__ import annotations

import re
from typing import Annotated, Any

import msgspec

from checkrein.authority import Asked, Params, verb
from checkrein.errors import InputError
from checkrein.ledger.entries import moment
from checkrein.store import Transaction
from checkrein.store.api_tokens import API_TOKENS, ApiToken
from checkrein.store.tokens import hash_of

API = "/api/v1"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class _New(msgspec.Struct, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(max_length=1_000)]
    read_only: bool = False
    approve: bool = False


def shown(token: ApiToken) -> dict[str, Any]:
    """A token as people read it."""
    return {
        "id": token.id,
        "name": token.name,
        "may": ["read", *["change"] * token.may_change, *["approve"] * token.may_answer],
        "made_at": moment(token.made_at),
        "made_by": token.made_by,
        "used_at": None if token.used_at is None else moment(token.used_at),
        "revoked_at": None if token.revoked_at is None else moment(token.revoked_at),
        "revoked_by": token.revoked_by,
    }


@verb("token.add", person=True)
def add(asked: Asked, params: Params) -> dict[str, Any]:
    """{"name", "read_only"?, "approve"?}: a token, shown once, and the address it is good for.

    INVARIANT: a token answers no question unless a person said that it may.
    """
    wanted = msgspec.convert(params, _New)
    if not _NAME.fullmatch(wanted.name):
        raise InputError(
            "A token's name has letters, digits, dots, dashes and underscores, at most 64 of them.",
            remedy="For example: checkrein chat token add notebook",
        )
    if wanted.read_only and wanted.approve:
        raise InputError("A token that only reads cannot approve.", remedy="Leave one of the two out.")
    made_id, token = API_TOKENS.new()
    made = ApiToken(
        id=made_id,
        name=wanted.name,
        hash=hash_of(token),
        may_change=not wanted.read_only,
        may_answer=wanted.approve,
        made_at=asked.pipeline.clock(),
        made_by=asked.actor,
    )
    # INVARIANT: the record says who may come in, and never with what.
    data = {"id": made_id, "name": made.name, "may": shown(made)["may"], "actor": asked.actor}
    asked.pipeline.note("token_added", data, lambda tx: API_TOKENS.add(tx, made))
    return {**shown(made), "token": token, "url": f"{asked.address()}{API}" if asked.address else ""}


@verb("token.list", person=False)
def list_(asked: Asked, params: Params) -> list[dict[str, Any]]:
    """{"revoked"?}: every token; with `revoked` also those that were taken back."""
    read = API_TOKENS.all if params.get("revoked") is True else API_TOKENS.living
    return [shown(each) for each in read(asked.pipeline.store)]


@verb("token.revoke", person=True)
def revoke(asked: Asked, params: Params) -> dict[str, Any]:
    """{"name"}: by name or id: it opens nothing any more, and what follows with it ends."""
    name, now = str(params["name"]), asked.pipeline.clock()

    def change(tx: Transaction) -> ApiToken:
        gone = API_TOKENS.revoke(tx, name, asked.actor, now)
        data = {"id": gone.id, "name": gone.name, "actor": asked.actor}
        asked.pipeline.ledger.append(tx, "token_revoked", data)
        return gone

    return shown(asked.pipeline.store.write(change, durable=True))
