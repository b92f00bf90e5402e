"""A gate in the idiom of other frameworks; each module imports its framework, and nothing imports a module.

What they share: an outcome nobody may learn from, because the call goes on somewhere else.
"""

from __future__ import annotations

from typing import Any


class HandedOn(BaseException):
    """Carries a tool's "not here, not now" past the gate, which records that the call did not finish."""

    def __init__(self, value: Any) -> None:
        super().__init__("This call goes on elsewhere; whoever made it takes care of that.")
        self.value = value
