"""Outcomes on their way to the record, a few at a time."""

import asyncio

import pytest

from checkrein.call import ToolCall
from checkrein.doors.gateway import outcomes as outcomes_module
from checkrein.doors.gateway.outcomes import Outcomes
from checkrein.errors import StoreError
from checkrein.ledger.query import Filter, entries


@pytest.fixture
def entry(pipeline):
    return pipeline.decide(ToolCall(tool="Read", arguments={"file_path": "x"})).entry


def result(pipeline, entry):
    return next(each.result for each in entries(pipeline.store, Filter()) if each.id == entry)


def test_outcomes_are_recorded_by_themselves_in_a_moment(pipeline, entry):
    async def main():
        outcomes = Outcomes(pipeline, pytest.fail)
        outcomes.add(entry, "success", output="out")
        assert result(pipeline, entry) == "unknown", "until it is recorded"
        for _ in range(200):
            if result(pipeline, entry) == "success":
                return
            await asyncio.sleep(0.02)
        pytest.fail("it was never recorded")

    asyncio.run(main())


def test_closing_waits_until_everything_is_recorded(pipeline, entry):
    async def main():
        outcomes = Outcomes(pipeline, pytest.fail)
        outcomes.add(entry, "failure", evidence="tool error")
        await outcomes.close()
        await outcomes.close()

    asyncio.run(main())
    assert result(pipeline, entry) == "failure"


def test_many_do_not_wait_for_the_moment(pipeline, entry, monkeypatch):
    monkeypatch.setattr(outcomes_module, "MOST", 2)
    monkeypatch.setattr(outcomes_module, "SECONDS", 60)
    handed = []
    finish_soon = pipeline.finish_soon
    monkeypatch.setattr(pipeline, "finish_soon", lambda each: handed.append(len(each)) or finish_soon(each))

    async def main():
        outcomes = Outcomes(pipeline, pytest.fail)
        for _ in range(5):
            outcomes.add(entry, "success")
        assert handed == [2, 2]
        await outcomes.close()
        assert handed == [2, 2, 1] and outcomes._timer is None

    asyncio.run(main())


def test_what_cannot_be_recorded_is_said(pipeline, entry, monkeypatch):
    said = []

    async def main():
        outcomes = Outcomes(pipeline, said.append)
        monkeypatch.setattr(pipeline.ledger, "append", lambda *_args, **_more: 1 / 0)
        outcomes.add(entry, "success")
        await outcomes.close()

        def refuses(_outcomes):
            raise StoreError("closed")

        monkeypatch.setattr(pipeline, "finish_soon", refuses)
        outcomes.add(entry, "success")
        await outcomes.close()

    asyncio.run(main())
    assert len(said) == 2 and "could not be recorded" in said[0] and "closed" in said[1]
