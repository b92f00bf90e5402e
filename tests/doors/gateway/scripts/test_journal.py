"""What is stored of a run is what was written, or the run does not go on."""

import asyncio

import msgspec
import pytest

from checkrein.doors.gateway import mail
from checkrein.doors.gateway.scripts.vault import Vault
from checkrein.store.runs import get_run
from doors.gateway.scripts.bench import HELD, evaluate, failure, outcome, paused, resumed, run
from patience import soon

CODE = "return (await codemode.srv__echo({path: '/tmp/x'})).content[0].text;"


def change(bench, sql, *given):
    bench.pipeline.store.write(lambda tx: tx.execute(sql, given))


async def waiting(bench, code=CODE, **more):
    guest = await bench.house.guest(answers={}, **more)
    said = await paused(guest, code)
    return guest, said["run_id"], said["waiting"][0]["question"]


async def ended(bench, guest, run_id):
    await soon(lambda: bench.run_row(run_id).state in ("done", "failed"))
    return await resumed(guest, run_id)


def flipped(text):
    return text[:40] + ("A" if text[40] != "A" else "B") + text[41:]


@pytest.mark.parametrize("harm", ["edited", "truncated", "emptied", "swapped"])
def test_suspended_bytes_that_are_not_what_was_put_away_do_not_run(bench, harm):
    bench.set(wait_seconds=0.02)

    async def work():
        guest, run_id, entry = await waiting(bench)
        other_code = "return (await codemode.srv__echo({path: '/etc/shadow'})).content[0].text;"
        _, other, _ = await waiting(bench, other_code)
        stored = bench.run_row(run_id).suspended
        harmed = {
            "edited": flipped(stored),
            "truncated": stored[:-8],
            "emptied": "",
            "swapped": bench.run_row(other).suspended,
        }[harm]
        change(bench, "UPDATE run SET suspended = ? WHERE id = ?", harmed, run_id)
        await bench.answer(entry)
        found = failure(await ended(bench, guest, run_id))
        assert found["kind"] == "damaged" and bench.house.ran("echo") == []

    run(bench, work)


@pytest.mark.invariant("what was written beside the sealed arguments counts only where it says the same")
@pytest.mark.parametrize("harm", ["edited", "swapped", "hash"])
def test_arguments_that_were_changed_in_the_store_are_not_executed(bench, harm):
    """After a restart, where the store is all there is."""
    bench.set(wait_seconds=0.02)

    async def work():
        _, run_id, entry = await waiting(bench)
        _, other, _ = await waiting(bench, CODE.replace("/tmp/x", "/etc/shadow"))
        await bench.house.close()
        if harm == "edited":
            text = flipped(bench.rows(run_id)[0].arguments)
            change(bench, "UPDATE run_call SET arguments = ? WHERE run = ?", text, run_id)
        elif harm == "swapped":
            text = bench.rows(other)[0].arguments
            change(bench, "UPDATE run_call SET arguments = ? WHERE run = ?", text, run_id)
        else:
            change(bench, "UPDATE run_call SET argument_hash = 'x' WHERE run = ?", run_id)
        await bench.answer(entry)
        house = await bench.reopened()
        try:
            await soon(lambda: bench.run_row(run_id).state in ("done", "failed"))
            back = await house.guest()
            assert failure(await resumed(back, run_id))["kind"] == "damaged"
            assert house.ran("echo") == []
        finally:
            await house.close()
        await bench.house.open()

    run(bench, work)


@pytest.mark.invariant("older bytes of the same run, put back with everything beside them, do not run again")
def test_a_run_put_back_as_it_was_does_not_run_again(bench):
    """Everything of it, from before it ended: the row, its calls, its bytes."""
    bench.set(wait_seconds=0.02)

    async def work():
        guest, run_id, entry = await waiting(bench)
        row, calls = bench.run_row(run_id), bench.rows(run_id)
        await bench.answer(entry)
        assert outcome(await ended(bench, guest, run_id))
        await bench.house.close()
        change(bench, "DELETE FROM run_call WHERE run = ?", run_id)
        change(bench, "DELETE FROM run WHERE id = ?", run_id)
        for table, each in [("run", row), *(("run_call", each) for each in calls)]:
            marks = ", ".join("?" * len(each.__struct_fields__))
            change(bench, f"INSERT INTO {table} VALUES ({marks})", *msgspec.structs.astuple(each))
        house = await bench.reopened()
        try:
            await soon(lambda: bench.run_row(run_id).state in ("done", "failed"))
            back = await house.guest()
            assert failure(await resumed(back, run_id))["kind"] == "damaged"
            assert len(house.ran("echo")) == 1
        finally:
            await house.close()
        await bench.house.open()

    run(bench, work)


