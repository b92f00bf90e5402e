"""Scripts from their first call to their end, through a real gateway."""

import asyncio

import pytest

from doors.gateway.house import House, until
from doors.gateway.scripts.bench import evaluate, failure, outcome, paused, run

BOTH = pytest.mark.parametrize("language", ["javascript", "python"])
CALL = {
    "javascript": "const r = await codemode.srv__echo({x: 1}); return r.content[0].text;",
    "python": 'r = await codemode.srv__echo(x=1)\nr["content"][0]["text"]',
}


@BOTH
def test_a_script_calls_a_tool_and_returns_what_it_made_of_it(bench, language):
    async def work():
        guest = await bench.house.guest()
        result = await evaluate(guest, CALL[language], language=language)
        assert outcome(result) == 'said {"x": 1}'
        assert result["structuredContent"]["calls"] == [
            {"tool": "srv__echo", "line": 1, "verdict": "allow", "state": "done"}
        ]
        last = await bench.house.last()
        assert (last.door, last.verdict, last.result) == ("eval", "allow", "success")

    run(bench, work)


CATCH = {
    "javascript": """
try { await codemode.srv__delete_all({}); } catch (e) {
  return [e instanceof ToolCallDeniedError, e.name, e.toolName, e.reason]; }""",
    "python": """
try:
    await codemode.srv__delete_all()
except PermissionError as e:
    result = str(e)
result""",
}


@BOTH
def test_a_refused_call_is_an_error_the_script_can_catch(bench, language):
    async def work():
        guest = await bench.house.guest()
        result = await evaluate(guest, CATCH[language], "codemode_eval_safe", language=language)
        wanted = {
            "javascript": [True, "ToolCallDeniedError", "srv__delete_all", "denied"],
            "python": "ToolCallDenied: srv__delete_all: denied",
        }
        assert outcome(result) == wanted[language]
        assert bench.house.ran("delete_all") == []

    run(bench, work)


# -- asking ------------------------------------------------------------------------------------------------

ONE = {
    "javascript": "const r = await codemode.srv__echo({path: '/tmp/x'}); return r.content[0].text;",
    "python": "r = await codemode.srv__echo(path='/tmp/x')\nr['content'][0]['text']",
}


@BOTH
def test_a_person_at_the_client_is_shown_the_call_and_the_script_and_says_yes(bench, language):
    async def work():
        guest = await bench.house.guest()
        result = await evaluate(guest, ONE[language], "codemode_eval_supervised", language=language)
        assert outcome(result) == 'said {"path": "/tmp/x"}'
        (asked,) = guest.asked
        text = asked["params"]["message"]
        assert "Checkrein asks" in text and '{"path":"/tmp/x"}' in text and ">   1 |" in text
        assert bench.house.ran("echo") == [{"path": "/tmp/x"}]
        last = await bench.house.last()
        assert (last.answer, last.channel, last.result) == ("approved", "elicitation", "success")
        assert bench.last_run().state == "done" and bench.last_run().rests == 1

    run(bench, work)


REASON = """
try { await codemode.srv__echo({}); return "ran"; } catch (e) { return e.reason; }"""


def test_a_person_says_no(bench):
    async def work():
        guest = await bench.house.guest(answers={"elicitation/create": {"action": "decline"}})
        result = await evaluate(guest, REASON, "codemode_eval_supervised")
        assert outcome(result) == "elicitation_declined" and bench.house.ran("echo") == []
        # The same call again is not asked again: the answer stands for a while.
        assert outcome(await evaluate(guest, REASON, "codemode_eval_supervised")) == "elicitation_declined"
        assert len(guest.asked) == 1

    run(bench, work)


def test_a_client_that_cannot_ask_gets_a_refusal_unless_the_profile_falls_back(bench):
    async def work():
        guest = await bench.house.guest(capabilities={})
        result = await evaluate(guest, REASON, "codemode_eval_supervised")
        assert outcome(result) == "elicitation_unsupported"
        assert outcome(await evaluate(guest, REASON, "codemode_eval_trusting")) == "ran"
        assert len(bench.house.ran("echo")) == 1
        last = await bench.house.last()
        assert (last.channel, last.answer, last.result) == ("fallback", "approved", "success")

    run(bench, work)


def test_two_sessions_ask_their_own_person(bench):
    async def work():
        ada = await bench.house.guest(owner="test:ada", agent="ada")
        bob = await bench.house.guest(
            owner="test:bob", agent="bob", answers={"elicitation/create": {"action": "decline"}}
        )
        code = "try { await codemode.srv__echo({who: '%s'}); return 'ran'; } catch (e) { return e.reason; }"
        tool = "codemode_eval_supervised"
        results = await asyncio.gather(evaluate(ada, code % "a", tool), evaluate(bob, code % "b", tool))
        assert [outcome(each) for each in results] == ["ran", "elicitation_declined"]
        assert bench.house.ran("echo") == [{"who": "a"}]
        assert len(ada.asked) == len(bob.asked) == 1
        assert '"who":"a"' in ada.asked[0]["params"]["message"]

    run(bench, work)


BATCH = {
    "javascript": """
const all = await Promise.allSettled([1, 2, 3].map((n) => codemode.srv__echo({n})));
return all.map((each) => each.status === "fulfilled" ? "ran" : each.reason.reason);""",
    "python": """
import asyncio
async def one(n):
    try:
        await codemode.srv__echo(n=n)
        return "ran"
    except PermissionError as e:
        return str(e).split(": ")[-1]
await asyncio.gather(one(1), one(2), one(3))""",
}


