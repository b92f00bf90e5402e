"""A stand-in for the gateway in a real server, and the descriptors such a server holds."""

import contextlib
import os

from patience import until

# Stands in for the gateway: says what it was given, then sends back whatever comes.
GATEWAY = r"""
import json, os, select, sys, threading, types
from checkrein.errors import StoreError

class Gateway:
    busy = 0

    def __init__(self, pipeline, agents, say):
        self.pipeline, self.agents, self.say = pipeline, agents, say

    def open(self):
        if os.path.exists(os.environ["HOME"] + "/broken"):
            raise StoreError("It is broken.", remedy="Mend it.")
        self.say("gateway started")

    def close(self):
        self.pipeline.store.query("SELECT 1")
        self.say("gateway stopped")

    def servers(self):
        return [{"name": "stand-in"}]

    def take(self, connection, peer, facts, passed=None):
        if facts["CWD"] == "/refused":
            raise RuntimeError("not this one")
        threading.Thread(target=self.echo, args=(connection, peer, facts, passed), daemon=True).start()

    def echo(self, connection, peer, facts, passed):
        connection.setblocking(True)
        line = Line(passed) if passed else connection
        with connection:
            line.sendall(json.dumps([peer.pid, peer.uid, facts]).encode() + b"\n")
            while piece := line.recv(1 << 16):
                Gateway.busy = 1 if piece == b"busy" else 0
                line.sendall(piece)
            if passed:
                passed.close()
                connection.sendall(b".")

class Line:
    def __init__(self, passed):
        self.passed = passed

    def recv(self, count):
        select.select([self.passed.input.fd], [], [])
        return self.passed.input.read(count)

    def sendall(self, data):
        while data:
            select.select([], [self.passed.output.fd], [])
            data = data[self.passed.output.write([data[:4096]]):]

stand_in = types.ModuleType("checkrein.doors.gateway.gateway")
stand_in.Gateway = Gateway
sys.modules[stand_in.__name__] = stand_in
"""


def descriptors(serving):
    """How many sockets and pipes the server has; files come and go."""
    folder, count = f"/proc/{serving.process.pid}/fd", 0
    for each in os.listdir(folder):
        with contextlib.suppress(FileNotFoundError):
            count += os.readlink(f"{folder}/{each}").startswith(("socket:", "pipe:"))
    return count


def settle(serving, wanted):
    """Returns once the server has that many sockets and pipes."""
    until(lambda: descriptors(serving) == wanted, failing=lambda: f"{descriptors(serving)} are open")
