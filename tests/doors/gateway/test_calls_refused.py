"""A person refuses a tool while a call of it waits: what was accepted then is not what may run now."""

import asyncio

import pytest

from doors.gateway.house import told
from patience import soon

YES = {"action": "accept", "content": {}}


def refuse(house, tool="echo"):
    picks = [
        {"kind": each["kind"], "name": each["name"], "hash": each["hash"]}
        for each in house.hub.catalogue.review("srv")
        if each["name"] == tool
    ]
    assert picks
    house.hub.catalogue.refuse("srv", picks, "ada")


def waiting(house, work):
    async def main():
        house.server()
        async with house.opened():
            guest = await house.guest()
            guest.answers = {}
            task = asyncio.ensure_future(guest.call("srv__echo", {"x": 1}))
            await soon(lambda: guest.asked)
            await work(guest, task)

    asyncio.run(main())


@pytest.mark.parametrize("how", ["refused", "taken away"])
@pytest.mark.invariant("a yes is to the tool as it was accepted when it was asked about")
def test_a_tool_refused_between_question_and_answer_does_not_run(house, how):
    async def work(guest, task):
        if how == "refused":
            refuse(house)
        else:
            house.hub.catalogue.withdraw("srv")
        guest.reply(guest.asked[0], YES)
        result = await task
        assert result["isError"] and house.ran("echo") == [], told(result)
        entry = await house.last()
        assert (entry.verdict, entry.stage) == ("deny", "definition")

    waiting(house, work)


def test_a_tool_accepted_all_along_runs_once_it_is_approved(house):
    async def work(guest, task):
        refuse(house, "slow")
        guest.reply(guest.asked[0], YES)
        assert told(await task) == 'said {"x": 1}' and house.ran("echo") == [{"x": 1}]

    waiting(house, work)