@BOTH
def test_calls_that_start_together_are_asked_together_each_with_its_own_choice(bench, language):
    async def work():
        said = {"action": "accept", "content": {"call_1": True, "call_2": False, "call_3": True}}
        guest = await bench.house.guest(answers={"elicitation/create": said})
        result = await evaluate(guest, BATCH[language], "codemode_eval_supervised", language=language)
        assert outcome(result) == ["ran", "elicitation_declined", "ran"]
        assert len(guest.asked) == 1
        assert sorted(each["n"] for each in bench.house.ran("echo")) == [1, 3]
        assert set(guest.asked[0]["params"]["requestedSchema"]["required"]) == {"call_1", "call_2", "call_3"}

    run(bench, work)


def test_what_is_not_ticked_in_a_batch_does_not_run(bench):
    async def work():
        guest = await bench.house.guest()
        result = await evaluate(guest, BATCH["javascript"], "codemode_eval_supervised")
        assert outcome(result) == ["elicitation_declined"] * 3 and bench.house.ran("echo") == []

    run(bench, work)


# -- putting away ------------------------------------------------------------------------------------------


def workers(hub):
    """Processes that scripts hold now."""
    found = 0
    for engine in hub.scripts.engines._engines.values():
        found += len([each for each in engine._sessions if getattr(each, "_worker", None) is not None])
    return found


@BOTH
def test_a_script_that_waits_holds_no_process_and_can_be_come_back_to(bench, language):
    bench.set(wait_seconds=0.2)

    async def work():
        guest = await bench.house.guest(answers={})
        said = await paused(guest, ONE[language], language=language)
        assert said["waiting"][0]["tool"] == "srv__echo"
        assert workers(bench.hub) == 0 and bench.run_row(said["run_id"]).state == "waiting"
        # The client's question is taken away with its request; another is put when it comes back.
        assert len(guest.asked) == len(guest.withdrawn) >= 1
        asked = len(guest.asked)
        again = (await guest.call("resume_run", {"run_id": said["run_id"]}))["structuredContent"]
        assert again["status"] == "paused" and len(guest.asked) == asked + 1
        other = await bench.house.guest(owner="test:other")
        assert (await other.call("resume_run", {"run_id": said["run_id"]}))["isError"]
        await bench.answer(said["waiting"][0]["question"])
        final = await guest.call("resume_run", {"run_id": said["run_id"]})
        assert outcome(final) == 'said {"path": "/tmp/x"}' and len(bench.house.ran("echo")) == 1
        assert outcome(await guest.call("resume_run", {"run_id": said["run_id"]}))

    run(bench, work)


@BOTH
def test_a_restart_while_a_person_thinks_loses_nothing_and_runs_nothing_twice(bench, language):
    bench.set(wait_seconds=0.1)

    async def work():
        guest = await bench.house.guest(answers={})
        run_id = (await paused(guest, ONE[language], language=language))["run_id"]
        await bench.house.close()
        house = await bench.reopened()
        try:
            (entry,) = bench.questions()
            await bench.answer(entry)
            # Nobody waits for it, and it goes on all the same.
            await until(lambda: bench.run_row(run_id).state == "done")
            back = await house.guest()
            assert outcome(await back.call("resume_run", {"run_id": run_id})) == 'said {"path": "/tmp/x"}'
            assert house.ran("echo") == [{"path": "/tmp/x"}]
        finally:
            await house.close()
        await bench.house.open()

    run(bench, work)


def test_an_answer_given_while_no_server_runs_is_found_at_the_start(bench):
    bench.set(wait_seconds=0.1)

    async def work():
        guest = await bench.house.guest(answers={})
        run_id = (await paused(guest, BATCH["javascript"]))["run_id"]
        await bench.house.close()
        first, second, third = bench.questions()
        await bench.answer(first)
        await bench.answer(second, "denied")
        await bench.answer(third)
        house = await bench.reopened()
        try:
            await until(lambda: bench.run_row(run_id).state == "done")
            back = await house.guest()
            found = outcome(await back.call("resume_run", {"run_id": run_id}))
            assert found == ["ran", "elicitation_declined", "ran"]
        finally:
            await house.close()
        assert len(house.ran("echo")) == 2
        await bench.house.open()

    run(bench, work)


def test_of_two_that_would_go_on_one_does(bench):
    bench.set(wait_seconds=0.1)

    async def work():
        guest = await bench.house.guest(answers={})
        run_id = (await paused(guest, ONE["python"], language="python"))["run_id"]
        await bench.house.close()
        houses = [House(bench.pipeline, bench.house.folder) for _ in range(2)]
        for each in houses:
            each.specs = bench.house.specs
            await each.open()
        for each in houses:
            each.hub.scripts.wake()
        try:
            await until(lambda: all(each.hub.scripts.live[run_id].questions for each in houses))
            await bench.answer(bench.questions()[0])
            await until(lambda: bench.run_row(run_id).state == "done")
            await until(lambda: not any(each.hub.scripts.live for each in houses))
            assert len(bench.house.ran("echo")) == 1
            backs = [await each.guest() for each in houses]
            for back in backs:
                assert outcome(await back.call("resume_run", {"run_id": run_id}))
        finally:
            for each in houses:
                await each.close()
        await bench.house.open()

    run(bench, work)
