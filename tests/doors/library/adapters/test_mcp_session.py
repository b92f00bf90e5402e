"""A gate around plain MCP client sessions, with the real SDK and real servers."""

import asyncio
import contextlib

import pytest

from checkrein import Denied, Suspended
from checkrein.errors import InputError
from checkrein.testing import ScriptedGate, edit
from doors.library import rooms
from doors.library.adapters.lazily import Lazily
from doors.library.behaviour import PATHS

sdk = Lazily("doors.library.adapters.mcp_ground")


@pytest.fixture(autouse=True, scope="module")
def framework():
    """The framework is imported when the first test runs, not when tests are collected."""
    pytest.importorskip("mcp", reason="The MCP SDK is not installed: its adapter is UNTESTED")


def allow(user_settings, *tools):
    user_settings("".join(f'[[rules]]\naction = "allow"\ntool = "{tool}"\n' for tool in tools))


def test_what_a_rule_allows_runs_without_asking(room, user_settings):
    allow(user_settings, "water")
    house = sdk.House()

    async def main():
        async with house.session(room.open(asks="raise")) as session:
            assert (await session.list_tools()).tools[0].name == "water"
            return await session.call_tool("water", {"bed": "roses"})

    result = asyncio.run(main())
    assert (sdk.text(result), house.did) == ("water done", [("water", {"bed": "roses"})])
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
    house = sdk.House()

    async def main():
        gate = room.open(asks="raise")
        async with house.session(gate) as session:
            result = await session.call_tool("water", {})
        async with house.session(gate, denials="raise") as session:
            with pytest.raises(Denied):
                await session.call_tool("water", {})
        return result

    result = asyncio.run(main())
    assert result.is_error and "Checkrein refused this call" in sdk.text(result) and house.did == []
    assert [each.result for each in room.entries()] == ["denied", "denied"]


def test_a_question_is_kept_and_another_program_goes_on_once(room):
    house = sdk.House()

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
    assert sdk.text(asyncio.run(resume(gate, kept))) == "water done"
    again = asyncio.run(resume(gate, kept))
    assert again.is_error and "used before" in sdk.text(again)
    assert house.did == [("water", {"bed": "roses"})]
    entry = room.entries()[0]
    assert (entry.answer, entry.actor, entry.result) == ("approved", "grace", "success")


def test_an_answer_binds_to_the_exact_call_and_tool(room):
    house = sdk.House()

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
    house = sdk.House()

    async def main():
        with ScriptedGate(garden_answers) as gate:
            async with house.session(gate) as session:
                calls = [session.call_tool("water", {"bed": bed}) for bed in "abcd"]
                return await asyncio.gather(*calls)

    first, second, third, fourth = asyncio.run(main())
    assert sorted(given["bed"] for _, given in house.did) == ["c", "z"]
    assert sdk.text(first) == sdk.text(third) == "water done"
    assert second.is_error and "They say: it rains" in sdk.text(second)
    assert (sdk.text(fourth), fourth.is_error) == ("it is wet", False)


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
    house = sdk.House()

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
    house = sdk.House("fetch", hints={"readOnlyHint": True, "pinned": True})

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
            return sdk.types.ListToolsResult(tools=[])

        async def call_tool(self, name, arguments):
            return sdk.types.InputRequiredResult(request_state="s")

    async def main():
        return await sdk.GatedSession(room.open(), Asks(), server="garden").call_tool("ask_back")

    assert isinstance(asyncio.run(main()), sdk.types.InputRequiredResult)
    assert room.last().result == "cancelled"


def test_nothing_leads_past_the_gate_by_accident(room):
    house = sdk.House()

    async def main():
        async with sdk.Client(house.server) as client:
            gated = sdk.GatedSession(room.open(asks="raise"), client, server="garden")
            for name in ("session", "send_request"):
                with pytest.raises(AttributeError, match="past the gate"):
                    getattr(gated, name)
            assert gated.server_capabilities == client.server_capabilities
            with pytest.raises(Suspended):
                await gated.call_tool("water", {})

    asyncio.run(main())
    assert house.did == []


# -- the behaviour suite ------------------------------------------------------------------------------------


async def through(case, folder):
    house = sdk.House(case.name)
    with rooms.gate_for(case, folder) as gate:
        async with house.session(gate, server=case.server) as session:
            try:
                word = "deny" if (await session.call_tool(case.name, case.arguments)).is_error else "allow"
            except Suspended:
                word = "ask"
        return rooms.heard_at(gate, word, bool(house.did))


@pytest.mark.parametrize("case", PATHS, ids=lambda case: case.id)
def test_the_suite(case, tmp_path):
    found = asyncio.run(through(case, tmp_path / "adapter"))
    rooms.check_adapter(case, *found, tmp_path / "bare")
