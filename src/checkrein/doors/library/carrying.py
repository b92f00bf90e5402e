"""A call that may run: carried out as it was judged, reported, and going on where its tool stops to be told.

Steps, no I/O of its own. `Turn` comes here with a verdict or a yes.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec

from checkrein.approval import wording
from checkrein.authority.taken import Taken
from checkrein.call import ToolCall, digest
from checkrein.doors.library.arguments import described, plain
from checkrein.doors.library.authority import Authority
from checkrein.doors.library.denial import Suspended
from checkrein.doors.library.driving import Place, Steps
from checkrein.doors.library.handing import handed
from checkrein.doors.library.manner import Manner
from checkrein.doors.library.pending import Pending
from checkrein.doors.library.refused import refused
from checkrein.doors.library.suspending import Scene, Stopped, fitting
from checkrein.errors import CheckreinError, InputError

CHANGED = "The arguments changed after they were judged, so nothing ran."
LEFT = "the program stopped waiting"
KEEPING = 'Annotate the parameter with its type, hide it, or use asks="wait".'
_BIT_BY_BIT = "A tool that yields its result bit by bit cannot be gated."
_log = logging.getLogger("checkrein")


class Carrying:
    """One call. `prepare` gives what carries it out, with other arguments or (None) as it was called."""

    def __init__(
        self,
        authority: Authority,
        manner: Manner,
        call: ToolCall,
        prepare: Callable[[dict[str, Any] | None], Callable[[], Any]],
        *,
        opaque: list[str] | None = None,
        now: Callable[[], dict[str, Any]] | None = None,
        lost: Callable[[], str] | None = None,
    ) -> None:
        self.authority, self.manner, self.call, self.prepare = authority, manner, call, prepare
        self.opaque, self.now, self.lost = opaque or [], now, lost
        # Whether others could run, and change the arguments, before the call does.
        self.waited = False
        self._before = digest(now()) if self.opaque and now is not None else ""

    @property
    def _near(self) -> Place:
        return "here" if self.authority.near else "away"

    def carried(self, entry: str, arguments: dict[str, Any] | None, told: tuple[Any, ...] = ()) -> Steps:
        manner = self.manner
        try:
            run = self.prepare(arguments)
        except InputError as error:
            # Nothing ran: arguments a person wrote do not fit the tool.
            yield from self._report(entry, "cancelled", str(error), "arguments")
            raise
        while True:
            scene = Scene(told, manner.says, manner.hears)
            try:
                result = yield "tool", lambda: _played(scene, run)  # noqa: B023
                if scene.stopped is not None:
                    raise InputError("The tool went on although it was suspended.")
                if inspect.isgenerator(result) or inspect.isasyncgen(result):
                    raise InputError(_BIT_BY_BIT, remedy="Return the whole result.")
            except Stopped as stopped:
                told = yield from self._stopped(entry, arguments, stopped, told)
                continue
            except BaseException as error:
                yield from self._report(entry, *_fate(error))
                raise
            failed = manner.failed is not None and manner.has_failed(result)
            yield from self._report(
                entry, "failure" if failed else "success", result, "tool error" if failed else ""
            )
            return result

    def _changed(self) -> bool:
        """INVARIANT: what runs is what was judged, also where its arguments can change meanwhile."""
        if not self.waited or self.now is None:
            return False
        return digest(self.now()) != (self._before or self.call.argument_hash)

    def _unkept(self) -> str:
        """Why another process could not go on with exactly this call; nothing where it could."""
        if self.opaque:
            return f"`{self.opaque[0]}` is nothing JSON can hold, so this call cannot wait."
        found = self.lost() if self.lost is not None else ""
        return f"This call cannot wait: another process would not get it as it is ({found})." if found else ""

    def _report(self, entry: str, outcome: str, output: Any, evidence: str) -> Steps:
        """What became of the call; where it cannot be recorded its fate stays unknown."""
        shown = output if type(output) is str else _shown(output)
        try:
            yield self._near, lambda: self.authority.finish(entry, outcome, shown, evidence)
        except CheckreinError as error:
            _log.warning("The outcome of call %s could not be recorded: %s", entry, error)

    def _interrupted(self, entry: str) -> None:
        try:
            self.authority.finish(entry, "cancelled", LEFT, "interrupted")
        except CheckreinError as error:
            _log.warning("The outcome of call %s could not be recorded: %s", entry, error)

    def _untaken(self, entry: str, taken: Taken) -> None:
        """A yes that was used up for nobody."""
        if taken.refused is None:
            self._interrupted(entry)

    # -- a tool that stops ------------------------------------------------------------------------------

    def _stopped(
        self, entry: str, arguments: dict[str, Any] | None, stopped: Stopped, told: tuple[Any, ...]
    ) -> Steps:
        """The tool waits to be told something: by the program at once, or by whoever resumes it."""
        ran = self.call if arguments is None else msgspec.structs.replace(self.call, arguments=arguments)
        yield (
            "away",
            lambda: self.authority.pause(entry, ran, stopped.step, stopped.payload, digest(list(told))),
        )
        pending = Pending(
            kind="suspended",
            entry=entry,
            call=ran,
            text=f"{wording.title(self.call)} waits to be told something. (record {entry})",
            phase=self.manner.phase,
            step=stopped.step,
            payload=stopped.payload,
            told=told,
        )
        resume = self.manner.auto_resume
        data = (yield "tool", lambda: resume(pending)) if resume is not None else None
        if data is None:
            if why := self._unkept():
                yield from self._report(entry, "cancelled", why, "arguments")
                raise InputError(why, remedy=KEEPING)
            raise Suspended(pending)
        yield from self._claimed(pending)
        return (*told, self._heard(data, stopped.schema))

    def going_on(self, pending: Pending, data: Any) -> Steps:
        heard = self._heard(data, self.manner.hears)
        yield from self._claimed(pending)
        return (yield from self.carried(pending.entry, pending.call.arguments, (*pending.told, heard)))

    def _claimed(self, pending: Pending) -> Steps:
        again, phase, told = self.manner.idempotent, self.manner.phase, digest(list(pending.told))
        taken: Taken = yield from handed(
            lambda: self.authority.go_on(pending.entry, pending.call, pending.step, phase, again, told),
            partial(self._untaken, pending.entry),
        )
        if taken.refused is not None:
            raise refused(self.call, taken.refused)

    def _heard(self, data: Any, schema: Any) -> Any:
        """What the tool is told, plain; data that does not fit is refused before anything goes on."""
        opaque: list[str] = []
        heard = plain(data, opaque)
        if opaque:
            raise InputError("What a tool is told must be JSON.")
        fitting(heard, schema, "What the tool is told")
        return heard


def _played(scene: Scene, run: Callable[[], Any]) -> Any:
    with scene.playing():
        result = run()
    return _played_later(scene, result) if inspect.isawaitable(result) else result


async def _played_later(scene: Scene, result: Any) -> Any:
    with scene.playing():
        return await result


def _fate(error: BaseException) -> tuple[str, Any, str]:
    """What an exception says of a call: it failed, took too long, or was stopped from outside."""
    if isinstance(error, TimeoutError):
        return "timeout", described(error), "exception"
    if isinstance(error, Exception):
        return "failure", described(error), "exception"
    return "cancelled", described(error), "interrupted"


def _shown(output: Any) -> Any:
    return plain(output, [])
