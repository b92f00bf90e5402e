"""Calls on their way to servers and back, as a script sees them."""

import asyncio
import contextlib

import pytest

from doors.gateway.back import is_running
from doors.gateway.house import SERVER
from doors.gateway.scripts.bench import HELD, evaluate, outcome, paused, resumed_to_the_end, run
from patience import PATIENCE, soon

SAID = "try { return await codemode.srv__%s; } catch (e) { return [e.name, e.message, e.result ?? null]; }"


def test_a_result_is_what_the_tool_said(bench):
    async def work():
        guest = await bench.house.guest()
        assert outcome(await evaluate(guest, SAID % "echo({n: 1})")) == {
            "content": [{"type": "text", "text": 'said {"n": 1}'}]
        }

    run(bench, work)


def test_a_tool_that_says_what_it_returns_returns_that(bench):
    source = SERVER.replace(
        'tool("echo")',
        'tool("echo", outputSchema={"type": "object", "properties": {"n": {"type": "integer"}}})',
    ).replace('done(text("said " + json.dumps(arguments)))', 'done(text("x", structuredContent={"n": 7}))')

    async def work():
        bench.house.server("srv", source=source, trusted=True)
        async with bench.opened():
            guest = await bench.house.guest()
            assert outcome(await evaluate(guest, SAID % "echo({})")) == {"n": 7}
            # One that does not say so is passed on whole.
            assert "content" in outcome(await evaluate(guest, SAID % "read_notes({})"))

    asyncio.run(work())


def test_a_result_with_half_a_character_is_text(bench):
    source = SERVER.replace('text("said " + json.dumps(arguments))', r'text("cut \ud83d")')

    async def work():
        bench.house.server("srv", source=source, trusted=True)
        async with bench.opened():
            found = outcome(await evaluate(await bench.house.guest(), SAID % "echo({})"))
            assert found == {"content": [{"type": "text", "text": "cut \ufffd"}]}

    asyncio.run(work())


@pytest.mark.parametrize(
    ("call", "message"),
    [("fail({})", "it failed"), ("error({})", "no such thing"), ("odd({})", "The tool failed.")],
)
def test_a_tools_failure_is_an_error_with_its_words(bench, call, message):
    async def work():
        guest = await bench.house.guest()
        name, said, result = outcome(await evaluate(guest, SAID % call))
        assert name == "Error" and message in said
        if call == "fail({})":
            assert result["isError"] is True
        assert bench.rows()[0].state == "failed" and (await bench.house.last()).result == "failure"

    run(bench, work)


def test_a_tool_that_takes_too_long_is_given_up(bench):
    async def work():
        bench.house.server("srv", trusted=True, timeout=0.1)
        async with bench.opened():
            guest = await bench.house.guest()
            _, said, _ = outcome(await evaluate(guest, SAID % "slow({})"))
            assert "did not answer" in said and "unknown" in said
            assert (await bench.house.last()).result == "timeout"

    asyncio.run(work())


def test_a_server_that_is_away_is_said_and_nothing_ran(bench):
    bench.set(wait_seconds=0.02)

    async def work():
        guest = await bench.house.guest(answers={})
        code = """
await codemode.srv__echo({});
await codemode.srv__slow({}).catch(() => {});
try { return await codemode.srv__echo({n: 2}); } catch (e) { return e.message; }"""
        # The question about the second call stands until the server is away.
        said = await paused(guest, code, "eval", ask=["srv__slow"])
        await bench.hub.fleet.keeper("srv").stop()
        bench.hub.news.withdrawn("srv")
        await bench.answer(said["waiting"][0]["question"], "denied")
        found = outcome(await resumed_to_the_end(bench, guest, said["run_id"]))
        assert "its server 'srv' does not run" in found and len(bench.house.ran("echo")) == 1

    run(bench, work)


def test_a_servers_own_question_reaches_the_client_that_runs_the_script(bench):
    async def work():
        said = {"action": "accept", "content": {"colour": "red"}}
        guest = await bench.house.guest(answers={"elicitation/create": said})
        other = await bench.house.guest(owner="test:2")
        found = outcome(await evaluate(guest, SAID % "elicit({})"))
        assert "red" in found["content"][0]["text"] and other.asked == []
        assert guest.asked[0]["params"]["message"].startswith("The server `srv` asks (not Checkrein)")

    run(bench, work)


def test_a_stateless_clients_script_has_nobody_a_server_could_ask(bench):
    async def work():
        guest = bench.house.passing()
        found = outcome(await evaluate(guest, SAID % "elicit({})"))
        assert "red" not in str(found)
        assert "content" in outcome(await evaluate(guest, SAID % "echo({})"))

    run(bench, work)


def test_a_question_about_a_persons_script_reaches_no_client(bench, add):
    """INVARIANT: a question that could be another client's reaches nobody."""
    add("allow", "*")

    async def work():
        bench.house.server("srv", trusted=True, share="shared")
        async with bench.opened() as hub:
            guest = await bench.house.guest()
            slow = asyncio.ensure_future(guest.call("srv__slow", {"seconds": 600}))
            await soon(lambda: bench.house.ran("slow"))
            found = await hub.scripts.people.start(SAID % "elicit({})", "javascript", "free", "", PATIENCE)
            assert bench.house.ran("elicit") and guest.asked == [], found
            guest.cancel(guest.last)
            with contextlib.suppress(AssertionError, TypeError):
                await slow

    asyncio.run(work())


def test_what_a_scripts_calls_share_lasts_until_the_last_of_them(bench):
    async def work():
        bench.house.server("srv", trusted=True, share="client", source=HELD)
        async with bench.opened() as hub:
            code = "return await Promise.all([codemode.srv__slow({}), codemode.srv__env({})]);"
            work = hub.scripts.people.start(code, "javascript", "free", "", PATIENCE)
            started = asyncio.ensure_future(work)
            await soon(lambda: bench.begun() and "done" in [each.state for each in bench.rows()])
            bench.release()
            found = await started
            slept, process = (each["content"][0]["text"] for each in found["result"])
            assert slept == "slept"
            await soon(lambda: not is_running(int(process)))
            assert not hub.in_passing

    asyncio.run(work())
