"""Scripts that are taken back at the worst of moments: while something of them is being written."""

import asyncio

import pytest

from doors.gateway.scripts.bench import paused, run
from patience import PATIENCE, soon

CODE = "return (await codemode.srv__echo({})).content[0].text"
CALL = {"name": "codemode_eval_supervised", "arguments": {"code": CODE}}


def slow_to_write(journal, skipped=0):
    """Make the disk slow after so many writes: what is written is, but is heard of when it is fast again."""
    real, written, heard = journal._write, asyncio.Event(), asyncio.Event()
    left = skipped

    async def late(work, **more):
        nonlocal left
        found = await real(work, **more)
        if left:
            left -= 1
            return found
        written.set()
        await heard.wait()
        return found

    journal._write = late

    def fast_again():
        journal._write = real
        heard.set()

    return written, fast_again


@pytest.mark.parametrize("skipped", [0, 1], ids=["at its start", "when it is put away"])
def test_a_script_that_is_taken_back_while_it_is_written_down_ends(bench, skipped):
    async def work():
        guest = await bench.house.guest(answers={})
        # The first row is that of its start, the second is written when it is put away.
        written, fast_again = slow_to_write(bench.hub.scripts.journal, skipped)
        started = asyncio.ensure_future(guest.raw("tools/call", CALL))
        await asyncio.wait_for(written.wait(), PATIENCE)
        guest.cancel(guest.last)
        await asyncio.sleep(0)
        fast_again()
        assert await started is None
        await soon(lambda: bench.last_run().state == "cancelled")
        assert not bench.hub.scripts.live and not bench.questions() and bench.house.ran("echo") == []

    run(bench, work)


@pytest.mark.invariant("writes come one after another, so that this one sees all that was under way before")
@pytest.mark.parametrize("word", ["approved", "denied"])
def test_a_script_that_is_ended_while_it_goes_on_ends(bench, word):
    """The person answered, the run is claimed, and at that very moment somebody ends it."""
    bench.set(wait_seconds=0.02)

    async def work():
        guest = await bench.house.guest(answers={})
        said = await paused(guest, CODE)
        written, fast_again = slow_to_write(bench.hub.scripts.journal)
        await bench.answer(said["waiting"][0]["question"], word)
        await asyncio.wait_for(written.wait(), PATIENCE)
        assert bench.run_row(said["run_id"]).state == "running"
        ending = asyncio.ensure_future(bench.hub.scripts.cancel(said["run_id"], "enough"))
        await asyncio.sleep(0)
        fast_again()
        await ending
        assert bench.run_row(said["run_id"]).state == "cancelled"
        assert not bench.hub.scripts.live and bench.house.ran("echo") == []

    run(bench, work)


def test_a_question_that_is_put_while_its_script_ends_goes_with_it(bench):
    async def work():
        guest = await bench.house.guest(answers={})
        calls, reached, heard = bench.hub.scripts._runner._calls, asyncio.Event(), asyncio.Event()
        real = calls.asked

        async def late(run, pending):
            found = await real(run, pending)
            reached.set()
            await heard.wait()
            return found

        calls.asked = late
        started = asyncio.ensure_future(guest.raw("tools/call", CALL))
        await asyncio.wait_for(reached.wait(), PATIENCE)
        assert len(bench.questions()) == 1
        guest.cancel(guest.last)
        await asyncio.sleep(0)
        heard.set()
        assert await started is None
        await soon(lambda: bench.last_run().state == "cancelled")
        assert not bench.questions()

    run(bench, work)
