"""Servers to stand behind the gateway: small programs that speak raw JSON-RPC, well and badly."""

import asyncio
import os
import sys
import time
from pathlib import Path

from checkrein.settings.servers import ServerSpec

# Speaks both eras; tools: echo, slow, ask (sends a request back), env, crash, progress, silent.
GOOD = r"""
import json, os, signal, sys, threading, time
OUT = threading.Lock()
def put(message):
    with OUT:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n"); sys.stdout.flush()
ERAS = os.environ.get("ERAS", "handshake stateless").split()
cancelled = []
for line in sys.stdin:
    message = json.loads(line)
    method, number, params = message.get("method"), message.get("id"), message.get("params", {})
    if method == "initialize" and "handshake" in ERAS:
        put({"id": number, "result": {"protocolVersion": os.environ.get("VERSION", params["protocolVersion"]),
             "capabilities": {"tools": {}, "odd": {"x": 1}}, "instructions": "Be kind.",
             "serverInfo": {"name": "good", "version": "1", "declared": params["capabilities"], "client": params["clientInfo"]}}})
    elif method == "server/discover" and "stateless" in ERAS:
        put({"id": number, "result": {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}},
             "instructions": "Be kind.", "_meta": {"io.modelcontextprotocol/serverInfo": {"name": "good", "version": "2"}}}})
    elif method == "echo":
        put({"id": number, "result": params})
    elif method == "env":
        put({"id": number, "result": {**os.environ, "cwd": os.getcwd()}})
    elif method == "ping" and "deaf" not in ERAS:
        put({"id": number, "result": {}})
    elif method == "progress":
        for step in range(3):
            put({"method": "notifications/progress", "params": {"progressToken": params["_meta"]["progressToken"], "progress": step}})
        put({"method": "notifications/progress", "params": {"progressToken": 999, "progress": 1}})
        put({"id": number, "result": {}})
    elif method == "ask":
        put({"id": "s1", "method": params["method"], "params": {}})
        put({"id": number, "result": {}})
    elif method == "say":
        put({"method": params["method"], "params": {"x": 1}})
        put({"id": number, "result": {}})
    elif method == "notifications/cancelled":
        cancelled.append(params)
    elif method == "cancelled":
        put({"id": number, "result": cancelled})
    elif method == "crash":
        sys.stderr.write("I am dying\n"); sys.stderr.flush(); os._exit(3)
    elif method == "silent":
        pass
    elif method is None:
        put({"method": "notifications/answered", "params": message})
    elif number is not None:
        put({"id": number, "error": {"code": -32601, "message": "Method not found", "data": {"method": method}}})
"""


def write(folder, source, name="server.py"):
    path = Path(folder) / name
    path.write_text(source, encoding="utf-8")
    return path


def spec_of(folder, source=GOOD, *, name="good", args=(), **more):
    script = write(folder, source, f"{name}.py")
    return ServerSpec(name=name, command=sys.executable, args=("-I", "-S", str(script), *args), **more)


def is_running(pid):
    """Whether a process is there and more than a body waiting to be buried."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return os.path.exists("/proc/self") is False and _answers(pid)
    return stat.rpartition(b") ")[2].split()[0] not in (b"Z", b"X")


def _answers(pid):
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


async def until(true, seconds=10.0):
    """Wait for something to become so; fails when it does not."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not happen"
        await asyncio.sleep(0.01)


class Ear:
    """A listener that keeps what it hears."""

    def __init__(self):
        self.requests, self.notices, self.ends, self.readied = [], [], [], []

    def asked(self, upstream, message):
        self.requests.append(message)

    def heard(self, upstream, message):
        self.notices.append(message)

    def ended(self, upstream, why):
        self.ends.append((upstream, why))

    def ready(self, keeper, upstream):
        self.readied.append(upstream)
