"""What comes of one call: each way a call can go, and that a yes is for one call only."""

import pytest

from doors.gateway.scripts.bench import evaluate, outcome, paused, resumed, resumed_to_the_end, run
from patience import soon

CODE = "try { await codemode.srv__echo({path: '%s'}); return 'ran'; } catch (e) { return e.reason; }"


def change(bench, sql, *given):
    bench.pipeline.store.write(lambda tx: tx.execute(sql, given))


@pytest.mark.invariant("an approval is for one call, as it was asked about")
@pytest.mark.parametrize("other", ["/etc/shadow", "/tmp/x"])
def test_a_yes_to_one_call_is_no_yes_to_another(bench, other):
    """The store is made to say that another call's question is the harmless one that was approved."""
    bench.set(wait_seconds=0.02)

    async def work():
        guest = await bench.house.guest(answers={})
        harmless = await paused(guest, CODE % "/tmp/x")
        dangerous = await paused(guest, CODE % other)
        await bench.house.close()
        entry = harmless["waiting"][0]["question"]
        change(bench, "UPDATE run_call SET entry = ? WHERE run = ?", entry, dangerous["run_id"])
        await bench.answer(entry)
        house = await bench.reopened()
        try:
            ids = (harmless["run_id"], dangerous["run_id"])
            await soon(lambda: all(bench.run_row(each).state in ("done", "failed") for each in ids))
            back = await house.guest()
            refused = (await resumed(back, dangerous["run_id"]))["structuredContent"]
            assert [each["verdict"] for each in refused["calls"]] == ["refused: state"]
            assert outcome(await resumed(back, harmless["run_id"])) == "ran"
            assert house.ran("echo") == [{"path": "/tmp/x"}]
        finally:
            await house.close()
        await bench.house.open()

    run(bench, work)


def test_a_script_put_away_before_anybody_was_asked_is_asked_about_after_a_restart(bench):
    bench.set(wait_seconds=0.02)

    async def work():
        guest = await bench.house.guest(answers={})
        said = await paused(guest, CODE % "/tmp/x")
        await bench.house.close()
        old = said["waiting"][0]["question"]
        change(bench, "DELETE FROM question WHERE entry = ?", old)
        house = await bench.reopened()
        try:
            await soon(bench.questions)
            (entry,) = bench.questions()
            assert entry != old
            await bench.answer(entry)
            await soon(lambda: bench.run_row(said["run_id"]).state == "done")
            assert len(house.ran("echo")) == 1
        finally:
            await house.close()
        await bench.house.open()

    run(bench, work)


def test_a_person_may_answer_in_the_tools_place(bench):
    bench.set(wait_seconds=0.02)

    async def work():
        guest = await bench.house.guest(answers={})
        said = await paused(guest, "return (await codemode.srv__echo({})).content[0].text")
        await bench.answer(said["waiting"][0]["question"], "answered", message="It is blue.")
        await soon(lambda: bench.run_row(said["run_id"]).state == "done")
        assert outcome(await resumed(guest, said["run_id"])) == "It is blue."
        assert bench.house.ran("echo") == []

    run(bench, work)


def test_the_same_call_again_is_asked_about_again(bench):
    async def work():
        guest = await bench.house.guest()
        code = "for (const n of [1, 1, 1]) { await codemode.srv__echo({n}); } return 'ran';"
        result = await evaluate(guest, code, "codemode_eval_supervised")
        assert outcome(result) == "ran" and len(guest.asked) == 3

    run(bench, work)


def test_an_edited_call_that_does_not_fit_is_not_sent(bench):
    bench.set(wait_seconds=0.02)

    async def work():
        guest = await bench.house.guest(answers={})
        code = "try { await codemode.srv__strict({n: 1}); return 'ran'; } catch (e) { return e.message; }"
        said = await paused(guest, code)
        await bench.answer(said["waiting"][0]["question"], edited={"n": "one"})
        await soon(lambda: bench.run_row(said["run_id"]).state == "done")
        found = outcome(await resumed(guest, said["run_id"]))
        assert "srv__strict" in found and bench.house.ran("strict") == []

    run(bench, work)


async def taken_up(bench, code, meanwhile):
    """What comes of a call that was approved while no server was open, and what ran of it."""
    guest = await bench.house.guest(answers={})
    said = await paused(guest, code)
    await bench.house.close()
    entry = said["waiting"][0]["question"]
    await bench.answer(entry)
    meanwhile(entry)
    house = await bench.reopened()
    try:
        await soon(lambda: bench.run_row(said["run_id"]).state in ("done", "failed"))
        back = await house.guest()
        return outcome(await resumed(back, said["run_id"])), house.ran("echo")
    finally:
        await house.close()
        await bench.house.open()


@pytest.mark.invariant(
    "a script's approved call runs at most once, whatever is resumed, sent again or killed"
)
def test_an_approval_that_was_used_before_runs_nothing(bench):
    """Another server began the call and was killed before it could write that down in the journal."""
    bench.set(wait_seconds=0.02)

    async def work():
        code = "try { await codemode.srv__echo({}); return 'ran'; } catch (e) { return e.message; }"
        found, ran = await taken_up(bench, code, bench.pipeline.claim)
        assert "used before" in found and ran == []

    run(bench, work)


@pytest.mark.invariant("a deny that came after the approval outranks it")
def test_a_deny_that_comes_between_the_yes_and_the_call_outranks_the_yes(bench, add):
    bench.set(wait_seconds=0.02)

    async def work():
        found, ran = await taken_up(bench, CODE % "/tmp/x", lambda _entry: add("deny", "echo"))
        assert found == "denied" and ran == []

    run(bench, work)


@pytest.mark.invariant("an approval is for the tool definition it was given for")
def test_a_yes_is_not_to_a_tool_that_was_accepted_anew_meanwhile(bench):
    bench.set(wait_seconds=0.02)

    def changed():
        rows = {row["name"]: row["state"] for row in bench.hub.catalogue.review("srv")}
        return rows["echo"] == "changed"

    async def work():
        guest = await bench.house.guest(answers={})
        code = "try { await codemode.srv__echo({}); return 'ran'; } catch (e) { return e.message; }"
        said = await paused(guest, code)
        assert outcome(await evaluate(guest, "await codemode.srv__evolve({}); return 1")) == 1
        await soon(changed)
        bench.house.accept("srv", ["echo"])
        await bench.answer(said["waiting"][0]["question"])
        found = outcome(await resumed_to_the_end(bench, guest, said["run_id"]))
        assert "changed after it was approved" in found and bench.house.ran("echo") == []
        entry = said["waiting"][0]["question"]
        record = next(each for each in await bench.house.recorded() if each.id == entry)
        assert (record.answer, record.result, record.evidence) == ("approved", "cancelled", "definition")

    run(bench, work)
