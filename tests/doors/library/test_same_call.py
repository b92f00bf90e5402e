"""What runs is what was judged: arguments, functions and names that could come to stand for others."""

import asyncio
import functools
import math
from pathlib import Path

import msgspec
import pytest

from checkrein import Suspended
from checkrein.doors.library.arguments import plain
from checkrein.errors import InputError

LOOK = '[[rules]]\naction = "allow"\ntool = "look"\n'


class Opaque:
    """Nothing JSON can hold; what it says of itself changes."""

    def __init__(self):
        self.seen = 0

    def __repr__(self):
        self.seen += 1
        return f"<seen {self.seen} times>"


# -- arguments that change ----------------------------------------------------------------------------------


def test_arguments_that_change_while_a_condition_is_awaited_do_not_run(room, user_settings):
    user_settings(LOOK)
    gate, ran, given = room.open(), [], [1]
    asked, may_answer = asyncio.Event(), asyncio.Event()

    async def needs(_given):
        asked.set()
        await may_answer.wait()
        return False

    async def look(at):
        ran.append(list(at))

    async def main():
        task = asyncio.create_task(gate.wrap(look, needs_approval=needs)(given))
        await asked.wait()
        given.append(2)
        may_answer.set()
        with pytest.raises(InputError, match="arguments changed"):
            await task

    asyncio.run(main())
    assert (ran, room.last().result) == ([], "cancelled")


@pytest.mark.parametrize("by_name", [True, False])
def test_a_condition_that_changes_what_it_looks_at_runs_nothing(room, user_settings, by_name):
    user_settings(LOOK)
    gate, ran = room.open(), []

    def needs(given):
        given["at"].append("elsewhere")
        return False

    with pytest.raises(InputError, match="arguments changed"):
        if by_name:
            gate.call(gate.spec("look", needs_approval=needs), {"at": ["home"]}, ran.append)
        else:
            gate.wrap(lambda at: ran.append((at,)), name="look", needs_approval=needs)(["home"])
    assert (ran, room.last().result) == ([], "cancelled")


def test_an_argument_json_cannot_hold_hides_no_change_of_another(room, later):
    gate, ran, rows = room.open(), [], [1]
    pick = gate.wrap(lambda rows, on: ran.append(rows), name="pick")
    came = later(pick, rows, Opaque())
    question = room.question()
    rows.append(2)
    gate.answer(question["id"], "yes")
    with pytest.raises(InputError, match="arguments changed"):
        came()
    assert ran == []


def test_an_argument_that_describes_itself_anew_is_no_change(room, later):
    gate = room.open()
    came = later(gate.wrap(lambda rows, on: len(rows), name="pick"), [1, 2], {"a": [Opaque()]})
    gate.answer(room.question()["id"], "yes")
    assert came() == 2


# -- arguments that are rebuilt -----------------------------------------------------------------------------


def test_a_person_who_edits_one_argument_leaves_the_others_as_they_were(room, later):
    gate, on = room.open(), Opaque()
    pick = gate.wrap(lambda n, on, raw, **more: (n, on, raw, more), name="pick")
    came = later(functools.partial(pick, 1, on, b"\x00", extra=(1,)))
    question = room.question()
    shown = gate.authority.pipeline.broker.call(question["id"]).arguments
    gate.answer(question["id"], "yes", edited={**shown, "n": 2})
    assert came() == (2, on, b"\x00", {"extra": (1,)})


class Login(msgspec.Struct):
    name: str
    word: str = ""


@pytest.mark.parametrize("given", [b"hello", math.inf, math.nan, {1: "a", "1": "b"}, Login("ada")])
def test_what_could_not_be_given_back_as_it_was_does_not_wait_elsewhere(room, given):
    gate = room.open(asks="raise")
    with pytest.raises(InputError, match="cannot wait"):
        gate.wrap(lambda data: data, name="pick")(given)
    assert gate.pending() == []


@pytest.mark.parametrize("given", [(1, 2), {"b": {3}}, "text", None, 1.5])
def test_what_is_given_back_in_the_words_of_json_may_wait(room, given):
    gate = room.open(asks="raise")
    with pytest.raises(Suspended) as waiting:
        gate.wrap(lambda data: data, name="pick")(given)
    gate.answer(waiting.value.pending, "yes")
    assert gate.resume(waiting.value.pending.json()) == plain(given, [])


def test_a_secret_that_hides_itself_is_never_run_as_stars(room):
    pydantic = pytest.importorskip("pydantic")

    class Key(pydantic.BaseModel):
        value: pydantic.SecretStr

    def pick(key):
        return key.value.get_secret_value()

    pick.__annotations__["key"] = Key
    gate = room.open(asks="raise")
    with pytest.raises(InputError, match="cannot wait"):
        gate.wrap(pick)(Key(value="s3cret"))


