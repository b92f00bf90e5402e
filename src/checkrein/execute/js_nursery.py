"""Where workers for JavaScript scripts come from and where they end: our side of `js_worker`.

The engine asks for workers here. INVARIANT: every worker that was taken is killed and buried, whatever it
does; when we end, however that is, all of them do.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
from collections import deque
from pathlib import Path
from typing import Any, cast

from checkrein.errors import CheckreinError
from checkrein.execute.js_frames import BrokenFrameError, Frame, Reader, pack

_READY_SECONDS = 30.0
# The very first start on a machine compiles the engine.
_FIRST_READY_SECONDS = 120.0
_SPARES = 2


class NurseryError(CheckreinError):
    """Raise when JavaScript cannot be run here at all."""

    code = "eval.unavailable"


class LostError(Exception):
    """Raise when a worker is gone."""


class Worker(asyncio.Protocol):
    """Our end of one worker."""

    def __init__(self, nursery: Nursery) -> None:
        self._nursery = nursery
        self._reader = Reader()
        self._transport: asyncio.Transport | None = None
        self._answer: asyncio.Future[Frame] | None = None
        self._early: Frame | None = None
        self.hear_output: Any = None
        self.pid = 0
        self.lost = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        try:
            frames = self._reader.feed(data)
        except BrokenFrameError:
            self.end()
            return
        for frame in frames:
            self._hear(frame)

    def _hear(self, frame: Frame) -> None:
        head, _ = frame
        if head.get("at") == "output" and self.hear_output is not None:
            self.hear_output(head.get("text"))
        elif self._answer is not None and not self._answer.done():
            self._answer.set_result(frame)
        else:
            self._early = frame

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.end()

    async def ask(self, head: dict[str, Any] | None, body: bytes = b"") -> Frame:
        """Say something and wait for what comes of it. Raises LostError."""
        if self.lost or self._transport is None:
            raise LostError
        self._answer = asyncio.get_running_loop().create_future()
        if head is not None:
            self._early = None
            self._transport.write(pack(head, body))
        elif self._early is not None:
            self._answer.set_result(self._early)
        return await self._answer

    def end(self) -> None:
        """Kill it, whatever it does; safe to say twice."""
        if self.lost:
            return
        self.lost = True
        if self._transport is not None:
            self._transport.abort()
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(LostError())
            # Nobody may be listening any more.
            self._answer.exception()
        self._nursery.bury(self)


class Nursery:
    """The process workers are forked from, and the workers nobody took yet."""

    def __init__(self, folder: Path, *, spares: int = _SPARES) -> None:
        self._folder, self._most_spares = folder, spares
        self._process: subprocess.Popen[bytes] | None = None
        self._control: socket.socket | None = None
        self._spares: deque[Worker] = deque()
        self._living: set[Worker] = set()
        self._filling: asyncio.Task[None] | None = None
        self._warm = False

    async def take(self) -> Worker:
        """A worker that is ready. Raises NurseryError."""
        if self._process is not None and self._process.poll() is not None:
            self._end_process()
        while self._spares:
            worker = self._spares.popleft()
            if not worker.lost:
                self._fill_soon()
                return worker
        worker = await self._fork()
        self._fill_soon()
        return worker

    async def close(self) -> None:
        if self._filling is not None:
            self._filling.cancel()
            await asyncio.gather(self._filling, return_exceptions=True)
            self._filling = None
        self._spares.clear()
        for worker in tuple(self._living):
            worker.end()
        self._end_process()
        # Connections are closed in the loop's next turn.
        await asyncio.sleep(0)

    @property
    def pid(self) -> int | None:
        return None if self._process is None else self._process.pid

    def bury(self, worker: Worker) -> None:
        """INVARIANT: only a process nobody has waited for yet is killed by its number."""
        self._living.discard(worker)
        if not worker.pid or self._control is None:
            return
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(worker.pid, signal.SIGKILL)
        self._order(b"b", worker.pid)

    # -- the process -------------------------------------------------------------------------------------

    def _order(self, letter: bytes, pid: int = 0, files: tuple[int, ...] = ()) -> bool:
        if self._control is None:
            return False
        try:
            socket.send_fds(self._control, [letter + pid.to_bytes(4, "big")], files)
        except OSError:
            self._end_process()
            return False
        return True

    async def _fork(self) -> Worker:
        for _ in range(2):
            self._start_process()
            if (worker := await self._connected()) is None:
                continue
            try:
                async with asyncio.timeout(_READY_SECONDS if self._warm else _FIRST_READY_SECONDS):
                    head, _ = await worker.ask(None)
            except LostError:
                continue
            except TimeoutError:
                # One that does not even fork is of no use to anybody.
                self._end_process()
                continue
            except BaseException:
                worker.end()
                raise
            worker.pid, self._warm = int(head["pid"]), True
            return worker
        raise NurseryError(
            "JavaScript cannot be run here: its sandbox does not start.",
            remedy="Install it with `pip install 'checkrein[eval]'`.",
        )

    async def _connected(self) -> Worker | None:
        ours, theirs = socket.socketpair()
        ours.setblocking(False)
        with theirs:
            if not self._order(b"w", 0, (theirs.fileno(),)):
                ours.close()
                return None
        loop = asyncio.get_running_loop()
        _, worker = await loop.create_unix_connection(lambda: Worker(self), sock=ours)
        self._living.add(worker)
        return worker

    def _start_process(self) -> None:
        if self._process is not None and self._process.poll() is None:
            return
        self._end_process()
        ours, theirs = socket.socketpair()
        command = [
            sys.executable,
            "-I",
            "-m",
            "checkrein.execute.js_worker",
            str(theirs.fileno()),
            str(self._folder),
        ]
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - our own program
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(),),
                env={"LANG": "C.UTF-8"},
                cwd="/",
                start_new_session=True,
            )
        ours.setblocking(False)
        self._control, self._warm = ours, False

    def _end_process(self) -> None:
        process, self._process = self._process, None
        control, self._control = self._control, None
        # They end with the process they came from, though we may not have heard of it yet.
        self._spares.clear()
        if process is not None:
            # Before it is waited for: until then the group is certainly ours.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        if control is not None:
            control.close()

    def _fill_soon(self) -> None:
        if self._filling is None or self._filling.done():
            self._filling = asyncio.get_running_loop().create_task(self._fill())

    async def _fill(self) -> None:
        with contextlib.suppress(NurseryError):
            while len(self._spares) < self._most_spares:
                self._spares.append(await self._fork())
