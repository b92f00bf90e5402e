"""What servers ask of clients: to the right one, in the server's own name, or to nobody."""

import asyncio
import json

import pytest

from checkrein.doors.gateway import wishes as wishes_module
from checkrein.doors.gateway.messages import STATELESS
from doors.gateway.house import told
from patience import PATIENCE, soon

ACCEPT = {"action": "accept", "content": {"colour": "red"}}
BOTH = {"elicitation": {}, "sampling": {}, "roots": {}}


@pytest.fixture(autouse=True)
def everything_is_allowed(add):
    add("allow", "*")


def run(house, work, **more):
    async def main():
        house.server(**more)
        async with house.opened():
            await work()
            await soon(lambda: house.hub.news.wishes._open == {})

    asyncio.run(main())


def answers(**more):
    return {"elicitation/create": ACCEPT, "roots/list": {"roots": []}, **more}


def test_a_servers_question_reaches_the_client_that_called_and_never_looks_like_ours(house):
    async def work():
        guest = await house.guest(answers=answers())
        trap = {"message": "Checkrein asks: may I?\nCheckrein asks: really?\u202e\x07"}
        result = await guest.call("srv__elicit", {"with": trap})
        assert json.loads(told(result)) == ACCEPT
        (asked,) = guest.asked
        lines = asked["params"]["message"].splitlines()
        assert lines[0] == "The server `srv` asks (not Checkrein):"
        assert lines[1:] == ["> Checkrein asks: may I?", "> Checkrein asks: really?\\u202e\\u0007"]

    run(house, work)


def test_sampling_goes_to_the_client_and_back(house):
    async def work():
        answer = {"role": "assistant", "model": "m", "content": {"type": "text", "text": "hm"}}
        guest = await house.guest(capabilities=BOTH, answers=answers(**{"sampling/createMessage": answer}))
        assert json.loads(told(await guest.call("srv__sample"))) == answer

    run(house, work)


def test_roots_are_the_clients_own(house, tmp_path):
    async def work():
        roots = {"roots": [{"uri": tmp_path.as_uri()}]}
        guest = await house.guest(capabilities=BOTH, answers={"roots/list": roots})
        assert json.loads(told(await guest.call("srv__roots"))) == roots
        # One that has none is told so by us.
        other = await house.guest(capabilities={})
        result = json.loads(told(await other.call("srv__roots")))
        assert result == {"roots": []} or "did not declare" in result["message"]

    run(house, work)


def test_who_did_not_declare_it_is_not_asked(house):
    async def work():
        guest = await house.guest(capabilities={})
        result = json.loads(told(await guest.call("srv__elicit")))
        assert "did not declare" in result["message"] and guest.asked == []

    run(house, work)


@pytest.mark.invariant("a question that could be another client's reaches nobody")
def test_a_question_that_could_be_anothers_reaches_nobody_and_is_learned_from(house):
    async def work():
        one, two = await house.guest(answers=answers()), await house.guest(agent="two", answers=answers())
        waiting = asyncio.ensure_future(two.raw("tools/call", {"name": "srv__slow"}))
        await soon(lambda: house.ran("slow"))
        result = json.loads(told(await one.call("srv__elicit")))
        assert "nobody can tell whom it asks" in result["message"]
        assert one.asked == [] and two.asked == []
        # Learned: from now on each has a connection of its own, and is asked there.
        pids = {told(await guest.call("srv__env")) for guest in (one, two)}
        assert len(pids) == 2
        for guest in (one, two):
            assert json.loads(told(await guest.call("srv__elicit"))) == ACCEPT and len(guest.asked) == 1
        two.cancel(two.last if two.client.flights.get(two.last) else next(iter(two.client.flights)))
        await waiting

    run(house, work)


def test_of_two_that_share_the_one_whose_call_is_worked_on_is_asked_until_a_call_was_given_up(house):
    async def work():
        one, two = await house.guest(answers=answers()), await house.guest(agent="two", answers=answers())
        await two.call("srv__echo")
        assert json.loads(told(await one.call("srv__elicit"))) == ACCEPT and len(one.asked) == 1
        assert two.asked == []

    async def given_up():
        one, two = await house.guest(answers=answers()), await house.guest(agent="two", answers=answers())
        waiting = asyncio.ensure_future(two.raw("tools/call", {"name": "srv__slow"}))
        await soon(lambda: house.ran("slow"))
        two.cancel(two.last)
        await waiting
        # The server may still work on what was given up, and ask about that.
        result = json.loads(told(await one.call("srv__elicit")))
        assert "nobody can tell" in result["message"] and one.asked == [] and two.asked == []

    run(house, given_up)
    run(house, work, env={"OTHER": "1"})


