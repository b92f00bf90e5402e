"""Scripts from their first call to their end, through a real gateway."""

import asyncio

import pytest

from doors.gateway.house import SERVER, House
from doors.gateway.scripts.bench import (
    HELD,
    SETTINGS,
    WAIT,
    evaluate,
    failure,
    outcome,
    paused,
    resumed,
    run,
)
from patience import PATIENCE, soon

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


@pytest.mark.invariant("a call that nobody was asked about does not run")
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
        for each in engine._sessions:
            worker = each.interpreter.worker if hasattr(each, "interpreter") else each._worker
            found += worker is not None
    return found


@BOTH
def test_a_script_that_waits_holds_no_process_and_can_be_come_back_to(bench, language):
    bench.set(wait_seconds=0.2)

    async def work():
        guest = await bench.house.guest(answers={})
        said = await paused(guest, ONE[language], language=language)
        assert said["waiting"][0]["tool"] == "srv__echo"
        assert workers(bench.hub) == 0 and bench.run_row(said["run_id"]).state == "waiting"
        # It may have come to its question in the very moment in which the client's time was over.
        while not guest.asked:
            await guest.call("resume_run", {"run_id": said["run_id"]})
        # The client's question is taken away with its request; another is put when it comes back.
        assert len(guest.asked) == len(guest.withdrawn) >= 1
        asked = len(guest.asked)
        while len(guest.asked) == asked:
            again = (await guest.call("resume_run", {"run_id": said["run_id"]}))["structuredContent"]
        assert again["status"] == "paused" and len(guest.asked) == asked + 1
        other = await bench.house.guest(owner="test:other")
        assert (await other.call("resume_run", {"run_id": said["run_id"]}))["isError"]
        await bench.answer(said["waiting"][0]["question"])
        final = await resumed(guest, said["run_id"])
        assert outcome(final) == 'said {"path": "/tmp/x"}' and len(bench.house.ran("echo")) == 1
        assert outcome(await resumed(guest, said["run_id"]))

    run(bench, work)


@BOTH
def test_a_restart_while_a_person_thinks_loses_nothing_and_runs_nothing_twice(bench, language):
    bench.set(wait_seconds=0.02)

    async def work():
        guest = await bench.house.guest(answers={})
        run_id = (await paused(guest, ONE[language], language=language))["run_id"]
        await bench.house.close()
        house = await bench.reopened()
        try:
            (entry,) = bench.questions()
            await bench.answer(entry)
            # Nobody waits for it, and it goes on all the same.
            await soon(lambda: bench.run_row(run_id).state == "done")
            back = await house.guest()
            assert outcome(await resumed(back, run_id)) == 'said {"path": "/tmp/x"}'
            assert house.ran("echo") == [{"path": "/tmp/x"}]
        finally:
            await house.close()
        await bench.house.open()

    run(bench, work)


def test_an_answer_given_while_no_server_runs_is_found_at_the_start(bench):
    bench.set(wait_seconds=0.02)

    async def work():
        guest = await bench.house.guest(answers={})
        run_id = (await paused(guest, BATCH["javascript"], count=3))["run_id"]
        await bench.house.close()
        first, second, third = bench.questions()
        await bench.answer(first)
        await bench.answer(second, "denied")
        await bench.answer(third)
        house = await bench.reopened()
        try:
            await soon(lambda: bench.run_row(run_id).state == "done")
            back = await house.guest()
            found = outcome(await resumed(back, run_id))
            assert found == ["ran", "elicitation_declined", "ran"]
        finally:
            await house.close()
        assert len(house.ran("echo")) == 2
        await bench.house.open()

    run(bench, work)


@pytest.mark.invariant("exactly one goes on with a run, however many wait for its answers")
def test_of_two_that_would_go_on_one_does(bench):
    bench.set(wait_seconds=0.02)

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
            await soon(lambda: all(each.hub.scripts.live[run_id].questions for each in houses))
            await bench.answer(bench.questions()[0])
            ended = ("done", "failed")
            await soon(lambda: bench.run_row(run_id).state in ended, lambda: str(bench.run_row(run_id)))
            await soon(lambda: not any(each.hub.scripts.live for each in houses))
            assert len(bench.house.ran("echo")) == 1
            backs = [await each.guest() for each in houses]
            for back in backs:
                assert outcome(await resumed(back, run_id))
        finally:
            for each in houses:
                await each.close()
        await bench.house.open()

    run(bench, work)


# -- what may become of a run ------------------------------------------------------------------------------


