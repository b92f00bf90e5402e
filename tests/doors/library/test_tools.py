"""A function as a gated tool."""

import asyncio
import functools

import pytest

from checkrein.call import DEEPEST
from checkrein.doors.library.tools import is_async, server_for
from checkrein.errors import InputError


async def later():
    return 1


class Caller:
    async def __call__(self):
        return 2


def test_asynchronous_functions_are_told_from_others():
    assert is_async(later) and is_async(functools.partial(later)) and is_async(Caller())
    assert not is_async(print) and not is_async(functools.partial(print))


def test_objects_and_methods_are_tools_too(room):
    gate = room.open()
    assert asyncio.run(gate.wrap(Caller(), name="look", needs_approval=False)()) == 2

    class Garden:
        def water(self, litres):
            return litres

    assert gate.wrap(Garden().water, needs_approval=False)(3) == 3
    assert room.last().tool_input == {"litres": 3}


def test_a_tool_that_yields_cannot_be_gated(room):
    gate = room.open()

    def several():
        yield 1

    async def several_later():
        yield 1

    for each in (several, several_later):
        with pytest.raises(InputError, match="bit by bit"):
            gate.wrap(each)


def test_tools_of_coding_agents_are_judged_as_theirs():
    assert server_for("Bash", "python") is None and server_for("read_file", "python") is None
    assert server_for("look", "python") == "python"


def test_a_call_that_does_not_fit_the_function_is_no_call(room):
    gate = room.open()
    with pytest.raises(TypeError):
        gate.wrap(lambda n: n, name="look")()
    assert room.entries() == []


def test_a_tool_knows_whether_it_was_pinned(room):
    gate = room.open(settings=["doors.library.unmatched=earned"])
    notes = gate.wrap(lambda: "n", name="read_notes", annotations={"readOnlyHint": True, "pinned": True})
    assert notes() == "n"
    assert room.last().risk_category == "low"


def test_a_method_gated_in_its_class(room):
    gate = room.open()

    class Garden:
        litres = 2

        @gate.tool(needs_approval=False)
        def water(self, times):
            return self.litres * times

    assert Garden().water(3) == 6
    assert room.last().tool_input == {"times": 3}


def nested(depth, last="x"):
    for _ in range(depth):
        last = [last]
    return last


def test_what_a_model_nests_too_deep_to_be_looked_at_does_not_run(room):
    gate, ran = room.open(), []
    tool = gate.wrap(ran.append, name="look", needs_approval=False)
    tool(nested(DEEPEST - 1))
    for deep in (nested(DEEPEST), nested(5_000)):
        with pytest.raises(InputError, match="nested more than 128 deep"):
            tool(deep)
        with pytest.raises(InputError, match="nested more than 128 deep"):
            gate.call("look", {"deep": deep}, lambda _arguments: ran.append(1))
    assert len(ran) == 1


@pytest.mark.parametrize("wide", [1, 2])
def test_what_holds_itself_is_described_and_a_tool_that_ran_has_its_outcome(room, wide):
    gate = room.open()
    loop = []
    loop += [loop] * wide
    assert gate.wrap(lambda given: given, name="look", needs_approval=False)(loop) is loop
    entry = room.last()
    assert entry.tool_input == {"given": [repr(loop)] * wide}
    assert (entry.result, entry.output) == ("success", [repr(loop)] * wide)


@pytest.mark.parametrize("depth", [200, 5_000])
def test_a_result_however_deep_is_an_outcome(room, depth):
    made = nested(depth)
    assert room.open().wrap(lambda: made, name="look", needs_approval=False)() is made
    assert room.last().result == "success"
