"""Tool calls on their way through the gateway, with real servers: who is judged, asked, run, recorded."""

import asyncio
import json
import os
import signal
import threading
from functools import partial

import pytest

from checkrein.doors.gateway.messages import INVALID_PARAMS
from checkrein.doors.gateway.sealing import SECONDS, Seal
from checkrein.settings.sources import state_dir
from doors.gateway.house import told
from doors.gateway.moved_loop import pass_seconds
from doors.gateway.moved_loop import run as run_on_moved_loop
from patience import PATIENCE, soon

YES = {"action": "accept", "content": {}}
NO = {"action": "decline"}


def run(house, work, **more):
    """A house with one server, one client in it, and what a test does there."""

    async def main():
        house.server(**more)
        async with house.opened():
            await work(await house.guest())

    run_on_moved_loop(main())


def test_a_call_no_rule_names_is_asked_about_and_stands_on_the_record_under_its_own_name(house):
    async def work(guest):
        result = await guest.call("srv__echo", {"x": 1})
        assert told(result) == 'said {"x": 1}'
        (asked,) = guest.asked
        assert asked["params"]["message"].startswith("Checkrein asks: may tester run `echo` of server `srv`?")
        assert 'Arguments: {"x":1}' in asked["params"]["message"]
        entry = await house.last()
        assert (entry.server, entry.tool_name, entry.agent, entry.user) == (
            "srv",
            "mcp__srv__echo",
            "tester",
            "ada",
        )
        assert (entry.verdict, entry.answer, entry.channel, entry.actor) == (
            "ask",
            "approved",
            "elicitation",
            "ada",
        )
        assert entry.result == "success" and entry.door == "gateway" and entry.project == "default"
        assert house.ran("echo") == [{"x": 1}]

    run(house, work)


def test_an_allow_rule_runs_without_asking(house, add):
    async def work(guest):
        assert told(await guest.call("srv__echo")) == "said {}"
        assert guest.asked == []
        assert (await house.last()).verdict == "allow"

    add("allow", "echo")
    run(house, work)


def test_a_deny_rule_refuses_in_words_and_nothing_runs(house, add):
    async def work(guest):
        result = await guest.call("srv__echo")
        assert result["isError"] and told(result).startswith("Checkrein refused this call.")
        assert guest.asked == [] and house.ran("echo") == []
        entry = await house.last()
        assert (entry.verdict, entry.status) == ("deny", "denied")

    add("deny", "echo")
    run(house, work)


def test_a_name_nobody_offers_is_an_error(house):
    async def work(guest):
        for name in ("echo", "srv__nothing", "other__echo", "", "srv__", 7, None):
            error = await guest.error("tools/call", {"name": name})
            assert error["code"] == INVALID_PARAMS
        error = await guest.error("tools/call", {"name": "srv__echo", "arguments": [1]})
        assert error["code"] == INVALID_PARAMS

    run(house, work)


def test_what_nobody_accepted_is_refused_and_recorded(house):
    async def main():
        house.server()
        async with house.opened(accept=False):
            guest = await house.guest()
            result = await guest.call("srv__echo", {"x": 1})
            assert result["isError"] and "Nobody has accepted it yet." in told(result)
            entry = await house.last()
            assert (entry.verdict, entry.stage, entry.server) == ("deny", "definition", "srv")
            assert house.ran("echo") == []

    asyncio.run(main())


def test_arguments_that_do_not_fit_the_schema_are_refused_before_anybody_is_asked(house, add):
    async def work(guest):
        result = await guest.call("srv__strict", {"n": "x"})
        assert result["isError"] and guest.asked == [] and house.ran("strict") == []
        assert (await house.last()).stage == "arguments"
        assert not (await guest.call("srv__strict", {"n": 1})).get("isError")

    add("allow", "strict")
    run(house, work)


def test_the_time_limit_is_30_seconds_and_a_servers_own_where_it_has_one(house, pipeline):
    assert pipeline.policies.of("", "gateway").settings.gateway.call_seconds == 30.0

    async def main():
        house.server("srv", timeout=0.3)
        house.server("two")
        async with house.opened():
            guest = await house.guest()
            seen = []
            begin = house.hub.relay.begin

            def watched(errand):
                seen.append(errand.seconds)
                return begin(errand)

            house.hub.relay.begin = watched
            result = await guest.call("srv__slow", {"seconds": 600})
            assert result["isError"] and "did not answer within 0.3 seconds" in told(result)
            assert "unknown" in told(result)
            assert (await house.last()).result == "timeout"
            await soon(lambda: any("cancelled" in line for line in house.log()))
            await guest.call("two__echo")
            assert seen == [0.3, 30.0]
            await soon(lambda: house.ran("slow") == [{"seconds": 600}])

    asyncio.run(main())


