"""What hooks could not deliver while no server answered: kept as files, replayed in order, then removed."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

from checkrein.errors import LedgerError, StoreError
from checkrein.wire import Request, decode_request

# A report nobody can read is kept aside for a person, out of the way of the next ones.
_UNREADABLE = ".unreadable"
_LARGEST = 16 << 20


def waiting(folder: Path) -> list[Path]:
    """Whole reports, oldest first; parts of one that is being written are left alone."""
    try:
        names = sorted(each.name for each in folder.iterdir())
    except OSError:
        return []
    return [folder / name for name in names if not name.endswith((".part", _UNREADABLE))]


def replay(folder: Path, deliver: Callable[[Request], None]) -> int:
    """Hand every report to `deliver`; one goes only after it was taken, so a crash repeats it at worst.

    A store that cannot write stops the replay: nothing is lost by waiting.
    """
    count = 0
    for path in waiting(folder):
        try:
            deliver(decode_request(_content(path)))
        except StoreError:
            raise
        except LedgerError as error:
            # Not the report's fault either: it waits until the record can be written again.
            raise StoreError(error.message, remedy=error.remedy) from error
        except Exception:  # noqa: BLE001 - whatever is wrong with one report must not hold up the others
            with contextlib.suppress(OSError):
                path.rename(path.with_name(path.name + _UNREADABLE))
            continue
        path.unlink(missing_ok=True)
        count += 1
    return count


def _content(path: Path) -> bytes:
    """The report; a link, a pipe or a file without end is none, and is never waited for."""
    handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with os.fdopen(handle, "rb") as file:
        status = os.fstat(handle)
        if not stat.S_ISREG(status.st_mode) or status.st_size > _LARGEST:
            raise OSError(0, "not a report of ours")
        return file.read(_LARGEST)