def test_two_keys_that_read_alike_do_not_stand_for_one_another():
    opaque = []
    shown = plain({"rows": {1: "kept", "1": "gone"}}, opaque)
    assert opaque == ["rows"] and "kept" in shown["rows"] and "gone" in shown["rows"]


# -- what is part of a call ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["self", "cls"])
def test_a_parameter_of_a_plain_function_is_judged_whatever_its_name(room, name):
    gate, space = room.open(asks="return"), {}
    exec(f"def pick({name}, n=1):\n    return {name}", space)
    gate.wrap(space["pick"])("rm -rf /")
    assert room.last().tool_input == {name: "rm -rf /", "n": 1}


# -- names that collide -------------------------------------------------------------------------------------


class Account:
    def __init__(self):
        self.gone = 0

    def pick(self, n):
        self.gone += n
        return self.gone


def test_an_approval_runs_no_other_function_of_the_same_name(room):
    gate, mine, yours = room.open(asks="raise"), Account(), Account()
    pick = gate.wrap(mine.pick)
    gate.wrap(yours.pick)
    with pytest.raises(Suspended) as waiting:
        pick(5)
    gate.answer(waiting.value.pending, "yes")
    with pytest.raises(InputError, match="Several functions"):
        gate.resume(waiting.value.pending)
    assert (mine.gone, yours.gone) == (0, 0)
    assert gate.resume(waiting.value.pending, run=lambda given: mine.pick(**given)) == 5


def test_a_function_wrapped_again_is_the_same_one(room):
    gate, mine = room.open(asks="raise"), Account()
    pick = gate.wrap(mine.pick)
    gate.wrap(mine.pick)
    with pytest.raises(Suspended) as waiting:
        pick(5)
    gate.answer(waiting.value.pending, "yes")
    assert gate.resume(waiting.value.pending) == 5


def test_no_tool_of_one_server_takes_the_name_of_anothers(room, user_settings):
    user_settings('[[rules]]\naction = "allow"\npattern = "mcp__garden__*"\n')
    gate, ran = room.open(asks="return"), []
    with pytest.raises(InputError, match="no name for a tool of evil"):
        gate.call(gate.spec("mcp__garden__look", server="evil"), {}, ran.append)
    assert (ran, room.entries()) == ([], [])
    gate.call(gate.spec("mcp__garden__look", server="garden"), {"n": 1}, ran.append)
    assert (ran, room.last().tool_name) == ([{"n": 1}], "mcp__garden__look")


@pytest.mark.parametrize(("given", "edited"), [(1, True), (0, False), (1, 1.0)])
def test_an_edit_that_python_takes_for_equal_is_an_edit(room, later, given, edited):
    gate = room.open()
    came = later(gate.wrap(lambda n: n, name="pick"), given)
    gate.answer(room.question()["id"], "yes", edited={"n": edited})
    assert repr(came()) == repr(edited)


def test_models_inside_other_types_are_given_back_as_they_were(room):
    pydantic = pytest.importorskip("pydantic")

    class Item(pydantic.BaseModel):
        name: str

    def pick(items, best=None):
        return [each.name for each in items], best

    pick.__annotations__ |= {"items": list[Item], "best": Item | None}
    gate = room.open(asks="raise")
    with pytest.raises(Suspended) as waiting:
        gate.wrap(pick)([Item(name="a")], Item(name="b"))
    gate.answer(waiting.value.pending, "yes")
    assert gate.resume(waiting.value.pending.json()) == (["a"], Item(name="b"))


def test_models_inside_other_types_are_checked(room, later):
    pydantic = pytest.importorskip("pydantic")

    class Item(pydantic.BaseModel):
        name: str

    def pick(items):
        return items

    pick.__annotations__ |= {"items": list[Item]}
    gate = room.open()
    came = later(gate.wrap(pick), [Item(name="a")])
    gate.answer(room.question()["id"], "yes", edited={"items": [{"name": 3}]})
    with pytest.raises(InputError, match="does not fit"):
        came()
    assert room.last().result == "cancelled"


def test_paths_inside_other_types_are_given_back_as_they_were(room):
    def pick(at: list[Path], to: Path | None = None):
        return at, to

    gate = room.open(asks="raise")
    with pytest.raises(Suspended) as waiting:
        gate.wrap(pick)([Path("a")], Path("b"))
    gate.answer(waiting.value.pending, "yes")
    assert gate.resume(waiting.value.pending.json()) == ([Path("a")], Path("b"))
