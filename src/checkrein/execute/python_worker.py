"""The processes Python scripts run in: started, spoken with, and ended from outside.

The engine takes workers here. A worker has one script at a time, no environment and nothing but two pipes;
INVARIANT: every worker that was started is ended and buried, whatever it does.
"""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from checkrein.errors import CheckreinError
from checkrein.execute.python_wire import BrokenFrameError, Reader, frame
from checkrein.execute.python_words import RESET, Done, Event, event, printed
from checkrein.own_loop import handed_over

_PACKAGE, _PROGRAM = "pydantic-monty-runtime", "monty"
# What takes longer to read than a moment is read beside the loop.
_LONG = 64 << 10
_BURIAL_SECONDS, _FORGETTING_SECONDS = 5.0, 10.0

Hear = Callable[[str], None]


class NoInterpreterError(CheckreinError):
    """Raise when Python scripts cannot run on this machine."""

    code = "run.no_interpreter"


class LostError(Exception):
    """Raise when a worker is gone."""


def program() -> Path:
    """The interpreter, exactly as its package installed it; raises NoInterpreterError."""
    try:
        package = metadata.distribution(_PACKAGE)
    except metadata.PackageNotFoundError:
        raise _missing("its interpreter is not installed") from None
    # INVARIANT: it is not looked for anywhere else: whatever is first on a path may be anybody's.
    for each in package.files or ():
        found = Path(str(package.locate_file(each))).resolve()
        if each.name == _PROGRAM and found.is_file():
            return found
    raise _missing(f"{_PACKAGE} has no program {_PROGRAM}")


def _missing(why: str) -> NoInterpreterError:
    return NoInterpreterError(
        f"Python scripts cannot run here: {why}.",
        remedy="Install the interpreter with `pip install 'checkrein[eval]'`.",
    )


class Worker(asyncio.Protocol):
    """Our end of one process. `hear` is called with what its script prints."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self.pid = process.pid
        self._reader = Reader()
        self._input: asyncio.WriteTransport | None = None
        self._output: asyncio.BaseTransport | None = None
        self._turn: asyncio.Future[bytes] | None = None
        self.hear: Hear = _nobody
        self.lost = False
        # How many scripts it has had.
        self.scripts = 0

    async def connect(self) -> None:
        """Both its pipes are ours."""
        process, loop = self._process, asyncio.get_running_loop()
        assert process.stdin and process.stdout  # noqa: S101 - we asked for both
        self._output, _ = await loop.connect_read_pipe(lambda: self, handed_over(process.stdout, loop))
        self._input, _ = await loop.connect_write_pipe(asyncio.BaseProtocol, handed_over(process.stdin, loop))

    def data_received(self, data: bytes) -> None:
        try:
            for each in self._reader.feed(data):
                self._heard(each)
        except BrokenFrameError:
            self.end()

    def _heard(self, data: bytes) -> None:
        if (said := printed(data)) is not None:
            for each in said:
                self.hear(each)
        elif self._turn is not None and not self._turn.done():
            self._turn.set_result(data)
        else:
            # Nobody asked it anything.
            self.end()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self.end()

    @property
    def busy(self) -> bool:
        """Whether it is in a turn."""
        return self._turn is not None and not self._turn.done()

    async def ask(self, request: bytes) -> Event:
        """One turn, and what came of it. Raises LostError."""
        if self.lost or self._input is None or self.busy:
            raise LostError
        self._turn = asyncio.get_running_loop().create_future()
        self._input.write(frame(request))
        try:
            data = await self._turn
            return event(data) if len(data) < _LONG else await asyncio.to_thread(event, data)
        except BrokenFrameError:
            self.end()
            raise LostError from None
        except BaseException:
            # A turn that is given up ends with its worker.
            self.end()
            raise

    def end(self) -> None:
        """Kill it, whatever it does; safe to say twice."""
        if self.lost:
            return
        self.lost = True
        # INVARIANT: until it is waited for, its number is nobody else's.
        self._process.kill()
        if self._turn is not None and not self._turn.done():
            self._turn.set_exception(LostError())
            # Nobody may be listening any more.
            self._turn.exception()
        # What was not sent yet is not waited for; one that found nobody reading is closed already.
        if self._input is not None and (not self._input.is_closing() or self._input.get_write_buffer_size()):
            self._input.abort()
        if self._output is not None:
            self._output.close()

    async def bury(self) -> None:
        """End it and wait until it is gone."""
        self.end()
        with contextlib.suppress(subprocess.TimeoutExpired):
            await asyncio.to_thread(self._process.wait, _BURIAL_SECONDS)
        for each in (self._process.stdin, self._process.stdout):
            # Closed already, unless it never was connected.
            if each is not None:
                each.close()

    async def forget(self) -> bool:
        """Nothing of its script is left in it; whether it can have another."""
        self.hear = _nobody
        if self.lost or self.busy:
            return False
        try:
            async with asyncio.timeout(_FORGETTING_SECONDS):
                return isinstance(await self.ask(RESET), Done)
        except (LostError, TimeoutError):
            return False


def _nobody(_text: str) -> None:
    """Nothing is printed between scripts."""


async def started(path: Path) -> Worker:
    """A process that waits for a script; raises NoInterpreterError."""
    starting = asyncio.get_running_loop().run_in_executor(None, _start, path)
    try:
        worker = Worker(await asyncio.shield(starting))
    except OSError as error:
        raise _missing(str(error)) from None
    except BaseException:
        starting.add_done_callback(_unwanted)
        raise
    try:
        await worker.connect()
    except BaseException:
        await asyncio.shield(worker.bury())
        raise
    return worker


def _start(path: Path) -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603 - the interpreter we depend on
        [str(path), "subprocess"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
        env={},
        cwd="/",
        start_new_session=True,
    )


def _unwanted(starting: asyncio.Future[subprocess.Popen[bytes]]) -> None:
    """One that comes when nobody waits for it any more."""
    if not starting.cancelled() and starting.exception() is None:
        with starting.result() as process:
            process.kill()
