"""JavaScript and TypeScript scripts, each in a sandbox in a process of its own that can do nothing but ask.

The eval door opens sessions here. A call leaves the script as JSON text written once inside the sandbox and
comes back as an answer; a script that waits can be bytes. Nothing of the script ever runs in this process.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast, get_args

import msgspec

from checkrein.call import canonical, is_deep
from checkrein.errors import InputError
from checkrein.execute.js_nursery import LostError, Nursery, NurseryError, Worker
from checkrein.execute.js_seat import Memory, Seat
from checkrein.execute.js_state import State, damaged, pack, unpack
from checkrein.execute.sandbox import (
    DEEPEST_VALUE,
    LARGEST_VALUE,
    Answer,
    Ended,
    Failed,
    FailureKind,
    Limits,
    Paused,
    Step,
    Tool,
    Wanted,
    restored,
)
from checkrein.execute.seats import Seats
from checkrein.settings.sources import state_dir

# Scripts that hold a process at the same time; more wait for one to be free, or for one that waits itself.
_MOST_WORKERS = 64
# The worker stops the script at its limit; we stop the worker a little later.
_GRACE = 0.4
# Whoever computes for long makes way for whoever does not.
_LONG_SECONDS, _LONG_PRIORITY = 0.5, 10
_LONGEST_SLEEP = 300.0
_LONGEST_ERROR = 16 << 10
_LARGEST_PIECE = 2 << 20


class JavaScriptEngine:
    """Sessions, and the nursery their workers come from, which is started at the first script."""

    def __init__(self, folder: Path | None = None, *, workers: int = _MOST_WORKERS) -> None:
        self.nursery = Nursery(folder or state_dir() / "execute")
        self.seats, self.kept = Seats(workers), 0
        self._sessions: set[JavaScriptSession] = set()

    async def open(self, tools: Sequence[Tool], limits: Limits, *, stubs: str = "") -> JavaScriptSession:  # noqa: ARG002
        session = JavaScriptSession(self, tools, limits)
        self._sessions.add(session)
        return session

    async def load(self, dumped: bytes, tools: Sequence[Tool], limits: Limits) -> JavaScriptSession:
        state = unpack(dumped)
        return await restored(await self.open(tools, limits), state)

    async def close(self) -> None:
        for session in tuple(self._sessions):
            await session.close()
        await self.nursery.close()

    async def take(self) -> Worker:
        await self.seats.take()
        try:
            return await self.nursery.take()
        except BaseException:
            self.seats.give()
            raise

    def give(self, worker: Worker) -> None:
        worker.end()
        self.seats.give()

    def forget(self, session: JavaScriptSession) -> None:
        self._sessions.discard(session)


class JavaScriptSession:
    """One script: what it waits for, what it printed, how long it computed."""

    def __init__(self, engine: JavaScriptEngine, tools: Sequence[Tool], limits: Limits) -> None:
        self._engine, self._limits = engine, limits
        self._names = {tool.name for tool in tools}
        self._seat = Seat(engine)
        self._seat.hear_output = self._hear
        self._output: list[str] = []
        self._output_size = 0
        self._waiting: dict[int, Wanted] = {}
        self._last = 0
        self._spent = self._slept = 0.0
        self._phase = "new"

    async def start(self, source: str) -> Step:
        if self._phase != "new":
            raise InputError("This script was started already.")
        self._phase = "running"
        if (wrong := self._unreadable(source)) is not None:
            await self.close()
            return wrong
        return await self._steps("start", {"source": source, "tools": sorted(self._names), **self._bounds()})

    async def resume(self, answers: Mapping[int, Answer]) -> Step:
        if self._phase != "paused":
            raise InputError("This script does not wait for answers.")
        if unknown := sorted(set(answers) - set(self._waiting)):
            raise InputError(f"Nobody waits for call {unknown[0]}.")
        self._phase = "running"
        settled = [_settled(number, self._waiting.pop(number).name, answers[number]) for number in answers]
        *first, last = _in_pieces(settled)
        for piece in first:
            step = await self._steps("answer", {"answers": piece})
            if not isinstance(step, Paused):
                return step
        return await self._steps("answer", {"answers": last})

    async def dump(self) -> bytes:
        if self._phase != "paused":
            raise InputError("Only a script that waits can be put away.")
        try:
            await self._seat.back()
            memory = await self._seat.frozen()
            state = State(
                meta=memory.meta,
                image=memory.image,
                size=memory.size,
                spent=self._spent,
                slept=self._slept,
                output=self._text,
                waiting=tuple(self._waiting.values()),
            )
        except LostError:
            raise damaged("This script was lost while it waited.") from None
        finally:
            await self.close()
        return pack(state)

    async def close(self) -> None:
        self._phase = "over"
        self._seat.leave()
        self._engine.forget(self)

    async def restore(self, state: State) -> None:
        """Take up a dumped script. Raises DamagedError."""
        self._spent, self._slept = state.spent, state.slept
        self._hear(state.output)
        self._waiting = {wanted.id: wanted for wanted in state.waiting}
        self._last = max(self._waiting, default=0)
        if state.size > self._limits.memory * 2 + (16 << 20):
            raise damaged("This suspended script needs more memory than it may have.")
        try:
            await self._seat.load(Memory(state.meta, state.image, state.size), self._bounds())
        except LostError:
            raise damaged("This suspended script is damaged.") from None
        self._phase = "paused"
        self._seat.rest()

    # -- running -----------------------------------------------------------------------------------------

    def _unreadable(self, source: str) -> Failed | None:
        try:
            size = len(source.encode())
        except UnicodeEncodeError:
            return Failed("syntax", "The script is not text.")
        if size > self._limits.source:
            return Failed("syntax", f"The script is longer than {self._limits.source} bytes.")
        return None

    def _bounds(self) -> dict[str, Any]:
        limits = self._limits
        return {
            "memory": limits.memory,
            "output": limits.output,
            "result": limits.result,
            "seconds": max(0.0, limits.seconds - self._spent),
        }

    @property
    def _worker(self) -> Worker | None:
        return self._seat.worker

    async def _steps(self, what: str, said: dict[str, Any]) -> Step:
        """From one thing the script does to the next, until it waits for somebody or is through."""
        try:
            if what == "start":
                await self._seat.take()
            else:
                await self._seat.back(self._bounds())
            head = await self._compute({"do": what, **said})
            while head.get("at") == "sleeping":
                if (stopped := await self._sleep(head["milliseconds"] / 1000)) is not None:
                    return await self._over(stopped)
                head = await self._compute({"do": "wake"})
            step = self._read(head)
        except TimeoutError:
            step = self._failed(
                "time", f"The script computed for more than {self._limits.seconds:g} seconds."
            )
        except LostError:
            step = self._failed("crash", "The script's process ended under it.")
        except (KeyError, TypeError, ValueError, msgspec.MsgspecError):
            step = self._failed("crash", "The script's process said something that makes no sense.")
        except NurseryError as error:
            step = self._failed("unsupported", str(error))
        except BaseException:
            await self.close()
            raise
        if not isinstance(step, Paused):
            return await self._over(step)
        if self._phase == "over":
            return self._failed("crash", "The script was ended.")
        self._phase = "paused"
        self._seat.rest()
        return step

    async def _over(self, step: Step) -> Step:
        await self.close()
        return step

    async def _compute(self, said: dict[str, Any]) -> dict[str, Any]:
        """One turn of the script, within what is left of its time. Raises TimeoutError, LostError."""
        worker = self._worker
        if worker is None:
            raise LostError
        left = self._limits.seconds - self._spent
        if left <= 0:
            raise TimeoutError
        loop = asyncio.get_running_loop()
        demote = loop.call_later(_LONG_SECONDS, _demote, worker)
        began = time.monotonic()
        try:
            async with asyncio.timeout(left + _GRACE):
                head, _ = await worker.ask({**said, "seconds": left})
        finally:
            demote.cancel()
            self._spent += time.monotonic() - began
        return head

    async def _sleep(self, seconds: float) -> Failed | None:
        """The script's own timers cost it no computing time, but not for ever."""
        self._slept += seconds
        if self._slept > _LONGEST_SLEEP:
            return self._failed(
                "time", f"The script's timers wait for more than {_LONGEST_SLEEP:g} seconds in all."
            )
        if seconds > 0:
            self._seat.rest()
            await asyncio.sleep(seconds)
            await self._seat.back(self._bounds())
        return None

    # -- what the worker says, which is a stranger's word ------------------------------------------------

    def _read(self, head: dict[str, Any]) -> Step:
        if head["at"] == "paused":
            for wanted in head["wanted"]:
                self._want(wanted)
            return Paused(tuple(self._waiting[number] for number in sorted(self._waiting)), self._text)
        if head["at"] == "ended":
            return self._ended(head["result"])
        if head["at"] == "failed" and head["kind"] in get_args(FailureKind):
            if head["kind"] == "time":
                raise TimeoutError
            line = head["line"] if isinstance(head["line"], int) else 0
            return self._failed(
                cast("FailureKind", head["kind"]), str(head["message"])[:_LONGEST_ERROR], line
            )
        raise ValueError(head["at"])

    def _want(self, said: dict[str, Any]) -> None:
        """INVARIANT: what is asked for is a tool that was offered, under a number of its own, as JSON."""
        text = said["arguments"]
        if len(text) > LARGEST_VALUE or said["name"] not in self._names or said["id"] <= self._last:
            raise ValueError("a call that was not offered")
        arguments = msgspec.json.decode(text, type=dict[str, Any])
        if is_deep(arguments, DEEPEST_VALUE):
            raise ValueError("a call nested too deeply")
        wanted = msgspec.convert({**said, "arguments": arguments}, Wanted)
        self._last = wanted.id
        self._waiting[wanted.id] = wanted

    def _ended(self, text: str) -> Step:
        if len(text.encode()) > self._limits.result:
            return self._failed("output", f"The result is larger than {self._limits.result} bytes as JSON.")
        value = msgspec.json.decode(text)
        if is_deep(value, DEEPEST_VALUE):
            return self._failed("output", f"The result is nested deeper than {DEEPEST_VALUE} levels.")
        return Ended(value, self._text)

    def _failed(self, kind: FailureKind, message: str, line: int = 0) -> Failed:
        return Failed(kind, message, line, self._text)

    def _hear(self, text: Any) -> None:
        # The worker cuts; a worker that does not is not believed.
        if isinstance(text, str) and self._output_size <= self._limits.output + 100:
            self._output.append(text)
            self._output_size += len(text)

    @property
    def _text(self) -> str:
        return "".join(self._output)


def _settled(number: int, name: str, answer: Answer) -> dict[str, Any]:
    if answer.denied:
        said = answer.said[:_LONGEST_ERROR] or None
        return {"id": number, "kind": "denied", "text": answer.denied, "value": said}
    if len(canonical(answer.value)) > LARGEST_VALUE or is_deep(answer.value, DEEPEST_VALUE):
        text = f"{name}: its result is larger or deeper than a script may be given."
        return {"id": number, "kind": "error", "text": text, "value": None}
    kind = "error" if answer.error else "value"
    return {"id": number, "kind": kind, "text": answer.error[:_LONGEST_ERROR], "value": answer.value}


def _in_pieces(settled: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Answers in portions a worker can take in; together they may be more than that."""
    pieces: list[list[dict[str, Any]]] = [[]]
    size = 0
    for each in settled:
        length = len(canonical(each["value"]))
        if size + length > _LARGEST_PIECE and pieces[-1]:
            pieces.append([])
            size = 0
        pieces[-1].append(each)
        size += length
    return pieces


def _demote(worker: Worker) -> None:
    try:
        os.setpriority(os.PRIO_PROCESS, worker.pid, _LONG_PRIORITY)
    except OSError:
        # It ended just now.
        return
