"""A question in Pydantic AI outlives its process; with a server only a person answers it."""

import asyncio
import os
import subprocess
import sys

import pytest

from doors.library.adapters.lazily import Lazily
from patience import PATIENCE
from server.conftest import Serving

sdk = Lazily("doors.library.adapters.pydantic_ground")


@pytest.fixture(autouse=True, scope="module")
def framework():
    """The framework is imported when the first test runs, not when tests are collected."""
    pytest.importorskip("pydantic_ai", reason="Pydantic AI is not installed: its adapter is UNTESTED")


CHILD = """
import os, sys
from pathlib import Path
from checkrein import Gate
from pydantic import TypeAdapter
from pydantic_ai import Agent, DeferredToolRequests
from pydantic_ai.messages import ModelResponse, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from checkrein.doors.library.adapters.pydantic_ai import gated

def water(bed: str, litres: int = 1) -> str: raise AssertionError("it ran")
model = FunctionModel(lambda m, i: ModelResponse(parts=[ToolCallPart("water", {"bed": "roses"}, "c0")]))
gate = Gate(sys.argv[1], asks="raise", project=sys.argv[2])
agent = Agent(model, toolsets=[gated(gate, [water])], output_type=[str, DeferredToolRequests])
result = agent.run_sync("go")
Path(sys.argv[3]).write_bytes(result.all_messages_json())
Path(sys.argv[4]).write_bytes(TypeAdapter(DeferredToolRequests).dump_json(result.output))
os._exit(9)
"""


@pytest.fixture(autouse=True)
def loop():
    """`run_sync` makes an event loop where there is none, and leaves it open."""
    with asyncio.Runner() as runner:
        asyncio.set_event_loop(runner.get_loop())
        yield
        asyncio.set_event_loop(None)


def test_a_process_that_dies_while_it_waits_loses_nothing(room, tmp_path):
    did = []

    def water(bed: str, litres: int = 1) -> str:
        did.append((bed, litres))
        return f"{bed} has {litres}"

    files = tmp_path / "history", tmp_path / "requests"
    command = [sys.executable, "-c", CHILD, room.folder, os.getcwd(), *files]
    assert subprocess.run([str(each) for each in command], check=False, timeout=PATIENCE).returncode == 9
    history = sdk.ModelMessagesTypeAdapter.validate_json(files[0].read_bytes())
    requests = sdk.REQUESTS.validate_json(files[1].read_bytes())
    gate, model = room.open(asks="raise"), sdk.Scripted()
    settled = sdk.results(gate, requests, {"c0": True})
    sdk.agent(model, sdk.gated(gate, [water])).run_sync(
        message_history=history, deferred_tool_results=settled
    )
    assert (did, room.last().result) == ([("roses", 1)], "success")


SERVED = """
import os, sys
from pathlib import Path
sys.path[:0] = sys.argv[2].split(os.pathsep)
from checkrein import Gate
from checkrein.errors import CheckreinError
from doors.library.adapters.pydantic_ground import *

did, folder = [], Path(sys.argv[1])
def water(bed: str) -> str:
    did.append(bed)
    return bed

model = Scripted(("water", {"bed": "roses"}))
with Gate(server=True, asks="raise") as gate:
    ours = agent(model, gated(gate, [water]))
    if not (folder / "history").exists():
        result = ours.run_sync("go")
        (folder / "history").write_bytes(result.all_messages_json())
        (folder / "requests").write_bytes(REQUESTS.dump_json(result.output))
        try:
            results(gate, result.output, {"c0": True})
        except CheckreinError as error:
            print(error, results(gate, result.output).approvals, did)
    else:
        settled = results(gate, REQUESTS.validate_json((folder / "requests").read_bytes()))
        history = ModelMessagesTypeAdapter.validate_json((folder / "history").read_bytes())
        ours.run_sync(message_history=history, deferred_tool_results=settled)
        print(model.heard, did)
"""


def test_with_the_server_only_a_person_answers(tmp_path, home):
    serving = Serving().start()
    try:
        paths = os.pathsep.join(each for each in sys.path if each)
        command = [sys.executable, "-c", SERVED, str(tmp_path), paths]

        def program():
            ended = subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE)
            return ended.stdout

        assert "Only a person may do this" in (said := program()) and said.endswith("{} []\n")
        [question] = serving.ask("question.list")
        serving.ask("question.answer", id=question["id"], answer="approved")
        assert program() == "[('roses', 'success')] ['roses']\n"
    finally:
        serving.kill(15)
