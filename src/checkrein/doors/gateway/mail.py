"""What the loop puts on the record: all of one moment is handed over together, and each hears of its own.

The store commits it right here where nobody else is writing; else its writer does, and one wake-up brings
back as many answers as there are.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from checkrein.store import Offer, Store, Transaction

T = TypeVar("T")
# So many at once are a crowd: while what they sent on is under way, there is time for what waits.
CROWD = 4
# How long what nobody waits for waits for company.
LATER = 0.02


class Letter(Generic[T]):
    """One work on its way to the record, and what it comes to for who waits."""

    __slots__ = ("_found", "_made", "_unwanted", "coming")

    def __init__(self, coming: asyncio.Future[T], made: Callable[[BaseException | None], T]) -> None:
        self.coming, self._made = coming, made
        self._found: tuple[T] | None = None
        self._unwanted: Callable[[T], None] | None = None

    @property
    def written(self) -> bool:
        """Whether it is on the record."""
        return self._found is not None

    def settle(self, error: BaseException | None) -> None:
        """On the loop, once it is committed or has failed."""
        try:
            found = self._made(error)
        except BaseException as wrong:  # noqa: BLE001 - it belongs to who waits
            if not self.coming.done():
                self.coming.set_exception(wrong)
            return
        self._found = (found,)
        if not self.coming.done():
            self.coming.set_result(found)
        elif self._unwanted is not None:
            # By itself: what goes wrong in it keeps nobody else from hearing of their own.
            self.coming.get_loop().call_soon(self._unwanted, found)

    async def answer(self, unwanted: Callable[[T], None] | None = None) -> T:
        """What it came to; `unwanted` hears it in the place of who stopped waiting: it happens anyway."""
        try:
            return await self.coming
        except asyncio.CancelledError:
            # It may have been written between the cancelling and our hearing of it.
            if self._found is None:
                self._unwanted = unwanted
            elif unwanted is not None:
                unwanted(self._found[0])
            raise


class Mail:
    """The way from one loop to the record and back. `meanwhile` is asked what else there is to write, where a
    crowd was here or enough of it waits (`enough`)."""

    def __init__(
        self,
        store: Store,
        meanwhile: Callable[[], Sequence[Offer]] = tuple,
        enough: Callable[[], bool] = bool,
    ) -> None:
        self._store, self._meanwhile, self._enough = store, meanwhile, enough
        self._loop, self._thread = asyncio.get_running_loop(), threading.get_ident()
        self._leaving: list[Offer] = []
        # Whether they leave with this moment, and when they do at the latest.
        self._due = False
        # Whether nobody else was there a moment ago.
        self._quiet = True
        self._timer: asyncio.TimerHandle | None = None
        self._letters: deque[tuple[Letter[Any], BaseException | None]] = deque()
        self._lock = threading.Lock()
        self._rung = False
        # Whether what waits will be asked for.
        self._asking = False

    def send(
        self,
        work: Callable[[Transaction], Any],
        made: Callable[[BaseException | None], T],
        *,
        alone: bool = True,
    ) -> Letter[T]:
        """Have work committed with everything else of this moment. `alone`: it makes one statement."""
        letter = self._written(work, made, alone)
        if self._quiet:
            # Whoever is alone has nobody to wait for; whoever comes in the same moment goes together.
            self._quiet = False
            self._loop.call_soon(self._calm)
            self._leave()
        else:
            self.hurry()
        return letter

    def send_later(
        self, work: Callable[[Transaction], Any], made: Callable[[BaseException | None], T]
    ) -> Letter[T]:
        """The same for what nobody waits for: with whatever is sent next, or in a moment. The order stays."""
        letter = self._written(work, made, True)
        if self._timer is None:
            self._timer = self._loop.call_later(LATER, self._is_later)
        return letter

    def _is_later(self) -> None:
        self._timer = None
        if self._leaving:
            self._leave()

    def hurry(self) -> None:
        """All that was sent leaves now."""
        if not self._due and self._leaving:
            self._due = True
            self._loop.call_soon(self._leave)

    def _written(
        self, work: Callable[[Transaction], Any], made: Callable[[BaseException | None], T], alone: bool
    ) -> Letter[T]:
        letter = Letter(self._loop.create_future(), made)
        self._leaving.append(Offer(work, lambda error: self._told(letter, error), alone))
        return letter

    def _calm(self) -> None:
        self._quiet = self._quiet or not self._due

    def _leave(self) -> None:
        if self._due:
            self._due, self._quiet = False, len(self._leaving) < CROWD
        leaving, self._leaving = self._leaving, []
        self._hand_over(leaving)
        if not self._asking and (len(leaving) >= CROWD or self._enough()):
            self._asking = True
            # Behind all who were told just now, and behind what they send on.
            self._loop.call_soon(self._loop.call_soon, self._write_meanwhile)

    def _write_meanwhile(self) -> None:
        self._asking = False
        self._hand_over(self._meanwhile())

    def _hand_over(self, offers: Sequence[Offer]) -> None:
        if not offers:
            return
        try:
            self._store.offer(offers)
        except Exception as error:  # noqa: BLE001 - INVARIANT: nobody waits for a word that never comes
            for each in offers:
                each.tell(error)

    def _told(self, letter: Letter[Any], error: BaseException | None) -> None:
        if threading.get_ident() == self._thread:
            letter.settle(error)
            return
        with self._lock:
            self._letters.append((letter, error))
            ring, self._rung = not self._rung, True
        if ring:
            self._loop.call_soon_threadsafe(self._empty)

    def _empty(self) -> None:
        with self._lock:
            letters, self._letters = self._letters, deque()
            self._rung = False
        for letter, error in letters:
            letter.settle(error)
