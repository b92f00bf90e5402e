"""Work that is finished once it is begun: a write under way in a thread cannot be called back."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def whole(work: Awaitable[T]) -> T:
    """What came of it. Whoever is stopped meanwhile hears of it after the work is done, never during it."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise
