"""Builds what msgspec builds for a type when it is first used, before threads can do so at once.

Two threads that convert to the same type for the first time crash the process (seen with msgspec 0.21); a
server that dies under its first fifty hooks refuses them all.
"""

from __future__ import annotations

import contextlib
from functools import cache
from typing import Any

import msgspec


@cache
def ready() -> int:
    """Prepare every type of ours that is loaded by now; how many there were."""
    kinds = list(_ours(msgspec.Struct))
    for kind in kinds:
        # Types that hold what JSON cannot are never decoded to, and need nothing.
        with contextlib.suppress(TypeError, ValueError, NameError):
            msgspec.json.Decoder(kind)
    return len(kinds)


def _ours(kind: type[Any]) -> list[type[Any]]:
    below = [found for each in kind.__subclasses__() for found in (each, *_ours(each))]
    return [each for each in below if each.__module__.startswith("checkrein.")]
