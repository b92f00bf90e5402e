"""Where scripts are handed in: who may, how many, for how long they are kept."""

import asyncio
from types import SimpleNamespace

import pytest

from checkrein.doors.gateway.scripts import desk as desk_module
from checkrein.errors import InputError, NotFoundError
from doors.gateway.scripts.bench import evaluate, outcome, paused, run
from patience import soon

CODE = "return (await codemode.srv__echo({})).content[0].text"


def test_one_client_has_so_many_scripts_at_once(bench, monkeypatch):
    monkeypatch.setattr(desk_module, "MOST_LIVE", 2)
    bench.set(wait_seconds=0.02)

    async def work():
        guest = await bench.house.guest(answers={})
        for n in range(2):
            await paused(guest, CODE.replace("{}", f"{{n: {n}}}"))
        assert "already" in (await evaluate(guest, CODE))["content"][0]["text"]
        other = await bench.house.guest(owner="test:2")
        assert outcome(await evaluate(other, CODE)) == "said {}"

    run(bench, work)


def test_a_script_that_is_too_long_is_not_even_kept(bench):
    async def work():
        guest = await bench.house.guest()
        assert (await evaluate(guest, "//" + "x" * (65 << 10)))["isError"]
        assert bench.pipeline.store.query("SELECT id FROM run") == []

    run(bench, work)


def test_what_nobody_came_back_for_goes(bench, clock):
    bench.set(wait_seconds=0.02)

    async def work():
        guest = await bench.house.guest(answers={})
        said = await paused(guest, CODE)
        done = (await evaluate(guest, "return 1"))["structuredContent"]
        clock.pass_days(7.5)
        await bench.hub.scripts.sweep()
        assert bench.run_row(done["run_id"]) is not None
        clock.pass_days(1)
        await bench.hub.scripts.sweep()
        assert bench.run_row(done["run_id"]) is None
        assert bench.run_row(said["run_id"]).state == "cancelled" and not bench.questions()

    run(bench, work)


def test_a_run_of_a_server_that_is_open_is_not_woken(bench):
    bench.set(wait_seconds=0.02)

    async def work():
        guest = await bench.house.guest(answers={})
        said = await paused(guest, CODE)
        house = await bench.reopened()
        try:
            assert said["run_id"] not in house.hub.scripts.live
        finally:
            await house.close()

    run(bench, work)


def test_ending_what_is_not_there_or_over_is_said(bench):
    async def work():
        guest = await bench.house.guest()
        done = (await evaluate(guest, "return 1"))["structuredContent"]
        with pytest.raises(NotFoundError):
            await bench.hub.scripts.cancel("run-nobody", "x")
        with pytest.raises(InputError):
            await bench.hub.scripts.cancel(done["run_id"], "x")

    run(bench, work)


def test_a_sandbox_that_cannot_start_is_said(bench, monkeypatch):
    async def work():
        guest = await bench.house.guest()

        async def broken(*_given, **_more):
            raise RuntimeError("no room")

        monkeypatch.setattr(bench.hub.scripts.engines.of("python"), "open", broken)
        result = await evaluate(guest, "1", language="python")
        assert result["structuredContent"]["error"]["kind"] == "crash" and bench.house.said
        assert outcome(await evaluate(guest, "return 1")) == 1

    run(bench, work)


@pytest.mark.parametrize("up", [1.0, 1e6])
def test_looking_sweeps_now_and_then(bench, clock, monkeypatch, up):
    """Also on a machine that has just been started."""
    monkeypatch.setattr(desk_module, "time", SimpleNamespace(monotonic=lambda: up))

    async def work():
        guest = await bench.house.guest()
        done = (await evaluate(guest, "return 1"))["structuredContent"]
        clock.pass_days(30)
        bench.hub.scripts.look()
        await soon(lambda: bench.run_row(done["run_id"]) is None)
        again = (await evaluate(guest, "return 1"))["structuredContent"]
        clock.pass_days(30)
        bench.hub.scripts.look()
        await asyncio.sleep(0)
        assert bench.run_row(again["run_id"]) is not None

    run(bench, work)


@pytest.mark.invariant("a run is shown to whoever started it, and to people")
def test_another_client_hears_nothing_of_a_run(bench):
    async def work():
        guest = await bench.house.guest()
        done = (await evaluate(guest, "return 'mine'"))["structuredContent"]
        other = await bench.house.guest(owner="test:2")
        refused = await other.call("resume_run", {"run_id": done["run_id"]})
        assert refused == await other.call("resume_run", {"run_id": "run-nobody"}) and refused["isError"]
        assert (await bench.hub.scripts.people.run(done["run_id"]))["result"]["result"] == "mine"

    run(bench, work)
