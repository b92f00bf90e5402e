"""One call's way: what happens when a person, a tool or the record does not do what is hoped for."""

import asyncio
import logging

import pytest

from checkrein import Denied, Suspended
from checkrein.errors import InputError, StoreError


@pytest.fixture
def gate(room, user_settings):
    user_settings('[[rules]]\naction = "allow"\ntool = "look"\n')
    return room.open()


def raising(error):
    def tool():
        raise error

    return tool


@pytest.mark.parametrize(
    ("error", "result"),
    [
        (ValueError("x"), "failure"),
        (TimeoutError(), "timeout"),
        (KeyboardInterrupt(), "cancelled"),
        (SystemExit(1), "cancelled"),
    ],
)
def test_what_a_tool_raises_is_its_outcome_and_reaches_the_program(gate, room, error, result):
    with pytest.raises(type(error)):
        gate.wrap(raising(error), name="look")()
    assert room.last().result == result


def test_a_result_can_be_a_failure(gate, room):
    look = gate.wrap(lambda ok: {"isError": not ok}, name="look", failed=lambda found: found["isError"])
    look(True)
    look(False)
    assert [each.result for each in room.entries()] == ["success", "failure"]
    gate.wrap(lambda: 3, name="look", failed=lambda found: found["isError"])()
    assert room.last().result == "failure"


def test_a_cancelled_task_withdraws_its_question(room):
    gate = room.open()

    @gate.tool(name="pick")
    async def pick(n):
        return n

    async def main():
        task = asyncio.create_task(pick(1))
        while not gate.pending():
            await asyncio.sleep(0.005)
        entry = gate.pending()[0]["id"]
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return entry

    entry = asyncio.run(main())
    assert gate.pending() == []
    assert (room.last().id, room.last().answer, room.last().message) == (
        entry,
        "cancelled",
        "the program stopped waiting",
    )
    with pytest.raises(InputError, match="waits for no answer"):
        gate.answer(entry, "yes")


def test_a_cancelled_tool_is_recorded_as_cancelled(gate, room):
    async def main():
        started = asyncio.Event()

        async def look():
            started.set()
            await asyncio.sleep(60)

        task = asyncio.create_task(gate.wrap(look)())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert room.last().result == "cancelled"


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


def test_edited_arguments_that_do_not_fit_the_tool_do_not_run(room, later):
    ran = []

    def pick(n: int):
        ran.append(n)

    gate = room.open()
    for edited in ({"n": "many"}, {"m": 1}, {}):
        coming = later(gate.wrap(pick), 1)
        gate.answer(room.question(), "yes", edited=edited)
        with pytest.raises(InputError):
            coming()
    assert ran == []
    # Nothing ran, so nothing costs trust.
    assert {(each.result, each.evidence) for each in room.entries()} == {("cancelled", "arguments")}


def test_an_outcome_that_cannot_be_recorded_takes_no_result_away(gate, monkeypatch, caplog):
    def full(*_given):
        raise StoreError("The disk is full.")

    monkeypatch.setattr(gate.authority, "finish", full)
    with caplog.at_level(logging.WARNING):
        assert gate.wrap(lambda: 3, name="look")() == 3
    assert "could not be recorded" in caplog.text


def test_a_refused_inner_call_is_a_failure_of_the_outer(gate, room):
    inner = gate.wrap(lambda command: 1, name="Bash")
    with pytest.raises(Denied):
        gate.wrap(lambda: inner("rm -rf /"), name="look")()
    assert [(each.tool_name, each.result) for each in room.entries()] == [
        ("mcp__python__look", "failure"),
        ("Bash", "denied"),
    ]


def test_the_same_wait_can_be_returned_instead_of_raised(room):
    gate = room.open(asks="return")
    found = gate.wrap(lambda n: n, name="pick")(1)
    assert isinstance(found, Suspended) and found.entry == gate.pending()[0]["id"]
    assert found.pending.verdict.word == "ask" and "Checkrein asks" in str(found)


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
