"""Many scripts of one client that come in the same moment: they are counted like any others."""

import asyncio

from checkrein.doors.gateway.scripts import desk as desk_module
from doors.gateway.scripts.bench import HELD, evaluate, run
from patience import soon


def test_a_client_gets_no_more_scripts_by_starting_them_all_at_once(bench, monkeypatch):
    monkeypatch.setattr(desk_module, "MOST_LIVE", 2)

    async def work():
        guest = await bench.house.guest()
        code = "await codemode.srv__slow({}); return 1"
        started = [asyncio.ensure_future(evaluate(guest, code)) for _ in range(6)]
        await soon(lambda: len(bench.house.ran("slow")) == 2 and sum(each.done() for each in started) == 4)
        bench.release()
        found = await asyncio.gather(*started)
        assert sum("isError" not in each for each in found) == 2
        assert len(bench.house.ran("slow")) == 2
        # Those that are over make room.
        assert "isError" not in await evaluate(guest, "return 1")

    run(bench, work, source=HELD)
