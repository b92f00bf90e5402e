"""What is on the record of a call is what became of it, whoever stops, forks or comes late."""

import asyncio
import copy
import os
import threading

import pytest

from checkrein import Denied, Suspended
from checkrein.doors.library.denial import Refusal
from checkrein.doors.library.reports import Reports
from checkrein.errors import CheckreinError, InputError
from patience import PATIENCE, soon

LOOK = '[[rules]]\naction = "allow"\ntool = "look"\n'


async def given_up(room, call, there, go):
    """Cancel a call once it is there, let it go on, and wait until the record says that it was."""
    task = asyncio.create_task(call)
    await soon(there.is_set)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    go.set()
    await soon(lambda: room.entries() and room.last().result == "cancelled")


@pytest.fixture
def gate(room, user_settings):
    user_settings(LOOK)
    return room.open()


# -- results that come later --------------------------------------------------------------------------------


async def fails(why):
    await asyncio.sleep(0)
    raise ValueError(why)


def test_a_plain_function_that_gives_a_coroutine_is_over_when_that_is(gate, room):
    look = gate.wrap(lambda: fails("no"), name="look")

    async def main():
        coming = look()
        assert room.last().result == "unknown"
        with pytest.raises(ValueError, match="no"):
            await coming

    asyncio.run(main())
    assert room.last().result == "failure"


def test_a_call_that_is_carried_out_later_is_over_later(gate, room):
    async def run(given):
        return given["n"] + 1

    async def main():
        coming = gate.call("look", {"n": 1}, run)
        assert room.last().result == "unknown"
        assert await coming == 2

    asyncio.run(main())
    assert room.last().result == "success"


class Yields:
    def __call__(self):
        yield 1


class YieldsLater:
    async def __call__(self):
        yield 1


@pytest.mark.parametrize("tool", [Yields(), YieldsLater(), lambda: (each for each in (1,))])
def test_a_result_that_comes_bit_by_bit_is_no_success(gate, room, tool):
    with pytest.raises(InputError, match="bit by bit"):
        gate.wrap(tool, name="look")()
    assert [each for each in room.entries() if each.result == "success"] == []


# -- stopping -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("word", ["ask", "allow"])
def test_a_task_cancelled_while_it_is_judged_leaves_nothing_open(room, user_settings, word, monkeypatch):
    # High risk is recorded away from the loop, and so is every question.
    user_settings(f'[[rules]]\naction = "{word}"\ntool = "delete_rows"\n')
    gate, ran, go, there = room.open(), [], threading.Event(), threading.Event()
    commit = gate.authority.pipeline.commit

    def slow(evaluation):
        there.set()
        assert go.wait(PATIENCE)
        return commit(evaluation)

    monkeypatch.setattr(gate.authority.pipeline, "commit", slow)

    async def delete_rows(n):
        ran.append(n)

    asyncio.run(given_up(room, gate.wrap(delete_rows)(1), there, go))
    assert (ran, gate.pending(), room.last().result) == ([], [], "cancelled")


def test_a_task_cancelled_while_its_yes_is_taken_is_recorded_as_cancelled(room, monkeypatch):
    gate, ran, go, there = room.open(answer_with=lambda _: "yes"), [], threading.Event(), threading.Event()
    take = gate.authority.take

    def slow(*given):
        there.set()
        assert go.wait(PATIENCE)
        return take(*given)

    monkeypatch.setattr(gate.authority, "take", slow)

    async def pick(n):
        ran.append(n)

    asyncio.run(given_up(room, gate.wrap(pick)(1), there, go))
    assert (ran, room.last().result) == ([], "cancelled")


# -- forks --------------------------------------------------------------------------------------------------


def test_a_forked_program_uses_up_no_yes(room):
    gate = room.open(asks="raise")
    pick = gate.wrap(lambda n: n, name="pick")
    with pytest.raises(Suspended) as waiting:
        pick(1)
    gate.answer(waiting.value.pending, "yes")
    child = os.fork()
    if not child:
        try:
            gate.resume(waiting.value.pending)
            os._exit(1)
        except CheckreinError as error:
            os._exit(0 if "forked" in str(error) else 2)
        finally:
            os._exit(3)
    assert os.waitpid(child, 0)[1] == 0
    assert gate.resume(waiting.value.pending) == 1


# -- reports ------------------------------------------------------------------------------------------------


def test_an_outcome_that_comes_while_others_are_recorded_is_not_lost():
    recorded = []
    reports = Reports(recorded.extend)

    class Late(type(reports._waiting)):
        def append(self, outcome):
            # Another thread records what there is, at the worst moment.
            reports.flush()
            super().append(outcome)

    reports._waiting = Late()
    reports.add("one")
    reports.close()
    assert recorded == ["one"]


def test_a_call_that_nobody_let_run_earns_nothing(room):
    gate = room.open(asks="raise")
    decided = gate.decide("pick", {"n": 1})
    assert decided.verdict.word == "ask"
    with pytest.raises(InputError, match="may not have run"):
        gate.finish(decided.entry, "success")
    assert room.kinds(decided.entry) == ["decided", "asked"]
    gate.answer(decided.entry, "no")
    with pytest.raises(InputError, match="may not have run"):
        gate.finish(decided.entry, "failure")


def test_a_second_answer_leaves_the_first_ones_arguments(room):
    gate = room.open(asks="raise")
    with pytest.raises(Suspended) as waiting:
        gate.wrap(lambda n: n, name="pick")(1)
    kept = waiting.value.pending
    gate.answer(kept, "yes", edited={"n": 2})
    with pytest.raises(InputError):
        gate.answer(kept, "yes", edited={"n": 3})
    gate = room.open(asks="raise")
    gate.wrap(lambda n: n, name="pick")
    assert gate.resume(kept) == 2


def test_an_answer_that_does_not_count_leaves_no_arguments_behind(room):
    gate = room.open(asks="raise")
    with pytest.raises(Suspended) as waiting:
        gate.wrap(lambda n: n, name="pick")(1)
    gate.answer(waiting.value.pending, "no")
    with pytest.raises(InputError):
        gate.answer(waiting.value.pending, "yes", edited={"n": "s3cret"})
    assert room.pipeline.store.query("SELECT DISTINCT sealed_edit FROM question") == [("",)]
    assert not (room.folder / "edits").exists()


def test_an_approved_call_whose_arguments_changed_is_over(room, later):
    gate, rows = room.open(), [1]
    came = later(gate.wrap(len, name="pick"), rows)
    question = room.question()
    rows.append(2)
    gate.answer(question["id"], "yes")
    with pytest.raises(InputError, match="arguments changed"):
        came()
    assert room.last().result == "cancelled"


def test_what_waits_and_what_was_refused_are_copied_as_they_are(room):
    gate = room.open(asks="raise")
    with pytest.raises(Suspended) as waiting:
        gate.wrap(lambda n: n, name="pick")(1)
    again = copy.copy(waiting.value)
    assert (again.pending, str(again)) == (waiting.value.pending, str(waiting.value))
    with pytest.raises(Denied) as refused:
        gate.wrap(lambda: 1, name="send_money")()
    refusal = copy.copy(Refusal.of(refused.value))
    assert (refusal, refusal.denied.verdict) == (refused.value.text, refused.value.verdict)
