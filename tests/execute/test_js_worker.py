"""The worker's own program, spoken to over its sockets by hand."""

import os
import socket
import subprocess
import sys

import pytest

from checkrein.execute.js_frames import Reader, pack
from checkrein.execute.sandbox import Ended
from javascript_ground import compiled, run
from patience import PATIENCE

BOUNDS = {"memory": 32 << 20, "output": 100, "result": 1000, "seconds": PATIENCE, "tools": ["a"]}


class Line:
    """Our end of a worker's socket."""

    def __init__(self, end):
        self.end, self.reader, self.frames = end, Reader(), []
        end.settimeout(PATIENCE)

    def hear(self):
        while not self.frames:
            data = self.end.recv(1 << 16)
            if not data:
                return None, b""
            self.frames += self.reader.feed(data)
        return self.frames.pop(0)

    def ask(self, head, body=b""):
        self.end.sendall(pack(head, body))
        return self.hear()


@pytest.fixture
def control():
    assert run("1 + 1") == Ended(2)
    ours, theirs = socket.socketpair()
    command = [
        sys.executable,
        "-I",
        "-m",
        "checkrein.execute.js_worker",
        str(theirs.fileno()),
        str(compiled()),
    ]
    with theirs:
        process = subprocess.Popen(command, pass_fds=(theirs.fileno(),), start_new_session=True)
    yield ours
    ours.close()
    # With nobody to work for it ends itself and all its workers.
    assert process.wait(PATIENCE) == -9


def worker_of(control):
    ours, theirs = socket.socketpair()
    with theirs:
        socket.send_fds(control, [b"w\0\0\0\0"], [theirs.fileno()])
    line = Line(ours)
    head, _ = line.hear()
    assert head["at"] == "ready"
    return line, head["pid"]


def test_a_script_from_its_start_to_its_end(control):
    line, _ = worker_of(control)
    with line.end:
        head, _ = line.ask({"do": "start", "source": "console.log('x'); await codemode.a({b: 1})", **BOUNDS})
        assert head == {"at": "output", "text": "x\n"}
        head, _ = line.hear()
        assert head["wanted"] == [{"id": 1, "name": "a", "arguments": '{"b":1}', "line": 1, "column": 24}]
        head, image = line.ask({"do": "dump"})
        answer = {
            "do": "answer",
            "answers": [{"id": 1, "kind": "value", "text": "", "value": 7}],
            "seconds": PATIENCE,
        }
        assert line.ask(answer)[0] == {"at": "ended", "result": "7"}
    other, _ = worker_of(control)
    with other.end:
        load = {"do": "load", "meta": head["meta"], "size": head["size"], **BOUNDS}
        assert other.ask(load, image)[0] == {"at": "loaded"}
        assert other.ask(answer)[0] == {"at": "ended", "result": "7"}


def test_a_worker_that_is_told_nonsense_ends(control):
    for said in ({}, {"do": "load", "meta": {}, "size": 1, **BOUNDS}, {"do": "start"}):
        line, _ = worker_of(control)
        with line.end:
            assert line.ask(said) == (None, b"")


@pytest.mark.invariant("only a process nobody has waited for yet is killed by its number")
def test_the_dead_are_buried_when_we_say_so_and_not_before(control):
    line, pid = worker_of(control)
    os.kill(pid, 9)
    with line.end:
        assert line.hear() == (None, b"")
    another, _ = worker_of(control)
    another.end.close()
    # Until then its number is nobody else's.
    assert os.path.exists(f"/proc/{pid}")
    control.send(b"b" + pid.to_bytes(4, "big"))
    for _ in range(1000):
        if not os.path.exists(f"/proc/{pid}"):
            break
        line, _ = worker_of(control)
        line.end.close()
    assert not os.path.exists(f"/proc/{pid}")
