"""Servers to stand behind the gateway: small programs that speak raw JSON-RPC, well and badly."""

import os
import sys
from pathlib import Path

from checkrein.settings.servers import ServerSpec

# Speaks both eras; tools: echo, slow, ask (sends a request back), env, crash, progress, silent.
GOOD = r"""
import json, os, sys
def put(message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n"); sys.stdout.flush()
def advance(token, step):
    put({"method": "notifications/progress", "params": {"progressToken": token, "progress": step}})
ERAS = os.environ.get("ERAS", "handshake stateless").split()
INFO = "io.modelcontextprotocol/serverInfo"
cancelled = []
for line in sys.stdin:
    message = json.loads(line)
    method, number, params = message.get("method"), message.get("id"), message.get("params", {})
    answer = lambda result: put({"id": number, "result": result})
    if method == "initialize" and "handshake" in ERAS:
        version = os.environ.get("VERSION", params["protocolVersion"])
        info = {"name": "good", "declared": params["capabilities"], "client": params["clientInfo"]}
        answer({"protocolVersion": version, "capabilities": {"tools": {}, "odd": {"x": 1}},
                "instructions": "Be kind.", "serverInfo": info})
    elif method == "server/discover" and "stateless" in ERAS:
        versions = os.environ.get("VERSIONS", "2026-07-28").split()
        answer({"resultType": "complete", "supportedVersions": versions, "capabilities": {"tools": {}},
                "instructions": "Be kind.", "_meta": {INFO: {"name": "good"}}})
    elif method in ("initialize", "server/discover") and "silent" in ERAS:
        pass
    elif method in ("initialize", "server/discover") and "fragile" in ERAS:
        sys.exit(4)
    elif method == "echo":
        answer(params)
    elif method == "env":
        answer({**os.environ, "cwd": os.getcwd()})
    elif method == "ping" and "deaf" not in ERAS:
        answer({})
    elif method == "progress":
        token = params["_meta"]["progressToken"]
        for step in range(3):
            advance(token, step)
        for odd in (999, "x", None, [1]):
            advance(odd, 9)
        answer({})
        advance(token, 10)
    elif method == "ask":
        put({"id": "s1", "method": params["method"], "params": {}})
        answer({})
    elif method == "say":
        put({"method": params["method"], "params": {"x": 1}})
        answer({})
    elif method == "notifications/cancelled":
        cancelled.append(params)
    elif method == "cancelled":
        answer(cancelled)
    elif method == "crash":
        sys.stderr.write("I am dying\n"); sys.stderr.flush(); os._exit(3)
    elif method is None:
        put({"method": "notifications/answered", "params": message})
    elif number is not None and method not in ("silent", "ping"):
        error = {"code": -32601, "message": "Method not found", "data": {"method": method}}
        put({"id": number, "error": error})
"""


def write(folder, source, name="server.py"):
    path = Path(folder) / name
    path.write_text(source, encoding="utf-8")
    return path


def spec_of(folder, source=GOOD, *, name="good", args=(), **more):
    script = write(folder, source, f"{name}.py")
    return ServerSpec(name=name, command=sys.executable, args=("-I", "-S", str(script), *args), **more)


def after(path, source=GOOD):
    """A server that begins when the test writes this file."""
    return f"import os, time\nwhile not os.path.exists({str(path)!r}): time.sleep(0.01)\n{source}"


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


class Ear:
    """A listener that keeps what it hears."""

    def __init__(self):
        self.requests, self.notices, self.ends, self.readied, self.held = [], [], [], [], set()

    def asked(self, upstream, message):
        self.requests.append(message)

    def heard(self, upstream, message):
        self.notices.append(message)

    def ended(self, upstream, why):
        self.ends.append((upstream, why))

    def ready(self, keeper, upstream):
        self.readied.append(upstream)

    def holds(self, server, client_id):
        return client_id in self.held
