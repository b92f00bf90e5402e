"""What a person's sign-in at a server left us with: tokens, in a file of its own that only we can read."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

import msgspec

from checkrein.runtime import private_folder
from checkrein.settings.sources import state_dir


class SignedIn(msgspec.Struct, kw_only=True):
    """Everything needed to go on without the person; `url` is the one address it is good for.

    `given`: the id of the client a person registered, where it was made for that one.
    """

    url: str
    given: str = ""
    tokens: dict[str, Any] | None = None
    expires_at: float | None = None
    client: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None


def sign_in_file(name: str) -> Path:
    return state_dir() / "gateway" / "oauth" / f"{name}.json"


def read_sign_in(name: str, url: str, given: str = "") -> SignedIn:
    """What is kept for a server and the client we are there; nothing when it cannot be read."""
    nothing = SignedIn(url=url, given=given)
    try:
        found = msgspec.json.decode(sign_in_file(name).read_bytes(), type=SignedIn)
    except (OSError, msgspec.MsgspecError):
        return nothing
    # INVARIANT: a token is sent to no other address than the one it was made for, and for no other client.
    return found if (found.url, found.given) == (url, given) else nothing


def is_signed_in(name: str) -> bool:
    """Whether somebody signed in there; not whether the server still thinks so."""
    try:
        return bool(msgspec.json.decode(sign_in_file(name).read_bytes(), type=SignedIn).tokens)
    except (OSError, msgspec.MsgspecError):
        return False


def keep_sign_in(name: str, kept: SignedIn) -> None:
    """Whole or not at all, for our eyes only."""
    path = sign_in_file(name)
    private_folder(path.parent.parent)
    handle, part = tempfile.mkstemp(prefix=f".{name}-", dir=private_folder(path.parent))
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.json.encode(kept))
        Path(part).replace(path)
    except OSError:
        Path(part).unlink(missing_ok=True)
        raise


def forget_sign_in(name: str) -> bool:
    """Whether there was one."""
    try:
        sign_in_file(name).unlink()
    except FileNotFoundError:
        return False
    return True
