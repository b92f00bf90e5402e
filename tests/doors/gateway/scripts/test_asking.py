"""Questions about scripts' calls: who is asked, what they are shown, what becomes of a silence."""

import pytest

from doors.gateway.scripts.bench import evaluate, outcome, paused, resumed, run
from patience import soon

REASON = "try { await codemode.srv__echo(%s); return 'ran'; } catch (e) { return e.reason; }"
TOOL = "codemode_eval_supervised"


def test_nobody_in_time_is_a_no(bench, clock):
    bench.set(wait_seconds=0.02)

    async def work():
        guest = await bench.house.guest(answers={})
        said = await paused(guest, REASON % "{}")
        clock.pass_days(6)
        assert bench.run_row(said["run_id"]).state == "waiting"
        clock.pass_days(2)
        await bench.house.close()
        house = await bench.reopened()
        try:
            await soon(lambda: bench.run_row(said["run_id"]).state == "done")
            back = await house.guest()
            assert outcome(await resumed(back, said["run_id"])) == "expired"
        finally:
            await house.close()
        await bench.house.open()

    run(bench, work)


def test_a_client_that_said_it_can_ask_and_cannot(bench):
    async def work():
        broken = {"elicitation/create": {"error": {"code": -32601, "message": "no such method"}}}
        guest = await bench.house.guest(answers=broken)
        assert outcome(await evaluate(guest, REASON % "{}", TOOL)) == "elicitation_unsupported"
        assert bench.house.ran("echo") == []

    run(bench, work)


def test_an_agents_own_client_speaks_for_nobody(bench):
    async def work():
        guest = await bench.house.guest()
        guest.client.speaks_for_person = False
        assert outcome(await evaluate(guest, REASON % "{}", TOOL)) == "elicitation_unsupported"
        assert guest.asked == []

    run(bench, work)


def test_a_person_may_approve_other_arguments_and_those_are_executed(bench):
    bench.set(wait_seconds=0.02)

    async def work():
        guest = await bench.house.guest(answers={})
        said = await paused(guest, REASON % "{path: '/etc'}")
        await bench.answer(said["waiting"][0]["question"], edited={"path": "/tmp"})
        await soon(lambda: bench.run_row(said["run_id"]).state == "done")
        assert bench.house.ran("echo") == [{"path": "/tmp"}]

    run(bench, work)


TWICE = {
    "javascript": """
const all = await Promise.allSettled([1, 2].map(() => codemode.srv__echo({pay: 100})));
return all.map((each) => each.status === "fulfilled" ? "ran" : each.reason.reason);""",
    "python": """
import asyncio
async def one():
    try:
        await codemode.srv__echo(pay=100)
        return "ran"
    except PermissionError as e:
        return str(e).split(": ")[-1]
await asyncio.gather(one(), one())""",
}


@pytest.mark.parametrize("said", [(True, False), (False, True), (True, True)])
@pytest.mark.parametrize("language", sorted(TWICE))
def test_a_yes_is_to_one_call_also_where_the_script_makes_the_same_call_twice(bench, language, said):
    async def work():
        content = {f"call_{number}": yes for number, yes in enumerate(said, 1)}
        guest = await bench.house.guest(
            answers={"elicitation/create": {"action": "accept", "content": content}}
        )
        result = await evaluate(guest, TWICE[language], TOOL, language=language)
        assert outcome(result) == ["ran" if yes else "elicitation_declined" for yes in said]
        assert bench.house.ran("echo") == [{"pay": 100}] * sum(said)

    run(bench, work)


def test_an_answer_in_the_inbox_leaves_the_same_call_beside_it_open(bench):
    bench.set(wait_seconds=0.02)

    async def work():
        guest = await bench.house.guest(answers={})
        said = await paused(guest, TWICE["javascript"], count=2)
        first, second = bench.questions()
        await bench.answer(first)
        assert bench.questions() == [second]
        await bench.answer(second, "denied")
        await soon(lambda: bench.run_row(said["run_id"]).state == "done")
        assert bench.house.ran("echo") == [{"pay": 100}]

    run(bench, work)


def test_long_arguments_are_summed_up_beside_themselves(bench):
    bench.set(summaries='"sampling"')

    async def work():
        model = {"role": "assistant", "content": {"type": "text", "text": "writes many x"}}
        answers = {"elicitation/create": {"action": "accept"}, "sampling/createMessage": model}
        guest = await bench.house.guest(capabilities={"elicitation": {}, "sampling": {}}, answers=answers)
        assert outcome(await evaluate(guest, REASON % "{t: 'x'.repeat(900)}", TOOL)) == "ran"
        sampled, asked = guest.asked
        assert "x" * 900 in sampled["params"]["messages"][0]["content"]["text"]
        text = asked["params"]["message"]
        assert "(not checked): writes many x" in text and "x" * 900 in text
        guest.asked.clear()
        assert outcome(await evaluate(guest, REASON % "{t: 'short'}", TOOL)) == "ran"
        assert [each["method"] for each in guest.asked] == ["elicitation/create"]

    run(bench, work)


def test_a_summary_that_fails_stops_nothing(bench):
    bench.set(summaries='"sampling"')

    async def work():
        answers = {
            "elicitation/create": {"action": "accept"},
            "sampling/createMessage": {"error": {"code": -1, "message": "no"}},
        }
        guest = await bench.house.guest(capabilities={"elicitation": {}, "sampling": {}}, answers=answers)
        assert outcome(await evaluate(guest, REASON % "{t: 'x'.repeat(900)}", TOOL)) == "ran"

    run(bench, work)