def test_a_result_that_was_changed_is_not_shown(bench):
    async def work():
        guest = await bench.house.guest()
        result = await evaluate(guest, "return 'mine'")
        run_id = result["structuredContent"]["run_id"]
        other = await evaluate(guest, "return 'other'")
        text = bench.run_row(other["structuredContent"]["run_id"]).result
        change(bench, "UPDATE run SET result = ? WHERE id = ?", text, run_id)
        found = await resumed(guest, run_id)
        assert found["isError"] and "not what was written" in found["content"][0]["text"]

    run(bench, work)


def test_nothing_a_script_says_can_be_read_in_the_store(bench):
    bench.set(wait_seconds=0.02)
    code = "const secret = 'hush-hush'; await codemode.srv__echo({t: secret}); return secret;"

    async def work():
        guest, run_id, entry = await waiting(bench, code)
        await bench.answer(entry)
        assert outcome(await ended(bench, guest, run_id)) == "hush-hush"
        row, calls = bench.run_row(run_id), bench.rows(run_id)
        assert "hush" not in repr(row) and "hush" not in repr(calls) and row.source and row.result
        kinds = [each["kind"] for each in records(bench, run_id)]
        assert kinds == ["run_started", "run_suspended", "run_ended"]
        assert all("hush" not in repr(each) for each in records(bench, run_id))

    run(bench, work)


def records(bench, run_id):
    rows = bench.pipeline.store.query("SELECT body FROM record WHERE entry = ? ORDER BY seq", (run_id,))
    return [msgspec.json.decode(row[0]) for row in rows]


def test_a_run_whose_script_cannot_be_read_has_failed(bench):
    bench.set(wait_seconds=0.02)

    async def work():
        _, run_id, _ = await waiting(bench)
        await bench.house.close()
        change(bench, "UPDATE run SET source = 'x' WHERE id = ?", run_id)
        house = await bench.reopened()
        try:
            await soon(lambda: bench.run_row(run_id).state == "failed")
        finally:
            await house.close()
        await bench.house.open()

    run(bench, work)


def test_a_run_that_is_not_ours_any_more_is_not_put_away(bench):
    async def work():
        guest = await bench.house.guest(answers={})
        call = {"name": "codemode_eval_supervised", "arguments": {"code": f"await 1; {CODE}"}}
        journal, taken = bench.hub.scripts.journal, []
        suspend = journal.suspend

        async def too_late(run, *more):
            change(bench, "UPDATE run SET holder = 'somebody' WHERE id = ?", run.id)
            taken.append(run.id)
            return await suspend(run, *more)

        journal.suspend = too_late
        started = asyncio.ensure_future(guest.raw("tools/call", call))
        await soon(lambda: taken and not bench.hub.scripts.live)
        (run_id,) = taken
        assert get_run(bench.pipeline.store, run_id).state == "running" and not bench.questions()
        started.cancel()
        await asyncio.gather(started, return_exceptions=True)

    run(bench, work)


@pytest.mark.invariant("an answer is on the record no later than whatever the script does next")
def test_an_answer_is_on_the_record_before_the_next_call_reaches_its_server(bench, monkeypatch):
    # Nothing is written because time passed.
    monkeypatch.setattr(mail, "LATER", 3600.0)
    code = "await codemode.srv__read_notes({}); await codemode.srv__slow({}); return 1;"

    async def work():
        guest = await bench.house.guest()
        task = asyncio.ensure_future(evaluate(guest, code))
        await soon(lambda: bench.house.ran("slow"))
        assert [(each.state, bool(each.answer)) for each in bench.rows()] == [
            ("done", True),
            ("executing", False),
        ]
        bench.release()
        assert outcome(await task) == 1
        assert [each.state for each in bench.rows()] == ["done", "done"]

    run(bench, work, source=HELD)


def test_an_answer_is_on_the_record_before_the_script_is_put_away(bench, monkeypatch):
    monkeypatch.setattr(mail, "LATER", 3600.0)
    bench.set(wait_seconds=0.02)
    code = f"await codemode.srv__read_notes({{}}); {CODE}"

    async def work():
        guest = await bench.house.guest(answers={})
        await paused(guest, code, "eval", ask=["srv__echo"])
        assert [(each.state, bool(each.answer)) for each in bench.rows()] == [
            ("done", True),
            ("asked", False),
        ]

    run(bench, work)


@pytest.mark.parametrize(
    "then", ["await codemode.srv__echo({path: '/tmp/x'});", ""], ids=["a call", "the end"]
)
def test_a_script_whose_answer_cannot_be_sealed_goes_no_further(bench, monkeypatch, then):
    """Nothing comes of an answer that is not on the record."""
    whole = Vault.put

    def broken(self, value, *bound):
        if bound[1] == "answer":
            raise OSError("the key is gone")
        return whole(self, value, *bound)

    monkeypatch.setattr(Vault, "put", broken)

    async def work():
        guest = await bench.house.guest()
        said = await evaluate(guest, f"await codemode.srv__read_notes({{}}); {then} return 1;")
        assert failure(said)["kind"]
        assert said["structuredContent"]["status"] == "failed"
        assert bench.house.ran("echo") == []

    run(bench, work)
