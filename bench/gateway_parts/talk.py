"""One MCP client on stdio: a program, the lines written to it and the answers read back, timed."""

from __future__ import annotations

import json
import subprocess
import time

INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "bench", "version": "1.0"},
}


class Talk:
    """A program that speaks MCP, from its start to its end."""

    def __init__(self, words: list[str], tool: str) -> None:
        self.tool, self.number = tool, 0
        begin = time.perf_counter()
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, bufsize=0
        )
        assert self.process.stdin and self.process.stdout
        self.read = open(self.process.stdout.fileno(), "rb", closefd=False)  # noqa: SIM115
        self.ask("initialize", INITIALIZE)
        self.ready = time.perf_counter() - begin
        self.write({"method": "notifications/initialized"})

    def write(self, message: dict) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    def ask(self, method: str, params: dict) -> dict:
        self.number += 1
        self.write({"id": self.number, "method": method, "params": params})
        while line := self.read.readline():
            message = json.loads(line)
            if message.get("id") == self.number and "method" not in message:
                return message
        raise AssertionError(f"{self.process.args} ended before it answered {method}")

    def call(self) -> float:
        """Seconds for one call of the tool."""
        self.number += 1
        words = f"call {self.number}"
        params = {"name": self.tool, "arguments": {"message": words}}
        body = {"jsonrpc": "2.0", "id": self.number, "method": "tools/call", "params": params}
        line = json.dumps(body).encode() + b"\n"
        assert self.process.stdin
        begin = time.perf_counter()
        self.process.stdin.write(line)
        while True:
            found = self.read.readline()
            taken = time.perf_counter() - begin
            message = json.loads(found)
            # Servers announce themselves with a notification or two before they are quiet.
            if message.get("id") == self.number and "method" not in message:
                break
        text = message["result"]["content"][0]["text"]
        assert text == f"Echo: {words}", text
        return taken

    def end(self) -> None:
        for stream in (self.process.stdin, self.read, self.process.stdout):
            if stream is not None:
                stream.close()
        try:
            self.process.wait(5)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