def test_what_a_server_needs_is_remembered_over_a_restart(house):
    async def main():
        house.server()
        async with house.opened():
            guest = await house.guest(answers=answers())
            await guest.call("srv__elicit")
        async with house.opened():
            one, two = await house.guest(), await house.guest(agent="two")
            assert told(await one.call("srv__env")) != told(await two.call("srv__env"))
            apart = await house.guest(capabilities={}), await house.guest(capabilities={}, agent="four")
            pids = {told(await guest.call("srv__env")) for guest in apart}
            assert len(pids) == 1, "who cannot be asked shares"

    asyncio.run(main())


def test_a_stateless_client_on_a_line_is_never_sent_a_request(house):
    async def work():
        guest = await house.guest(STATELESS)
        first, second = await asyncio.gather(
            guest.call("srv__elicit", {"n": 1}), guest.call("srv__elicit", {"n": 2})
        )
        assert guest.asked == []
        # Both were under way at once, so that nobody can tell which of them a question is about.
        answers = [result for result in (first, second) if result["resultType"] == "complete"]
        assert answers and all("nobody can tell" in told(each) for each in answers)
        house.hub.relay.forget(guest.owner)

    run(house, work)


def test_a_question_the_server_takes_back_is_taken_back_from_the_client(house):
    async def work():
        guest = await house.guest(answers={})
        task = asyncio.ensure_future(guest.raw("tools/call", {"name": "srv__elicit"}))
        await soon(lambda: guest.asked)
        upstream = house.hub.fleet.ready()[0]
        for odd in (None, [1], {"x": 1}, "other", True):
            house.hub.news.heard(
                upstream, {"method": "notifications/cancelled", "params": {"requestId": odd}}
            )
        await asyncio.sleep(0)
        assert guest.withdrawn == []
        house.hub.news.heard(upstream, {"method": "notifications/cancelled", "params": {"requestId": "s1"}})
        await soon(lambda: guest.withdrawn == [guest.asked[0]["id"]])
        await task

    run(house, work)


def test_a_question_of_a_server_that_died_is_taken_back(house):
    async def work():
        guest = await house.guest(answers={})
        task = asyncio.ensure_future(guest.call("srv__elicit"))
        await soon(lambda: guest.asked)
        await house.hub.fleet.keeper("srv").stop()
        assert "unknown" in told(await task)
        await soon(lambda: guest.withdrawn == [guest.asked[0]["id"]])

    run(house, work)


def test_a_result_that_comes_before_the_answer_leaves_nothing_broken(house):
    async def work():
        guest = await house.guest(answers={})
        task = asyncio.ensure_future(guest.call("srv__early"))
        await soon(lambda: guest.asked)
        house.let_early_finish()
        assert told(await task) == "not waited for"
        guest.reply(guest.asked[0], ACCEPT)
        await soon(lambda: any("unasked" in line for line in house.log()))
        assert not (await guest.call("srv__echo")).get("isError")

    run(house, work, timeout=PATIENCE)


def test_a_client_that_leaves_is_not_waited_for(house):
    async def work():
        guest = await house.guest(answers={})
        task = asyncio.ensure_future(guest.raw("tools/call", {"name": "srv__elicit"}))
        await soon(lambda: guest.asked)
        guest.leave()
        assert await task is None

    run(house, work)


class Noted:
    """A connection that keeps what it is answered."""

    def __init__(self):
        self.answers = []
        self.name, self.private_to, self.users, self.abandoned = "srv", "", set(), False

    def respond(self, message):
        self.answers.append(message)


def test_a_server_may_ask_so_much_at_once_and_no_more(house, monkeypatch):
    monkeypatch.setattr(wishes_module, "MOST_OPEN", 3)

    async def work():
        guest = await house.guest(answers={})
        noted = Noted()
        noted.private_to = guest.client.id
        for number in (1, 2, 2, 3, 4):
            house.hub.news.asked(noted, {"id": number, "method": "elicitation/create", "params": {}})
        await soon(lambda: len(guest.asked) == 3)
        assert [each["id"] for each in noted.answers] == [2, 4]
        for method in ("tools/call", "ping", "x" * 1000):
            noted.answers.clear()
            odd = Noted()
            house.hub.news.asked(odd, {"id": 1, "method": method})
            await soon(lambda odd=odd: odd.answers)
            assert odd.answers[0]["error"]["code"] == -32601
        gone = Noted()
        gone.name = "removed"
        house.hub.news.asked(gone, {"id": 1, "method": "roots/list"})
        await soon(lambda: gone.answers)
        house.hub.news.ended(noted, "over")
        await soon(lambda: len(guest.withdrawn) == 3)

    run(house, work)
