"""One Python script: from call to call, to its result or its end.

The engine makes sessions. A call leaves the script as copied JSON and comes back as an answer; a script that
waits is bytes whenever its worker is needed elsewhere.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from checkrein.errors import InputError
from checkrein.execute.python_console import Console
from checkrein.execute.python_failures import PRELUDE_FILE, Fault, of_types
from checkrein.execute.python_interpreter import ENDED, Home, Interpreter, StoppedError
from checkrein.execute.python_pending import NOTHING, Pending
from checkrein.execute.python_positions import Script
from checkrein.execute.python_prelude import Asked, Names, help_out
from checkrein.execute.python_spares import Passed
from checkrein.execute.python_spares import Wanted as Worker
from checkrein.execute.python_state import State, pack
from checkrein.execute.python_values import NotPlainError, TooLargeError, is_long, plain
from checkrein.execute.python_words import (
    Called,
    Completed,
    Lookup,
    Mistyped,
    Place,
    System,
    Waiting,
    answer,
    answers,
    feed,
    found,
    unhandled,
)
from checkrein.execute.sandbox import Answer, DamagedError, Ended, Failed, Limits, Paused, Step, Wanted

T = TypeVar("T")
# An answer that will come: the script goes on without it, as far as it can.
_LATER: dict[str, Any] = {"future": True}


class PythonSession:
    """One script: what it is, what it printed, what it waits for, and the interpreter it runs in."""

    def __init__(self, engine: Home, names: Names, limits: Limits, *, checked: bool) -> None:
        self._engine, self._names, self._limits = engine, names, limits
        # Whether types are checked before it runs.
        self._checked = checked
        self._worker_wanted = Worker(names, limits)
        self._console = Console(limits.output, self._flood)
        self.interpreter = Interpreter(engine, self._worker_wanted, self._console)
        self._script = Script("")
        self._source = ""
        self._pending = Pending()
        self._lock = asyncio.Lock()
        self._phase = "new"

    async def start(self, source: str) -> Step:
        if self._phase != "new":
            raise InputError("This script was started already.")
        self._phase = "running"
        async with self._lock:
            return await self._guarded(self._begin(source))

    async def resume(self, answers: Mapping[int, Answer]) -> Step:
        if self._phase != "paused":
            raise InputError("This script does not wait for answers.")
        self._pending.check(answers)
        self._phase = "running"
        self._engine.seats.wake(id(self))
        async with self._lock:
            return await self._guarded(self._go_on(answers))

    async def dump(self) -> bytes:
        if self._phase != "paused":
            raise InputError("Only a script that waits can be put away.")
        self._engine.seats.wake(id(self))
        async with self._lock:
            await self._shelve()
            state = self._state()
        await self._finish()
        if not state.snapshot:
            raise DamagedError("The worker ended while the script waited.", remedy="Run the script again.")
        return pack(state)

    async def close(self) -> None:
        await self._finish()

    async def restore(self, state: State) -> None:
        """Take up a dumped script. Raises DamagedError."""
        self._source, self._script = state.source, Script(state.source)
        self._console = Console(self._limits.output, self._flood, state.output, state.printed)
        self.interpreter.console = self._console
        self._pending = Pending(state)
        self.interpreter.spent, self.interpreter.shelf = state.spent, state.snapshot
        async with self._lock:
            try:
                await self._seat()
            except StoppedError as stopped:
                raise DamagedError(
                    f"This suspended script cannot be taken up again: {stopped.fault.message}",
                    remedy="Run the script again.",
                ) from None
            self._phase = "paused"
            await self._rest()

    async def _guarded(self, work: Awaitable[Step]) -> Step:
        """Whatever happens, a step comes out and no worker is left behind."""
        try:
            step = await work
        except StoppedError as stopped:
            step = self._failed(stopped.fault)
        except BaseException:
            await asyncio.shield(self._finish())
            raise
        if isinstance(step, Paused):
            self._phase = "paused"
            await self._rest()
        else:
            if self._checked:
                # Forgetting all that was looked at for the check takes longer than most scripts.
                self.interpreter.leave()
            await self._finish()
        return step

    def _flood(self) -> None:
        self.interpreter.stop(Fault("output", "The script printed far more than is kept."))

    def _failed(self, fault: Fault) -> Failed:
        if self._console.flooded:
            fault = Fault("output", "The script printed far more than is kept.")
        return Failed(fault.kind, fault.message, fault.line, self._console.text)

    # -- from one thing the script asks to the next -----------------------------------------------------

    async def _begin(self, source: str) -> Step:
        self._read(source)
        key = Passed.key(source, self._names.check_stubs) if self._checked else b""
        self._checked = self._checked and key not in self._engine.passed
        await self.interpreter.begin(checked=self._checked)
        await self._feed(source)
        if self._checked:
            self._engine.passed.add(key)
        return await self._drive()

    def _read(self, source: str) -> None:
        try:
            size = len(source.encode())
        except UnicodeEncodeError:
            raise StoppedError(Fault("syntax", "The script is not text.")) from None
        if size > self._limits.source:
            raise StoppedError(Fault("syntax", f"The script is longer than {self._limits.source} bytes."))
        self._source, self._script = source, Script(source)

    async def _feed(self, source: str) -> None:
        interpreter = self.interpreter
        await interpreter.step(feed(source, checked=self._checked))
        while isinstance(interpreter.at, System) and interpreter.at.what == "import_stubs":
            await interpreter.step(self._names.served(interpreter.at))
        if isinstance(interpreter.at, Mistyped):
            if fault := of_types(interpreter.at.diagnostics, source):
                raise StoppedError(fault)
            await interpreter.step(feed(source, checked=False))

    async def _go_on(self, given: Mapping[int, Answer]) -> Step:
        await self._aside([each.value for each in given.values()], partial(self._pending.take, given))
        if self.interpreter.worker is None:
            await self._seat()
        pending, at = self._pending, self.interpreter.at
        if pending.still is not None:
            if pending.still not in pending.held:
                return self._pause()
            number, pending.still = pending.still, None
            await self._reply(number, pending.held.pop(number), awaited=isinstance(at, Called) and at.awaited)
        return await self._drive()

    async def _drive(self) -> Step:
        """Until the script waits for somebody or is through."""
        interpreter, pending = self.interpreter, self._pending
        while True:
            at = interpreter.at
            if isinstance(at, Called):
                await self._answer(at)
            elif isinstance(at, Waiting):
                if not await self._settle(at):
                    return self._pause()
            elif isinstance(at, Completed):
                return self._ended(at.value)
            elif isinstance(at, Lookup):
                await interpreter.step(found(None if at.owned else self._names.value(at.name)))
            elif isinstance(at, System):
                await self._system(at)
            else:
                raise StoppedError(Fault("crash", "The sandbox's worker lost its way."))
            if pending.still is not None:
                return self._pause()

    async def _reply(self, number: int, settled: dict[str, Any], *, awaited: bool = False) -> None:
        """On, with an answer to what the script stands at. `awaited`: it is a call it awaits at once."""
        write = partial(answers, {number: settled}) if awaited else partial(answer, number, settled)
        await self.interpreter.step(await self._aside(settled, write))

    async def _aside(self, value: Any, work: Callable[[], T]) -> T:
        """Work with a value: here, or beside the loop where there is much of it."""
        if not is_long(value):
            return work()
        with self.interpreter.spending():
            made = await asyncio.to_thread(work)
        self.interpreter.check_open()
        return made

    async def _answer(self, at: Called) -> None:
        ask = partial(self._names.asked, at.name, at.positional, at.named)
        try:
            asked = None if at.owned else await self._aside((at.positional, at.named), ask)
        except NotPlainError as error:
            await self._refuse(at, "TypeError", str(error))
            return
        if asked is not None:
            await self._ask(at, asked)
        elif helper := self._names.helper(at.name):
            await self._help(at, helper)
        else:
            await self._refuse(at, "NameError", f"name {at.name[:100]!r} is not defined")

    async def _refuse(self, at: Called, kind: str, message: str) -> None:
        await self._reply(at.number, {"exc_type": kind, "message": message})

    async def _ask(self, at: Called, asked: Asked) -> None:
        where, number = at.place, at.number
        ours = where.filename.startswith("<python-input-") and where.filename != PRELUDE_FILE
        line, column = self._script.place(where.start) if ours else (0, 0)
        self._pending.calls[number] = Wanted(number, asked.tool, asked.arguments, line, column)
        if at.awaited or (ours and await self._is_plain(where)):
            self._pending.still = number
        else:
            await self._reply(number, _LATER)

    async def _is_plain(self, where: Place) -> bool:
        if not self._script.was_read:
            with self.interpreter.spending():
                await asyncio.to_thread(self._script.read)
            self.interpreter.check_open()
        return self._script.is_plain(where.start, where.end)

    async def _help(self, at: Called, helper: str) -> None:
        with self.interpreter.spending():
            made = await asyncio.to_thread(help_out, helper, at.positional, at.named)
        self.interpreter.check_open()
        await self._reply(at.number, made, awaited=at.awaited)

    async def _system(self, at: System) -> None:
        """What the script asks of a system: time passes, our modules are there, and there is nothing else."""
        interpreter = self.interpreter
        if at.what == "import":
            await interpreter.step(self._names.served(at))
        elif at.what == "asyncio.sleep":
            self._pending.sleeps[at.number] = time.time() + max(0.0, at.seconds)
            await self._reply(at.number, _LATER)
        elif at.what == "time.sleep":
            await interpreter.nap(at.seconds)
            await self._reply(at.number, NOTHING)
        else:
            await interpreter.step(unhandled(at.number))

    async def _settle(self, at: Waiting) -> bool:
        """Hand over every answer that is there; false when the script waits for one that is not."""
        pending = self._pending
        ready = pending.taken(at.numbers)
        if not ready:
            if pending.calls:
                return False
            await self.interpreter.nap(pending.until_due(at.numbers))
            ready = pending.woken(at.numbers)
        await self.interpreter.step(await self._aside(ready, partial(answers, ready)))
        return True

    def _pause(self) -> Paused:
        return Paused(self._pending.wanted, self._console.text)

    def _ended(self, output: Any) -> Step:
        for forgotten in self._pending.calls.values():
            self._console.note(
                f"note: {forgotten.name} on line {forgotten.line} was not awaited, so it was not called"
            )
        try:
            return Ended(plain(output, most=self._limits.result, lenient=True), self._console.text)
        except TooLargeError as error:
            return self._failed(Fault("output", f"The result {error}."))
        except NotPlainError as error:
            return self._failed(Fault("error", f"The result {error}."))

    # -- waiting, put away and taken up -----------------------------------------------------------------

    async def _rest(self) -> None:
        """Wait for somebody; the seat is whoever's needs it more."""
        if self._engine.seats.crowded:
            await self._shelve()
        elif self.interpreter.worker is not None:
            self._engine.seats.rest(id(self), self._make_room)

    async def _make_room(self) -> None:
        async with self._lock:
            if self._phase == "paused":
                await self._shelve()

    async def _shelve(self) -> None:
        await self.interpreter.put_away()

    async def _seat(self) -> None:
        """Back from bytes. INVARIANT: a script goes on only where its calls are those we know of."""
        await self.interpreter.take_up(checked=self._checked)
        if not self._pending.is_ours(self.interpreter.at, self._names):
            raise StoppedError(Fault("crash", "it waits for other calls than it did"))

    def _state(self) -> State:
        pending = self._pending
        return State(
            source=self._source,
            snapshot=self.interpreter.shelf,
            spent=self.interpreter.spent,
            output=self._console.text,
            printed=self._console.size,
            waiting=tuple(pending.calls.values()),
            held=pending.held,
            sleeps=pending.sleeps,
            still=pending.still,
        )

    async def _finish(self) -> None:
        self._phase, self.interpreter.over = "over", True
        self._engine.seats.wake(id(self))
        self.interpreter.stop(ENDED)
        await self.interpreter.release()
        self.interpreter.shelf = b""
        self._engine.forget(self)
        if self._checked:
            # Now that this one is through, the next may find a worker that is ready.
            self._checked = False
            self._engine.spares.prepare(self._worker_wanted)