def test_the_time_stands_still_while_a_person_is_asked(house):
    async def work(guest):
        guest.answers = {}
        task = asyncio.ensure_future(guest.call("srv__echo"))
        await soon(lambda: guest.asked)
        await pass_seconds(2 * PATIENCE)
        guest.reply(guest.asked[0], YES)
        assert told(await task) == "said {}"

    run(house, work, timeout=PATIENCE)


def test_the_time_stands_still_while_the_client_is_asked(house, add):
    async def work(guest):
        guest.answers = {}
        task = asyncio.ensure_future(guest.call("srv__elicit"))
        await soon(lambda: guest.asked)
        await pass_seconds(2 * PATIENCE)
        guest.reply(guest.asked[0], {"action": "accept", "content": {"c": "red"}})
        assert json.loads(told(await task))["content"] == {"c": "red"}

    add("allow", "elicit")
    run(house, work, timeout=PATIENCE)


def test_a_call_whose_server_dies_in_the_middle_is_unknown_and_never_repeated(house, add):
    async def work(guest):
        result = await guest.call("srv__crash")
        assert result["isError"] and "Whether the call took effect is unknown" in told(result)
        entry = await house.last()
        assert (entry.result, entry.evidence) == ("unknown", "connection lost")
        assert told(await guest.call("srv__echo")) == "said {}"
        assert house.ran("crash") == [{}]

    add("allow", "*")
    run(house, work)


def test_a_server_killed_in_the_middle_leaves_an_unknown_fate(house, add):
    async def work(guest):
        task = asyncio.ensure_future(guest.call("srv__slow"))
        await soon(lambda: house.ran("slow"))
        os.kill(house.hub.fleet.keeper("srv").status()["pid"], signal.SIGKILL)
        assert "unknown" in told(await task)
        assert (await house.last()).result == "unknown"
        assert house.ran("slow") == [{}]

    add("allow", "*")
    run(house, work)


def test_a_call_its_client_cancels_is_cancelled_at_the_server_and_on_the_record(house, add):
    async def work(guest):
        task = asyncio.ensure_future(guest.raw("tools/call", {"name": "srv__slow"}))
        await soon(lambda: house.ran("slow"))
        guest.cancel(guest.last)
        assert await task is None
        await soon(lambda: any("cancelled" in line for line in house.log()))
        entry = await house.last()
        assert (entry.result, entry.evidence) == ("cancelled", "client")
        assert not guest.client.flights

    add("allow", "*")
    run(house, work)


def test_progress_comes_with_the_clients_own_token(house, add):
    async def work(guest):
        for token in ("mine", 77):
            guest.heard.clear()
            await guest.call("srv__progress", _meta={"progressToken": token, "own": 1})
            steps = [each["params"] for each in guest.heard if each["method"] == "notifications/progress"]
            assert [each["progressToken"] for each in steps] == [token, token]
        sent = [line["params"]["_meta"] for line in house.log() if line.get("tool") == "progress"]
        assert all(each["progressToken"] not in ("mine", 77) and each["own"] == 1 for each in sent)

    add("allow", "*")
    run(house, work)


@pytest.mark.invariant("what is executed is what was judged, and nothing a client put beside it")
def test_nothing_a_client_puts_beside_the_arguments_reaches_the_server(house, add):
    async def work(guest):
        await guest.call("srv__echo", task={"ttl": 1}, requestState="x", inputResponses={"q": 1}, other=2)
        (line,) = [line for line in house.log() if line.get("tool") == "echo"]
        assert set(line["params"]) == {"name", "arguments"}

    add("allow", "*")
    run(house, work)


def test_a_tool_that_fails_is_a_failure_on_the_record(house, add):
    async def work(guest):
        assert (await guest.call("srv__fail"))["isError"]
        assert (await house.last()).result == "failure"
        error = await guest.error("tools/call", {"name": "srv__error"})
        assert (error["code"], error["message"], error["data"]) == (-32000, "no such thing", {"x": 1})
        assert (await house.last()).result == "failure"
        answer = await guest.raw("tools/call", {"name": "srv__odd"})
        assert answer["result"] == [1, 2, 3] and (await house.last()).result == "failure"

    add("allow", "*")
    run(house, work)


