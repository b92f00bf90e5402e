"""The file `checkrein open` shows the browser: a form with a one-time secret that sends itself.

Every user of the machine can read command lines. A browser that is started with a link shows the secret to
all of them; started with this file it shows a path that only its owner can follow.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import secrets
from pathlib import Path

from checkrein.console.rendering import render
from checkrein.errors import StoreError
from checkrein.runtime import private_folder, sign_in_folder

_SCRIPT = "document.forms[0].submit()"
_SCRIPT_HASH = base64.b64encode(hashlib.sha256(_SCRIPT.encode()).digest()).decode()


def new_path() -> Path:
    """Where the next file will lie; its name says nothing."""
    return sign_in_folder() / f"{secrets.token_hex(8)}.html"


def write(path: Path, address: str, secret: str) -> None:
    """Write the form for the console at this address, readable by its owner only."""
    text = render("sign_in_file.html", address=address, secret=secret, script=_SCRIPT, hash=_SCRIPT_HASH)
    private_folder(path.parent)
    # INVARIANT: the secret that signs a browser in stands in a file only its owner can read.
    try:
        handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        remove(path)
        raise StoreError(
            f"{path}: {error.strerror}.", remedy="Free some space, or run `checkrein open --no-browser`."
        ) from error


def remove(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.unlink()


def clear() -> None:
    """Remove what a server that was killed left behind; its secrets are good for nothing."""
    with contextlib.suppress(OSError):
        for each in sign_in_folder().glob("*.html"):
            remove(each)
