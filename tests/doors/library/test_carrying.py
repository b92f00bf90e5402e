"""A call that may run: what its tool does with it is its outcome, and what cannot run does not."""

import asyncio
import logging

import pytest

from checkrein import Denied
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


def test_a_cancelled_tool_is_recorded_as_cancelled(gate, room):
    async def main():
        started = asyncio.Event()

        async def look():
            started.set()
            await asyncio.sleep(600)

        task = asyncio.create_task(gate.wrap(look)())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert room.last().result == "cancelled"


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
