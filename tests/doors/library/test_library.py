"""The same calls meet the same policy: the behaviour suite through both kinds of gate, and other doors."""

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


def test_the_suite_is_large_and_every_case_has_a_name_of_its_own():
    assert len(CASES) >= 40
    assert len({case.id for case in CASES}) == len(CASES)
    assert {case.word for case in CASES} == {"allow", "ask", "deny"}
    assert sum(case.at_gateway for case in CASES) >= 15


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_embedded(case, tmp_path):
    heard, entry = rooms.embedded(case, tmp_path)
    assert heard == expected(case), entry.reasons


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
