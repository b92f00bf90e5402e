"""Scripts another server takes up: they are what they were, and nothing runs that nobody allowed."""

import asyncio
import contextlib

import pytest

from checkrein.errors import InputError
from checkrein.pipeline import Pipeline
from checkrein.settings.sources import state_dir
from doors.gateway.house import SERVER
from doors.gateway.scripts.bench import SETTINGS, WAIT, failure, outcome, paused, resumed, run
from patience import soon

# Only this one is asked about; everything else of the profile runs as it comes.
ASKS_STRICT = SETTINGS.replace(WAIT, "wait_seconds = 0.02\n").replace(
    'asklist = ["srv__*"]\n', 'asklist = ["srv__strict"]\n', 1
)


@contextlib.asynccontextmanager
async def another(bench):
    """The server stops, as far as scripts know without a word, and another one opens."""
    await bench.house.close()
    # Another process has no memory of this one's.
    anew = Pipeline(bench.pipeline.store, state_dir(), clock=bench.pipeline.clock)
    bench.pipeline = bench.house.pipeline = anew
    house = await bench.reopened()
    try:
        yield house
    finally:
        await house.close()
        await bench.house.open()


async def ended(bench, run_id):
    await soon(lambda: bench.run_row(run_id).state in ("done", "failed"))


@pytest.mark.invariant("a script that is taken up again is as tainted, and as often refused, as it was")
def test_what_a_script_read_before_the_server_died_still_taints_it(bench):
    """Its next call that goes out is asked about, though the answer that tainted it came from the journal."""
    code = """
await codemode.srv__strict({n: 1});
await codemode.wild__echo({});
try { await codemode.srv__slow({seconds: 3}); } catch (e) {}
try { await codemode.srv__weblookup({}); return "ran"; } catch (e) { return e.reason; }"""

    async def work():
        bench.settings(ASKS_STRICT)
        bench.house.server("srv", trusted=True)
        bench.house.server("wild")
        async with bench.opened():
            guest = await bench.house.guest(answers={})
            said = await paused(guest, code)
            await bench.answer(said["waiting"][0]["question"])
            await soon(lambda: bench.house.ran("slow"))
            async with another(bench) as house:
                await soon(lambda: bench.questions() or bench.run_row(said["run_id"]).state == "done")
                assert bench.run_row(said["run_id"]).state == "waiting"
                assert house.ran("weblookup") == [] and len(bench.questions()) == 1
                assert len(house.ran("echo", "wild")) == 1

    asyncio.run(work())


@pytest.mark.invariant("a script that is taken up again is as tainted, and as often refused, as it was")
def test_refusals_before_the_server_died_are_counted(bench):
    code = """
await codemode.srv__strict({n: 1});
try { await codemode.srv__delete_all({}); } catch (e) {}
try { await codemode.srv__slow({seconds: 3}); } catch (e) {}
await codemode.srv__echo({});
return "went on";"""

    async def work():
        bench.settings(ASKS_STRICT)
        guest = await bench.house.guest(answers={})
        said = await paused(guest, code)
        await bench.answer(said["waiting"][0]["question"])
        await soon(lambda: bench.house.ran("slow"))
        bench.settings(ASKS_STRICT, fatal_denials=1)
        async with another(bench) as house:
            await ended(bench, said["run_id"])
            back = await house.guest()
            found = failure(await resumed(back, said["run_id"]))
            assert found["kind"] == "denied" and house.ran("echo") == []

    run(bench, work)


BATCH = """
const all = await Promise.allSettled([1, 2].map((n) => codemode.srv__echo({n})));
return all.map((each) => each.status === "fulfilled" ? each.value.content[0].text : each.reason.message);"""


@pytest.mark.invariant("edited arguments run exactly as approved, or nothing runs")
@pytest.mark.parametrize("kept", [True, False])
def test_arguments_a_person_wrote_instead_run_or_nothing_does(bench, kept):
    """They are nowhere in the clear; without their key the call as it was first must not run."""
    bench.set(wait_seconds=0.02)

    async def work():
        guest = await bench.house.guest(answers={})
        said = await paused(guest, BATCH, count=2)
        first, second = (each["question"] for each in said["waiting"])
        await bench.answer(first, edited={"n": 7})
        if not kept:
            (state_dir() / "questions.key").unlink()
        async with another(bench) as house:
            await soon(lambda: house.hub.scripts.live[said["run_id"]].questions)
            if kept:
                await bench.answer(second)
            else:
                # Nobody can say yes to a call that cannot be read.
                with pytest.raises(InputError, match="cannot be read"):
                    await bench.answer(second)
                await bench.answer(second, "denied")
            await ended(bench, said["run_id"])
            back = await house.guest()
            found = outcome(await resumed(back, said["run_id"]))
            if kept:
                assert sorted(each["n"] for each in house.ran("echo")) == [2, 7]
                assert found == ['said {"n": 7}', 'said {"n": 2}']
            else:
                assert house.ran("echo") == []
                assert "other arguments" in found[0] and "cannot be read" in found[0]
                record = next(each for each in await house.recorded() if each.id == first)
                assert (record.result, record.evidence) == ("cancelled", "arguments")

    run(bench, work)


