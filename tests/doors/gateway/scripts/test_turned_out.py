"""A client whose token is taken back: what it has open ends at once, and its scripts are open."""

import asyncio

import pytest

from doors.gateway.scripts.bench import evaluate, outcome, paused, run
from patience import soon

ASKS = "return (await codemode.srv__echo({})).content[0].text"
LOOPS = "for (let n = 0; ; n++) { await codemode.srv__slow({seconds: 0.2, n}); }"


def test_scripts_that_wait_end_and_nobody_is_asked_about_them_any_more(bench):
    bench.set(wait_seconds=0.02)

    async def work():
        guest = await bench.house.guest(owner="http:1", answers={})
        other = await bench.house.guest(owner="http:2", answers={})
        mine, theirs = await paused(guest, ASKS), await paused(other, ASKS)
        bench.hub.turn_out("http:1")
        await soon(lambda: bench.run_row(mine["run_id"]).state == "cancelled")
        assert bench.questions() == [theirs["waiting"][0]["question"]]
        await bench.answer(theirs["waiting"][0]["question"])
        await soon(lambda: bench.run_row(theirs["run_id"]).state == "done")
        assert len(bench.house.ran("echo")) == 1

    run(bench, work)


@pytest.mark.parametrize("stateless", [False, True])
def test_scripts_that_run_call_nothing_more(bench, stateless):
    async def work():
        guest = bench.house.passing(owner="http:1") if stateless else await bench.house.guest(owner="http:1")
        call = {"name": "eval", "arguments": {"code": LOOPS}}
        started = asyncio.ensure_future(guest.raw("tools/call", call))
        await soon(lambda: bench.house.ran("slow"))
        bench.hub.turn_out("http:1")
        await asyncio.gather(started, return_exceptions=True)
        await soon(lambda: bench.last_run().state == "cancelled")
        called = len(bench.house.ran("slow"))
        other = await bench.house.guest(owner="http:2")
        assert outcome(await evaluate(other, "return 1")) == 1
        assert len(bench.house.ran("slow")) == called

    run(bench, work)
