"""The state a stateless client carries for us between two requests: encrypted, authenticated, used once.

Whoever holds it can neither read it, change it, give it to another client, nor use it twice.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import secrets
from collections import OrderedDict
from pathlib import Path
from typing import Any

import msgspec

from checkrein.doors.gateway.messages import INTERNAL_ERROR, INVALID_PARAMS, RpcError

KEY_BYTES, _NONCE = 32, 12
# How long a client may take to come back, and how many used states are remembered for that long.
SECONDS, MOST_USED = 3_600.0, 100_000
LONGEST = 1 << 20


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What a client carries: for whom, about which request, and what to go on with."""

    id: str
    owner: str
    digest: str
    expires: float
    kind: str
    entry: str = ""
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

    def __init__(self, folder: Path) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._cipher = AESGCM(key_in(folder / "seal.key"))
        self._used: OrderedDict[str, float] = OrderedDict()

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

    def take(self, text: Any, *, owner: str, digest: str, now: float) -> State:
        """What was sealed, for the one time it counts; raises ForeignStateError."""
        state = self._opened(text)
        # INVARIANT: a state works once, for the client and the request it was made for, for a while.
        if state.owner != owner:
            raise ForeignStateError("it was given to another client")
        if state.digest != digest:
            raise ForeignStateError("it belongs to another request")
        if state.expires < now:
            raise ForeignStateError("it is too old")
        if state.id in self._used:
            raise ForeignStateError("it was used before")
        self._remember(state, now)
        return state

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

    def _remember(self, state: State, now: float) -> None:
        while self._used and (len(self._used) >= MOST_USED or next(iter(self._used.values())) < now):
            self._used.popitem(last=False)
        self._used[state.id] = state.expires


def key_in(path: Path) -> bytes:
    """A key of this installation, made on first use, readable by its owner only."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with contextlib.suppress(FileNotFoundError):
        found = path.read_bytes()
        if len(found) == KEY_BYTES:
            return found
        # What was cut short seals nothing; states made with it are refused, and asked again.
        path.unlink()
    part = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "wb") as file:
        file.write(secrets.token_bytes(KEY_BYTES))
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    return path.read_bytes()
