"""A suspended Python script as bytes: the interpreter's own, and everything we count beside it.

Called by the Python engine. The caller encrypts and authenticates these bytes; the checksum here only
tells damage from a script before an interpreter is given it.
"""

from __future__ import annotations

import hashlib
from typing import Any

import msgspec

from checkrein.execute.sandbox import DamagedError, Wanted

_MAGIC = b"checkrein python 1\n"
_SUM = 32


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a script that waits."""

    source: str
    snapshot: bytes
    spent: float
    output: str
    printed: int
    waiting: tuple[Wanted, ...]
    held: dict[int, dict[str, Any]]
    sleeps: dict[int, float]
    still: int | None


def pack(state: State) -> bytes:
    body = msgspec.msgpack.encode(state)
    return _MAGIC + hashlib.sha256(body).digest() + body


def unpack(dumped: bytes) -> State:
    """Raises DamagedError for anything `pack` did not write."""
    head, body = dumped[: len(_MAGIC) + _SUM], dumped[len(_MAGIC) + _SUM :]
    if head != _MAGIC + hashlib.sha256(body).digest():
        raise _damaged()
    try:
        return msgspec.msgpack.decode(body, type=State)
    except (msgspec.MsgspecError, RecursionError):
        raise _damaged() from None


def _damaged() -> DamagedError:
    return DamagedError("This suspended script is damaged.", remedy="Run the script again.")
