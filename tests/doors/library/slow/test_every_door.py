"""Every case of the behaviour suite through every other door: hooks, gateway, and a server of the user's."""

import asyncio

import pytest

from checkrein.settings.sources import state_dir
from checkrein.store.sqlite import SqliteStore
from doors.gateway.house import House
from doors.library import rooms
from doors.library.behaviour import CASES, essence, expected, project_for, seed_trust
from server.conftest import Serving


def ids(case):
    return case.id


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_hooks(case, tmp_path, pipeline):
    heard, entry = rooms.hooks(case, tmp_path, pipeline)
    assert heard == expected(case), entry.reasons
    assert essence(entry) == essence(rooms.embedded(case, tmp_path / "library")[1])


def test_the_server(home):
    """One server and one program for all: what one case leaves behind changes no other."""
    projects = {case.id: project_for(case, home) for case in CASES}
    store = SqliteStore.open(state_dir())
    for case in CASES:
        seed_trust(case, store, projects[case.id])
    store.close()
    serving = Serving().start()
    room = rooms.RemoteRoom(serving)
    try:
        wrong = {}
        for case in CASES:
            heard, data = room.call(case, projects[case.id])
            same = essence(data) == essence(rooms.embedded(case, home / "library")[1])
            if heard != expected(case) or not same:
                wrong[case.id] = heard, data["reasons"]
        assert not wrong
    finally:
        room.close()
        serving.kill(15)


@pytest.mark.parametrize(
    "case", [case for case in CASES if case.at_gateway and not case.project_file], ids=ids
)
def test_gateway(case, tmp_path, pipeline):
    house = House(pipeline, tmp_path)
    house.server()

    async def main():
        async with house.opened():
            return await rooms.gateway(case, house)

    heard, entry = asyncio.run(main())
    assert heard == expected(case), entry.reasons
    assert essence(entry) == essence(rooms.embedded(case, tmp_path / "library")[1])