def test_a_policy_that_changes_while_a_script_runs_holds_from_its_next_call(bench):
    async def work():
        guest = await bench.house.guest()
        started = asyncio.ensure_future(
            evaluate(
                guest,
                """
const first = await codemode.srv__slow({});
try { await codemode.srv__echo({}); return "ran"; } catch (e) { return e.reason; }""",
                "codemode_eval_free",
            )
        )
        await soon(lambda: bench.house.ran("slow"))
        bench.settings(SETTINGS.replace("[evaluation.profiles.free]\n", FREE_NO_MORE))
        bench.release()
        assert outcome(await started) == "denied" and bench.house.ran("echo") == []

    run(bench, work, source=HELD)


FREE_NO_MORE = '[evaluation.profiles.free]\ndenylist = ["srv__echo"]\n'


def test_a_profile_that_is_gone_lets_nothing_pass(bench):
    async def work():
        guest = await bench.house.guest()
        code = """
await codemode.srv__slow({});
try { await codemode.srv__echo({}); return "ran"; } catch (e) { return e.reason; }"""
        started = asyncio.ensure_future(evaluate(guest, code, "codemode_eval_free"))
        await soon(lambda: bench.house.ran("slow"))
        bench.settings(SETTINGS.replace("[evaluation.profiles.free]\n", ""))
        bench.release()
        assert outcome(await started) == "denied"

    run(bench, work, source=HELD)


def test_a_deny_that_comes_before_the_answer_outranks_a_yes(bench, add):
    bench.set(wait_seconds=0.02)

    async def work():
        guest = await bench.house.guest(answers={})
        said = await paused(guest, REASON)
        add("deny", "echo")
        await bench.answer(said["waiting"][0]["question"])
        await soon(lambda: bench.run_row(said["run_id"]).state == "done")
        final = await resumed(guest, said["run_id"])
        assert outcome(final) == "denied" and bench.house.ran("echo") == []

    run(bench, work)


def test_a_rule_about_arguments_refuses_by_name(bench, add):
    add("deny", "echo", when=[{"path": "path", "under": "/etc"}])

    async def work():
        guest = await bench.house.guest()
        code = """
const ok = await codemode.srv__echo({path: "/tmp/x"});
try { await codemode.srv__echo({path: "/tmp/../etc/passwd"}); } catch (e) { return e.reason; }"""
        assert outcome(await evaluate(guest, code)) == "policy_arg"
        assert len(bench.house.ran("echo")) == 1

    run(bench, work)


@pytest.mark.invariant("a call whose fate is unknown is sent again only where twice is the same as once")
@pytest.mark.parametrize(("tool", "again"), [("read_crash", True), ("crash", False)])
def test_a_call_whose_fate_is_unknown_is_sent_again_only_where_that_does_no_harm(bench, tool, again):
    source = SERVER.replace(
        'tool("crash")', 'tool("crash"), tool("read_crash", annotations={"readOnlyHint": True})'
    ).replace(
        'elif name == "crash":',
        'elif name in ("crash", "read_crash") and not os.path.exists(LOG + ".up"):\n'
        '        open(LOG + ".up", "w").close()',
    )

    async def work():
        bench.house.server("srv", source=source, trusted=True)
        async with bench.opened():
            guest = await bench.house.guest()
            code = f"""
try {{ return (await codemode.srv__{tool}({{}})).content[0].text; }} catch (e) {{ return e.message; }}"""
            found = outcome(await evaluate(guest, code))
            assert ("said" in found) is again and ("unknown" in found) is not again
            assert len(bench.house.ran(tool)) == (2 if again else 1)
            assert bench.rows()[0].state == ("done" if again else "unknown")
            results = [each.result for each in await bench.house.recorded()]
            assert results == (["success", "unknown"] if again else ["unknown"])

    asyncio.run(work())


def test_a_script_can_narrow_what_it_may_call_and_never_widen_it(bench):
    async def work():
        guest = await bench.house.guest(answers={"elicitation/create": {"action": "decline"}})
        assert outcome(await evaluate(guest, REASON, deny=["srv__*"])) == "denied"
        assert outcome(await evaluate(guest, REASON, ask=["srv__ec*"])) == "elicitation_declined"
        assert bench.house.ran("echo") == []
        for wrong in ({"deny": "srv__echo"}, {"allow": ["*"]}, {"profile": "free"}, {"fatal": 1}):
            assert (await evaluate(guest, REASON, **wrong))["isError"]

    run(bench, work)


@pytest.mark.invariant("a refusal that ends the script cannot be caught by it")
@BOTH
def test_a_fatal_refusal_cannot_be_swallowed(bench, language):
    swallow = {
        "javascript": """
try { await codemode.srv__delete_all({}); } catch (e) {}
await codemode.srv__echo({});
return "went on";""",
        "python": """
try:
    await codemode.srv__delete_all()
except BaseException:
    pass
await codemode.srv__echo()""",
    }

    async def work():
        guest = await bench.house.guest()
        result = await evaluate(guest, swallow[language], "codemode_eval_safe", language=language, fatal=True)
        found = failure(result)
        assert found["kind"] == "denied" and "srv__delete_all" in found["message"]
        assert bench.house.ran("echo") == []

    run(bench, work)


