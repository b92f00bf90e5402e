"""A process called `claude` that starts hooks as Claude Code does, and tools as Claude Code does.

A hook gets a socket pair of the agent's for each of its streams, and a shell that runs its line. A tool gets
no input and a file for its output. Run as a program, this file is the agent.
"""

import base64
import contextlib
import json
import os
import socket
import subprocess
import sys
import threading

PATIENCE = 120.0


class Hook:
    """A hook the agent started: like a process of ours, as far as tests look."""

    def __init__(self):
        self.pid, self.returncode, self.stdout, self.stderr = None, None, b"", b""
        self.started, self.ended = threading.Event(), threading.Event()

    def poll(self):
        return self.returncode

    def communicate(self, timeout=PATIENCE):
        assert self.ended.wait(timeout), "the hook did not end"
        return self.stdout, self.stderr

    def kill(self):
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, 9)


class AgentProcess:
    """The agent, from outside."""

    def __init__(self, folder=None, name="claude", **environment):
        self._program = subprocess.Popen(
            [name, "-I", "-S", __file__],
            executable=sys.executable,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
            cwd=folder,
            env=os.environ | environment,
        )
        self.pid, self._hooks, self._lock = self._program.pid, [], threading.Lock()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def start(self, line, payload=b"", **more):
        """A hook whose shell runs `line`; `tool=True` runs it as the agent runs a tool."""
        hook = Hook()
        with self._lock:
            self._hooks.append(hook)
            told = {"id": len(self._hooks) - 1, "line": line, "payload": base64.b64encode(payload).decode()}
            self._program.stdin.write(json.dumps(told | more).encode() + b"\n")
            self._program.stdin.flush()
        assert hook.started.wait(PATIENCE), "the agent started no hook"
        return hook

    def run(self, line, payload=b"", **more):
        """(exit code, stdout, stderr) of a hook."""
        hook = self.start(line, payload, **more)
        return (hook.returncode, *hook.communicate()) if hook.ended.wait(PATIENCE) else None

    def end(self):
        self._program.stdin.close()
        self._program.kill()
        self._program.wait()
        self._reader.join(PATIENCE)
        self._program.stdout.close()

    def _read(self):
        for line in self._program.stdout:
            told = json.loads(line)
            hook = self._hooks[told["id"]]
            if "pid" in told:
                hook.pid = told["pid"]
                hook.started.set()
                continue
            hook.stdout, hook.stderr = (base64.b64decode(told[name]) for name in ("out", "err"))
            hook.returncode = told["code"]
            hook.ended.set()


def main():
    """The agent: one line of JSON for each hook it is to start, two for what became of it."""
    lock = threading.Lock()

    def tell(**said):
        with lock:
            sys.stdout.buffer.write(json.dumps(said).encode() + b"\n")
            sys.stdout.buffer.flush()

    for line in sys.stdin.buffer:
        threading.Thread(target=start, args=(json.loads(line), tell), daemon=True).start()


def start(told, tell):
    if told.get("tool"):
        start_tool(told, tell)
        return
    pairs = [socket.socketpair() for _ in range(3)]
    hook = subprocess.Popen(
        ["/bin/sh", "-c", told["line"]],
        stdin=pairs[0][1],
        stdout=pairs[1][1],
        stderr=pairs[2][1],
        start_new_session=True,
    )
    for _, theirs in pairs:
        theirs.close()
    tell(id=told["id"], pid=hook.pid)
    (stdin, _), (stdout, _), (stderr, _) = pairs
    with contextlib.suppress(OSError):
        stdin.sendall(base64.b64decode(told["payload"]))
    stdin.close()
    out, err = (base64.b64encode(read(each)).decode() for each in (stdout, stderr))
    tell(id=told["id"], code=hook.wait(), out=out, err=err)


def start_tool(told, tell):
    with open("/dev/null", "rb") as nothing, open(told["output"], "wb") as output:
        tool = subprocess.Popen(
            ["/bin/bash", "-c", told["line"]],
            stdin=nothing,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    tell(id=told["id"], pid=tool.pid)
    code = tool.wait()
    with open(told["output"], "rb") as output:
        tell(id=told["id"], code=code, out=base64.b64encode(output.read()).decode(), err="")


def read(end):
    whole = b""
    while piece := end.recv(65_536):
        whole += piece
    end.close()
    return whole


if __name__ == "__main__":
    main()
