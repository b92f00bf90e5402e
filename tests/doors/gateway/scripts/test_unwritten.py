"""Ends of scripts that cannot be written down: tried again, so that no run stays behind for ever."""

import pytest

from checkrein.doors.gateway.scripts import desk as desk_module
from doors.gateway.scripts.bench import evaluate, handed_in, outcome, resumed, run
from patience import soon


@pytest.mark.invariant("no run stays behind that nobody drives")
@pytest.mark.parametrize("code", ["return 1", "throw new Error('no')"])
def test_a_run_whose_end_could_not_be_written_ends_when_it_can_be(bench, monkeypatch, code):
    monkeypatch.setattr(desk_module, "_AGAIN_SECONDS", 0.05, raising=False)
    full, refused = True, 0

    async def work():
        nonlocal full, refused
        guest = await bench.house.guest()
        journal = bench.hub.scripts.journal
        real = journal._write

        async def write(doing, **more):
            nonlocal refused
            if full and bench.begun():
                refused += 1
                raise OSError("database or disk is full")
            return await real(doing, **more)

        journal._write = write
        bench.set(wait_seconds=0.02)
        said = (await handed_in(guest, code))["structuredContent"]
        # Its own end was to be written, and then why it failed.
        await soon(lambda: refused > 1)
        # It is not over before that is on the record.
        assert said["status"] == "running" and bench.last_run().state == "running"
        full = False
        await soon(lambda: bench.last_run().state == "failed")
        final = await resumed(guest, said["run_id"])
        assert final["isError"] and final["structuredContent"]["error"]["kind"] == "crash"
        bench.set()
        assert not bench.hub.scripts.live and outcome(await evaluate(guest, "return 1")) == 1

    run(bench, work)
