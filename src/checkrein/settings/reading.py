"""Reads a settings file as whoever writes it means it: whole, or not at all.

Most editors save in place. They empty the file and write it anew, or move it away and make another, and in
between it holds nothing, half of it, or is gone. Whoever read it then would be without the rules in it.
"""

from __future__ import annotations

import os
import stat
import time
from pathlib import Path

from checkrein.errors import ConfigError

# An agent can write the project's file: reading it must not take so long that its call is not judged in time.
LARGEST_FILE = 1 << 20
# How long a file was left alone before it is taken for saved; one that is empty or gone is more likely not.
_STILL_SECONDS, _EMPTY_SECONDS, _MOST_SECONDS = 0.015, 0.1, 0.3
# Files that were there when they were last looked for.
_there: set[str] = set()
_MOST_THERE = 1000


def read(path: Path) -> bytes | None:
    """The file's bytes, None when there is no such file; anything else that fails is a fault."""
    try:
        content = _saved(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or str(error)
        raise ConfigError(
            str(path), None, f"cannot be read ({why}).", "Make it readable or remove it."
        ) from None
    if len(content) > LARGEST_FILE:
        raise ConfigError(
            str(path),
            None,
            f"is larger than {LARGEST_FILE} bytes.",
            "Keep many rules with `checkrein rules`.",
        )
    return content


def _saved(path: Path) -> bytes:
    """What a file holds that nobody writes just now; one that is written without end cannot be read."""
    end = time.monotonic() + _MOST_SECONDS
    while True:
        # Asked before it is read: whoever slept through all of that time looks once more.
        late = time.monotonic() > end
        try:
            content, written = _plain_file(path)
        except (FileNotFoundError, NotADirectoryError):
            if str(path) not in _there:
                raise
            _there.discard(str(path))
            time.sleep(_EMPTY_SECONDS)
            continue
        if len(_there) >= _MOST_THERE:
            _there.clear()
        _there.add(str(path))
        age, wanted = time.time() - written, _STILL_SECONDS if content else _EMPTY_SECONDS
        # A moment that is yet to come is no sign of anything: it was set by somebody, or by another clock.
        if not 0 <= age < wanted:
            return content
        if late:
            # INVARIANT: half of a file is never taken for all of it.
            raise OSError(0, "somebody writes it all the time")
        time.sleep(wanted - age + 0.001)


def _plain_file(path: Path) -> tuple[bytes, float]:
    """What it holds, and when that was written."""
    # A named pipe without a writer would make a plain open wait for ever.
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(0, "it is not a plain file")
        with os.fdopen(handle, "rb", closefd=False) as file:
            content = file.read(LARGEST_FILE + 1)
        # Asked afterwards: what was written while it was read counts.
        return content, os.fstat(handle).st_mtime
    finally:
        os.close(handle)
