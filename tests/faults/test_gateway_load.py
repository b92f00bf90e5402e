"""Many MCP clients while the server behind the gateway is killed: all are answered, nothing happens twice."""

import asyncio
import contextlib
import itertools
import json
import os
import random
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from ground import FULL, SOAK

from checkrein import __version__, knocking, wire
from checkrein.settings.sources import user_file
from faults.test_hooks import check_chain, records, running, served
from patience import PATIENCE, soon, until

CLIENTS, CALLS, KILLS = (200, 50, 12) if SOAK else (200, 6, 3) if FULL else (50, 4, 2)
LONG = 100_000
BETWEEN_TRIES = 0.05
COUNTING = Path(__file__).with_name("counting_server.py")
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "load", "version": "1"}}
# Growth that is no leak: pages of the record the store keeps at hand, a reader of it for one more thread.
LEEWAY, FEW = 24 << 20, 12


def ask(verb, /, **params):
    return knocking.ask(knocking.start(), verb, params)


class Upstream:
    """The server behind the gateway, as it tells of itself."""

    def __init__(self, folder):
        self.folder = folder

    def lines(self, name):
        path = self.folder / name
        return path.read_text().split() if path.exists() else []

    @property
    def done(self):
        return Counter(self.lines("done"))

    def alive(self):
        return [int(pid) for pid in self.lines("pids") if _is(int(pid))]


def _is(pid):
    with contextlib.suppress(OSError):
        return str(COUNTING).encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


@pytest.fixture
def upstream(project, tmp_path):
    folder = tmp_path / "upstream"
    folder.mkdir()
    user_file().parent.mkdir(parents=True, exist_ok=True)
    user_file().write_text("[gateway]\ncalls_per_minute = 100000000\n")
    entry = {"command": sys.executable, "args": ["-I", "-S", str(COUNTING), str(folder)]}
    path = user_file().parent / "servers.json"
    path.write_text(json.dumps({"mcpServers": {"counting": entry}}))
    path.chmod(0o600)
    with served(project):
        ask("upstream.reload")
        shown = until(lambda: ask("upstream.review", name="counting"))
        picks = [{key: each[key] for key in ("kind", "name", "hash")} for each in shown]
        ask("upstream.accept", name="counting", picks=picks)
        ask("rule.add", rule={"action": "allow", "server": "counting", "pattern": "*"})
        made = Upstream(folder)
        yield made
    until(lambda: not made.alive())


class Line:
    """A client on stdio, without the pump between."""

    async def open(self, loop):
        connection = await loop.run_in_executor(None, _knock)
        self.reader, self.writer = await asyncio.open_unix_connection(sock=connection, limit=1 << 22)
        self.number = 0
        assert "result" in await self.ask("initialize", HELLO)
        self.write({"method": "notifications/initialized"})
        return self

    def write(self, message):
        self.writer.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def ask(self, method, params):
        self.number += 1
        self.write({"id": self.number, "method": method, "params": params})
        while line := await self.reader.readline():
            message = json.loads(line)
            if "method" not in message:
                assert message["id"] == self.number, "answered twice, or somebody else's"
                return message
        raise AssertionError(f"the gateway hung up before it answered {method}")

    async def do(self, key):
        """Whether the tool says it was done; any other answer is an answer too."""
        found = await self.ask("tools/call", {"name": "counting__do", "arguments": {"key": key}})
        told = found.get("result")
        return bool(told and not told.get("isError") and told["content"][0]["text"] == f"did {key}")

    async def close(self):
        self.writer.close()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()


def _knock():
    connection = knocking.start()
    wire.send(connection, wire.encode_request(__version__, ("mcp",), b""))
    wire.receive(connection, time.monotonic() + PATIENCE)
    return connection


async def crowd(name, clients, calls, beside=None):
    """Key to whether it was done: each client calls until so many of its calls were; `beside` runs along."""
    loop = asyncio.get_running_loop()
    lines = [await Line().open(loop) for _ in range(clients)]
    told = {}

    async def work(number, line):
        done = itertools.count()
        for call in itertools.count():
            key = f"{name}-{number}-{call}"
            told[key] = await asyncio.wait_for(line.do(key), PATIENCE)
            if told[key] and next(done) == calls - 1:
                return
            # A server that was killed needs a moment to be there again.
            await asyncio.sleep(0 if told[key] else BETWEEN_TRIES)

    going = asyncio.ensure_future(beside(told) if beside else asyncio.sleep(0))
    await asyncio.gather(*(work(number, line) for number, line in enumerate(lines)))
    await going
    for line in lines:
        await line.close()
    return told


def descriptors(pid):
    return len(os.listdir(f"/proc/{pid}/fd"))


def private_memory(pid):
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Private_"))


@pytest.mark.soak
@pytest.mark.timeout(900)
def test_killing_the_server_behind_leaves_no_call_unanswered_and_does_none_twice(upstream):
    asyncio.run(crowd("first", 20, 3))
    before = descriptors(running())
    chance, killed = random.Random(11), []

    async def kill(told):
        """At moments spread over all calls; the last ones come when no other kill does."""
        for number in range(KILLS):
            enough = (number + chance.random()) * CLIENTS * CALLS / (KILLS + 1)
            await soon(lambda enough=enough: sum(told.values()) >= enough)
            for pid in await soon(lambda: [each for each in upstream.alive() if each not in killed]):
                os.kill(pid, signal.SIGKILL)
                killed.append(pid)

    told = asyncio.run(crowd("call", CLIENTS, CALLS, kill))
    assert len(killed) >= KILLS
    assert sum(told.values()) == CLIENTS * CALLS
    done = {key: count for key, count in upstream.done.items() if key in told}
    # INVARIANT: a call whose fate is unknown is never tried again by the gateway.
    assert set(done.values()) <= {1}
    assert {key for key, yes in told.items() if yes} <= set(done)
    _check_record(told, done)
    # Nobody is left: no client's socket, no server that was killed, no more than one that runs.
    until(lambda: descriptors(running()) <= before + FEW)
    assert not set(killed) & set(upstream.alive())
    until(lambda: len(upstream.alive()) <= 1)
    check_chain()


def _check_record(told, done):
    """Each call has its verdict and its end; what was done without being told is unknown, not failed."""
    decided = {data["input"]["key"]: entry for _, entry, data in records("decided")}
    wanted = {decided[key]: "success" if told[key] else "unknown" for key in done}

    def ended():
        return {entry: data["outcome"] for _, entry, data in records("finished")}

    # An outcome is recorded after its answer was given.
    until(lambda: wanted.keys() <= ended().keys(), failing=lambda: sorted(wanted.keys() - ended().keys()))
    found = ended()
    assert {entry: found[entry] for entry in wanted} == wanted
    assert len(found) == len(records("finished"))


@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.skipif(not SOAK, reason="a hundred thousand calls: `make soak`")
def test_memory_stays_flat_over_many_calls(upstream):
    asyncio.run(crowd("warm", 16, LONG // 160))
    pid = running()
    memory, opened = private_memory(pid), descriptors(pid)
    told = asyncio.run(crowd("call", 16, LONG // 16))
    assert all(told.values())
    until(lambda: descriptors(pid) <= opened + FEW)
    grown = private_memory(pid) - memory
    assert grown < LEEWAY, f"{grown / LONG:.0f} bytes a call stay behind"