@pytest.mark.invariant("a call a person edited is never sent as it was first")
def test_an_edited_call_that_was_under_way_is_not_sent_again_as_it_was_first(bench):
    """Though its tool only reads and the policy allows it by then."""
    source = SERVER.replace('tool("slow")', 'tool("slow", annotations={"readOnlyHint": True})')
    asks = SETTINGS.replace(WAIT, "wait_seconds = 0.02\n")
    code = "try { await codemode.srv__slow({seconds: 0.01}); } catch (e) { return e.message; }"

    async def work():
        bench.settings(asks)
        bench.house.server("srv", source=source, trusted=True)
        async with bench.opened():
            guest = await bench.house.guest(answers={})
            said = await paused(guest, code)
            await bench.answer(said["waiting"][0]["question"], edited={"seconds": 20})
            await soon(lambda: bench.house.ran("slow"))
            bench.settings(asks.replace('asklist = ["srv__*"]\n', ""))
            async with another(bench) as house:
                await ended(bench, said["run_id"])
                assert house.ran("slow") == [{"seconds": 20}]
                back = await house.guest()
                assert "unknown" in outcome(await resumed(back, said["run_id"]))

    asyncio.run(work())


@pytest.mark.parametrize("allowed", [True, False])
def test_a_call_nobody_was_asked_about_is_judged_when_its_script_is_taken_up(bench, allowed):
    """The server ended between putting the script away and asking: nothing of the call had begun."""
    asks = SETTINGS.replace(WAIT, "wait_seconds = 0.02\n")
    code = "try { return (await codemode.srv__echo({})).content[0].text; } catch (e) { return e.reason; }"

    async def work():
        bench.settings(asks)
        guest = await bench.house.guest(answers={})

        async def never(*_given):
            await asyncio.sleep(600)

        bench.hub.scripts._runner._calls.asked = never
        started = asyncio.ensure_future(
            guest.raw("tools/call", {"name": "codemode_eval_supervised", "arguments": {"code": code}})
        )
        await soon(lambda: bench.begun() and bench.last_run().state == "waiting")
        run_id = bench.last_run().id
        now = 'denylist = ["srv__delete_*"]' if allowed else 'denylist = ["srv__echo"]'
        bench.settings(asks.replace('denylist = ["srv__delete_*"]\nasklist = ["srv__*"]', now))
        async with another(bench) as house:
            await asyncio.gather(started, return_exceptions=True)
            await ended(bench, run_id)
            back = await house.guest()
            found = outcome(await resumed(back, run_id))
            assert found == ("said {}" if allowed else "denied")
            assert len(house.ran("echo")) == (1 if allowed else 0)
            (row,) = bench.rows(run_id)
            assert row.state == ("done" if allowed else "denied")

    run(bench, work)


@pytest.mark.invariant("an answer from the journal goes only to the very call it was an answer to")
def test_an_answer_that_the_store_gives_to_another_tool_ends_the_script(bench):
    code = """
await codemode.srv__strict({n: 1});
const said = await codemode.srv__echo({n: 2});
try { await codemode.srv__slow({seconds: 20}); } catch (e) {}
return said.content[0].text;"""

    async def work():
        bench.settings(ASKS_STRICT)
        guest = await bench.house.guest(answers={})
        said = await paused(guest, code)
        await bench.answer(said["waiting"][0]["question"])
        await soon(lambda: bench.house.ran("slow"))
        sql = "UPDATE run_call SET tool = 'srv__read_notes' WHERE run = ? AND tool = 'srv__echo'"
        bench.pipeline.store.write(lambda tx: tx.execute(sql, (said["run_id"],)))
        async with another(bench) as house:
            await ended(bench, said["run_id"])
            back = await house.guest()
            assert failure(await resumed(back, said["run_id"]))["kind"] == "diverged"
            assert len(house.ran("echo")) == 1

    run(bench, work)
