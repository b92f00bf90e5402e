"""A server that is a process of ours: messages are lines of its input and output.

INVARIANT: whatever ends the pipe, its whole process group is gone afterwards.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from checkrein.doors.gateway import leftovers
from checkrein.doors.gateway.messages import LARGEST, MalformedError, Message, decode_from_server, encode
from checkrein.doors.gateway.pipes import MOST_UNSENT, Gone, Hear, Over, PipeError
from checkrein.doors.gateway.tail import MOST_BYTES, Tail
from checkrein.errors import StoreError
from checkrein.own_loop import handed_over

if TYPE_CHECKING:
    from checkrein.settings.servers import ServerSpec

# What a server is given of our environment; the rest is none of its business.
_PASSED_ON = (
    *("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"),
    *("XDG_CACHE_HOME", "XDG_CONFIG_DIRS", "XDG_CONFIG_HOME", "XDG_DATA_DIRS", "XDG_DATA_HOME"),
    *("XDG_RUNTIME_DIR", "XDG_STATE_HOME"),
)
_MOST_STRAY = 100
# A server that reads the end of its input may leave by itself; then it is told to, then made to.
_LEAVE_SECONDS, _TERM_SECONDS, _KILL_SECONDS = 0.2, 2.0, 2.0
# How long what is left of the output may take to arrive after the process, and the other way round.
_DRAIN_STEPS, _DRAIN_SECONDS = 10, 0.05


class _End(asyncio.Protocol):
    """Our end of one of the process's three pipes."""

    def __init__(self, heard: Callable[[bytes], None], lost: Callable[[_End], None]) -> None:
        self._heard, self._lost = heard, lost
        self.transport: asyncio.BaseTransport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._heard(data)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._lost(self)


