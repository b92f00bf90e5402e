"""The state a stateless client carries for us between two requests: encrypted, authenticated, used once.

Whoever holds it can neither read it, change it, give it to another client, nor use it twice.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import os
import secrets
from pathlib import Path
from typing import Any

import msgspec

from checkrein.doors.gateway.messages import INTERNAL_ERROR, INVALID_PARAMS, RpcError
from checkrein.store import Store
from checkrein.store.gateway_state import use_state
from checkrein.store.row_cipher import key_in

_NONCE = 12
# How long a client may take to come back.
SECONDS = 3_600.0
LONGEST = 1 << 20


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What a client carries: for whom, about which request, and what to go on with."""

    id: str
    owner: str
    digest: str
    expires: float
    kind: str
    entry: str = ""
    # The session it was asked in, and the tool's definition as it was then.
    session: str = ""
    definition: str = ""
    # Of a parked run, or of the server's own state.
    carried: str = ""
    # Of a call that a person approved with other arguments than it came with.
    arguments: dict[str, Any] | None = None


class ForeignStateError(RpcError):
    """A state that is not ours, not this client's, not about this request, too old or used before."""

    def __init__(self, why: str) -> None:
        super().__init__(INVALID_PARAMS, f"This requestState cannot be used: {why}.")
        self.why = why


class Seal:
    """One key per installation, so that a question outlives the server that asked it."""

    def __init__(self, folder: Path, store: Store) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._cipher, self._store = AESGCM(key_in(folder / "seal.key")), store

    def close(self, *, owner: str, digest: str, kind: str, now: float, **more: Any) -> str:
        """A new state, as the client gets it."""
        state = State(
            id=secrets.token_hex(12), owner=owner, digest=digest, expires=now + SECONDS, kind=kind, **more
        )
        nonce = os.urandom(_NONCE)
        sealed = nonce + self._cipher.encrypt(nonce, msgspec.json.encode(state), b"requestState")
        if len(text := base64.urlsafe_b64encode(sealed).decode()) > LONGEST:
            raise RpcError(INTERNAL_ERROR, "There is more to carry than a requestState can hold.")
        return text

    async def take(self, text: Any, *, owner: str, digest: str, now: float) -> State:
        """What was sealed, for the one time it counts; raises ForeignStateError."""
        state = self.read(text, owner=owner, digest=digest, now=now)
        await self.use(state, now=now)
        return state

    def read(self, text: Any, *, owner: str, digest: str, now: float) -> State:
        """What was sealed, if it is this client's and about this request; raises ForeignStateError."""
        state = self._opened(text)
        # INVARIANT: a state works once, for the client and the request it was made for, for a while.
        if state.owner != owner:
            raise ForeignStateError("it was given to another client")
        if state.digest != digest:
            raise ForeignStateError("it belongs to another request")
        if state.expires < now:
            raise ForeignStateError("it is too old")
        return state

    async def use(self, state: State, *, now: float) -> None:
        """Use it up; raises ForeignStateError where it was used before."""
        used = self._store.submit(lambda tx: use_state(tx, state.id, state.expires, now))
        if not await asyncio.shield(asyncio.wrap_future(used)):
            raise ForeignStateError("it was used before")

    def _opened(self, text: Any) -> State:
        from cryptography.exceptions import InvalidTag

        if not isinstance(text, str) or len(text) > LONGEST:
            raise ForeignStateError("it is not one of ours")
        try:
            raw = base64.urlsafe_b64decode(text.encode("ascii"))
            if base64.urlsafe_b64encode(raw).decode() != text:
                # The same bytes in another spelling are none of ours either.
                raise ValueError
            content = self._cipher.decrypt(raw[:_NONCE], raw[_NONCE:], b"requestState")
            return msgspec.json.decode(content, type=State)
        except (InvalidTag, ValueError, binascii.Error, msgspec.MsgspecError):
            raise ForeignStateError("it is not one of ours") from None
