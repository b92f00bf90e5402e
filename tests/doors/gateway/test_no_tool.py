"""A tool nobody offers: what is said of it depends on how its server does."""

import asyncio

import pytest

from checkrein.doors.gateway import hub as hub_module
from doors.gateway.moved_loop import pass_seconds
from doors.gateway.moved_loop import run as run_on_moved_loop
from patience import soon

SLOW, BROKEN = "import time\ntime.sleep(600)", "raise SystemExit(3)"
YET = "There is no tool 'late__echo' yet: its server 'late' is starting. Try again in a moment."
DOWN = "There is no tool 'late__echo': its server 'late' does not run."


@pytest.mark.parametrize(("source", "said"), [(SLOW, YET), (BROKEN, DOWN)], ids=["starting", "broken"])
def test_whoever_calls_hears_that_the_server_is_not_up(house, monkeypatch, source, said):
    monkeypatch.setattr(hub_module, "SETTLE_SECONDS", 0.2)
    house.server()

    async def main():
        async with house.opened() as hub:
            guest = await house.guest()
            house.server("late", source=source)
            hub.fleet.look()
            there = ("starting",) if source == SLOW else ("waiting", "failed")
            await soon(lambda: hub.fleet.keeper("late").status()["state"] in there)
            for _ in range(6 if source == BROKEN else 0):
                # Until it is tried again so late that it waits all the while. The other one is in use.
                await guest.ask("resources/read", {"uri": "note://one"})
                await pass_seconds(45)
                await soon(lambda: hub.fleet.keeper("late").status()["state"] == "waiting")
            error = await guest.error("tools/call", {"name": "late__echo", "arguments": {}})
            assert error["message"].startswith(said)
            for unknown in ("srv__nothing", "nobody__echo", "nothing"):
                error = await guest.error("tools/call", {"name": unknown, "arguments": {}})
                assert error["message"] == f"There is no tool {unknown!r}."

    run_on_moved_loop(main())


def test_a_name_nobody_offers_adds_nothing_to_what_is_said(house):
    house.server()

    async def main():
        async with house.opened():
            guest = await house.guest()
            error = await guest.error("tools/call", {"name": "srv__x\n\x1b[2J" + "y" * 500, "arguments": {}})
            assert "\n" not in error["message"] and "\x1b" not in error["message"]
            assert len(error["message"]) < 300

    asyncio.run(main())
