"""A gate around plain MCP client sessions, with the real SDK and real servers."""

import asyncio
import contextlib
import os
import subprocess
import sys

import pytest

from checkrein import Denied, Suspended
from checkrein.errors import InputError
from checkrein.testing import ScriptedGate, edit
from doors.library import rooms
from doors.library.adapters.pages import page_of
from doors.library.behaviour import CASES
from patience import PATIENCE

pytest.importorskip("mcp", reason="The MCP SDK is not installed: its adapter is UNTESTED")

import mcp_types as types
from mcp import Client, ClientSession, StdioServerParameters, stdio_client
from mcp.server.lowlevel import Server

from checkrein.doors.library.adapters.mcp_session import GatedSession

SCHEMA = {"type": "object", "additionalProperties": True}
STDIO = """
import sys
from mcp.server.mcpserver import MCPServer
server = MCPServer("garden")

@server.tool()
def water(bed: str, litres: int = 1) -> str:
    with open(sys.argv[1], "a") as file:
        file.write(f"{bed} {litres}\\n")
    return f"{bed} has {litres}"

server.run()
"""


class House:
    """A server in this process: every tool it is told to have, and what they did."""

    def __init__(self, *names, hints=None):
        self.did, self.hints, self.description = [], hints, "A tool."
        self.names = names or ("water", "dig", "ask_back")
        self.server = Server("garden", on_list_tools=self._list, on_call_tool=self._call)

    async def _list(self, _ctx, params):
        # One tool to a page.
        at = int(params.cursor) if params is not None and params.cursor else 0
        hints = types.ToolAnnotations(**self.hints) if self.hints else None
        tool = types.Tool(
            name=self.names[at], description=self.description, input_schema=SCHEMA, annotations=hints
        )
        following = str(at + 1) if at + 1 < len(self.names) else None
        return types.ListToolsResult(tools=[tool], next_cursor=following)

    async def _call(self, _ctx, params):
        given = params.arguments or {}
        self.did.append((params.name, given))
        return types.CallToolResult(
            content=[types.TextContent(type="text", text=f"{params.name} done")],
            is_error=params.name == "dig",
        )

    @contextlib.asynccontextmanager
    async def session(self, gate, **options):
        options.setdefault("server", "garden")
        async with Client(self.server) as client:
            yield GatedSession(gate, client.session, **options)


def allow(user_settings, *tools):
    user_settings("".join(f'[[rules]]\naction = "allow"\ntool = "{tool}"\n' for tool in tools))


def text(result):
    return result.content[0].text


def test_what_a_rule_allows_runs_without_asking(room, user_settings):
    allow(user_settings, "water")
    house = House()

    async def main():
        async with house.session(room.open(asks="raise")) as session:
            assert (await session.list_tools()).tools[0].name == "water"
            return await session.call_tool("water", {"bed": "roses"})

    result = asyncio.run(main())
    assert (text(result), house.did) == ("water done", [("water", {"bed": "roses"})])
    entry = room.last()
    assert (entry.tool_name, entry.verdict, entry.stage, entry.result) == (
        "mcp__garden__water",
        "allow",
        "rules",
        "success",
    )
    assert entry.output["content"][0]["text"] == "water done"


def test_a_refusal_and_its_reason_are_an_error_result(room, user_settings):
    user_settings('[[rules]]\naction = "deny"\ntool = "water"\nreason = "It rains."\n')
    house = House()

    async def main():
        gate = room.open(asks="raise")
        async with house.session(gate) as session:
            result = await session.call_tool("water", {})
        async with house.session(gate, denials="raise") as session:
            with pytest.raises(Denied):
                await session.call_tool("water", {})
        return result

    result = asyncio.run(main())
    assert result.is_error and "Checkrein refused this call" in text(result) and house.did == []
    assert [each.result for each in room.entries()] == ["denied", "denied"]


def test_a_question_is_kept_and_another_program_goes_on_once(room):
    house = House()

    async def ask(gate):
        async with house.session(gate) as session:
            with pytest.raises(Suspended) as suspended:
                await session.call_tool("water", {"bed": "roses"})
            return suspended.value.pending

    async def resume(gate, kept):
        async with house.session(gate) as session:
            try:
                return await session.resume(kept)
            except Suspended as still:
                return still

    kept = asyncio.run(ask(room.open(asks="raise"))).json()
    still = asyncio.run(resume(room.open(asks="raise"), kept))
    room.gate.answer(still.pending, "yes", actor="grace")
    gate = room.open(asks="raise")
    assert text(asyncio.run(resume(gate, kept))) == "water done"
    again = asyncio.run(resume(gate, kept))
    assert again.is_error and "used before" in text(again)
    assert house.did == [("water", {"bed": "roses"})]
    entry = room.entries()[0]
    assert (entry.answer, entry.actor, entry.result) == ("approved", "grace", "success")


def test_an_answer_binds_to_the_exact_call_and_tool(room):
    house = House()

    async def main():
        gate = room.open(asks="raise")
        async with house.session(gate) as session:
            with pytest.raises(Suspended) as suspended:
                await session.call_tool("water", {"bed": "roses"})
            kept = suspended.value.pending
            gate.answer(kept, "yes")
            with pytest.raises(InputError, match="no question about this call"):
                await session.resume(kept.json().replace("roses", "lawns"))
            with pytest.raises(InputError, match=r"no question about this call|not the tool"):
                await session.resume(kept.json().replace('"tool":"water"', '"tool":"dig"'))
            # The server makes another tool of it after the yes.
            house.description = "A tool that also digs."
            with pytest.raises(InputError, match="not the tool a person was asked about"):
                await session.resume(kept)
        async with house.session(gate, server="shed") as session:
            with pytest.raises(InputError, match="not the tool a person was asked about"):
                await session.resume(kept)

    asyncio.run(main())
    assert house.did == []