# -- who is asked ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "again"),
    [
        (YES, "asked"),
        ({"action": "accept"}, "asked"),
        ({"action": "accept", "content": {"remember": "once", "message": "fine"}}, "asked"),
        ({"action": "accept", "content": {"remember": "this call, for this session"}}, "same"),
        ({"action": "accept", "content": {"remember": "this tool, for this session"}}, "any"),
    ],
)
def test_a_yes_reaches_as_far_as_the_person_said(house, answer, again):
    async def work(guest):
        guest.answers["elicitation/create"] = answer
        for arguments, asked in (({"x": 1}, True), ({"x": 1}, again == "asked"), ({"x": 2}, again != "any")):
            guest.asked.clear()
            assert not (await guest.call("srv__read_notes", arguments)).get("isError")
            assert bool(guest.asked) is asked
        other = await house.guest(agent="other")
        await other.call("srv__read_notes", {"x": 1})
        assert other.asked, "a session's yes is that session's"

    run(house, work)


@pytest.mark.parametrize(
    "answer",
    [
        NO,
        {"action": "cancel"},
        {"action": "accept", "content": {"remember": "for ever"}},
        {"action": "accept", "content": {"remember": ["once"]}},
        {"action": "ACCEPT"},
        {"action": True},
        {},
        "accept",
        ["accept"],
        None,
        {"error": {"code": -1, "message": "no window"}},
    ],
)
def test_whatever_is_no_plain_yes_is_a_no(house, answer):
    async def work(guest):
        if answer is None:
            guest.answers = {"elicitation/create": lambda asked: guest.reply(asked, None)}
        else:
            guest.answers["elicitation/create"] = answer if answer != {} else {"x": 1}
        result = await guest.call("srv__echo")
        assert result["isError"] and house.ran("echo") == []
        assert (await house.last()).answer == "denied"

    run(house, work)


def test_an_answer_given_elsewhere_first_counts_and_the_clients_question_is_withdrawn(house, pipeline):
    async def work(guest):
        guest.answers = {}
        task = asyncio.ensure_future(guest.call("srv__echo"))
        await soon(lambda: guest.asked)
        (entry,) = house.entries()
        await asyncio.to_thread(pipeline.answer, entry.id, "approved", actor="bob", channel="console")
        assert told(await task) == "said {}"
        assert guest.withdrawn == [guest.asked[0]["id"]]
        # A late answer is nobody's.
        guest.reply(guest.asked[0], NO)
        found = await house.last()
        assert (found.actor, found.channel, found.result) == ("bob", "console", "success")

    run(house, work)


def test_a_question_nobody_answers_in_time_is_a_no(house, clock, monkeypatch):
    monkeypatch.setattr("checkrein.doors.gateway.asking._SIGN_OF_LIFE", 0.02)

    async def work(guest):
        guest.answers = {}
        task = asyncio.ensure_future(guest.call("srv__echo", _meta={"progressToken": 5}))
        await soon(lambda: [each for each in guest.heard if each["method"] == "notifications/progress"])
        clock.pass_days(1)
        result = await task
        assert result["isError"] and "Nobody answered in time" in told(result)
        assert guest.withdrawn and house.ran("echo") == []
        assert (await house.last()).answer == "expired"

    run(house, work)


def test_a_client_that_cannot_be_asked_is_denied_by_default(house):
    async def main():
        house.server()
        async with house.opened():
            for capabilities in ({}, {"elicitation": None}, {"elicitation": {"url": {}}}):
                guest = await house.guest(capabilities=capabilities)
                result = await guest.call("srv__echo")
                assert result["isError"] and "nobody can be reached" in told(result)
                entry = await house.last()
                assert (entry.answer, entry.channel) == ("cancelled", "none")
            assert house.ran("echo") == [] and not house.events("asked")

    asyncio.run(main())


