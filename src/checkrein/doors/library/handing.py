"""Work done in another thread whose result may come when nobody waits for it any more. No I/O of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from checkrein.doors.library.driving import Steps


def handed(work: Callable[[], Any], unwanted: Callable[[Any], None]) -> Steps:
    """What the work gives; where whoever wanted it is gone by then, `unwanted` gets it instead."""
    over = _Handover(work, unwanted)
    try:
        return (yield "away", over.carry)
    except BaseException:
        yield "away", over.leave
        raise


class _Handover:
    """Exactly one of the two sides sees to a result that nobody waits for."""

    def __init__(self, work: Callable[[], Any], unwanted: Callable[[Any], None]) -> None:
        self._work, self._unwanted = work, unwanted
        self._lock, self._left, self._came = threading.Lock(), False, list[Any]()

    def carry(self) -> Any:
        result = self._work()
        with self._lock:
            self._came.append(result)
            left = self._left
        if left:
            self._unwanted(result)
        return result

    def leave(self) -> None:
        with self._lock:
            self._left, came = True, list(self._came)
        for result in came:
            self._unwanted(result)
