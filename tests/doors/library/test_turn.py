"""One call's way: what happens when a person, a tool or the record does not do what is hoped for."""

import asyncio

import pytest

from checkrein.errors import InputError
from patience import soon, until


def test_a_cancelled_task_withdraws_its_question(room):
    gate = room.open()

    @gate.tool(name="pick")
    async def pick(n):
        return n

    async def main():
        task = asyncio.create_task(pick(1))
        await soon(gate.pending)
        entry = gate.pending()[0]["id"]
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return entry

    entry = asyncio.run(main())
    until(lambda: gate.pending() == [], failing="the question stays open")
    assert (room.last().id, room.last().answer, room.last().message) == (
        entry,
        "cancelled",
        "the program stopped waiting",
    )
    with pytest.raises(InputError, match="waits for no answer"):
        gate.answer(entry, "yes")


def test_whoever_answers_for_the_program_may_fail_and_nothing_runs(room):
    ran = []

    def person(question):
        raise OSError("the line is dead")

    gate = room.open(answer_with=person)
    with pytest.raises(OSError, match="the line is dead"):
        gate.wrap(ran.append, name="pick")(1)
    assert (ran, gate.pending(), room.last().answer) == ([], [], "cancelled")


def test_whoever_answers_for_the_program_may_leave_it_to_others(room, later):
    gate = room.open(answer_with=lambda question: None)
    coming = later(gate.wrap(lambda n: n, name="pick"), 1)
    gate.answer(room.question(), "yes")
    assert coming() == 1


def test_arguments_that_change_while_a_person_is_asked_do_not_run(room, later):
    ran, given = [], {"rows": [1]}
    gate = room.open()
    coming = later(gate.wrap(ran.append, name="drop"), given)
    question = room.question()
    given["rows"].append(2)
    gate.answer(question, "yes")
    with pytest.raises(InputError, match="arguments changed after"):
        coming()
    assert ran == []
    assert (room.last().answer, room.last().started_at) == ("approved", None)


def test_what_json_cannot_hold_cannot_wait_elsewhere_but_can_wait_here(room, later):
    thing = object()
    gate = room.open(asks="raise")
    with pytest.raises(InputError, match="`thing` is nothing JSON can hold"):
        gate.wrap(lambda thing: thing, name="pick")(thing)
    assert room.last().answer == "cancelled"
    coming = later(gate.wrap(lambda thing: thing, name="pick", asks="wait"), thing)
    gate.answer(room.question(), "yes")
    assert coming() is thing


def test_arguments_that_change_while_an_allow_is_recorded_do_not_run(room, user_settings):
    """High risk waits for the disk; meanwhile others run on the loop."""
    user_settings('[[rules]]\naction = "allow"\ntool = "delete_rows"\n')
    gate, ran, given = room.open(), [], {"rows": [1]}

    async def delete_rows(given):
        ran.append(given)

    async def main():
        task = asyncio.create_task(gate.wrap(delete_rows)(given))
        await asyncio.sleep(0)
        given["rows"].append(2)
        with pytest.raises(InputError, match="arguments changed"):
            await task

    asyncio.run(main())
    assert (ran, room.last().result) == ([], "cancelled")