@pytest.mark.invariant("an approved call runs at most once, unless running it twice does no harm")
def test_where_questions_may_wait_the_same_call_comes_back_for_the_answer_exactly_once(
    house, pipeline, user_settings
):
    user_settings('[gateway]\nno_person = "wait"')

    async def main():
        house.server()
        async with house.opened():
            guest = await house.guest(capabilities={})
            result = await guest.call("srv__echo", {"x": 1})
            assert result["isError"] and "waits for a person's yes" in told(result)
            entry = result["_meta"]["checkrein/waiting"]["record"]
            again = await guest.call("srv__echo", {"x": 1})
            assert again["_meta"]["checkrein/waiting"]["record"] == entry
            await asyncio.to_thread(pipeline.answer, entry, "approved", actor="ada", channel="console")
            assert "waits for" in told(await guest.call("srv__echo", {"x": 2})), (
                "another call is another question"
            )
            assert told(await guest.call("srv__echo", {"x": 1})) == 'said {"x": 1}'
            assert "waits for" in told(await guest.call("srv__echo", {"x": 1}))
            assert house.ran("echo") == [{"x": 1}]

    asyncio.run(main())


def test_a_call_held_for_taint_comes_back_for_its_answer_too(house, add, pipeline, user_settings):
    user_settings('[gateway]\nno_person = "wait"')
    add("allow", "*")

    async def main():
        house.server()
        async with house.opened():
            guest = await house.guest(capabilities={})
            await guest.call("srv__echo")
            result = await guest.call("srv__weblookup")
            entry = result["_meta"]["checkrein/waiting"]["record"]
            assert (await guest.call("srv__weblookup"))["_meta"]["checkrein/waiting"]["record"] == entry
            await asyncio.to_thread(pipeline.answer, entry, "approved", actor="ada", channel="console")
            assert told(await guest.call("srv__weblookup")) == "said {}"
            assert house.ran("weblookup") == [{}]

    asyncio.run(main())


def test_a_question_that_waited_too_long_is_a_no_whoever_comes_back(house, user_settings, clock):
    user_settings('[gateway]\nno_person = "wait"')

    async def main():
        house.server()
        async with house.opened():
            guest = await house.guest(capabilities={})
            await guest.call("srv__echo")
            clock.pass_days(1)
            assert "Nobody answered in time" in told(await guest.call("srv__echo"))
            assert house.ran("echo") == []

    asyncio.run(main())


def test_the_profiles_fallback_lets_only_its_own_ask_list_run(house, user_settings):
    user_settings(
        '[profiles.quiet]\nask = ["srv__echo"]\nfallback = "allow"\n[doors.gateway]\nprofile = "quiet"'
    )

    async def main():
        house.server()
        async with house.opened():
            guest = await house.guest(capabilities={})
            assert told(await guest.call("srv__echo")) == "said {}"
            entry = await house.last()
            assert (entry.answer, entry.channel) == ("approved", "fallback")
            result = await guest.call("srv__delete_all")
            assert result["isError"] and house.ran("delete_all") == []
            # Where somebody can be asked, they are.
            asked = await house.guest()
            await asked.call("srv__echo")
            assert len(asked.asked) == 1

    asyncio.run(main())


def test_edited_arguments_are_what_runs_and_must_fit_the_schema(house, pipeline):
    async def work(guest):
        guest.answers = {}
        for edited, ran in (({"n": 5}, [{"n": 5}]), ({"n": "five"}, [{"n": 5}])):
            guest.asked.clear()
            task = asyncio.ensure_future(guest.call("srv__strict", {"n": 1}))
            await soon(lambda: guest.asked)
            entry = house.entries()[0].id
            answer = partial(pipeline.answer, actor="ada", channel="console", edited=edited)
            await asyncio.to_thread(answer, entry, "approved")
            assert bool((await task).get("isError")) is (edited != {"n": 5})
            assert house.ran("strict") == ran

    run(house, work)


@pytest.mark.invariant("what goes on is what was approved, not what the client sent")
def test_a_call_approved_with_other_arguments_goes_on_with_those(house, pipeline):
    """The server wants to know more before it answers, and the client comes back with what it sent first."""

    async def main():
        house.server(env={"ERAS": "stateless"})
        async with house.opened():
            guest = house.passing(capabilities={"sampling": {}})
            with pipeline.broker.attending():
                task = asyncio.ensure_future(guest.call("srv__sample", {"x": 1}))
                await soon(lambda: house.entries() and pipeline.broker.is_awaited(house.entries()[0].id))
                answer = partial(pipeline.answer, actor="ada", channel="console", edited={"x": 2})
                await asyncio.to_thread(answer, house.entries()[0].id, "approved")
                first = await task
            assert first["resultType"] == "input_required"
            second = await guest.again("srv__sample", {"x": 1}, first, {"q": {"role": "assistant"}})
            assert not second.get("isError") and house.ran("sample") == [{"x": 2}, {"x": 2}]

    asyncio.run(main())


