"""A hundred scripts of several clients that all wait for people."""

import asyncio

from doors.gateway.scripts.bench import handed_in, run
from patience import soon

TOOL = "codemode_eval_supervised"


def test_a_hundred_scripts_wait_without_a_process(bench):
    bench.set(wait_seconds=0, asks_per_minute=1000)

    async def work():
        guests = [await bench.house.guest(answers={}, owner=f"test:{n}") for n in range(10)]
        code = "await codemode.srv__echo(n=%d)"
        for n in range(100):
            await handed_in(guests[n % 10], code % n, TOOL, language="python")
        await soon(lambda: len(bench.questions()) == 100)
        engine = bench.hub.scripts.engines.of("python")
        await soon(lambda: not engine._sessions)
        assert len(bench.hub.scripts.live) == 100
        await asyncio.gather(*(bench.answer(entry) for entry in bench.questions()))
        await soon(lambda: not bench.hub.scripts.live)
        assert sorted(each["n"] for each in bench.house.ran("echo")) == list(range(100))

    run(bench, work)
