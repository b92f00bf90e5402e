"""Many scripts of one client that come in the same moment: they are counted like any others."""

import asyncio

from checkrein.doors.gateway.scripts import desk as desk_module
from doors.gateway.scripts.bench import evaluate, run


def test_a_client_gets_no_more_scripts_by_starting_them_all_at_once(bench, monkeypatch):
    monkeypatch.setattr(desk_module, "MOST_LIVE", 2)

    async def work():
        guest = await bench.house.guest()
        code = "await codemode.srv__slow({seconds: 1}); return 1"
        found = await asyncio.gather(*(evaluate(guest, code) for _ in range(6)))
        assert sum("isError" not in each for each in found) == 2
        assert len(bench.house.ran("slow")) == 2
        # Those that are over make room.
        assert "isError" not in await evaluate(guest, "return 1")

    run(bench, work)