@pytest.mark.invariant("a deny that came after the approval outranks it")
def test_a_deny_between_question_and_answer_wins(house, add):
    async def work(guest):
        guest.answers = {}
        task = asyncio.ensure_future(guest.call("srv__echo"))
        await soon(lambda: guest.asked)
        add("deny", "echo")
        guest.reply(guest.asked[0], YES)
        result = await task
        assert result["isError"] and house.ran("echo") == []

    run(house, work)


def test_a_deny_between_the_answer_and_the_call_that_comes_back_for_it_wins(
    house, add, pipeline, user_settings
):
    user_settings('[gateway]\nno_person = "wait"')

    async def main():
        house.server()
        async with house.opened():
            guest = await house.guest(capabilities={})
            entry = (await guest.call("srv__echo"))["_meta"]["checkrein/waiting"]["record"]
            await asyncio.to_thread(pipeline.answer, entry, "approved", actor="ada", channel="console")
            remove = add("deny", "echo")
            assert (await guest.call("srv__echo"))["isError"]
            remove()
            found = next(each for each in await house.recorded() if each.id == entry)
            assert (found.answer, found.result, found.evidence) == ("approved", "cancelled", "policy")
            # It is asked about again: the yes of before is over.
            assert "waits for" in told(await guest.call("srv__echo"))
            assert house.ran("echo") == []

    asyncio.run(main())


def test_of_two_clients_each_is_asked_about_its_own_call(house):
    async def main():
        house.server()
        async with house.opened():
            one, two = (
                await house.guest(agent="one", owner="o:1"),
                await house.guest(agent="two", owner="o:2"),
            )
            one.answers, two.answers = {}, {}
            tasks = [
                asyncio.ensure_future(one.call("srv__echo", {"who": 1})),
                asyncio.ensure_future(two.call("srv__echo", {"who": 2})),
            ]
            await soon(lambda: one.asked and two.asked)
            assert '"who":1' in one.asked[0]["params"]["message"]
            assert '"who":2' in two.asked[0]["params"]["message"]
            # Neither can answer for the other, though it knew the number of the other's question.
            one.reply(two.asked[0], YES)
            two.reply(one.asked[0], YES)
            one.reply(one.asked[0], NO)
            two.reply(two.asked[0], YES)
            first, second = await asyncio.gather(*tasks)
            assert first["isError"] and told(second) == 'said {"who": 2}'

    asyncio.run(main())


def test_a_program_an_agent_runs_cannot_answer_for_a_person(house):
    async def work(guest):
        guest.client.speaks_for_person = False
        result = await guest.call("srv__echo")
        assert result["isError"] and guest.asked == [] and house.ran("echo") == []

    run(house, work)


def test_a_client_that_stops_waiting_withdraws_its_question(house, pipeline):
    async def work(guest):
        guest.answers = {}
        task = asyncio.ensure_future(guest.raw("tools/call", {"name": "srv__echo"}))
        await soon(lambda: guest.asked)
        guest.cancel(guest.last)
        assert await task is None
        await soon(lambda: house.entries()[0].answer == "cancelled")
        assert guest.withdrawn and house.ran("echo") == []

    run(house, work)


def test_a_call_taken_back_while_its_verdict_is_written_leaves_no_question_and_no_loose_end(
    house, pipeline, monkeypatch
):
    commit = pipeline.commit

    async def work(guest):
        loop = asyncio.get_running_loop()

        def slowly(evaluation):
            loop.call_soon_threadsafe(guest.cancel, guest.last)
            cancelled.wait(PATIENCE)
            return commit(evaluation)

        cancelled = threading.Event()
        monkeypatch.setattr(pipeline, "commit", slowly)
        task = asyncio.ensure_future(guest.raw("tools/call", {"name": "srv__echo"}))
        assert await task is None
        cancelled.set()
        await soon(lambda: house.entries() and house.entries()[0].answer == "cancelled")
        assert guest.asked == [] and house.ran("echo") == []

    run(house, work)


# -- untrusted words -------------------------------------------------------------------------------------