def test_enough_refusals_end_a_script_where_the_user_says_so(bench):
    bench.set(fatal_denials=2)

    async def work():
        guest = await bench.house.guest()
        code = """
for (let n = 0; n < 9; n++) { try { await codemode.srv__delete_all({n}); } catch (e) {} }
return "went on";"""
        found = failure(await evaluate(guest, code, "codemode_eval_safe"))
        assert found["kind"] == "denied" and len(bench.rows()) == 2

    run(bench, work)


# -- limits ------------------------------------------------------------------------------------------------


def test_calls_are_counted_also_across_rests(bench):
    bench.set(calls=3)

    async def work():
        guest = await bench.house.guest()
        code = "for (let n = 0; n < 9; n++) { await codemode.srv__echo({n}); }"
        assert failure(await evaluate(guest, code))["kind"] == "calls"
        assert len(bench.house.ran("echo")) == 3
        assert failure(await evaluate(guest, code, "codemode_eval_supervised"))["kind"] == "calls"
        assert bench.last_run().rests == 3 and len(bench.house.ran("echo")) == 6

    run(bench, work)


def test_questions_are_counted(bench):
    bench.set(most_asks=2, asks_per_minute=3)

    async def work():
        guest = await bench.house.guest()
        code = """
const said = [];
for (let n = 0; n < 3; n++) {
  try { await codemode.srv__echo({n, at: "%s"}); said.push("ran"); } catch (e) { said.push(e.reason); } }
return said;"""
        tool = "codemode_eval_supervised"
        assert outcome(await evaluate(guest, code % "a", tool)) == ["ran", "ran", "rate_limited"]
        assert outcome(await evaluate(guest, code % "b", tool)) == ["ran", "rate_limited", "rate_limited"]

    run(bench, work)


@pytest.mark.parametrize(
    ("limits", "code", "kind"),
    [
        ({"result_kb": 1}, "return 'x'.repeat(5000)", "output"),
        ({"output_kb": 1}, "for (let n = 0; n < 5000; n++) console.log('x'.repeat(100))", "output"),
        ({"seconds": 0.2}, "while (true) {}", "time"),
        ({}, "return }", "syntax"),
        ({}, "throw new Error('no')", "error"),
    ],
)
def test_a_script_that_goes_too_far_ends_and_says_why(bench, limits, code, kind):
    bench.set(**limits)

    async def work():
        guest = await bench.house.guest()
        found = failure(await evaluate(guest, code))
        assert found["kind"] == kind and found["message"]
        assert bench.last_run().state == "failed" and not bench.hub.scripts.live
        bench.set()
        assert outcome(await evaluate(guest, "return 1")) == 1

    run(bench, work)


def test_a_script_that_loops_for_ever_leaves_the_others_alone(bench):
    bench.set(seconds=PATIENCE)

    async def work():
        guest, other = await bench.house.guest(), await bench.house.guest(owner="test:2")
        assert outcome(await evaluate(other, "return 0")) == 0
        looping = asyncio.ensure_future(evaluate(guest, "while (true) {}"))
        await soon(lambda: workers(bench.hub) == 1)
        endless = bench.last_run().id
        for n in range(5):
            assert outcome(await evaluate(other, f"return {n}")) == n
            assert outcome(await evaluate(guest, f"return {n}")) == n
        assert not looping.done()
        await bench.hub.scripts.cancel(endless, "enough")
        await looping

    run(bench, work)


def test_many_scripts_of_one_session_run_at_once(bench):
    async def work():
        guest = await bench.house.guest()
        code = "return (await codemode.srv__echo({n: %d})).content[0].text"
        results = await asyncio.gather(*(evaluate(guest, code % n) for n in range(8)))
        assert [outcome(each) for each in results] == [f'said {{"n": {n}}}' for n in range(8)]

    run(bench, work)


def test_calls_run_side_by_side_and_answers_go_on_one_by_one(bench):
    async def work():
        guest = await bench.house.guest()
        code = """
const order = [];
await Promise.all([
  codemode.srv__slow({}).then(() => order.push("slow")),
  codemode.srv__echo({}).then(() => order.push("one")).then(() => codemode.srv__echo({n: 2}))
    .then(() => order.push("two")).then(() => codemode.srv__read_notes({}))]);
return order;"""
        running = asyncio.ensure_future(evaluate(guest, code))
        await soon(lambda: bench.house.ran("read_notes"))
        bench.release()
        assert outcome(await running) == ["one", "two", "slow"]

    run(bench, work, source=HELD)


# -- taking back -------------------------------------------------------------------------------------------


