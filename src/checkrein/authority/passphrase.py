"""An approver's passphrase, for what ancestry cannot tell: asked at sign-in and at a release, if set."""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import threading
import time
from pathlib import Path
from typing import Any

from checkrein.authority import Asked, Params, verb
from checkrein.errors import InputError, PersonOnlyError
from checkrein.settings.sources import state_dir

SHORTEST = 8
# About 60 ms and 32 MB a try.
_COST = {"n": 2**15, "r": 8, "p": 1, "maxmem": 2**26}
_MOST_TRIES, _WINDOW = 5, 60.0
_tries: list[float] = []
_lock = threading.Lock()


def passphrase_file() -> Path:
    return state_dir() / "passphrase"


def is_set() -> bool:
    return passphrase_file().exists()


def check(given: object) -> None:
    """Refuse unless no passphrase is set, or this is it. Wrong guesses are slowed down."""
    if not is_set():
        return
    now = time.monotonic()
    with _lock:
        _tries[:] = [at for at in _tries if now - at < _WINDOW]
        if len(_tries) >= _MOST_TRIES:
            raise PersonOnlyError("Too many wrong passphrases.", remedy="Wait a minute.")
        salt, _, kept = passphrase_file().read_text(encoding="ascii").strip().partition(":")
        # INVARIANT: a wrong passphrase is counted before it is answered.
        if isinstance(given, str) and hmac.compare_digest(_hashed(given, salt), kept):
            return
        if given is not None:
            _tries.append(now)
    raise PersonOnlyError("This needs the approver's passphrase.", remedy="Give it when asked.")


def _hashed(text: str, salt: str) -> str:
    return hashlib.scrypt(text.encode(), salt=bytes.fromhex(salt), **_COST).hex()


@verb("passphrase.set", person=True)
def set_(asked: Asked, params: Params) -> None:
    """{"new", "old"?}: an empty new one removes it."""
    check(params.get("old"))
    new = params["new"]
    if not isinstance(new, str) or 0 < len(new) < SHORTEST:
        raise InputError(f"A passphrase has at least {SHORTEST} characters.")
    path = passphrase_file()
    asked.pipeline.note("passphrase_changed", {"actor": asked.actor, "set": bool(new)})
    if not new:
        path.unlink(missing_ok=True)
        return
    salt = secrets.token_hex(16)
    part = path.with_suffix(".new")
    part.unlink(missing_ok=True)
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(handle, "w", encoding="ascii") as file:
        file.write(f"{salt}:{_hashed(new, salt)}\n")
    part.replace(path)


@verb("passphrase.state", person=False)
def state(asked: Asked, params: Params) -> dict[str, Any]:  # noqa: ARG001
    return {"is_set": is_set()}
