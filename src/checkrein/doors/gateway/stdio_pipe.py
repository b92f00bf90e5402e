"""A server that is a process of ours: messages are lines of its input and output.

INVARIANT: whatever ends the pipe, its whole process group is gone afterwards.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, cast

from checkrein.doors.gateway import leftovers
from checkrein.doors.gateway.messages import LARGEST, MalformedError, Message, decode, encode
from checkrein.doors.gateway.pipes import MOST_UNSENT, Gone, Hear, Over, PipeError
from checkrein.errors import StoreError

if TYPE_CHECKING:
    from checkrein.settings.servers import ServerSpec

# What a server is given of our environment; the rest is none of its business.
_PASSED_ON = (
    *("HOME", "LANG", "LC_ALL", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"),
    *("XDG_CACHE_HOME", "XDG_CONFIG_DIRS", "XDG_CONFIG_HOME", "XDG_DATA_DIRS", "XDG_DATA_HOME"),
    *("XDG_RUNTIME_DIR", "XDG_STATE_HOME"),
)
_MOST_STRAY = 100
_TAIL_LINES, _TAIL_BYTES = 50, 500
# A server that reads the end of its input may leave by itself; then it is told to, then made to.
_LEAVE_SECONDS, _TERM_SECONDS, _KILL_SECONDS = 0.2, 2.0, 2.0
# How long what is left of the output may take to arrive after the process, and the other way round.
_DRAIN_SECONDS = 0.5


class StdioPipe(asyncio.SubprocessProtocol):
    """One server process."""

    fault: PipeError | None = None

    def __init__(self, spec: ServerSpec, hear: Hear, over: Over) -> None:
        self._spec, self._hear, self._over = spec, hear, over
        self._transport: asyncio.SubprocessTransport | None = None
        self._input: asyncio.WriteTransport | None = None
        self._line: list[bytes] = []
        self._line_size = 0
        self._stray = 0
        self._tail: deque[bytes] = deque(maxlen=_TAIL_LINES)
        self._tail_part = b""
        self._note: Path | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None
        self._exited = asyncio.Event()
        self._lost = asyncio.Event()
        self.pid: int | None = None
        self.ended = ""

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        leftovers_once()
        folder = _folder(self._spec)
        try:
            transport, _ = await loop.subprocess_exec(
                lambda: self,
                self._spec.command,
                *self._spec.args,
                env=environment(self._spec),
                cwd=folder,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise _not_started(self._spec, error) from error
        self._transport = transport
        self._input = cast("asyncio.WriteTransport", transport.get_pipe_transport(0))
        # What waits is counted by `send`; nobody is ever paused.
        self._input.set_write_buffer_limits(high=MOST_UNSENT)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # As early as we know of the process, so that nothing can come between it and its watcher.
        self._transport = cast("asyncio.SubprocessTransport", transport)
        self.pid = self._transport.get_pid()
        leftovers.watcher.add(self.pid)
        try:
            self._note = leftovers.note(self._spec.name, self.pid)
        except (OSError, StoreError):
            # The watcher knows of it; a full disk stops no server.
            self._note = None

    def send(self, message: Message) -> None:
        line = self._input
        if line is None or self.ended:
            raise Gone(self.ended or "not open")
        if line.get_write_buffer_size() > MOST_UNSENT:
            self._end("it does not read what it is sent")
            raise Gone(self.ended)
        line.write(encode(message) + b"\n")

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self._note_tail(data)
            return
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
            message = decode(line)
        except MalformedError as error:
            self._stray += 1
            self._tail.append(b"not a message (%s): " % error.message.encode() + line[:_TAIL_BYTES])
            if len(line) > LARGEST:
                self._end(f"it sent a message of more than {LARGEST:,} bytes")
            elif self._stray >= _MOST_STRAY:
                self._end(f"it sent {_MOST_STRAY} lines that are no messages")
            return
        self._hear(message)

    def _note_tail(self, data: bytes) -> None:
        # Only the last lines of a flood are looked at.
        *lines, rest = (self._tail_part + data).rsplit(b"\n", _TAIL_LINES + 1)
        self._tail.extend(line[:_TAIL_BYTES] for line in lines[-_TAIL_LINES:])
        self._tail_part = rest[:_TAIL_BYTES]

    @property
    def tail(self) -> tuple[str, ...]:
        lines = [*self._tail, self._tail_part] if self._tail_part else [*self._tail]
        return tuple(_plain(line) for line in lines[-_TAIL_LINES:])

    def process_exited(self) -> None:
        self._exited.set()
        # Whoever it started and left behind goes too; that also ends their hold on its output.
        self._signal(signal.SIGKILL)
        self._finish_after(_DRAIN_SECONDS)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:  # noqa: ARG002
        if fd == 1:
            self._finish_after(_DRAIN_SECONDS)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._lost.set()
        self._end(self._how())

    def _finish_after(self, seconds: float) -> None:
        if self._timer is None and not self.ended:
            self._timer = asyncio.get_running_loop().call_later(seconds, lambda: self._end(self._how()))

    def _how(self) -> str:
        """How the process ended, in words."""
        code = None if self._transport is None else self._transport.get_returncode()
        if code is None:
            return "it closed its output"
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
        if self._transport is None:
            self.ended = self.ended or "closed"
            return
        self._end("closed")
        # Whoever waits may be cancelled; the clearing goes on.
        await asyncio.shield(self._begin_closing())

    async def _clear(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._input is not None:
            self._input.close()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._exited.wait(), _LEAVE_SECONDS)
        if not await self._is_gone_after(signal.SIGTERM, _TERM_SECONDS):
            await self._is_gone_after(signal.SIGKILL, _KILL_SECONDS)
        if self._transport is not None:
            # Somebody who left the group may hold the other ends; we let go of ours.
            self._transport.close()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._lost.wait(), _KILL_SECONDS)
        if self.pid is not None:
            leftovers.watcher.remove(self.pid)
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


def _plain(line: bytes) -> str:
    """A line as it may be shown: what could move a cursor or turn text around is left out."""
    return "".join(char for char in line.decode("utf-8", "replace") if char.isprintable() or char == "\t")
