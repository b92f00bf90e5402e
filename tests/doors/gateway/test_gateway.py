"""The gateway as the server has it: its own thread, asked from others, with real servers behind it."""

import asyncio
import os
import socket
import subprocess
import sys
import threading
import time

import pytest

from checkrein import peers
from checkrein.agents import Agents, Marks
from checkrein.doors.gateway import gateway as gateway_module
from checkrein.doors.gateway.gateway import Gateway
from checkrein.doors.gateway.passing import Passed, Pipe
from checkrein.errors import NotFoundError, StoreError
from checkrein.peers import Peer
from checkrein.settings.servers import ServerSpec, read_servers
from doors.gateway.back import is_running
from patience import PATIENCE, until


@pytest.fixture
def said():
    return []


@pytest.fixture
def gateway(pipeline, clock, said, monkeypatch, house):
    monkeypatch.setattr(gateway_module, "_LOOK_SECONDS", 0.05)
    house.server()
    made = Gateway(pipeline, Agents(pipeline.store, pipeline.ledger, clock), said.append)
    made.open()
    yield made
    made.close()
    assert not [each for each in threading.enumerate() if each.name == "checkrein-gateway"]


def picks(gateway, name="srv", states=("new", "changed")):
    return [row for row in gateway.review(name) if row["state"] in states]


def test_servers_are_reviewed_accepted_browsed_and_refused(gateway):
    rows = picks(gateway)
    assert {"echo", "strict"} <= {row["name"] for row in rows} and all(row["state"] == "new" for row in rows)
    (status,) = gateway.servers()
    assert (status["name"], status["state"], status["offered"]) == ("srv", "ready", 0) and status[
        "hidden"
    ] > 10
    status = gateway.accept("srv", rows, "ada")
    assert status["hidden"] == 0 and status["offered"] > 10
    browsed = {row["tool"]: row for row in gateway.browse("srv")}
    assert browsed["echo"]["hidden"] == "" and browsed["echo"]["definition"]["name"] == "srv__echo"
    status = gateway.refuse("srv", [row for row in rows if row["name"] == "echo"], "ada")
    assert status["hidden"] == 1
    assert "refused" in {row["tool"]: row for row in gateway.browse()}["echo"]["hidden"]
    with pytest.raises(NotFoundError):
        gateway.browse("nobody")


def test_a_server_is_stopped_started_and_started_again(gateway):
    process = gateway.servers()[0]["pid"]
    stopped = gateway.stop("srv")
    assert (stopped["state"], stopped["offered"], stopped["hidden"]) == ("stopped", 0, 0)
    assert not is_running(process) and gateway.review("srv") == []
    assert gateway.start("srv")["state"] == "ready"
    before = gateway.servers()[0]["pid"]
    after = gateway.restart("srv")
    assert after["pid"] != before and not is_running(before) and picks(gateway)
    assert isinstance(gateway.logs("srv"), list)
    for what in (gateway.stop, gateway.start, gateway.restart, gateway.logs):
        with pytest.raises(NotFoundError):
            what("nobody")


def test_a_server_is_tried_beside_the_others(gateway, tmp_path):
    spec = read_servers().servers["srv"]
    found = gateway.test(spec)
    assert {tool["name"] for tool in found["tools"]} >= {"echo"}
    assert [each["name"] for each in gateway.servers()] == ["srv"]
    with pytest.raises(Exception, match="no-such-program"):
        gateway.test(ServerSpec(name="x", command="no-such-program"))


def test_the_file_is_read_again_by_itself_and_on_demand(gateway, house, said):
    house.server("two")
    found = gateway.reload()
    assert found["servers"] == ["srv", "two"] and found["fault"] == ""
    del house.specs["two"]
    house.write()
    until(lambda: [each["name"] for each in gateway.servers()] == ["srv"])
    house.write("{")
    until(lambda: any("last good one" in line for line in said))
    assert gateway.servers()[0]["fault"] and gateway.reload()["servers"] == ["srv"]


def test_a_fault_while_looking_around_does_not_end_the_gateway(gateway, said, monkeypatch):
    broken = threading.Event()

    def fails(_self):
        broken.set()
        raise RuntimeError("boom")

    monkeypatch.setattr(gateway_module.Hub, "look_at_rules", fails)
    assert broken.wait(PATIENCE)
    until(lambda: any("boom" in line for line in said))
    until(lambda: gateway.servers()[0]["state"] == "ready")


