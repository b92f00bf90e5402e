"""The same calls meet the same policy: the behaviour suite through a gate, its paths through other doors."""

import asyncio

import pytest

from doors.gateway.house import House
from doors.library import rooms
from doors.library.behaviour import CASES, PATHS, essence, expected


def ids(case):
    return case.id


def test_the_suite_is_large_and_every_case_has_a_name_of_its_own():
    assert len(CASES) >= 40
    assert len({case.id for case in CASES}) == len(CASES)
    assert {case.word for case in CASES} == {"allow", "ask", "deny"}
    assert sum(case.at_gateway for case in CASES) >= 15


def test_the_chosen_cases_go_every_way_once():
    ways = [(case.word, case.stage) for case in PATHS]
    assert len(ways) == len(set(ways))
    assert set(ways) == {(case.word, case.stage) for case in CASES}


@pytest.mark.parametrize("case", CASES, ids=ids)
def test_embedded(case, tmp_path):
    heard, entry = rooms.embedded(case, tmp_path)
    assert heard == expected(case), entry.reasons


@pytest.mark.parametrize("case", PATHS, ids=ids)
def test_hooks(case, tmp_path, pipeline):
    heard, entry = rooms.hooks(case, tmp_path, pipeline)
    assert heard == expected(case), entry.reasons
    assert essence(entry) == essence(rooms.embedded(case, tmp_path / "library")[1])


@pytest.mark.parametrize(
    "case", [case for case in PATHS if case.at_gateway and not case.project_file], ids=ids
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
