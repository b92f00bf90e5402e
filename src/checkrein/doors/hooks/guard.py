"""Keeps our registrations in an agent's settings: says why a changed file would take them out."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from checkrein.doors.hooks.dialects import dialect
from checkrein.settings.reading import LARGEST_FILE
from checkrein.store import Reader
from checkrein.store.installations import installations


def would_remove_us(reader: Reader, agent: str, file: str, project: str) -> str:
    """Why the settings file, as it is now, would stop our hooks; nothing when it would not."""
    from checkrein.doors.hooks.install import still_guarded

    folders = {folder for name, folder in installations(reader) if name == agent}
    if not file or not folders & {"", project}:
        return ""
    path = Path(file)
    try:
        content = _content(path)
        if len(content) > LARGEST_FILE:
            return f"{path} is too large to be read"
        text = content.decode("utf-8")
    except FileNotFoundError:
        text = ""
    except (OSError, ValueError):
        return f"{path} cannot be read"
    # Where we were put is ours to keep; a file we never were in may do without us.
    return still_guarded(agent, path, text, installed=_place(agent, path, project) in folders)


def _place(agent: str, path: Path, project: str) -> str:
    """Whose settings these are: the project's, or (empty) the user's own, wherever that lies."""
    own = Path(dialect(agent).hooks.user).expanduser()
    if os.path.realpath(path) == os.path.realpath(own):
        return ""
    # By whatever way the file is named: the project is known by its real path.
    return project if any(os.path.realpath(each) == project for each in path.parents) else ""


def _content(path: Path) -> bytes:
    """The file, up to a little more than we take; a pipe or a device is none, and is never waited for."""
    handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            raise OSError(0, "not a file")
        return file.read(LARGEST_FILE + 1)
