"""How a tool's calls are handled, as its program chose: who is asked, and what the program hears. No I/O."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import msgspec

from checkrein.doors.library.denial import Denied, Refusal, Suspended
from checkrein.doors.library.pending import Pending

Asks = Literal["wait", "raise", "return"]
Denials = Literal["raise", "return"]


class Manner(msgspec.Struct, frozen=True, kw_only=True):
    """How a tool's calls are handled, as its program chose."""

    phase: str = "building"
    asks: Asks = "wait"
    denials: Denials = "raise"
    idempotent: bool = False
    # Asked about every question that waits here; what it says is the answer, nothing leaves it to others.
    answer_with: Callable[[dict[str, Any]], Any] | None = None
    # Told of every stop of a tool; what it gives, the tool goes on with at once.
    auto_resume: Callable[[Pending], Any] | None = None
    failed: Callable[[Any], bool] | None = None
    says: Any = None
    hears: Any = None

    def has_failed(self, result: Any) -> bool:
        """Whether the program takes this result for a failure."""
        try:
            return bool(self.failed is not None and self.failed(result))
        except Exception:  # noqa: BLE001 - INVARIANT: what nobody can read earns no trust
            return True

    def refused(self, denied: Denied) -> Refusal:
        """What the program hears of a refusal."""
        if self.denials == "raise":
            raise denied
        return Refusal.of(denied)

    def waits(self, suspended: Suspended) -> Suspended:
        """What the program hears of a call that waits."""
        if self.asks != "return":
            raise suspended
        return suspended
