"""Calls that no function of their own stands for: called, decided, resumed."""

import asyncio

import pytest

from checkrein import Suspended

LOOK = '[[rules]]\naction = "allow"\ntool = "look"\n'


def test_a_call_without_a_function_of_its_own(room, user_settings):
    user_settings(LOOK)
    gate = room.open(asks="raise")
    assert gate.call("mcp__garden__look", {"at": "tree"}, lambda given: given["at"]) == "tree"
    spec = gate.spec("drop", server="garden", needs_approval=True)
    with pytest.raises(Suspended) as suspended:
        gate.call(spec, {"n": 1}, lambda given: given["n"])
    gate.answer(suspended.value.pending, "yes", edited={"n": 2})
    assert gate.resume(suspended.value.pending, run=lambda given: given["n"], spec=spec) == 2

    async def main():
        async def run(given):
            return given["at"]

        assert await gate.call_async("mcp__garden__look", {"at": "bed"}, run, call_id="c1") == "bed"
        with pytest.raises(Suspended) as waiting:
            await gate.call_async(spec, {"at": "gate"}, run)
        gate.answer(waiting.value.pending, "yes")
        return await gate.resume_async(waiting.value.pending, run=run, spec=spec)

    assert asyncio.run(main()) == "gate"
    assert "c1" in [each.call_id for each in room.entries()]


def test_a_verdict_alone_and_what_became_of_it(room, user_settings):
    user_settings(LOOK)
    gate = room.open()
    decided = gate.decide("mcp__garden__look", {})
    assert decided.verdict.word == "allow" and room.last().result == "unknown"
    gate.finish(decided.entry, "failure", output={"why": "fog"}, evidence="tool error")
    assert (room.last().result, room.last().evidence) == ("failure", "tool error")
    assert gate.decide("Bash", {"command": "rm -rf /"}).verdict.word == "deny"
    asked = asyncio.run(gate.decide_async("mcp__garden__drop", {}))
    assert asked.asked and asked.entry == gate.pending()[0]["id"]
    assert asyncio.run(gate.decide_async("Bash", {"command": "rm -rf /"})).verdict.word == "deny"
