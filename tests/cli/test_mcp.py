"""`checkrein mcp` as an MCP client starts it: beside a server, before any, without a compiler."""

import json
import os
import signal
import subprocess
import sys

import pytest

from checkrein import knocking
from checkrein.doors.gateway.messages import CAPABILITIES_KEY, VERSION_KEY
from checkrein.runtime import door_file, read_door, write_door
from patience import PATIENCE
from server.conftest import Serving
from server.handing_over import GATEWAY

RUN = [sys.executable, "-c", "from checkrein.cli.mcp import mcp; mcp()"]


@pytest.fixture
def handing(home):
    made = Serving(GATEWAY).start()
    yield made
    made.kill()


def test_bytes_go_to_the_gateway_and_back(handing, tmp_path):
    done = subprocess.run(
        RUN, input=b"hello\n", capture_output=True, cwd=tmp_path, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    said, echoed = done.stdout.splitlines()
    assert echoed == b"hello"
    assert str(tmp_path).encode() in said


def test_it_becomes_the_pump_itself(handing):
    """No interpreter stays in memory for as long as the client runs, and signals reach the pump."""
    with subprocess.Popen(RUN, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        said = process.stdout.readline()
        assert said.startswith(b"[%d, " % process.pid)
        process.stdin.close()
        assert process.wait(PATIENCE) == 0


def test_without_a_compiled_client_it_is_the_python_one(handing):
    code = "from checkrein import hookclient; hookclient.client_path = lambda: None; " + RUN[2]
    done = subprocess.run(
        [RUN[0], "-c", code], input=b"hello\n", capture_output=True, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stdout.splitlines()[1:]) == (0, [b"hello"])


HELLO = {
    "handshake": {
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t"}},
    },
    "stateless": {
        "method": "server/discover",
        "params": {"_meta": {VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: {}}},
    },
}


@pytest.mark.parametrize("era", HELLO)
def test_the_first_of_all_our_programs_starts_the_server(home, era):
    """Nothing of ours has ever run in this home; the real gateway answers."""
    assert not door_file().exists()
    asked = json.dumps({"jsonrpc": "2.0", "id": 1, **HELLO[era]}).encode()
    done = subprocess.run(RUN, input=asked, capture_output=True, timeout=PATIENCE, check=False)
    about = knocking.ask(knocking.connect(), "server.about", {})
    os.kill(about["pid"], signal.SIGTERM)
    assert (done.returncode, done.stderr) == (0, b"")
    answer = json.loads(done.stdout)
    assert answer["id"] == 1
    assert "tools" in answer["result"]["capabilities"]
    assert read_door().python == sys.executable


def test_a_door_that_is_there_is_left_as_it_is(home):
    """INVARIANT: no variable of the client's environment changes how the server is started."""
    write_door()
    changed = door_file().read_bytes().replace(sys.executable.encode(), b"/bin/false")
    door_file().write_bytes(changed)
    done = subprocess.run(
        RUN, input=b"", capture_output=True, env={**os.environ, "LANG": "xx"}, timeout=PATIENCE, check=False
    )
    assert (done.returncode, done.stdout) == (1, b"")
    assert b"/bin/false" in done.stderr
    assert door_file().read_bytes() == changed
