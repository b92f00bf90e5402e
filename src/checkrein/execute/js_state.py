"""A suspended JavaScript script as bytes: the sandbox's memory, compressed, and all we count beside it.

Called by the JavaScript engine. The caller encrypts and authenticates these bytes; the checksum only tells
damage from a script before a sandbox is given it.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
from pathlib import Path
from typing import Any

import msgspec

from checkrein.execute.sandbox import DamagedError, Wanted

_MAGIC = b"checkrein javascript 1\n"
_SUM = 32


class State(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a script that waits."""

    meta: dict[str, Any]
    image: bytes
    # Of the image, before it was compressed.
    size: int
    spent: float
    slept: float
    output: str
    waiting: tuple[Wanted, ...]


@functools.cache
def build() -> bytes:
    """Which sandbox this is: its memory means nothing to any other."""
    found = importlib.util.find_spec("quickjs_rs")
    places = list(found.submodule_search_locations or ()) if found is not None else []
    parts = [Path(place) / "_guest.wasm" for place in places] + [Path(__file__).with_name("js_shim.js")]
    return hashlib.sha256(b"".join(hashlib.sha256(part.read_bytes()).digest() for part in parts)).digest()


def pack(state: State) -> bytes:
    body = build() + msgspec.msgpack.encode(state)
    return _MAGIC + hashlib.sha256(body).digest() + body


def unpack(dumped: bytes) -> State:
    """Raises DamagedError for anything `pack` did not write with this very sandbox."""
    head, body = dumped[: len(_MAGIC) + _SUM], dumped[len(_MAGIC) + _SUM :]
    if head != _MAGIC + hashlib.sha256(body).digest():
        raise damaged("This suspended script is damaged.")
    if body[:_SUM] != build():
        raise damaged("This script was suspended by another version of the JavaScript sandbox.")
    try:
        return msgspec.msgpack.decode(body[_SUM:], type=State)
    except (msgspec.MsgspecError, RecursionError):
        raise damaged("This suspended script is damaged.") from None


def damaged(why: str) -> DamagedError:
    return DamagedError(why, remedy="Run the script again.")
