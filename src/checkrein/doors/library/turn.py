"""One call on its way through a gate: judged, asked about, carried out, reported. Steps, no I/O of its own.

`driving` carries the steps out; an authority (`embedded`, `remote`) does what they say. From the moment a
call may run, `carrying` has it.
"""

from __future__ import annotations

import inspect
import logging
import threading
from functools import partial
from typing import Any

from checkrein.approval import wording
from checkrein.authority.taken import Taken
from checkrein.authority.wish import Wish
from checkrein.call import Verdict, digest
from checkrein.core.approvals import Settled
from checkrein.core.decision import Decided
from checkrein.doors.library.answers import said
from checkrein.doors.library.carrying import CHANGED, KEEPING, LEFT, Carrying
from checkrein.doors.library.denial import Denied, Suspended
from checkrein.doors.library.driving import Steps
from checkrein.doors.library.handing import handed
from checkrein.doors.library.pending import Pending
from checkrein.doors.library.refused import refused, said_no
from checkrein.errors import CheckreinError, InputError

# A question ends by itself long before this; the person's own time limit is the setting.
_FOR_EVER = 366 * 86_400.0
_log = logging.getLogger("checkrein")


class Turn(Carrying):
    """One call, from its verdict on."""

    def fresh(self, wish: Wish | Any) -> Steps:
        """A new call, from its verdict to its result."""
        try:
            decided = yield from self.judged(wish)
            if decided.verdict.word == "allow":
                if self._changed():
                    yield from self._report(decided.entry, "cancelled", CHANGED, "arguments")
                    raise InputError(CHANGED)
                return (yield from self.carried(decided.entry, None))
            return (yield from self._asked(decided))
        except Denied as denied:
            return self.manner.refused(denied)
        except Suspended as suspended:
            return self.manner.waits(suspended)

    def again(self, pending: Pending, data: Any) -> Steps:
        """A call that waited goes on."""
        try:
            if pending.kind == "suspended":
                return (yield from self.going_on(pending, data))
            settled = yield "away", lambda: self.authority.wait(pending.entry, self.call, 0.0)
            if settled is None and self.manner.asks != "wait":
                raise Suspended(pending)
            if settled is None:
                settled = yield from self._waited(pending.entry)
            return (yield from self._settled(pending.entry, settled, pending.verdict, rebuilt=True))
        except Denied as denied:
            return self.manner.refused(denied)
        except Suspended as suspended:
            return self.manner.waits(suspended)

    def judged(self, wish: Any) -> Steps:
        """The verdict, recorded; a refusal is raised."""
        if inspect.isawaitable(wish):
            coming = wish
            wish = yield "tool", lambda: coming
            self.waited = True
        found = yield self._near, lambda: self.authority.first(self.call, wish, self.manner.phase)
        if callable(found):
            self.waited = True
            found = yield from handed(found, self._unwanted)
        decided: Decided = found
        if decided.verdict.word == "deny":
            raise refused(self.call, decided)
        return decided

    def _unwanted(self, decided: Decided) -> None:
        """INVARIANT: a call nobody waits for any more stays neither open nor without an outcome."""
        if decided.verdict.word == "ask":
            self._withdraw(decided.entry, LEFT)
        elif decided.verdict.word == "allow":
            self._interrupted(decided.entry)

    # -- asking -----------------------------------------------------------------------------------------

    def _asked(self, decided: Decided) -> Steps:
        if self.manner.asks != "wait":
            if why := self._unkept():
                yield "away", lambda: self._withdraw(decided.entry, "the call cannot be kept")
                raise InputError(why, remedy=KEEPING)
            raise Suspended(self.pending(decided))
        settled = yield from self._waited(decided.entry)
        return (yield from self._settled(decided.entry, settled, decided.verdict))

    def pending(self, decided: Decided) -> Pending:
        """The question as data that another process can go on with."""
        text = wording.question(self.call, decided.verdict, decided.entry)
        return Pending(
            kind="approval",
            entry=decided.entry,
            call=self.call,
            text=text,
            phase=self.manner.phase,
            verdict=decided.verdict,
        )

    def _waited(self, entry: str) -> Steps:
        stop = threading.Event()
        try:
            if self.manner.answer_with is not None:
                yield "away", lambda: self._answered_here(entry)
            return (yield "away", lambda: self.authority.wait(entry, self.call, _FOR_EVER, stop))
        except BaseException:
            # INVARIANT: a question nobody waits for any more is withdrawn, so that no late yes runs anything.
            stop.set()
            yield "away", lambda: self._withdraw(entry, LEFT)
            raise

    def _answered_here(self, entry: str) -> None:
        """Whoever the program has to answer its questions."""
        ask = self.manner.answer_with
        question = next((each for each in self.authority.questions() if each["id"] == entry), None)
        if ask is None or question is None:
            return
        # The record's input is masked; whoever edits starts from what the call really says.
        heard = ask({**question, "arguments": self.call.arguments})
        if heard is None:
            return
        given = said(heard)
        self.authority.answer(
            entry,
            given.answer,
            call=self.call,
            message=given.message,
            edited=given.edited,
            remember=given.remember,
        )

    def _withdraw(self, entry: str, why: str) -> None:
        try:
            self.authority.withdraw(entry, self.call, why)
        except CheckreinError as error:
            _log.warning("A question could not be withdrawn: %s", error)

    def _settled(
        self, entry: str, settled: Settled, verdict: Verdict | None, *, rebuilt: bool = False
    ) -> Steps:
        if settled.state == "answered":
            # A person answers for the tool, which does not run.
            return settled.message
        if settled.state != "approved":
            raise said_no(self.call, entry, settled, verdict)
        call, again = self.call, self.manner.idempotent
        self.waited = True
        if self._changed():
            yield "away", lambda: self._withdraw(entry, CHANGED)
            raise InputError(CHANGED)
        taken: Taken = yield from handed(
            lambda: self.authority.take(entry, call, self.manner.phase, again), partial(self._untaken, entry)
        )
        if taken.refused is not None:
            raise refused(self.call, taken.refused)
        # Python takes 1 for True; a person who wrote one of them did not.
        changed = digest(taken.arguments) != call.argument_hash
        return (yield from self.carried(entry, taken.arguments if rebuilt or changed else None))