@pytest.mark.parametrize("first", ["echo", "fail", "error"])
@pytest.mark.parametrize("second", ["weblookup", "delete_all"])
@pytest.mark.invariant("a session that read an untrusted result is not trusted with outward calls unasked")
def test_after_an_untrusted_result_what_can_send_or_destroy_is_asked_about(house, add, first, second):
    async def work(guest):
        answer = await guest.raw("tools/call", {"name": f"srv__{first}"})
        if first != "error":
            assert answer["result"]["_meta"]["checkrein/untrusted"] == "srv"
        await guest.call(f"srv__{second}")
        assert "has read what the server `srv` returned" in guest.asked[0]["params"]["message"]
        guest.asked.clear()
        await guest.call("srv__read_notes")
        assert guest.asked == []
        other = await house.guest(agent="other")
        await other.call(f"srv__{second}")
        assert other.asked == [], "another session has read nothing"

    add("allow", "*")
    run(house, work)


def test_a_trusted_servers_words_taint_nothing(house, add):
    async def work(guest):
        result = await guest.call("srv__echo")
        assert "_meta" not in result
        await guest.call("srv__weblookup")
        assert guest.asked == []

    add("allow", "*")
    run(house, work, trusted=True)


def test_a_rule_for_exactly_this_tool_is_not_held(house, add):
    async def work(guest):
        await guest.call("srv__echo")
        await guest.call("srv__weblookup")
        assert guest.asked == []

    add("allow", "echo")
    add("allow", "weblookup")
    run(house, work)


def test_a_yes_remembered_for_the_session_is_not_held(house, add):
    async def work(guest):
        guest.answers["elicitation/create"] = {
            "action": "accept",
            "content": {"remember": "this call, for this session"},
        }
        await guest.call("srv__echo")
        await guest.call("srv__weblookup")
        assert len(guest.asked) == 1
        await guest.call("srv__weblookup")
        assert len(guest.asked) == 1

    add("allow", "echo")
    run(house, work)


def test_taint_can_be_left_to_the_rules(house, add, user_settings):
    async def work(guest):
        await guest.call("srv__echo")
        await guest.call("srv__weblookup")
        assert guest.asked == []

    user_settings('[gateway]\ntaint = "off"')
    add("allow", "*")
    run(house, work)


# -- stateless clients -----------------------------------------------------------------------------------


def stateless(house, work, **more):
    async def main():
        house.server(**more)
        async with house.opened():
            await work(house.passing())

    asyncio.run(main())


def test_a_stateless_client_is_asked_by_its_result_and_runs_with_its_answer(house):
    async def work(guest):
        first = await guest.call("srv__echo", {"x": 1})
        assert first["resultType"] == "input_required" and house.ran("echo") == []
        request = first["inputRequests"]["approval"]
        assert request["method"] == "elicitation/create"
        assert request["params"]["message"].startswith("Checkrein asks:")
        second = await guest.again("srv__echo", {"x": 1}, first, {"approval": YES})
        assert (second["resultType"], told(second)) == ("complete", 'said {"x": 1}')
        entry = await house.last()
        assert (entry.answer, entry.result, len(house.entries())) == ("approved", "success", 1)

    stateless(house, work)


def test_a_stateless_client_declines(house):
    async def work(guest):
        for answer in (NO, {"action": "accept", "content": {"remember": 1}}, None, 7):
            first = await guest.call("srv__echo", {"x": repr(answer)})
            second = await guest.again("srv__echo", {"x": repr(answer)}, first, {"approval": answer})
            assert second["isError"] and second["resultType"] == "complete"
        assert house.ran("echo") == []

    stateless(house, work)


def test_a_stateless_client_that_comes_back_without_an_answer_is_asked_the_same_again(house):
    async def work(guest):
        first = await guest.call("srv__echo")
        second = await guest.again("srv__echo", {}, first, {})
        assert second["resultType"] == "input_required" and len(house.entries()) == 1
        # Asked once more without any state it is the same question, too.
        third = await guest.call("srv__echo")
        assert len(house.entries()) == 1
        assert told(await guest.again("srv__echo", {}, third, {"approval": YES})) == "said {}"
        # The yes was taken: the other state of the same question gets nothing more.
        late = await guest.again("srv__echo", {}, second, {"approval": YES})
        assert late["isError"] and house.ran("echo") == [{}]

    stateless(house, work)


