"""A graph's question outlives its process; with a server only a person answers it."""

import os
import subprocess
import sys

import pytest

from doors.library.adapters.lazily import Lazily
from patience import PATIENCE
from server.conftest import Serving

sdk = Lazily("doors.library.adapters.langchain_ground")


@pytest.fixture(autouse=True, scope="module")
def framework():
    """The framework is imported when the first test runs, not when tests are collected."""
    why = "LangChain, LangGraph or its SQLite checkpointer is not installed: the adapter is UNTESTED"
    for name in ("langchain", "langgraph", "langgraph.checkpoint.sqlite"):
        pytest.importorskip(name, reason=why)


CHILD = """
import os, sys
sys.path[:0] = sys.argv[4].split(os.pathsep)
from checkrein import Gate
from langgraph.checkpoint.sqlite import SqliteSaver
from doors.library.adapters.langchain_ground import GO, ROSES, THREAD, Garden
garden = Garden()
with SqliteSaver.from_conn_string(sys.argv[3]) as saver:
    gate = Gate(sys.argv[1], asks="raise", project=sys.argv[2])
    found = garden.agent(gate, ROSES, saver=saver).invoke(GO, THREAD)
    assert found["__interrupt__"] and not garden.did
    os._exit(9)
"""


def test_a_process_that_dies_while_it_waits_loses_nothing(room, tmp_path):
    garden = sdk.Garden()
    file = str(tmp_path / "checkpoints")
    paths = os.pathsep.join(each for each in sys.path if each)
    command = [sys.executable, "-c", CHILD, str(room.folder), os.getcwd(), file, paths]
    assert subprocess.run(command, check=False, timeout=PATIENCE).returncode == 9
    with sdk.SqliteSaver.from_conn_string(file) as saver:
        agent = garden.agent(room.open(asks="raise"), sdk.ROSES, saver=saver)
        [question] = agent.get_state(sdk.THREAD).interrupts
        agent.invoke(sdk.Command(resume=sdk.reply(question, "yes")), sdk.THREAD)
    assert (garden.did, room.last().result) == ([("roses", 1)], "success")


SERVED = """
import os, sys
sys.path[:0] = sys.argv[2].split(os.pathsep)
from checkrein import Gate
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command
from doors.library.adapters.langchain_ground import GO, ROSES, THREAD, Garden, heard, reply
garden = Garden()
with SqliteSaver.from_conn_string(sys.argv[1]) as saver, Gate(server=True, asks="raise") as gate:
    agent = garden.agent(gate, ROSES, saver=saver)
    waits = agent.get_state(THREAD).interrupts
    if not waits:
        [question] = agent.invoke(GO, THREAD)["__interrupt__"]
        found = agent.invoke(Command(resume=reply(question, "yes")), THREAD)
        print(found["__interrupt__"][0].value["checkrein"]["trouble"], garden.did)
    else:
        found = agent.invoke(Command(resume=reply(waits[0])), THREAD)
        print(heard(found)["c0"].content, garden.did)
"""


def test_with_the_server_only_a_person_answers(tmp_path, home):
    serving = Serving().start()
    try:
        paths = os.pathsep.join(each for each in sys.path if each)
        command = [sys.executable, "-c", SERVED, str(tmp_path / "checkpoints"), paths]

        def program():
            ended = subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE)
            return ended.stdout

        assert "Only a person may do this" in (said := program()) and said.endswith("[]\n")
        [question] = serving.ask("question.list")
        serving.ask("question.answer", id=question["id"], answer="approved")
        assert program() == "roses has 1 [('roses', 1)]\n"
    finally:
        serving.kill(15)