def test_a_request_that_is_taken_back_ends_its_script(bench):
    async def work():
        guest = await bench.house.guest()
        started = asyncio.ensure_future(
            guest.raw("tools/call", {"name": "eval", "arguments": {"code": "await codemode.srv__slow({})"}})
        )
        await soon(lambda: bench.house.ran("slow"))
        guest.cancel(guest.last)
        assert await started is None
        await soon(lambda: bench.last_run().state == "cancelled")
        assert workers(bench.hub) == 0
        await soon(lambda: any("cancelled" in line for line in bench.house.log()))

    run(bench, work)


def test_a_client_that_leaves_leaves_what_waits_to_wait(bench):
    async def work():
        guest = await bench.house.guest(answers={})
        call = {"name": "codemode_eval_supervised", "arguments": {"code": ONE["javascript"]}}
        started = asyncio.ensure_future(guest.raw("tools/call", call))
        await soon(bench.questions)
        guest.leave()
        await asyncio.gather(started, return_exceptions=True)
        assert bench.last_run().state == "waiting"
        await bench.answer(bench.questions()[0])
        await soon(lambda: bench.last_run().state == "done")

    run(bench, work)


def test_a_run_that_waits_can_be_cancelled_and_its_question_goes(bench):
    bench.set(wait_seconds=0.02)

    async def work():
        guest = await bench.house.guest(answers={})
        said = await paused(guest, ONE["javascript"])
        await bench.hub.scripts.cancel(said["run_id"], "enough")
        assert bench.run_row(said["run_id"]).state == "cancelled" and not bench.questions()
        final = await resumed(guest, said["run_id"])
        assert final["isError"] and "enough" in final["content"][0]["text"]
        assert bench.house.ran("echo") == []

    run(bench, work)


# -- a server that dies ------------------------------------------------------------------------------------


def test_a_run_that_died_after_a_rest_is_answered_from_its_journal(bench):
    """What was done is not done again; what was under way is said to be unknown."""
    bench.set(wait_seconds=0.02)
    code = """
await codemode.srv__strict({n: 1});
const seen = [(await codemode.srv__echo({n: 2})).content[0].text];
try { await codemode.srv__slow({seconds: 20}); } catch (e) { seen.push(e.message); }
seen.push((await codemode.srv__echo({n: 3})).content[0].text);
return seen;"""
    settings = SETTINGS.replace('asklist = ["srv__*"]\n', 'asklist = ["srv__strict"]\n', 1)

    async def work():
        bench.settings(settings.replace(WAIT, "wait_seconds = 0.02\n"))
        guest = await bench.house.guest(answers={})
        said = await paused(guest, code)
        await bench.answer(said["waiting"][0]["question"])
        await soon(lambda: bench.house.ran("slow"))
        await bench.house.close()
        house = await bench.reopened()
        try:
            await soon(lambda: bench.run_row(said["run_id"]).state in ("done", "failed"))
            back = await house.guest()
            found = outcome(await resumed(back, said["run_id"]))
            assert found[0] == 'said {"n": 2}' and found[2] == 'said {"n": 3}'
            assert "unknown" in found[1]
            assert house.ran("strict") == [{"n": 1}] and house.ran("echo") == [{"n": 2}, {"n": 3}]
            assert len(house.ran("slow")) == 1
        finally:
            await house.close()
        await bench.house.open()

    run(bench, work)


def test_a_run_that_died_before_any_rest_has_failed(bench):
    async def work():
        guest = await bench.house.guest()
        call = {"name": "eval", "arguments": {"code": "await codemode.srv__slow({})"}}
        started = asyncio.ensure_future(guest.raw("tools/call", call))
        await soon(lambda: bench.house.ran("slow"))
        await bench.house.close()
        await asyncio.gather(started, return_exceptions=True)
        house = await bench.reopened()
        try:
            await soon(lambda: bench.last_run().state == "failed")
            back = await house.guest()
            found = failure(await resumed(back, bench.last_run().id))
            assert found["kind"] == "crash" and "stopped" in found["message"]
        finally:
            await house.close()
        await bench.house.open()

    run(bench, work)


@pytest.mark.invariant(
    "nobody is asked before the script is put away, so that nothing that waits can be lost"
)
def test_a_script_is_put_away_before_the_question_is_on_the_record(bench):
    bench.set(wait_seconds=0.02)

    async def work():
        guest = await bench.house.guest(answers={})
        said = await paused(guest, ONE["javascript"])
        rows = bench.pipeline.store.query("SELECT entry FROM record ORDER BY seq")
        entries = [row[0] for row in rows]
        # The run's own records are its start and its rest; the question comes after both.
        question = entries.index(said["waiting"][0]["question"])
        assert [at for at, each in enumerate(entries) if each == said["run_id"]][1] < question

    run(bench, work)
