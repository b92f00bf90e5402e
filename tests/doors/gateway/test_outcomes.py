"""Outcomes are handed over a few at a time, in order, and all of them before the end."""

import asyncio

from checkrein.call import ToolCall
from checkrein.doors.gateway import outcomes as module
from checkrein.doors.gateway.outcomes import Outcomes
from checkrein.errors import StoreError
from checkrein.finishing import About, Finishing
from checkrein.ledger.entries import fold
from checkrein.store import records


def decide(pipeline, project, number=0):
    call = ToolCall(tool="read", server="notes", door="gateway", project=project, arguments={"n": number})
    return pipeline.decide(call).entry


def outcome(pipeline, entry):
    return fold(records.of_entries(pipeline.store, [entry]))[0].outcome


def test_they_are_recorded_a_moment_later(pipeline, project):
    entry = decide(pipeline, project)

    async def go():
        kept = Outcomes(pipeline, print)
        kept.add(entry, "success")
        assert outcome(pipeline, entry) != "success"
        async with asyncio.timeout(10):
            while outcome(pipeline, entry) != "success":
                await asyncio.sleep(0.01)

    asyncio.run(go())


def test_the_end_waits_for_them(pipeline, project):
    entries = [decide(pipeline, project, number) for number in range(20)]

    async def go():
        kept = Outcomes(pipeline, print)
        for entry in entries:
            kept.add(entry, "failure", evidence="tool error")
        await kept.close()

    asyncio.run(go())
    assert {outcome(pipeline, entry) for entry in entries} == {"failure"}


def test_many_do_not_wait_for_the_moment(pipeline, project, monkeypatch):
    monkeypatch.setattr(module, "MOST", 5)
    monkeypatch.setattr(module, "SECONDS", 3600.0)
    entries = [decide(pipeline, project, number) for number in range(5)]

    async def go():
        kept = Outcomes(pipeline, print)
        for entry in entries:
            kept.add(entry, "success")
        async with asyncio.timeout(10):
            while outcome(pipeline, entries[-1]) != "success":
                await asyncio.sleep(0.01)

    asyncio.run(go())


def test_what_is_known_counts_once_a_second_word_is_dropped(pipeline, project):
    entry = decide(pipeline, project)

    async def go():
        kept = Outcomes(pipeline, print)
        kept.began(entry, About(project, "", ("mcp:notes",), pipeline.clock()))
        kept.add(entry, "success")
        kept.add(entry, "failure")
        await kept.close()

    asyncio.run(go())
    assert outcome(pipeline, entry) == "success"


def test_what_cannot_be_recorded_is_said(pipeline, project, monkeypatch):
    said = []
    entry = decide(pipeline, project)

    def broken(_outcomes):
        raise StoreError("The store is closed.")

    monkeypatch.setattr(pipeline, "finish_soon", broken)

    async def go():
        kept = Outcomes(pipeline, said.append)
        kept.add(entry, "success")
        await kept.close()

    asyncio.run(go())
    assert "The store is closed." in said[0]


def test_one_that_cannot_be_written_down_takes_no_other_along(pipeline, project, monkeypatch):
    entries = [decide(pipeline, project, number) for number in range(3)]
    said, finish = [], Finishing._finish

    def fails(self, tx, about, done, lessons, force):
        if done.output == "poison":
            raise RuntimeError("it cannot be written down")
        finish(self, tx, about, done, lessons, force)

    monkeypatch.setattr(Finishing, "_finish", fails)

    async def go():
        made = Outcomes(pipeline, said.append)
        for number, entry in enumerate(entries):
            made.add(entry, "success", output="poison" if number == 1 else "fine")
        await made.close()

    asyncio.run(go())
    pipeline.store.write(lambda _tx: None)
    assert [outcome(pipeline, each) for each in entries] == ["success", "pending", "success"]
    assert len(said) == 1 and "cannot be written down" in said[0]
