"""A question about an MCP call outlives the program and the server; the page's examples run."""

import asyncio
import os
import subprocess
import sys

import pytest

from doors.library.adapters.lazily import Lazily
from doors.library.adapters.pages import page_of
from patience import PATIENCE

sdk = Lazily("doors.library.adapters.mcp_ground")


@pytest.fixture(autouse=True, scope="module")
def framework():
    """The framework is imported when the first test runs, not when tests are collected."""
    pytest.importorskip("mcp", reason="The MCP SDK is not installed: its adapter is UNTESTED")


CHILD = """
import asyncio, os, sys
sys.path[:0] = sys.argv[4].split(os.pathsep)
from checkrein import Gate, Suspended
from doors.library.adapters.mcp_ground import over_stdio

async def call(session):
    try:
        await session.call_tool("water", {"bed": "roses"})
    except Suspended as suspended:
        open(sys.argv[3], "w").write(suspended.pending.json())

asyncio.run(over_stdio(Gate(sys.argv[1], asks="raise"), sys.argv[2], call))
os._exit(9)
"""


def test_a_process_that_dies_while_it_waits_loses_nothing(room, tmp_path):
    """Real processes: a program and its server die, others go on."""
    did, kept = tmp_path / "did", tmp_path / "kept"
    paths = os.pathsep.join(each for each in sys.path if each)
    command = [sys.executable, "-c", CHILD, str(room.folder), str(did), str(kept), paths]
    assert subprocess.run(command, check=False, timeout=PATIENCE).returncode == 9
    gate, waits = room.open(asks="raise"), kept.read_text()
    gate.answer(gate.waits(waits), "yes")
    result = asyncio.run(sdk.over_stdio(gate, str(did), lambda session: session.resume(waits)))
    assert (sdk.text(result), did.read_text()) == ("roses has 1", "roses 1\n")
    assert room.last().result == "success"


def test_the_examples_in_the_docs_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "garden_server.py").write_text(sdk.STDIO.replace("sys.argv[1]", "'did'"))
    names = page_of("library-mcp.md")
    names["gate"].close()
    assert (tmp_path / "did").read_text() == "moss 1\n"
    assert capsys.readouterr().out == "moss has 1\n"