def test_who_is_connected_and_who_is_turned_out(gateway):
    async def meet():
        hub = gateway._known()
        return hub.meet(
            era="handshake", agent="a", label="a (pid 1)", owner="http:1", send=lambda _message: None
        )

    gateway._do(meet())
    (row,) = gateway.clients()
    assert (row["label"], row["agent"], row["era"], row["under_way"]) == ("a (pid 1)", "a", "handshake", 0)
    assert gateway.revoke("http:2") == 0 and gateway.revoke("http:1") == 1 and gateway.clients() == []
    assert gateway.busy == 0 and gateway.http_port is None


def test_what_ended_says_so(pipeline, clock, said, house):
    made = Gateway(pipeline, Agents(pipeline.store, pipeline.ledger, clock), said.append)
    with pytest.raises(StoreError, match="not running"):
        made.servers()
    house.server()
    made.open()
    process = made.servers()
    made.review()
    process = made.servers()[0]["pid"]
    made.close()
    made.close()
    assert not is_running(process)
    with pytest.raises(StoreError):
        made.servers()


def test_a_gateway_that_cannot_begin_says_why(pipeline, clock, said, monkeypatch):
    def broken(*_args, **_more):
        raise RuntimeError("no hub")

    monkeypatch.setattr(gateway_module, "Hub", broken)
    made = Gateway(pipeline, Agents(pipeline.store, pipeline.ledger, clock), said.append)
    with pytest.raises(StoreError, match="no hub"):
        made.open()


def test_an_answer_that_takes_too_long_is_not_waited_for(gateway, monkeypatch):
    monkeypatch.setattr(gateway_module, "_ANSWER_SECONDS", 0.05)

    with pytest.raises(StoreError, match="did not answer in time"):
        gateway._do(asyncio.Event().wait())


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("streams", ["the agent's", "its own", "none"])
@pytest.mark.invariant("a question is not answered by a program that an agent runs")
def test_only_a_pump_that_the_agent_itself_talks_to_brings_answers(gateway, monkeypatch, streams):
    """This process is the agent; the pump is its child, as after `exec` in one of the agent's commands."""
    heard = []

    async def take(_front, connection, _who, speaks, passed):
        connection.close()
        heard.append(speaks)
        if passed is not None:
            passed.close()

    monkeypatch.setattr(gateway_module.StdioFront, "take", take)
    pump = subprocess.Popen(["sleep", "600"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        own = peers.process(os.getpid())
        gateway._agents.meet(
            "claude", "s-1", "/p", Peer(pump.pid, os.geteuid()), Marks(names=(own.name,)), {}
        )
        ends = None
        if streams == "the agent's":
            ends = [f"/proc/{pump.pid}/fd/{number}" for number in (0, 1)]
        elif streams == "its own":
            helper = "import os, time\nprint(os.pipe() + os.pipe(), flush=True)\ntime.sleep(600)"
            other = subprocess.Popen([sys.executable, "-S", "-c", helper], stdout=subprocess.PIPE)
            numbers = [int(each) for each in other.stdout.readline().strip(b"()\n").split(b",")]
            ends = [f"/proc/{other.pid}/fd/{numbers[0]}", f"/proc/{other.pid}/fd/{numbers[3]}"]
        passed = None
        if ends is not None:
            ways = (os.O_RDONLY, os.O_WRONLY)
            passed = Passed(*(Pipe(os.open(end, way), way) for end, way in zip(ends, ways, strict=True)))
        ours, theirs = socket.socketpair()
        with ours:
            gateway.take(theirs, Peer(pump.pid, os.geteuid()), {}, passed)
        assert heard == [streams == "the agent's"]
    finally:
        for each in (pump, *([other] if streams == "its own" else [])):
            each.kill()
            each.communicate()


@pytest.mark.invariant("what a server made long to look at holds up no client meanwhile")
def test_a_long_look_at_definitions_holds_up_nobody(gateway, monkeypatch):
    rows, turns, seen = [{"name": str(number)} for number in range(5)], [], []

    def slowly(_catalogue, _name=None):
        for row in rows:
            seen.append(len(turns))
            asyncio.get_running_loop().call_soon(turns.append, row)
            # Longer than anybody looks at a time.
            time.sleep(0.02)
            yield row

    monkeypatch.setattr(type(gateway._hub.catalogue), "reviewing", slowly)
    assert gateway.review("srv") == rows
    assert seen == [0, 1, 2, 3, 4], "others had their turn after each"