def test_parallel_calls_are_answered_one_by_one(garden_answers):
    house = House()

    async def main():
        with ScriptedGate(garden_answers) as gate:
            async with house.session(gate) as session:
                calls = [session.call_tool("water", {"bed": bed}) for bed in "abcd"]
                return await asyncio.gather(*calls)

    first, second, third, fourth = asyncio.run(main())
    assert sorted(given["bed"] for _, given in house.did) == ["c", "z"]
    assert text(first) == text(third) == "water done"
    assert second.is_error and "They say: it rains" in text(second)
    assert (text(fourth), fourth.is_error) == ("it is wet", False)


@pytest.fixture
def garden_answers():
    said = {
        "a": edit(bed="z"),
        "b": lambda _: "no: it rains",
        "c": lambda _: "yes",
        "d": lambda _: "answer: it is wet",
    }
    return lambda question: said[question["arguments"]["bed"]](question)


def test_outcomes_earn_and_cost_trust(room):
    house = House()

    async def main():
        gate = room.open(settings=["doors.library.unmatched=earned"], asks="raise")
        async with house.session(gate, needs_approval=False) as session:
            await session.call_tool("water", {})
            assert (await session.call_tool("dig", {})).is_error

    asyncio.run(main())
    good, bad = room.entries()
    assert (good.result, bad.result, bad.evidence) == ("success", "failure", "tool error")
    assert bad.trust_score_after < good.trust_score_after


def test_a_servers_word_lowers_no_risk_unless_a_person_vouches(room):
    house = House("fetch", hints={"readOnlyHint": True, "pinned": True})

    async def main():
        gate = room.open(asks="raise", settings=["doors.library.unmatched=earned"])
        for trusted in (False, True):
            async with house.session(gate, trusted=trusted) as session:
                with contextlib.suppress(Suspended):
                    await session.call_tool("fetch", {})

    asyncio.run(main())
    first, second = room.entries()
    assert (first.risk_category, second.risk_category) != ("low", "medium")
    assert first.risk_category != "low" and second.risk_category == "low"


def test_what_is_not_a_result_yet_earns_nothing(room, user_settings):
    allow(user_settings, "ask_back")

    class Asks:
        async def list_tools(self, cursor=None):
            return types.ListToolsResult(tools=[])

        async def call_tool(self, name, arguments):
            return types.InputRequiredResult(request_state="s")

    async def main():
        return await GatedSession(room.open(), Asks(), server="garden").call_tool("ask_back")

    assert isinstance(asyncio.run(main()), types.InputRequiredResult)
    assert room.last().result == "cancelled"


def test_nothing_leads_past_the_gate_by_accident(room):
    house = House()

    async def main():
        async with Client(house.server) as client:
            gated = GatedSession(room.open(asks="raise"), client, server="garden")
            for name in ("session", "send_request"):
                with pytest.raises(AttributeError, match="past the gate"):
                    getattr(gated, name)
            assert gated.server_capabilities == client.server_capabilities
            with pytest.raises(Suspended):
                await gated.call_tool("water", {})

    asyncio.run(main())
    assert house.did == []


CHILD = """
import asyncio, os, sys
sys.path[:0] = sys.argv[4].split(os.pathsep)
from checkrein import Gate, Suspended
from doors.library.adapters.test_mcp_session import over_stdio

async def call(session):
    try:
        await session.call_tool("water", {"bed": "roses"})
    except Suspended as suspended:
        open(sys.argv[3], "w").write(suspended.pending.json())

asyncio.run(over_stdio(Gate(sys.argv[1], asks="raise"), sys.argv[2], call))
os._exit(9)
"""


async def over_stdio(gate, file, work):
    parameters = StdioServerParameters(command=sys.executable, args=["-c", STDIO, file])
    async with stdio_client(parameters) as (read, write), ClientSession(read, write) as session:
        await session.initialize()
        return await work(GatedSession(gate, session, server="garden"))


def test_a_process_that_dies_while_it_waits_loses_nothing(room, tmp_path):
    """Real processes: a program and its server die, others go on."""
    did, kept = tmp_path / "did", tmp_path / "kept"
    paths = os.pathsep.join(each for each in sys.path if each)
    command = [sys.executable, "-c", CHILD, str(room.folder), str(did), str(kept), paths]
    assert subprocess.run(command, check=False, timeout=PATIENCE).returncode == 9
    gate, waits = room.open(asks="raise"), kept.read_text()
    gate.answer(gate.waits(waits), "yes")
    result = asyncio.run(over_stdio(gate, str(did), lambda session: session.resume(waits)))
    assert (text(result), did.read_text()) == ("roses has 1", "roses 1\n")
    assert room.last().result == "success"


# -- the behaviour suite ------------------------------------------------------------------------------------


async def through(case, folder):
    house = House(case.name)
    with rooms.gate_for(case, folder) as gate:
        async with house.session(gate, server=case.server) as session:
            try:
                word = "deny" if (await session.call_tool(case.name, case.arguments)).is_error else "allow"
            except Suspended:
                word = "ask"
        return rooms.heard_at(gate, word, bool(house.did))


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_the_suite(case, tmp_path):
    found = asyncio.run(through(case, tmp_path / "adapter"))
    rooms.check_adapter(case, *found, tmp_path / "bare")


def test_the_examples_in_the_docs_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "garden_server.py").write_text(STDIO.replace("sys.argv[1]", "'did'"))
    names = page_of("library-mcp.md")
    names["gate"].close()
    assert (tmp_path / "did").read_text() == "moss 1\n"
    assert capsys.readouterr().out == "moss has 1\n"
