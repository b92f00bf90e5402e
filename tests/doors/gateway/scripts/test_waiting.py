"""Clients that wait: in both eras, with signs of life, and with somebody else answering first."""

import asyncio

import pytest

from checkrein.doors.gateway.messages import STATELESS
from doors.gateway.scripts.bench import HELD, evaluate, outcome, paused, resumed, run
from patience import soon

CODE = "return (await codemode.srv__echo({path: '/tmp/x'})).content[0].text;"
TOOL = "codemode_eval_supervised"
YES = {"approval": {"action": "accept", "content": {}}}


@pytest.fixture(params=["line", "http"])
def visitor(request, bench):
    """A stateless client: on a line of its own, or another for each request."""

    async def make(**more):
        if request.param == "http":
            return bench.house.passing(**more)
        return await bench.house.guest(STATELESS, **more)

    return make


def test_a_stateless_clients_person_is_asked_by_its_answer(bench, visitor):
    async def work():
        guest = await visitor()
        arguments = {"code": CODE}
        first = await guest.call(TOOL, arguments)
        assert first["resultType"] == "input_required"
        text = first["inputRequests"]["approval"]["params"]["message"]
        assert "/tmp/x" in text and bench.last_run().state == "waiting"
        # Nothing said is the same question again, with another state.
        second = await guest.again(TOOL, arguments, first, {})
        assert second["resultType"] == "input_required" and second["requestState"] != first["requestState"]
        final = await guest.again(TOOL, arguments, second, YES)
        assert outcome(final) == 'said {"path": "/tmp/x"}' and len(bench.house.ran("echo")) == 1
        # A state works once, and for its own request only.
        for state, given in ((second, arguments), (first, arguments)):
            answer = await guest.raw(
                "tools/call",
                {
                    "name": TOOL,
                    "arguments": given,
                    "requestState": state["requestState"],
                    "inputResponses": YES,
                },
            )
            assert answer["error"]["code"] == -32602
        assert len(bench.house.ran("echo")) == 1

    run(bench, work)


def test_a_state_is_good_for_its_owner_and_its_request_only(bench):
    async def work():
        guest, thief = bench.house.passing(), bench.house.passing(owner="test:thief")
        first = await guest.call(TOOL, {"code": CODE})
        for who, arguments in ((thief, {"code": CODE}), (guest, {"code": "return 1"})):
            more = {"requestState": first["requestState"], "inputResponses": YES}
            params = {"name": TOOL, "arguments": arguments, **more}
            assert (await who.raw("tools/call", params))["error"]["code"] == -32602
        assert bench.house.ran("echo") == [] and len(bench.questions()) == 1

    run(bench, work)


def test_a_stateless_client_that_cannot_ask_waits_for_the_console(bench):
    bench.set(wait_seconds=0.02)

    async def work():
        guest = bench.house.passing(capabilities={})
        with bench.pipeline.broker.attending():
            said = await paused(guest, CODE)
            await bench.answer(said["waiting"][0]["question"])
            await soon(lambda: bench.last_run().state == "done")
            assert outcome(await resumed(guest, said["run_id"]))

    run(bench, work)


def test_whoever_answers_first_is_heard_and_the_clients_form_is_taken_away(bench):
    async def work():
        guest = await bench.house.guest(answers={})
        started = asyncio.ensure_future(evaluate(guest, CODE, TOOL))
        await soon(lambda: guest.asked)
        await bench.answer(bench.questions()[0])
        assert outcome(await started) and guest.withdrawn == [guest.asked[0]["id"]]
        # What the client says afterwards is nobody's.
        guest.reply(guest.asked[0], {"action": "decline"})
        assert len(bench.house.ran("echo")) == 1

    run(bench, work)


def test_a_client_that_shows_progress_hears_that_time_passes(bench, monkeypatch):
    monkeypatch.setattr("checkrein.doors.gateway.scripts.waiting._SIGN_OF_LIFE", 0.05)

    async def work():
        guest = await bench.house.guest()
        code = {"code": "await codemode.srv__slow({}); return 1"}
        started = asyncio.ensure_future(guest.call("eval", code, _meta={"progressToken": "t"}))

        def heard():
            return [each["params"] for each in guest.heard if each["method"] == "notifications/progress"]

        await soon(lambda: len(heard()) > 3)
        bench.release()
        assert outcome(await started) == 1
        steps = [each["progress"] for each in heard()]
        assert steps == sorted(set(steps)) and {each["progressToken"] for each in heard()} == {"t"}

    run(bench, work, source=HELD)


@pytest.mark.invariant(
    "a script that read an untrusted result is not trusted with outward calls unasked, "
    "nor is the session that reads what the script returns"
)
def test_who_reads_what_a_script_made_of_untrusted_words_has_read_them(bench):
    async def work():
        bench.house.server("srv")
        async with bench.opened():
            guest = await bench.house.guest(answers={"elicitation/create": {"action": "decline"}})
            code = """
await codemode.srv__read_notes({});
try { await codemode.srv__weblookup({}); return "ran"; } catch (e) { return e.reason; }"""
            assert outcome(await evaluate(guest, code)) == "elicitation_declined"
            assert guest.client.visit.tainted_by == "srv"
            # Another session is not; a script that reads nothing neither.
            other = await bench.house.guest(owner="test:2")
            assert outcome(await evaluate(other, "await codemode.srv__weblookup({}); return 1")) == 1

    asyncio.run(work())


@pytest.mark.invariant("whoever reads what a script made of untrusted words has read them too")
def test_another_session_that_reads_what_a_script_made_of_untrusted_words_has_read_them(bench):
    lookup = "try { await codemode.srv__weblookup({}); return 'ran'; } catch (e) { return e.reason; }"

    async def work():
        bench.house.server("srv", trusted=True)
        bench.house.server("wild")
        async with bench.opened():
            guest = await bench.house.guest(owner="test:1")
            done = await evaluate(guest, "await codemode.wild__read_notes({}); return 'words';")
            declines = {"elicitation/create": {"action": "decline"}}
            other = await bench.house.guest(owner="test:1", answers=declines)
            assert outcome(await evaluate(other, lookup)) == "ran"
            assert outcome(await resumed(other, done["structuredContent"]["run_id"])) == "words"
            assert outcome(await evaluate(other, lookup)) == "elicitation_declined"

    asyncio.run(work())
