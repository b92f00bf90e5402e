"""The processes JavaScript scripts run in: one that is ready, and forks; and its forks, one script each.

Started by the nursery as a program of its own, with a socket to hear from. The first process runs no script;
a worker runs one, is given no more than it needs, and is ended from outside.
"""

from __future__ import annotations

import contextlib
import gc
import os
import resource
import select
import signal
import socket
import sys
import time
import zlib
from pathlib import Path
from typing import Any

from checkrein.execute import js_modules
from checkrein.execute.js_frames import BrokenFrameError, Frame, Reader, pack
from checkrein.execute.js_machine import Machine
from checkrein.execute.js_source import StopError

# What is said on the control socket: an order of one letter, and a process where one is meant.
ORDER = 5
# Output is sent on when there is this much of it, or when it is this old.
_PIECE, _PIECE_SECONDS = 8 << 10, 0.05
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS = 1, 38
# Beyond the script's own memory: the snapshot of it, and the interpreter around it.
_SPARE_MEMORY = 96 << 20


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    js_modules.prepare(Path(sys.argv[2]))
    _use_everything_once()
    machine = Machine()
    gc.collect()
    gc.freeze()
    _fork_on_demand(control, machine)


def _use_everything_once() -> None:
    """So that forks share what is made at first use, and need not be allowed to make it."""
    with contextlib.suppress(ImportError):
        from checkrein.execute import yaml_text

        yaml_text.parse("a: 1")
    machine = Machine()
    machine.limit(memory=1 << 20, output=0, result=0)
    machine.start("const a: number = 1")


def _fork_on_demand(control: socket.socket, machine: Machine) -> None:
    """Every worker starts as a copy of this process, its sandbox included, which nobody has used."""
    dead: set[int] = set()
    while True:
        readable, _, _ = select.select([control], [], [], 0.02 if dead else None)
        dead = {pid for pid in dead if not _is_buried(pid)}
        if not readable:
            continue
        order, given, _, _ = socket.recv_fds(control, ORDER, 1)
        if len(order) < ORDER:
            # Nobody is left to work for; whoever still runs goes too.
            os.killpg(0, signal.SIGKILL)
        pid = int.from_bytes(order[1:], "big")
        if order[:1] == b"b":
            dead.add(pid)
        elif given and _is_new_worker():
            control.close()
            _work(socket.socket(fileno=given[0]), machine)
        for each in given:
            os.close(each)


def _is_new_worker() -> bool:
    """Fork; true in the worker, which ends with us however we end."""
    parent = os.getpid()
    if os.fork() != 0:
        return False
    if sys.platform == "linux":
        import ctypes

        system = ctypes.CDLL(None)
        system.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        system.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        if os.getppid() != parent:
            os._exit(1)
    return True


def _is_buried(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG) != (0, 0)
    except ChildProcessError:
        return True


def _work(line: socket.socket, machine: Machine) -> None:
    code = 1
    try:
        _confine()
        Worker(line, machine).run()
        code = 0
    except (OSError, BrokenFrameError, EOFError):
        pass
    finally:
        # Nothing of the process we were forked from is to be tidied up here.
        os._exit(code)


def _confine() -> None:
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NPROC, (0, 0))


def _bound(memory: int, seconds: float) -> None:
    """A second line behind the sandbox's own limits and the parent's patience."""
    with contextlib.suppress(OSError, ValueError):
        most = int(time.process_time() + seconds) + 3
        resource.setrlimit(resource.RLIMIT_CPU, (most, most))
    if sys.platform == "linux":
        most = _data_size() + 2 * memory + _SPARE_MEMORY
        resource.setrlimit(resource.RLIMIT_DATA, (most, most))


def _data_size() -> int:
    with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - on the way to a script
        return int(file.read().split()[5]) * resource.getpagesize()


class Worker:
    """What the parent says, done to one sandbox."""

    def __init__(self, line: socket.socket, machine: Machine) -> None:
        self._line = line
        self._reader = Reader()
        self._frames: list[Frame] = []
        self._output: list[str] = []
        self._output_size = 0
        self._sent_at = 0.0
        self._machine = machine
        machine.say = self._say

    def run(self) -> None:
        self._send({"at": "ready", "pid": os.getpid()})
        while True:
            head, body = self._receive()
            try:
                self._do(head, body)
            except StopError as stop:
                self._flush()
                self._send({"at": "failed", "kind": stop.kind, "message": stop.message, "line": stop.line})

    def _do(self, head: dict[str, Any], body: bytes) -> None:
        what = head["do"]
        if what == "dump":
            self._dump()
        elif what == "load":
            self._limit(head)
            image = zlib.decompressobj().decompress(body, head["size"])
            self._machine.load(head["meta"], image)
            self._send({"at": "loaded"})
        else:
            self._machine.within(head["seconds"])
            self._step(what, head)
            self._report()

    def _step(self, what: str, head: dict[str, Any]) -> None:
        machine = self._machine
        if what == "start":
            self._limit(head)
            machine.offer(head["tools"])
            machine.start(head["source"])
        elif what == "answer":
            machine.settle(head["answers"])
        elif what == "wake":
            machine.fire()

    def _limit(self, head: dict[str, Any]) -> None:
        self._machine.limit(memory=head["memory"], output=head["output"], result=head["result"])
        _bound(head["memory"], head["seconds"])

    def _report(self) -> None:
        """Where the script stands. Unless it failed, no call that it started is left behind in silence."""
        machine = self._machine
        self._flush()
        if machine.state == "failed":
            raise machine.failure()
        if machine.waiting:
            self._send({"at": "paused", "wanted": machine.take_wanted()})
        elif machine.state == "ended":
            self._send({"at": "ended", "result": machine.result()})
        elif (due := machine.due()) >= 0:
            self._send({"at": "sleeping", "milliseconds": due})
        elif machine.is_full:
            raise StopError("memory", "The script used up its memory.")
        else:
            raise StopError("error", "The script waits for something that will never happen.")

    def _dump(self) -> None:
        meta, image = self._machine.dump()
        self._send({"at": "dumped", "meta": meta, "size": len(image)}, zlib.compress(image, 1))

    # -- talking -----------------------------------------------------------------------------------------

    def _say(self, text: str) -> None:
        self._output.append(text)
        self._output_size += len(text)
        if self._output_size > _PIECE or time.monotonic() - self._sent_at > _PIECE_SECONDS:
            self._flush()

    def _flush(self) -> None:
        if self._output:
            self._send({"at": "output", "text": "".join(self._output)})
            self._output, self._output_size, self._sent_at = [], 0, time.monotonic()

    def _send(self, head: dict[str, Any], body: bytes = b"") -> None:
        self._line.sendall(pack(head, body))

    def _receive(self) -> Frame:
        while not self._frames:
            data = self._line.recv(1 << 18)
            if not data:
                raise EOFError
            self._frames = self._reader.feed(data)
        return self._frames.pop(0)


if __name__ == "__main__":
    main()
