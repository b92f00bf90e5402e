"""One Python script: from call to call, to its result or its end.

The engine makes sessions. A call leaves the script as copied JSON and comes back as an answer; a script that
waits is bytes whenever its worker is needed elsewhere.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Mapping
from functools import partial
from typing import Any

from checkrein.errors import InputError
from checkrein.execute.python_console import Console
from checkrein.execute.python_failures import PRELUDE_FILE, Fault, of_types
from checkrein.execute.python_interpreter import ENDED, Home, Interpreter, StoppedError, monty
from checkrein.execute.python_pending import Pending
from checkrein.execute.python_positions import Script
from checkrein.execute.python_prelude import Asked, Names, help_out
from checkrein.execute.python_spares import Passed
from checkrein.execute.python_spares import Wanted as Worker
from checkrein.execute.python_state import State, pack
from checkrein.execute.python_values import NotPlainError, TooLargeError, plain
from checkrein.execute.sandbox import Answer, DamagedError, Ended, Failed, Limits, Paused, Step, Wanted


class PythonSession:
    """One script: what it is, what it printed, what it waits for, and the interpreter it runs in."""

    def __init__(self, engine: Home, names: Names, limits: Limits, *, checked: bool) -> None:
        self._engine, self._names, self._limits = engine, names, limits
        # Whether types are checked before it runs.
        self._checked = checked
        self._worker_wanted = Worker(names, limits)
        self.interpreter = Interpreter(engine, self._worker_wanted)
        self._console = Console(limits.output, self._flood)
        self._script = Script("")
        self._source = ""
        self._pending = Pending()
        self._lock = asyncio.Lock()
        self._loop = asyncio.get_running_loop()
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
        self._pending.take(answers)
        self._phase = "running"
        self._engine.seats.wake(id(self))
        async with self._lock:
            return await self._guarded(self._go_on())

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
        """Said by the interpreter's own thread."""
        fault = Fault("output", "The script printed far more than is kept.")
        self._loop.call_soon_threadsafe(self.interpreter.stop, fault)

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
        worker, console = interpreter.worker, self._console
        try:
            unchecked = not self._checked
            await interpreter.step(
                lambda: worker.feed_start(source, print_callback=console, skip_type_check=unchecked)
            )
            while getattr(interpreter.snapshot, "function_name", "") == "import_stubs":
                await interpreter.step(interpreter.snapshot.resume_auto)
        except monty().MontyTypingError as error:
            if fault := of_types(error.display(), source):
                raise StoppedError(fault) from None
            await interpreter.step(
                lambda: worker.feed_start(source, print_callback=console, skip_type_check=True)
            )

    async def _go_on(self) -> Step:
        if self.interpreter.worker is None:
            await self._seat()
        pending = self._pending
        if pending.still is not None:
            if pending.still not in pending.held:
                return self._pause()
            number, pending.still = pending.still, None
            snapshot, answer = self.interpreter.snapshot, pending.held.pop(number)
            if snapshot.allow_eager_await:
                await self.interpreter.step(lambda: _awaited(snapshot, number, answer))
            else:
                await self._step(answer)
        return await self._drive()

    async def _drive(self) -> Step:
        """Until the script waits for somebody or is through."""
        interpreter, pending = self.interpreter, self._pending
        while True:
            kind = interpreter.kind
            if kind == "MontyComplete":
                return self._ended(interpreter.snapshot.output)
            if kind == "FunctionSnapshot":
                await self._answer()
            elif kind == "NameLookupSnapshot":
                await self._look_up()
            elif not await self._settle():
                return self._pause()
            if pending.still is not None:
                return self._pause()

    async def _step(self, answer: Any) -> None:
        """On, with an answer to what the script stands at."""
        await self.interpreter.step(partial(self.interpreter.snapshot.resume, answer))

    async def _look_up(self) -> None:
        snapshot = self.interpreter.snapshot
        found = None if snapshot.object_id else self._names.value(snapshot.variable_name)
        await self.interpreter.step(partial(snapshot.resume, value=found) if found else snapshot.resume)

    async def _answer(self) -> None:
        snapshot = self.interpreter.snapshot
        name = str(snapshot.function_name)
        if snapshot.is_os_function:
            await self._system(name)
            return
        try:
            with self.interpreter.spending():
                asked = (
                    None if snapshot.object_id else self._names.asked(name, snapshot.args, snapshot.kwargs)
                )
        except NotPlainError as error:
            await self._refuse("TypeError", str(error))
            return
        if asked is not None:
            await self._ask(asked)
        elif helper := self._names.helper(name):
            await self._help(helper)
        else:
            await self._refuse("NameError", f"name {name[:100]!r} is not defined")

    async def _refuse(self, kind: str, message: str) -> None:
        await self._step({"exc_type": kind, "message": message})

    async def _ask(self, asked: Asked) -> None:
        snapshot = self.interpreter.snapshot
        where, number = snapshot.position, snapshot.call_id
        ours = where.filename.startswith("<python-input-") and where.filename != PRELUDE_FILE
        line, column = self._script.place(where.start) if ours else (0, 0)
        self._pending.calls[number] = Wanted(number, asked.tool, asked.arguments, line, column)
        if snapshot.allow_eager_await or (ours and await self._is_plain(where.start, where.end)):
            self._pending.still = number
        else:
            await self._step({"future": ...})

    async def _is_plain(self, start: int, end: int) -> bool:
        if not self._script.was_read:
            with self.interpreter.spending():
                await asyncio.to_thread(self._script.read)
            self.interpreter.check_open()
        return self._script.is_plain(start, end)

    async def _help(self, helper: str) -> None:
        snapshot = self.interpreter.snapshot
        with self.interpreter.spending():
            answer = await asyncio.to_thread(help_out, helper, snapshot.args, snapshot.kwargs)
        self.interpreter.check_open()
        if snapshot.allow_eager_await:
            self._pending.held[snapshot.call_id] = answer
            answer = {"future": ...}
        await self._step(answer)

    async def _system(self, name: str) -> None:
        """What the script asks of a system: time passes, our modules are there, and there is nothing else."""
        interpreter, snapshot = self.interpreter, self.interpreter.snapshot
        if name == "import":
            await interpreter.step(snapshot.resume_auto)
        elif name == "asyncio.sleep":
            self._pending.sleeps[snapshot.call_id] = time.time() + max(0.0, float(snapshot.args[0]))
            await self._step({"future": ...})
        elif name == "time.sleep":
            await interpreter.nap(float(snapshot.args[0]))
            await self._step({"return_value": None})
        else:
            await interpreter.step(snapshot.resume_not_handled)

    async def _settle(self) -> bool:
        """Hand over every answer that is there; false when the script waits for one that is not."""
        numbers, pending = self.interpreter.snapshot.pending_call_ids, self._pending
        ready = pending.taken(numbers)
        if not ready:
            if pending.calls:
                return False
            await self.interpreter.nap(pending.until_due(numbers))
            ready = pending.woken(numbers)
        await self._step(ready)
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
        await self.interpreter.take_up(self._console, checked=self._checked)
        if not self._pending.is_ours(self.interpreter.snapshot, self._names):
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


def _awaited(snapshot: Any, number: int, answer: dict[str, Any]) -> Any:
    """From a call to its `await` and on with the answer: nothing else of the script can run in between."""
    return snapshot.resume({"future": ...}).resume({number: answer})