class StdioPipe:
    """One server process."""

    fault: PipeError | None = None

    def __init__(self, spec: ServerSpec, hear: Hear, over: Over) -> None:
        self._spec, self._hear, self._over = spec, hear, over
        self._process: subprocess.Popen[bytes] | None = None
        self._input: asyncio.WriteTransport | None = None
        self._ends: set[_End] = set()
        self._unsent: list[bytes] = []
        self._unsent_size, self._collecting = 0, False
        self._line: list[bytes] = []
        self._line_size = 0
        self._stray = 0
        self._tail = Tail()
        self._note: Path | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._connecting: asyncio.Task[None] | None = None
        self._closing: asyncio.Task[None] | None = None
        self._exited = asyncio.Event()
        self._lost = asyncio.Event()
        self.pid: int | None = None
        self.ended = ""

    async def open(self) -> None:
        leftovers_once()
        try:
            process = _started(self._spec)
        except (OSError, ValueError) as error:
            raise _not_started(self._spec, error) from error
        self._process, self.pid = process, process.pid
        # INVARIANT: all three ends are waited for from the start: one that ends at once is heard out too.
        ends = [self._end_for(heard) for heard in (_nothing, self._read_some, self._tail.feed)]
        try:
            self._watch(process)
            # Half a connection is worse than none: it is finished even when nobody waits for it any more.
            self._connecting = asyncio.get_running_loop().create_task(self._connect(process, *ends))
            await asyncio.shield(self._connecting)
        except BaseException:
            await self.close()
            raise

    def _watch(self, process: subprocess.Popen[bytes]) -> None:
        """See to it, before anything else, that the process ends when we do and that we hear when it ends."""
        leftovers.watcher.add(process.pid)
        try:
            self._note = leftovers.note(self._spec.name, process.pid)
        except (OSError, StoreError):
            # The watcher knows of it; a full disk stops no server.
            self._note = None
        loop = asyncio.get_running_loop()

        def wait() -> None:
            process.wait()
            # A loop that was closed has nobody left to tell.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(self._has_exited)

        # Works on every kind of loop, in every thread, without a say in how signals are handled.
        threading.Thread(target=wait, name=f"waits for {self._spec.name}", daemon=True).start()

    async def _connect(
        self, process: subprocess.Popen[bytes], given: _End, output: _End, errors: _End
    ) -> None:
        loop = asyncio.get_running_loop()
        assert process.stdin and process.stdout and process.stderr  # noqa: S101 - we asked for all three
        await loop.connect_read_pipe(lambda: output, handed_over(process.stdout, loop))
        await loop.connect_read_pipe(lambda: errors, handed_over(process.stderr, loop))
        self._input, _ = await loop.connect_write_pipe(lambda: given, handed_over(process.stdin, loop))
        # A process that ended at once closed it already; that is told by its end.
        with contextlib.suppress(RuntimeError):
            # What waits is counted by `send`; nobody is ever paused.
            self._input.set_write_buffer_limits(high=MOST_UNSENT)

    def _end_for(self, heard: Callable[[bytes], None]) -> _End:
        made = _End(heard, self._lose)
        self._ends.add(made)
        return made

    def send(self, message: Message) -> None:
        line = self._input
        if line is None or self.ended:
            raise Gone(self.ended or "not open")
        if line.is_closing():
            # It ended a moment ago; whoever waits for an answer hears how.
            return
        if line.get_write_buffer_size() + self._unsent_size > MOST_UNSENT:
            self._end("it does not read what it is sent")
            raise Gone(self.ended)
        data = encode(message)
        if not self._collecting:
            # The first leaves at once; what others send in the same moment leaves together.
            self._collecting = True
            asyncio.get_running_loop().call_soon(self._flush)
            line.write(data + b"\n")
            return
        self._unsent += (data, b"\n")
        self._unsent_size += len(data) + 1

    def _flush(self) -> None:
        self._collecting = False
        unsent, self._unsent, self._unsent_size = self._unsent, [], 0
        if self._input is not None and not self.ended and not self._input.is_closing() and unsent:
            self._input.write(b"".join(unsent))

    def _read_some(self, data: bytes) -> None:
        start = 0
        while not self.ended and (end := data.find(b"\n", start)) >= 0:
            line, start = data[start:end], end + 1
            if self._line:
                line = b"".join((*self._line, line))
                self._line, self._line_size = [], 0
            if line and not line.isspace():
                self._read(line)
        if start < len(data) and not self.ended:
            self._line.append(data[start:])
            self._line_size += len(data) - start
            if self._line_size > LARGEST:
                self._end(f"it sent a message of more than {LARGEST:,} bytes")

    def _read(self, line: bytes) -> None:
        try:
            message = decode_from_server(line, self._respond)
        except MalformedError as error:
            self._stray += 1
            self._tail.add(b"not a message (%s): " % error.message.encode() + line[:MOST_BYTES])
            if len(line) > LARGEST:
                self._end(f"it sent a message of more than {LARGEST:,} bytes")
            elif self._stray >= _MOST_STRAY:
                self._end(f"it sent {_MOST_STRAY} lines that are no messages")
            return
        if message is None:
            self._tail.add(b"a message that cannot be read: " + line[:MOST_BYTES])
        else:
            self._hear(message)

    def _respond(self, message: Message) -> None:
        with contextlib.suppress(Gone):
            self.send(message)

    @property
    def tail(self) -> tuple[str, ...]:
        return self._tail.lines

    def _has_exited(self) -> None:
        self._exited.set()
        # Whoever it started and left behind goes too; that also ends their hold on its output.
        self._signal(signal.SIGKILL)
        for end in list(self._ends):
            if end.transport is self._input is not None:
                self._let_go(end)
        self._finish_soon()

    def _let_go(self, end: _End) -> None:
        if end.transport is None:
            self._lose(end)
        elif end.transport is self._input:
            # What was not sent yet is not waited for; one that is on its way out is left to it.
            if not self._input.is_closing() or self._input.get_write_buffer_size():
                self._input.abort()
        else:
            end.transport.close()

    def _lose(self, end: _End) -> None:
        self._ends.discard(end)
        if not self._ends:
            self._lost.set()
        self._finish_soon()

    def _finish_soon(self) -> None:
        """The end is near: what is left of the output, or the process itself, has a moment to come."""
        if not self._ends and self._exited.is_set():
            self._end(self._how())
        elif self._timer is None and not self.ended:
            self._wait_a_little(_DRAIN_STEPS)

    def _wait_a_little(self, steps: int) -> None:
        # In steps, because a loop that was held up for as long has not looked for the last words yet.
        if not steps:
            self._end(self._how())
        elif not self.ended:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(_DRAIN_SECONDS, self._wait_a_little, steps - 1)

    def _how(self) -> str:
        """How the process ended, in words."""
        code = self._process.returncode if self._process is not None and self._exited.is_set() else None
        if code is None:
            return "it closed its input or output"
        return f"exit status {code}" if code >= 0 else f"signal {-code}"

    def _end(self, why: str) -> None:
        """Say that it is over, once, and see that everything of it goes."""
        if self.ended:
            return
        self.ended = why
        self._line.clear()
        self._begin_closing()
        self._over(why)

    def _begin_closing(self) -> asyncio.Task[None]:
        if self._closing is None:
            self._closing = asyncio.get_running_loop().create_task(self._clear())
        return self._closing

    async def close(self) -> None:
        if self._process is None:
            self.ended = self.ended or "closed"
            return
        self._end("closed")
        # Whoever waits may be cancelled; the clearing goes on.
        await asyncio.shield(self._begin_closing())

    async def _clear(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._connecting is not None:
            await asyncio.wait([self._connecting])
        if self._input is not None:
            self._input.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LEAVE_SECONDS):
                await self._exited.wait()
        if not await self._is_gone_after(signal.SIGTERM, _TERM_SECONDS):
            await self._is_gone_after(signal.SIGKILL, _KILL_SECONDS)
        # Somebody who left the group may hold the other ends; we let go of ours.
        for end in list(self._ends):
            self._let_go(end)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_KILL_SECONDS):
                await self._lost.wait()
        if (process := self._process) is not None:
            # Buried already, unless nobody could be found to wait for it.
            process.poll()
            leftovers.watcher.remove(process.pid)
            for each in (process.stdin, process.stdout, process.stderr):
                # Closed already, unless it never was connected.
                if each is not None:
                    each.close()
        if self._note is not None:
            self._note.unlink(missing_ok=True)

    async def _is_gone_after(self, number: int, seconds: float) -> bool:
        self._signal(number)
        loop = asyncio.get_running_loop()
        until, pause = loop.time() + seconds, 0.005
        while not self._exited.is_set() or leftovers.is_living(self.pid or 0):
            if loop.time() >= until:
                return False
            await asyncio.sleep(pause)
            pause = min(pause * 2, 0.1)
        return True

    def _signal(self, number: int) -> None:
        if self.pid:
            leftovers.signal_group(self.pid, number)


