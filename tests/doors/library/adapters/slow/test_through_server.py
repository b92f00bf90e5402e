"""Each framework's adapter with the user's server as its authority: only a person lets a call run, once."""

import importlib.util
import json
import sys

import pytest

from doors.library.adapters.programs import stepping
from server.conftest import Serving

HEAD = """
import asyncio, json, os, sys
from pathlib import Path
sys.path[:0] = json.loads(sys.argv[2])
from checkrein import Gate

folder = Path(sys.argv[1])
options = {"server": True, "asks": "raise", "project": folder, "cwd": folder}

def noted(to):
    with (folder / "booked").open("a") as file:
        file.write(to + "\\n")
    return f"booked {to}"
"""

OPENAI = """
from agents import Agent, RunConfig, Runner, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call
from checkrein.doors.library.adapters.openai_agents import Approvals

@function_tool
def book(to: str) -> str:
    return noted(to)

async def main(step):
    turns = [[function_call("book", {"to": "ada"}, call_id="c1")]] if step == "begin" else []
    model, quiet = ScriptedModel([*turns, [assistant_message("done")]]), RunConfig(tracing_disabled=True)
    with Gate(**options) as gate:
        approvals = Approvals(gate)
        agent = Agent(name="clerk", model=model, tools=approvals.tools([book]))
        if step == "begin":
            result = await Runner.run(agent, "go", run_config=quiet)
            (folder / "kept").write_text(approvals.keep(result))
            return len(result.interruptions)
        state = await approvals.restore(agent, (folder / "kept").read_text())
        if step == "early":
            return len((await approvals.settle(state)).get_interruptions())
        result = await Runner.run(agent, await approvals.settle(state), run_config=quiet)
        told = [each for each in model.last_call.input if each.get("type") == "function_call_output"]
        return told[0]["output"]
"""

CLAUDE = """
from checkrein.doors.library.adapters.claude_agent import Approvals
from doors.library.adapters.claude_ground import after, before, judged, told
from checkrein.errors import CheckreinError

async def main(step):
    with Gate(**options) as gate:
        async with Approvals(gate) as approvals:
            if step != "begin":
                approvals.restore((folder / "kept").read_text())
            if step == "early":
                try:
                    gate.answer(approvals.waiting[0], "yes")
                except CheckreinError:
                    pass
            given = before("mcp__desk__book", {"to": "ada"}, step, cwd=str(folder))
            said = await judged(approvals, given)
            if step == "begin":
                (folder / "kept").write_text(approvals.keep())
            if said["permissionDecision"] == "wait":
                return 1
            if said["permissionDecision"] == "allow":
                came = noted("ada")
                await told(approvals, after(step))
                return came
            return said["permissionDecisionReason"]
"""

ADK = """
from google.adk.sessions.sqlite_session_service import SqliteSessionService
from checkrein.doors.library.adapters.google_adk import gated
from doors.library.adapters.adk_ground import House, asked, call, confirm

def book(to: str) -> str:
    return noted(to)

async def main(step):
    sessions = SqliteSessionService(str(folder / "sessions.db"))
    turns = [call("book", "c1", to="ada")] if step == "begin" else []
    with Gate(**options) as gate:
        house = House(gated(gate, [book]), *turns, sessions=sessions)
        if step == "begin":
            (folder / "asked").write_text(json.dumps(asked(await house.say())))
        if step in ("begin", "early"):
            return len(gate.pending())
        ids = json.loads((folder / "asked").read_text())
        await house.say(confirm(ids["c1"]))
        return str(house.model.told()["c1"]) if house.model.requests else "used before"
"""

MCP = """
from mcp import Client
from mcp.server.mcpserver import MCPServer
from checkrein import Denied, Suspended
from checkrein.doors.library.adapters.mcp_session import GatedSession

server = MCPServer("desk")

@server.tool()
def book(to: str) -> str:
    return noted(to)

async def main(step):
    with Gate(**options) as gate:
        async with Client(server) as client:
            session = GatedSession(gate, client, server="desk")
            try:
                if step == "begin":
                    await session.call_tool("book", {"to": "ada"})
                return (await session.resume((folder / "kept").read_text())).content[0].text
            except Suspended as waiting:
                (folder / "kept").write_text(waiting.pending.json())
                return 1
"""

PROGRAMS = {"agents": OPENAI, "claude_agent_sdk": CLAUDE, "google.adk": ADK, "mcp": MCP}


@pytest.fixture
def serving(home):
    made = Serving().start()
    yield made
    made.kill(15)


def installed(name):
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:
        return False


@pytest.mark.parametrize("name", PROGRAMS)
def test_only_a_person_lets_a_call_run_and_it_runs_once(name, tmp_path, serving):
    if not installed(name):
        pytest.skip(f"{name} is not installed: its adapter is UNTESTED with the server")
    paths, booked = json.dumps([each for each in sys.path if each]), tmp_path / "booked"
    with stepping(HEAD + PROGRAMS[name], tmp_path, paths) as step:
        assert (step("begin"), step("early")) == (1, 1)
        assert not booked.exists()
        [question] = serving.ask("question.list")
        serving.ask("question.answer", id=question["id"], answer="approved")
        assert "booked ada" in step("go_on")
        assert "used before" in step("again") and booked.read_text(encoding="utf-8") == "ada\n"
    [finished] = [each for each in serving.records("finished") if each["entry"] == question["id"]]
    assert finished["data"]["outcome"] == "success"
