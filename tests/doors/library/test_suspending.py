"""A tool that stops to be told something, and goes on: here, later, elsewhere, once."""

import asyncio

import msgspec
import pytest

from checkrein import Denied, Suspended, suspend
from checkrein.errors import InputError


class Ask(msgspec.Struct):
    reason: str


class Approved(msgspec.Struct):
    approved: bool


@pytest.fixture
def gate(room, user_settings):
    user_settings('[[rules]]\naction = "allow"\npattern = "*"\n')
    return room.open()


def transfer(amount: int):
    """Seed 004's tool: large amounts stop."""
    if amount > 1000:
        told = suspend(Ask(f"{amount} is a lot"), resume=Approved)
        if not told.approved:
            return "cancelled"
    return f"moved {amount}"


SCHEMAS = {"suspend_schema": Ask, "resume_schema": Approved}


def stopped(tool, *given):
    with pytest.raises(Suspended) as suspended:
        tool(*given)
    return suspended.value.pending


def test_a_tool_stops_and_goes_on_with_what_it_is_told(gate, room):
    move = gate.wrap(transfer, name="shift", **SCHEMAS)
    assert move(10) == "moved 10"
    pending = stopped(move, 5000)
    assert (pending.kind, pending.payload, pending.step) == ("suspended", {"reason": "5000 is a lot"}, 1)
    assert gate.resume(pending.json(), {"approved": True}) == "moved 5000"
    assert room.kinds(pending.entry) == ["decided", "suspended", "resumed", "finished"]
    assert gate.resume(stopped(move, 5000), Approved(False)) == "cancelled"


def test_resuming_twice_goes_on_once(gate):
    move = gate.wrap(transfer, name="shift", **SCHEMAS)
    pending = stopped(move, 5000)
    gate.resume(pending, {"approved": True})
    with pytest.raises(Denied, match="does not wait to go on"):
        gate.resume(pending, {"approved": True})


def test_it_goes_on_in_another_program(gate, room):
    pending = stopped(gate.wrap(transfer, name="shift", **SCHEMAS), 5000).json()
    gate = room.open()
    gate.wrap(transfer, name="shift", **SCHEMAS)
    assert gate.resume(pending, {"approved": True}) == "moved 5000"
    assert room.last().result == "success"


def test_what_does_not_fit_is_refused_before_anything_goes_on(gate):
    move = gate.wrap(transfer, name="shift", **SCHEMAS)
    pending = stopped(move, 5000)
    for wrong in ({"approved": "yes"}, {}, None, object()):
        with pytest.raises(InputError):
            gate.resume(pending, wrong)
    assert gate.resume(pending, {"approved": True}) == "moved 5000"


def test_other_arguments_or_another_tool_do_not_go_on(gate):
    move = gate.wrap(transfer, name="shift", **SCHEMAS)
    gate.wrap(transfer, name="other", **SCHEMAS)
    pending = stopped(move, 5000).json()
    for changed in (pending.replace("5000}", "9000}"), pending.replace('"shift"', '"other"')):
        with pytest.raises(Denied, match="does not wait to go on"):
            gate.resume(changed, {"approved": True})


def test_several_stops_each_get_their_own_answer(gate):
    def plan():
        return [suspend("when?"), suspend("where?"), suspend("who?")]

    gate.wrap(plan)
    first = stopped(gate.wrap(plan))
    second = stopped(gate.resume, first, "today")
    with pytest.raises(Denied):
        gate.resume(first, "tomorrow")
    third = stopped(gate.resume, second, "here")
    assert (third.payload, third.told) == ("who?", ("today", "here"))
    assert gate.resume(third, None) == ["today", "here", None]


def test_a_rule_that_came_meanwhile_stops_it(gate, user_settings):
    pending = stopped(gate.wrap(transfer, name="shift", **SCHEMAS), 5000)
    user_settings('[[rules]]\naction = "deny"\npattern = "*"\n')
    with pytest.raises(Denied) as denied:
        gate.resume(pending, {"approved": True})
    assert denied.value.verdict.stage == "rules"


def test_automatic_resume(room, user_settings):
    user_settings('[[rules]]\naction = "allow"\npattern = "*"\n')
    seen = []

    def tell(pending):
        seen.append(pending.payload)
        return {"approved": True} if len(seen) == 1 else None

    gate = room.open(auto_resume=tell)
    move = gate.wrap(transfer, name="shift", **SCHEMAS)
    assert move(5000) == "moved 5000"
    assert stopped(move, 6000).payload == {"reason": "6000 is a lot"}

    async def later(pending):
        await asyncio.sleep(0)
        return {"approved": False}

    async def transfer_later(amount: int):
        return transfer(amount)

    gate = room.open(auto_resume=later)
    assert asyncio.run(gate.wrap(transfer_later, name="shift", **SCHEMAS)(5000)) == "cancelled"


def test_asynchronous_tools_stop_too(gate):
    async def plan(n: int):
        await asyncio.sleep(0)
        return n, suspend({"n": n}, resume=int)

    tool = gate.wrap(plan)

    async def main():
        with pytest.raises(Suspended) as one:
            await tool(1)
        with pytest.raises(Suspended) as two:
            await tool(2)
        return await asyncio.gather(gate.resume(two.value.pending, 20), gate.resume(one.value.pending, 10))

    assert asyncio.run(main()) == [(2, 20), (1, 10)]


def test_a_tool_cannot_swallow_its_stop(gate, room):
    def greedy():
        try:
            suspend("please")
        except BaseException:
            return "I went on"

    with pytest.raises(InputError, match="went on although"):
        gate.wrap(greedy)()
    assert room.last().result == "failure"

    def stubborn():
        try:
            return suspend("please")
        except Exception:
            return "I went on"

    assert stopped(gate.wrap(stubborn)).payload == "please"

    def twice():
        try:
            suspend("please")
        except BaseException:
            return suspend("again")

    assert stopped(gate.wrap(twice)).payload == "please"


def test_what_a_tool_says_must_be_json_and_fit(gate):
    for said, schema in ((object(), None), ({"other": 1}, Ask)):
        with pytest.raises(InputError):
            gate.wrap(lambda said=said: suspend(said), name="say", suspend_schema=schema)()


def test_suspend_outside_a_tool_is_an_error():
    with pytest.raises(InputError, match="inside a tool"):
        suspend("x")


def test_an_approved_and_edited_call_that_stops_goes_on_as_it_was_edited(gate, room, later):
    move = gate.wrap(transfer, name="shift", needs_approval=True, **SCHEMAS)
    coming = later(move, 10)
    gate.answer(room.question(), "yes", edited={"amount": 7000})
    pending = stopped(coming)
    assert pending.call.arguments == {"amount": 7000}
    gate = room.open()
    gate.wrap(transfer, name="shift", needs_approval=True, **SCHEMAS)
    assert gate.resume(pending, {"approved": True}) == "moved 7000"
