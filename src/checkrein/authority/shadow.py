"""Shadow policies: a rule set tried on recorded calls before it counts. Changes nothing."""

from __future__ import annotations

from typing import Any

import msgspec

from checkrein.authority import Asked, Params, verb
from checkrein.errors import InputError
from checkrein.shadowing import Replacing, Trial

# Whoever asks shares the server with hooks that wait for their verdict.
MOST_CALLS = 10_000


class _Try(msgspec.Struct, forbid_unknown_fields=True):
    rules: list[dict[str, Any]] = []
    last: int = 500
    project: str = ""
    replacing: Replacing = "all"


@verb("shadow.try", person=False)
def try_(asked: Asked, params: Params) -> dict[str, Any]:
    """{"rules", "last"?, "project"?, "replacing"?: all|stored}: what the tried rules would decide otherwise.

    They take the place of all your rules, or of the stored ones only.
    """
    wanted = msgspec.convert(params, _Try)
    if wanted.last > MOST_CALLS:
        raise InputError(f"`last` is {wanted.last}.", remedy=f"At most {MOST_CALLS} are tried here.")
    return Trial(asked.pipeline.store, wanted.rules, wanted.replacing).run(wanted.last, wanted.project)
