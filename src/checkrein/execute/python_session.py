"""One Python script: from call to call, to its result or its end.

The engine makes sessions. A call leaves the script as copied JSON and comes back as an answer; a script that
waits is bytes whenever its worker is needed elsewhere.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Mapping, Sequence
from functools import cache
from typing import Any, Protocol

from checkrein.errors import InputError
from checkrein.execute.python_ahead import Ahead
from checkrein.execute.python_console import Console
from checkrein.execute.python_failures import PRELUDE_FILE, Fault, fault_of, of_types, out_of_time
from checkrein.execute.python_positions import Script
from checkrein.execute.python_prelude import PRELUDE, Asked, Names, help_out
from checkrein.execute.python_seats import Seats
from checkrein.execute.python_spares import Passed, Spares
from checkrein.execute.python_spares import Wanted as Worker
from checkrein.execute.python_state import State, pack
from checkrein.execute.python_values import NotPlainError, TooLargeError, plain, settled
from checkrein.execute.sandbox import Answer, DamagedError, Ended, Failed, Limits, Paused, Step, Wanted

_OWN_GRACE = 0.6
_ENDED = Fault("crash", "The script was ended.")


@cache
def _monty() -> Any:
    """Loaded with the first script."""
    import pydantic_monty

    return pydantic_monty


class Home(Protocol):
    """What a session needs of its engine."""

    seats: Seats
    spares: Spares
    passed: Passed

    async def hire(self, wanted: Worker, *, checked: bool) -> Any: ...

    def let_go(self, worker: Any) -> asyncio.Task[None]: ...

    def forget(self, session: PythonSession) -> None: ...


class _StoppedError(Exception):
    """Raise when a run is over, with what to say about it."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class PythonSession:
    """One script: what it waits for, what it printed, how long it computed."""

    def __init__(self, engine: Home, names: Names, limits: Limits, *, checked: bool) -> None:
        self._engine, self._names, self._limits = engine, names, limits
        # Whether types are checked before it runs.
        self._checked = checked
        self._worker_wanted = Worker(names, limits)
        self._console = Console(limits.output, self._flood)
        self._script = Script("")
        self._source = ""
        self._spent = 0.0
        # Calls nobody answered yet, answers the script did not take yet, sleeps with the time they are over.
        self._waiting: dict[int, Wanted] = {}
        self._held: dict[int, dict[str, Any]] = {}
        self._sleeps: dict[int, float] = {}
        # The call that stands still until it is answered, when the script used its value without `await`.
        self._still: int | None = None
        self._worker: Any = None
        self._snapshot: Any = None
        self._shelf: bytes = b""
        self._turn: asyncio.Future[Any] | None = None
        self._ahead = Ahead()
        self._stopped: Fault | None = None
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
        if unknown := sorted(set(answers) - set(self._waiting)):
            raise InputError(f"Nobody waits for call {unknown[0]}.")
        for number, answer in answers.items():
            self._held[number] = settled(self._waiting.pop(number).name, answer)
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
        self._spent, self._still = state.spent, state.still
        self._console = Console(self._limits.output, self._flood, state.output, state.printed)
        self._waiting = {wanted.id: wanted for wanted in state.waiting}
        self._held, self._sleeps, self._shelf = dict(state.held), dict(state.sleeps), state.snapshot
        async with self._lock:
            try:
                await self._seat()
            except _StoppedError as stopped:
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
        except _StoppedError as stopped:
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
                self._leave()
            await self._finish()
        return step

    def _check_open(self) -> None:
        """Said after every wait that is not the interpreter's: the script may have been closed meanwhile."""
        if self._phase == "over":
            raise _StoppedError(_ENDED)

    def _flood(self) -> None:
        """Said by the interpreter's own thread."""
        fault = Fault("output", "The script printed far more than is kept.")
        self._loop.call_soon_threadsafe(self._stop, fault)

    def _stop(self, fault: Fault) -> None:
        """End the turn under way; who waits for it learns why."""
        self._stopped = fault
        if self._turn is not None:
            self._turn.cancel()

    def _failed(self, fault: Fault) -> Failed:
        if self._console.flooded:
            fault = Fault("output", "The script printed far more than is kept.")
        return Failed(fault.kind, fault.message, fault.line, self._console.text)

    async def _begin(self, source: str) -> Step:
        self._read(source)
        key = Passed.key(source, self._names.check_stubs) if self._checked else b""
        self._checked = self._checked and key not in self._engine.passed
        if not await self._check_out(spare=self._checked):
            await self._step(self._worker.feed_start(PRELUDE, skip_type_check=not self._checked))
            while type(self._snapshot).__name__ == "AsyncFunctionSnapshot":
                await self._step(self._snapshot.resume_auto())
        await self._feed(source)
        if self._checked:
            self._engine.passed.add(key)
        return await self._drive()

    def _read(self, source: str) -> None:
        try:
            size = len(source.encode())
        except UnicodeEncodeError:
            raise _StoppedError(Fault("syntax", "The script is not text.")) from None
        if size > self._limits.source:
            raise _StoppedError(Fault("syntax", f"The script is longer than {self._limits.source} bytes."))
        self._source, self._script = source, Script(source)

    async def _feed(self, source: str) -> None:
        from pydantic_monty import MontyTypingError

        try:
            await self._step(
                self._worker.feed_start(
                    source, print_callback=self._console, skip_type_check=not self._checked
                )
            )
            while getattr(self._snapshot, "function_name", "") == "import_stubs":
                await self._step(self._snapshot.resume_auto())
        except MontyTypingError as error:
            if fault := of_types(error.display(), source):
                raise _StoppedError(fault) from None
            await self._step(
                self._worker.feed_start(source, print_callback=self._console, skip_type_check=True),
            )

    async def _go_on(self) -> Step:
        await self._ahead.checked()
        if self._worker is None:
            await self._seat()
        if self._still is not None:
            if self._still not in self._held:
                return self._pause()
            answer, self._still = self._held.pop(self._still), None
            await self._step(self._snapshot.resume(answer))
        return await self._drive()

    async def _drive(self) -> Step:
        """From one thing the script asks to the next, until it waits for somebody or is through."""
        while True:
            kind = type(self._snapshot).__name__
            if kind == "MontyComplete":
                return self._ended(self._snapshot.output)
            if kind == "AsyncFunctionSnapshot":
                await self._answer()
            elif kind == "AsyncNameLookupSnapshot":
                await self._look_up()
            elif not await self._settle():
                return self._pause()
            if self._still is not None or self._ahead.task is not None:
                return self._pause()

    async def _look_up(self) -> None:
        found = None if self._snapshot.object_id else self._names.value(self._snapshot.variable_name)
        await self._step(self._snapshot.resume(value=found) if found else self._snapshot.resume())

    async def _answer(self) -> None:
        snapshot = self._snapshot
        name = str(snapshot.function_name)
        if snapshot.is_os_function:
            await self._system(name)
            return
        began = time.monotonic()
        try:
            asked = None if snapshot.object_id else self._names.asked(name, snapshot.args, snapshot.kwargs)
        except NotPlainError as error:
            await self._refuse("TypeError", str(error))
            return
        finally:
            self._spent += time.monotonic() - began
        if asked is not None:
            await self._ask(asked)
        elif helper := self._names.helper(name):
            await self._help(helper)
        else:
            await self._refuse("NameError", f"name {name[:100]!r} is not defined")

    async def _refuse(self, kind: str, message: str) -> None:
        await self._step(self._snapshot.resume({"exc_type": kind, "message": message}))

    async def _ask(self, asked: Asked) -> None:
        snapshot = self._snapshot
        where, number = snapshot.position, snapshot.call_id
        ours = where.filename.startswith("<python-input-") and where.filename != PRELUDE_FILE
        line, column = self._script.place(where.start) if ours else (0, 0)
        self._waiting[number] = Wanted(number, asked.tool, asked.arguments, line, column)
        if ours and not snapshot.allow_eager_await and await self._is_plain(where.start, where.end):
            self._still = number
            return
        turn = snapshot.resume({"future": ...})
        if snapshot.allow_eager_await:
            # Nothing else of the script can run before the answer: it gets there while the call is made.
            self._ahead.begin(self._step(turn))
        else:
            await self._step(turn)

    async def _is_plain(self, start: int, end: int) -> bool:
        if not self._script.was_read:
            began = time.monotonic()
            await asyncio.to_thread(self._script.read)
            self._spent += time.monotonic() - began
            self._check_open()
        return self._script.is_plain(start, end)

    async def _help(self, helper: str) -> None:
        snapshot = self._snapshot
        began = time.monotonic()
        answer = await asyncio.to_thread(help_out, helper, snapshot.args, snapshot.kwargs)
        self._spent += time.monotonic() - began
        self._check_open()
        if not snapshot.allow_eager_await:
            await self._step(snapshot.resume(answer))
            return
        self._held[snapshot.call_id] = answer
        await self._step(snapshot.resume({"future": ...}))

    async def _system(self, name: str) -> None:
        """What the script asks of a system: time passes, our modules are there, and there is nothing else."""
        snapshot = self._snapshot
        if name == "import":
            await self._step(snapshot.resume_auto())
        elif name == "asyncio.sleep":
            self._sleeps[snapshot.call_id] = time.time() + max(0.0, float(snapshot.args[0]))
            await self._step(snapshot.resume({"future": ...}))
        elif name == "time.sleep":
            await self._nap(float(snapshot.args[0]))
            await self._step(snapshot.resume({"return_value": None}))
        else:
            await self._step(snapshot.resume_not_handled())

    async def _nap(self, seconds: float) -> None:
        """Sleeping costs a script its own time: it waits for nobody."""
        left = self._limits.seconds - self._spent
        if not seconds <= left:
            raise _StoppedError(out_of_time(self._limits.seconds))
        began = time.monotonic()
        await asyncio.sleep(max(0.0, seconds))
        self._spent += time.monotonic() - began
        self._check_open()

    async def _settle(self) -> bool:
        """Hand over every answer that is there; false when the script waits for one that is not."""
        pending = self._snapshot.pending_call_ids
        ready = self._ready(pending)
        if not ready:
            if self._waiting:
                return False
            due = [self._sleeps[number] for number in pending if number in self._sleeps]
            if not due:
                raise _StoppedError(Fault("crash", "The script waits for something nobody was asked for."))
            await self._nap(min(due) - time.time())
            ready = self._ready(pending) or {
                number: {"return_value": None} for number in pending if number in self._sleeps
            }
        for number in ready:
            self._held.pop(number, None)
            self._sleeps.pop(number, None)
        await self._step(self._snapshot.resume(ready))
        return True

    def _ready(self, pending: Sequence[int]) -> dict[int, dict[str, Any]]:
        now = time.time()
        ready = {number: self._held[number] for number in pending if number in self._held}
        ready |= {n: {"return_value": None} for n in pending if n in self._sleeps and self._sleeps[n] <= now}
        return ready

    def _pause(self) -> Paused:
        wanted = tuple(self._waiting[number] for number in sorted(self._waiting))
        return Paused(wanted, self._console.text)

    def _ended(self, output: Any) -> Step:
        for forgotten in self._waiting.values():
            self._console.note(
                f"note: {forgotten.name} on line {forgotten.line} was not awaited, so it was not called"
            )
        try:
            return Ended(plain(output, most=self._limits.result, lenient=True), self._console.text)
        except TooLargeError as error:
            return self._failed(Fault("output", f"The result {error}."))
        except NotPlainError as error:
            return self._failed(Fault("error", f"The result {error}."))

    async def _step(self, turn: Awaitable[Any]) -> None:
        """One turn of the interpreter, within what is left of the script's time."""
        began = time.monotonic()
        self._turn = asyncio.ensure_future(turn)
        left = max(0.0, self._limits.seconds - self._spent)
        alarm = self._loop.call_later(
            left + _OWN_GRACE, lambda: self._stop(out_of_time(self._limits.seconds))
        )
        try:
            self._snapshot = await self._turn
        except _monty().MontyTypingError:
            raise
        except _monty().MontyError as error:
            raise _StoppedError(fault_of(error, self._limits.seconds)) from None
        except asyncio.CancelledError:
            if self._stopped is None:
                raise
            raise _StoppedError(self._stopped) from None
        finally:
            alarm.cancel()
            self._turn.cancel()
            self._turn = None
            self._spent += time.monotonic() - began
        if self._spent > self._limits.seconds:
            raise _StoppedError(out_of_time(self._limits.seconds))

    async def _check_out(self, *, spare: bool = False) -> bool:
        """A worker of our own; whether it is one that was made ready before."""
        if self._spent >= self._limits.seconds:
            raise _StoppedError(out_of_time(self._limits.seconds))
        engine, wanted = self._engine, self._worker_wanted
        await engine.seats.take()
        ready = engine.spares.take(wanted) if spare else None
        try:
            self._worker = ready or await engine.hire(wanted, checked=self._checked)
        except BaseException:
            engine.seats.give()
            raise
        if self._phase == "over":
            await self._release()
            self._check_open()
        return ready is not None

    async def _release(self) -> None:
        if (leaving := self._leave()) is not None:
            await asyncio.shield(leaving)

    def _leave(self) -> asyncio.Task[None] | None:
        """Begin to give the worker back."""
        worker, self._worker, self._snapshot = self._worker, None, None
        return None if worker is None else self._engine.let_go(worker)

    async def _rest(self) -> None:
        """Wait for somebody; the seat is whoever's needs it more."""
        if self._engine.seats.crowded:
            await self._shelve()
        elif self._worker is not None:
            self._engine.seats.rest(id(self), self._make_room)

    async def _make_room(self) -> None:
        async with self._lock:
            if self._phase == "paused":
                await self._shelve()

    async def _shelve(self) -> None:
        from pydantic_monty import MontyError

        await self._ahead.landed()
        if self._worker is not None:
            with contextlib.suppress(MontyError, RuntimeError):  # one that ended on its way has none to give
                self._shelf = await asyncio.to_thread(self._snapshot.dump)
            await self._release()

    async def _seat(self) -> None:
        """Back from bytes. INVARIANT: a script goes on only where its calls are those we know of."""
        if not self._shelf:
            raise _StoppedError(Fault("crash", "The sandbox's worker ended while the script waited."))
        await self._check_out()
        await self._step(self._worker.load_snapshot(self._shelf, print_callback=self._console))
        self._shelf = b""
        if not self._is_ours(self._snapshot):
            raise _StoppedError(Fault("crash", "it waits for other calls than it did"))

    def _is_ours(self, snapshot: Any) -> bool:
        known = {*self._waiting, *self._held, *self._sleeps}
        if type(snapshot).__name__ == "AsyncFutureSnapshot":
            return self._still is None and known.issuperset(snapshot.pending_call_ids)
        if (
            type(snapshot).__name__ != "AsyncFunctionSnapshot"
            or snapshot.is_os_function
            or snapshot.object_id
        ):
            return False
        if self._still is None or snapshot.call_id != self._still:
            return False
        return self._names.is_call(snapshot, self._waiting.get(self._still))

    def _state(self) -> State:
        return State(
            source=self._source,
            snapshot=self._shelf,
            spent=self._spent,
            output=self._console.text,
            printed=self._console.size,
            waiting=tuple(self._waiting.values()),
            held=self._held,
            sleeps=self._sleeps,
            still=self._still,
        )

    async def _finish(self) -> None:
        self._phase = "over"
        self._engine.seats.wake(id(self))
        self._stop(_ENDED)
        await self._ahead.give_up()
        await self._release()
        self._shelf = b""
        self._engine.forget(self)
        if self._checked:
            # Now that this one is through, the next may find a worker that is ready.
            self._checked = False
            self._engine.spares.prepare(self._worker_wanted)