def _nothing(*_: object) -> None:
    pass


def _started(spec: ServerSpec) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - what a person wrote into the servers file
        [spec.command, *spec.args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        env=environment(spec),
        cwd=_folder(spec),
        start_new_session=True,
    )


_swept = False


def leftovers_once() -> None:
    """What an earlier run left is ended before the first server of this one starts."""
    global _swept  # noqa: PLW0603 - once in the life of the process
    if not _swept:
        _swept = True
        leftovers.sweep()


def environment(spec: ServerSpec) -> dict[str, str]:
    """What the server is started with."""
    names = (*_PASSED_ON, *spec.inherit)
    return {**{name: os.environ[name] for name in names if name in os.environ}, **spec.env}


def _folder(spec: ServerSpec) -> str:
    # Not ours: where we run depends on who came first.
    folder = Path(spec.cwd or "~").expanduser()
    if not folder.is_dir():
        raise PipeError(
            f"{spec.name}: there is no folder {folder}.",
            remedy="Change `cwd` in the servers file.",
            lasting=True,
        )
    return str(folder)


def _not_started(spec: ServerSpec, error: OSError | ValueError) -> PipeError:
    if isinstance(error, FileNotFoundError):
        return PipeError(
            f"{spec.name}: there is no program {spec.command}.",
            remedy="Install it, or write its whole path into the servers file.",
            lasting=True,
        )
    if isinstance(error, PermissionError):
        return PipeError(
            f"{spec.name}: {spec.command} may not be run.", remedy="Make it executable.", lasting=True
        )
    said = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return PipeError(f"{spec.name}: {spec.command} did not start: {said}.", remedy="See `checkrein servers`.")
