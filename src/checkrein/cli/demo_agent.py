"""The coding agent of `checkrein demo`: starts the hooks it is told to, as Claude Code starts its own.

A process of its own, called `claude`: a hook is heard only from the agent that its streams lead to. It
imports nothing of ours.
"""

from __future__ import annotations

import base64
import contextlib
import json
import socket
import subprocess
import sys
from typing import Any


class DemoAgent:
    """The agent, from the process that shows the demo."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(  # noqa: S603 - this very file
            ["claude", "-I", "-S", __file__],  # noqa: S607 - what it is called, not what it runs
            executable=sys.executable,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def hook(self, line: str, payload: dict[str, Any]) -> tuple[int, bytes]:
        """Run one hook; its exit code and what it printed."""
        assert self._process.stdin and self._process.stdout  # noqa: S101 - both were asked for
        self._process.stdin.write(json.dumps({"line": line, "payload": payload}) + "\n")
        self._process.stdin.flush()
        told = json.loads(self._process.stdout.readline())
        return told["code"], base64.b64decode(told["stdout"])

    def close(self) -> None:
        """End the agent; its session is over."""
        with contextlib.suppress(BrokenPipeError):
            self._process.communicate()


def _run(line: str, payload: dict[str, Any]) -> tuple[int, bytes]:
    """A hook whose streams are socket pairs of this process."""
    pairs = [socket.socketpair() for _ in range(3)]
    (stdin, _), (stdout, _), _ = pairs
    hook = subprocess.Popen(  # noqa: S603 - the line the installer wrote
        ["/bin/sh", "-c", line],
        stdin=pairs[0][1].fileno(),
        stdout=pairs[1][1].fileno(),
        stderr=pairs[2][1].fileno(),
    )
    for _, theirs in pairs:
        theirs.close()
    stdin.sendall(json.dumps(payload).encode())
    stdin.close()
    said = b""
    while piece := stdout.recv(65_536):
        said += piece
    for ours, _ in pairs:
        ours.close()
    return hook.wait(), said


def main() -> None:
    """Read what to run, a line of JSON each; answer with a line each."""
    for line in sys.stdin:
        code, said = _run(**json.loads(line))
        answer = {"code": code, "stdout": base64.b64encode(said).decode()}
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