def test_a_state_is_used_once_by_its_owner_for_its_call_within_its_time(house, clock):
    async def work(guest):
        async def refused(state, arguments=None, who=guest):
            params = {"name": "srv__echo", "arguments": arguments or {"x": 1}, "requestState": state}
            error = await who.error("tools/call", {**params, "inputResponses": {"approval": YES}})
            assert error["code"] == INVALID_PARAMS
            assert (await house.last()).stage == "state"
            return error["message"]

        state = (await guest.call("srv__echo", {"x": 1}))["requestState"]
        foreign = house.passing(owner="test:2")
        assert "another client" in await refused(state, who=foreign)
        assert "another request" in await refused(state, {"x": 2})
        for broken in (
            state[:-4],
            state[:40],
            state[1:],
            ("B" if state.startswith("A") else "A") + state[1:],
            state + "A",
            f"{state}!!",
            "",
            "é",
            7,
            {},
        ):
            assert "not one of ours" in await refused(broken)
        clock.now += SECONDS + 1
        assert "too old" in await refused(state)
        assert house.ran("echo") == []
        clock.now -= SECONDS + 1
        assert told(await guest.again("srv__echo", {"x": 1}, {"requestState": state}, {"approval": YES}))
        assert "used before" in await refused(state)
        assert house.ran("echo") == [{"x": 1}]

    stateless(house, work)


@pytest.mark.invariant("a call that never began, or has ended, is not sent on, not even after a restart")
def test_a_state_of_another_kind_does_not_approve(house, add):
    async def work(guest):
        # A state about the same call that was sealed for a parked request, and for a server's own state.
        first = await guest.call("srv__echo")
        made = house.hub.calls
        offered = house.hub.catalogue.tool("srv__echo")
        from checkrein.call import digest

        bound = digest(["tools/call", "srv__echo", {}])
        entry = house.entries()[0].id
        for kind in ("run", "server", "else"):
            state = house.seals[0].close(
                owner=guest.owner,
                digest=bound,
                kind=kind,
                now=house.pipeline.clock(),
                entry=entry,
                carried="x",
                definition=offered.hash,
            )
            answer = await guest.raw(
                "tools/call",
                {
                    "name": "srv__echo",
                    "arguments": {},
                    "requestState": state,
                    "inputResponses": {"approval": YES},
                },
            )
            assert "error" in answer or answer["result"].get("isError"), answer
        assert made is house.hub.calls and first and house.ran("echo") == []

    stateless(house, work)


def test_a_stateless_question_nobody_answered_in_time_is_a_no(house, clock, pipeline):
    async def work(guest):
        first = await guest.call("srv__echo")
        seconds = pipeline.policies.of("", "gateway").settings.approval.timeout_seconds
        assert seconds < SECONDS
        clock.now += seconds + 1
        result = await guest.again("srv__echo", {}, first, {"approval": YES})
        assert result["isError"] and "Nobody answered in time" in told(result) and house.ran("echo") == []

    stateless(house, work)


def test_a_question_outlives_the_server_that_asked_it(house, clock):
    async def main():
        house.server()
        async with house.opened():
            first = await house.passing().call("srv__echo", {"x": 1})
        house.seals.append(Seal(state_dir() / "gateway", house.pipeline.store))
        async with house.opened():
            guest = house.passing()
            second = await guest.again("srv__echo", {"x": 1}, first, {"approval": YES})
            assert told(second) == 'said {"x": 1}'
        house.seals.append(Seal(state_dir() / "gateway", house.pipeline.store))
        async with house.opened():
            # Also the next server knows that this state was used.
            params = {"name": "srv__echo", "arguments": {"x": 1}, "requestState": first["requestState"]}
            error = await house.passing().error("tools/call", {**params, "inputResponses": {"approval": YES}})
            assert "used before" in error["message"] and house.ran("echo") == [{"x": 1}]

    asyncio.run(main())


def test_a_deny_that_came_while_the_server_was_started_again_wins(house, add):
    async def main():
        house.server()
        async with house.opened():
            first = await house.passing().call("srv__echo")
        add("deny", "echo")
        async with house.opened():
            second = await house.passing().again("srv__echo", {}, first, {"approval": YES})
            assert second["isError"] and house.ran("echo") == []

    asyncio.run(main())


