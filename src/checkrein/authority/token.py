"""Tokens of programs that use the HTTP API: a person makes one, sees who has one, takes it back.

`checkrein chat token` asks. A token is shown once, to whoever asked for it, and recorded nowhere.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from checkrein.authority import Asked, Params, holders, verb
from checkrein.errors import InputError
from checkrein.ledger.entries import moment
from checkrein.store.api_tokens import API_TOKENS, ApiToken
from checkrein.store.tokens import hash_of

API = "/api/v1"


class _New(msgspec.Struct, forbid_unknown_fields=True):
    name: Annotated[str, msgspec.Meta(max_length=1_000)]
    read_only: bool = False
    approve: bool = False


def shown(token: ApiToken) -> dict[str, Any]:
    """A token as people read it."""
    may = ["read", *["change"] * token.may_change, *["approve"] * token.may_answer]
    used_at = None if token.used_at is None else moment(token.used_at)
    return {**holders.shown(token), "may": may, "used_at": used_at}


@verb("token.add", person=True)
def add(asked: Asked, params: Params) -> dict[str, Any]:
    """{"name", "read_only"?, "approve"?}: a token, shown once, and the address it is good for.

    INVARIANT: a token answers no question unless a person said that it may.
    """
    wanted = msgspec.convert(params, _New)
    holders.named(wanted.name, "token", "checkrein chat token add notebook")
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
    return shown(holders.take_back(asked, API_TOKENS, str(params["name"]), "token_revoked"))