def test_a_stateless_yes_for_the_session_holds_for_the_session(house):
    async def work(guest):
        first = await guest.call("srv__read_notes")
        answer = {"action": "accept", "content": {"remember": "this tool, for this session"}}
        await guest.again("srv__read_notes", {}, first, {"approval": answer})
        assert told(await guest.call("srv__read_notes", {"x": 1})) == 'said {"x": 1}'
        other = await house.passing(owner="test:2").call("srv__read_notes", {"x": 1})
        assert other["resultType"] == "input_required"

    stateless(house, work)


def test_a_stateless_client_that_cannot_be_asked_is_refused(house):
    async def main():
        house.server()
        async with house.opened():
            guest = house.passing(capabilities={})
            result = await guest.call("srv__echo")
            assert result["isError"] and result["resultType"] == "complete"
            assert "io.modelcontextprotocol/serverInfo" in result["_meta"]

    asyncio.run(main())


def test_a_stateless_client_whose_answer_was_given_in_the_console_runs(house, pipeline):
    async def work(guest):
        first = await guest.call("srv__echo")
        entry = house.entries()[0].id
        await asyncio.to_thread(pipeline.answer, entry, "approved", actor="bob", channel="console")
        assert told(await guest.again("srv__echo", {}, first, {})) == "said {}"
        assert house.ran("echo") == [{}]

    stateless(house, work)


# -- one name, one tool ----------------------------------------------------------------------------------


def test_a_private_connection_that_shows_another_tool_is_not_called(house, add):
    async def main():
        add("allow", "*")
        house.server(env={"TWO_FACED": "1"})
        async with house.opened():
            guest = await house.guest()
            assert told(await guest.call("srv__echo")) == "said {}"
            await guest.call("srv__elicit")
            # From now on this client has a connection of its own, and there echo is something else.
            result = await guest.call("srv__echo", {"x": 1})
            assert result["isError"] and "not the accepted one" in told(result)
            entry = await house.last()
            assert (entry.result, entry.evidence) == ("cancelled", "definition")
            assert house.ran("echo") == [{}]
            assert not (await guest.call("srv__read_notes")).get("isError")

    asyncio.run(main())


def test_many_calls_at_once_on_a_new_connection_all_run(house, add):
    async def main():
        add("allow", "*")
        house.server(share="client")
        async with house.opened():
            guest = await house.guest()
            results = await asyncio.gather(*(guest.call("srv__echo", {"n": number}) for number in range(20)))
            assert [told(each) for each in results] == [f'said {{"n": {number}}}' for number in range(20)]

    asyncio.run(main())


@pytest.mark.invariant("what a server changes about itself is looked at before it is offered, or called")
def test_a_tool_that_changed_is_not_called_not_even_before_its_new_list_is_read(house, add):
    async def work(guest):
        await guest.call("srv__evolve")
        result = await guest.call("srv__echo")
        assert result["isError"] and house.ran("echo") == []
        await house.settled()
        assert "changed since" in told(await guest.call("srv__echo"))

    add("allow", "*")
    run(house, work)


def test_a_call_taken_back_before_it_was_sent_is_cancelled_on_the_record(house, add):
    async def work(guest):
        held = asyncio.Event()

        async def waits(*_args):
            held.set()
            await asyncio.Event().wait()

        house.hub.inventory.outdated(house.hub.fleet.ready()[0])
        house.hub.inventory.differs = waits
        task = asyncio.ensure_future(guest.raw("tools/call", {"name": "srv__echo"}))
        await held.wait()
        guest.cancel(guest.last)
        assert await task is None and house.ran("echo") == []
        entry = await house.last()
        assert (entry.result, entry.evidence) == ("cancelled", "client")

    add("allow", "*")
    run(house, work)


def test_a_fault_of_ours_while_a_call_is_under_way_leaves_its_fate_unknown(house, add):
    async def work(guest):
        async def breaks(*_args, **_more):
            raise RuntimeError("boom")

        house.hub.fleet.ready()[0].request = breaks
        await guest.error("tools/call", {"name": "srv__echo"})
        entry = await house.last()
        assert (entry.result, entry.evidence) == ("unknown", "our error")

    add("allow", "*")
    run(house, work)


def test_a_server_that_is_gone_is_said_to_be_gone(house, add):
    async def work(guest):
        await house.hub.fleet.keeper("srv").stop()
        result = await guest.call("srv__echo")
        assert result["isError"] and "nothing ran" in told(result)
        assert (await house.last()).evidence == "unreachable"

    add("allow", "*")
    run(house, work)
