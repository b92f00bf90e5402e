"""Requests between clients and servers of both eras: four ways, and requests that wait for their client."""

import asyncio
import json

import pytest

from checkrein.doors.gateway import relay as relay_module
from checkrein.doors.gateway.clients import Client, Visit
from checkrein.doors.gateway.messages import (
    CAPABILITIES_KEY,
    HANDSHAKE,
    INVALID_PARAMS,
    LEVEL_KEY,
    STATELESS,
    SUBSCRIPTION_KEY,
    VERSION_KEY,
    RpcError,
)
from checkrein.doors.gateway.relay import check_capability, envelope, forwarded
from doors.gateway.house import SERVER, told
from doors.gateway.moved_loop import pass_seconds
from doors.gateway.moved_loop import run as run_on_moved_loop
from patience import PATIENCE, soon

ACCEPT = {"action": "accept", "content": {"colour": "red"}}


@pytest.fixture(autouse=True)
def everything_is_allowed(add):
    add("allow", "*")


def run(house, work, **more):
    async def main():
        house.server(**more)
        async with house.opened():
            await work()
            assert house.hub.relay.runs == {}
            await soon(lambda: house.hub.news.wishes._open == {})

    run_on_moved_loop(main())


STATELESS_SERVER = {"env": {"ERAS": "stateless"}}


# -- a stateless client, a handshake server ---------------------------------------------------------------


def test_a_handshake_servers_question_parks_a_stateless_clients_call(house):
    async def work():
        guest = house.passing()
        first = await guest.call("srv__elicit", {"a": 1})
        assert first["resultType"] == "input_required"
        ((key, wanted),) = first["inputRequests"].items()
        assert wanted["method"] == "elicitation/create"
        assert wanted["params"]["message"] == "The server `srv` asks (not Checkrein):\n> Which colour?"
        assert len(house.hub.relay.runs) == 1
        second = await guest.again("srv__elicit", {"a": 1}, first, {key: ACCEPT})
        assert (second["resultType"], json.loads(told(second))) == ("complete", ACCEPT)
        assert len(house.ran("elicit")) == 1
        entry = await house.last()
        assert entry.result == "success" and len(house.entries()) == 1

    run(house, work)


def test_two_rounds_and_coming_back_without_an_answer(house):
    async def work():
        guest = house.passing()
        first = await guest.call("srv__twice")
        (key,) = first["inputRequests"]
        same = await guest.again("srv__twice", {}, first, {"another": 1})
        assert same["inputRequests"] == first["inputRequests"]
        second = await guest.again("srv__twice", {}, same, {key: {"action": "decline"}})
        (other,) = second["inputRequests"]
        assert other != key
        third = await guest.again("srv__twice", {}, second, {other: ACCEPT})
        assert json.loads(told(third)) == [{"action": "decline"}, ACCEPT]
        assert len(house.ran("twice")) == 1

    run(house, work)


def test_a_parked_request_is_its_owners(house):
    async def work():
        guest = house.passing()
        first = await guest.call("srv__elicit")
        (key,) = first["inputRequests"]
        params = {"name": "srv__elicit", "arguments": {}, "requestState": first["requestState"]}
        error = await house.passing(owner="test:2").error(
            "tools/call", {**params, "inputResponses": {key: ACCEPT}}
        )
        assert error["code"] == INVALID_PARAMS
        await guest.again("srv__elicit", {}, first, {key: ACCEPT})

    run(house, work)


@pytest.mark.invariant("a request that waits for its client still ends, and is recorded, in one place")
def test_a_client_that_never_comes_back_is_given_up(house):
    async def work():
        guest = house.passing()
        first = await guest.call("srv__elicit")
        await pass_seconds(2 * relay_module.PARKED_SECONDS)
        await soon(lambda: not house.hub.relay.runs)
        await soon(lambda: any("cancelled" in line for line in house.log()))
        entry = await house.last()
        assert (entry.result, entry.evidence) == ("cancelled", "client")
        (key,) = first["inputRequests"]
        params = {"name": "srv__elicit", "arguments": {}, "requestState": first["requestState"]}
        error = await guest.error("tools/call", {**params, "inputResponses": {key: ACCEPT}})
        assert "not waiting any more" in error["message"] and len(house.ran("elicit")) == 1

    run(house, work)


def test_a_parked_requests_time_stands_still(house):
    async def work():
        guest = house.passing()
        first = await guest.call("srv__elicit")
        await pass_seconds(2 * PATIENCE)
        (key,) = first["inputRequests"]
        assert json.loads(told(await guest.again("srv__elicit", {}, first, {key: ACCEPT}))) == ACCEPT

    run(house, work, timeout=PATIENCE)


def test_a_request_that_is_never_answered_takes_its_time_and_no_longer(house):
    async def work():
        result = await house.passing().call("srv__slow", {"seconds": 600})
        assert result["isError"] and "did not answer within 0.3 seconds" in told(result)

    run(house, work, timeout=0.3)


def test_a_client_that_closes_its_request_cancels_it(house):
    async def work():
        guest = house.passing()
        task = asyncio.ensure_future(guest.call("srv__slow"))
        await soon(lambda: house.ran("slow"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await soon(lambda: any("cancelled" in line for line in house.log()))
        assert (await house.last()).result == "cancelled"
        # The same when it comes back with an answer and leaves then.
        first = await guest.call("srv__twice")
        (key,) = first["inputRequests"]
        task = asyncio.ensure_future(guest.again("srv__twice", {}, first, {key: ACCEPT}))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    run(house, work)


def test_a_result_that_came_while_the_client_was_away_is_kept_for_it(house):
    async def work():
        guest = house.passing()
        first = await guest.call("srv__early")
        assert first["resultType"] == "input_required"
        (run,) = house.hub.relay.runs.values()
        house.let_early_finish()
        await soon(run.task.done)
        (key,) = first["inputRequests"]
        second = await guest.again("srv__early", {}, first, {key: ACCEPT})
        assert told(second) == "not waited for" and len(house.ran("early")) == 1

    run(house, work)


def test_a_server_that_dies_while_the_client_is_away_is_an_unknown_fate(house):
    async def work():
        guest = house.passing()
        first = await guest.call("srv__elicit")
        await house.hub.fleet.keeper("srv").stop()
        (key,) = first["inputRequests"]
        second = await guest.again("srv__elicit", {}, first, {key: ACCEPT})
        assert second["isError"] and "unknown" in told(second)
        assert (await house.last()).result == "unknown"

    run(house, work)


@pytest.mark.invariant("a deny that came meanwhile stops a call that is half way")
def test_a_deny_that_comes_while_the_client_is_away_ends_the_call(house, add):
    async def work():
        guest = house.passing()
        first = await guest.call("srv__elicit")
        (key,) = first["inputRequests"]
        add("deny", "elicit", priority=1)
        second = await guest.again("srv__elicit", {}, first, {key: ACCEPT})
        assert second["isError"] and "refused" in told(second)
        await soon(lambda: any("cancelled" in line for line in house.log()))

    run(house, work)


def test_so_many_requests_wait_and_no_more(house, monkeypatch):
    monkeypatch.setattr(relay_module, "MOST_OF_ONE", 2)
    monkeypatch.setattr(relay_module, "MOST_PARKED", 3)

    async def work():
        one, two = house.passing(), house.passing(owner="test:2")
        tasks = [asyncio.ensure_future(one.call("srv__slow")) for _ in range(2)]
        await soon(lambda: len(house.hub.relay.runs) == 2)
        result = await one.call("srv__echo")
        assert result["isError"] and "Too many requests" in told(result) and "nothing ran" in told(result)
        assert (await house.last()).result == "cancelled" and house.ran("echo") == []
        assert not (await two.call("srv__echo")).get("isError")
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await soon(lambda: not house.hub.relay.runs)

    run(house, work)


def test_a_stateless_client_is_not_asked_what_it_did_not_declare(house):
    async def work():
        guest = house.passing(capabilities={})
        result = await guest.call("srv__elicit")
        assert "did not declare" in told(result)

    run(house, work)


def test_progress_of_a_parked_request_goes_to_the_request_that_is_open(house):
    async def work():
        guest = house.passing()
        await guest.call("srv__progress", _meta={"progressToken": "p"})
        steps = [each["params"]["progressToken"] for each in guest.heard]
        assert steps == ["p", "p"]

    run(house, work)


@pytest.mark.invariant("a server's word counts as its question only where its era has such an answer")
def test_a_handshake_servers_result_never_passes_for_a_question(house):
    """Neither the client nor we take a result for a question where the server's era has none."""

    async def work():
        for guest in (house.passing(), await house.guest(STATELESS, owner="test:3"), await house.guest()):
            result = await guest.call("srv__fake")
            assert told(result) == "faked" and result.get("resultType", "complete") == "complete"
            assert (await house.last()).result == "success"
        assert len(house.ran("fake")) == 3

    run(house, work)


# -- a handshake client, a stateless server ---------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "method", "answer"),
    [
        ("elicit", "elicitation/create", ACCEPT),
        ("sample", "sampling/createMessage", {"role": "assistant", "model": "m", "content": []}),
    ],
)
def test_a_handshake_client_is_asked_what_a_stateless_server_wants_to_know(house, tool, method, answer):
    async def work():
        guest = await house.guest(capabilities={"elicitation": {}, "sampling": {}}, answers={method: answer})
        result = await guest.call(f"srv__{tool}")
        assert json.loads(told(result)) == {"q": answer} and "resultType" not in result
        assert [each["method"] for each in guest.asked] == [method]
        assert len(house.ran(tool)) == 2 and len(await house.recorded()) == 1

    run(house, work, **STATELESS_SERVER)


def test_two_rounds_with_a_stateless_server(house):
    async def work():
        guest = await house.guest(answers={"elicitation/create": ACCEPT})
        assert json.loads(told(await guest.call("srv__twice"))) == {"q": ACCEPT}
        assert len(guest.asked) == 2

    run(house, work, **STATELESS_SERVER)


def test_a_server_that_asks_and_asks_gets_no_further(house, monkeypatch):
    monkeypatch.setattr(relay_module, "MOST_ROUNDS", 1)

    async def work():
        guest = await house.guest(answers={"elicitation/create": ACCEPT})
        error = await guest.error("tools/call", {"name": "srv__twice"})
        assert "still does not answer" in error["message"]
        assert (await house.last()).result == "failure"

    run(house, work, **STATELESS_SERVER)


def test_a_handshake_client_is_not_asked_what_it_did_not_declare(house):
    async def work():
        guest = await house.guest(capabilities={})
        error = await guest.error("tools/call", {"name": "srv__elicit"})
        assert error["data"] == {"requiredCapabilities": {"elicitation": {}}} and guest.asked == []

    run(house, work, **STATELESS_SERVER)


def test_the_call_waits_for_a_handshake_clients_answer_without_running_out_of_time(house):
    async def work():
        guest = await house.guest(answers={})
        task = asyncio.ensure_future(guest.call("srv__elicit"))
        await soon(lambda: guest.asked)
        await pass_seconds(2 * PATIENCE)
        guest.reply(guest.asked[0], ACCEPT)
        assert json.loads(told(await task)) == {"q": ACCEPT}

    run(house, work, timeout=PATIENCE, **STATELESS_SERVER)


# -- both stateless ---------------------------------------------------------------------------------------


def test_between_two_stateless_sides_the_servers_state_travels_inside_ours(house):
    async def work():
        guest = house.passing()
        first = await guest.call("srv__elicit", {"a": 1})
        assert first["requestState"] != "1"
        wanted = first["inputRequests"]["q"]
        assert wanted["params"]["message"].startswith("The server `srv` asks (not Checkrein):")
        assert (await house.recorded())[0].completed_at is None
        second = await guest.again("srv__elicit", {"a": 1}, first, {"q": ACCEPT})
        assert json.loads(told(second)) == {"q": ACCEPT}
        assert (await house.last()).result == "success" and len(house.entries()) == 1
        sent = [line["params"] for line in house.log() if line.get("tool") == "elicit"]
        assert [each.get("requestState") for each in sent] == [None, "1"]

    run(house, work, **STATELESS_SERVER)


def test_a_server_state_is_single_use_also_after_a_restart(house):
    async def main():
        house.server(**STATELESS_SERVER)
        from checkrein.doors.gateway.sealing import Seal
        from checkrein.settings.sources import state_dir

        async with house.opened():
            guest = house.passing()
            first = await guest.call("srv__elicit")
            await guest.again("srv__elicit", {}, first, {"q": ACCEPT})
            params = {"name": "srv__elicit", "arguments": {}, "requestState": first["requestState"]}
            error = await guest.error("tools/call", {**params, "inputResponses": {"q": ACCEPT}})
            assert "used before" in error["message"]
        house.seals.append(Seal(state_dir() / "gateway", house.pipeline.store))
        async with house.opened():
            error = await house.passing().error("tools/call", {**params, "inputResponses": {"q": ACCEPT}})
            assert "used before" in error["message"] and len(house.ran("elicit")) == 2

    asyncio.run(main())


@pytest.mark.invariant("a call that is half way goes on with the tool as it was accepted when it began")
def test_a_call_half_way_does_not_go_on_with_a_tool_that_was_accepted_meanwhile(house):
    before, after = 'tool("elicit")', 'tool("elicit", title="Now I am another")'
    assert before in SERVER

    async def work():
        guest = house.passing()
        first = await guest.call("srv__elicit")
        house.server(source=SERVER.replace(before, after), timeout=600, **STATELESS_SERVER)
        house.hub.fleet.look()
        await soon(lambda: house.hub.catalogue.hidden("srv__elicit"))
        house.accept("srv")
        params = {"name": "srv__elicit", "arguments": {}, "requestState": first["requestState"]}
        error = await guest.error("tools/call", {**params, "inputResponses": {"q": ACCEPT}})
        assert "another request" in error["message"] and house.ran("elicit") == [{}]
        assert (await guest.call("srv__elicit"))["resultType"] == "input_required"

    run(house, work, **STATELESS_SERVER)


@pytest.mark.invariant("a deny that came meanwhile stops a call that is half way")
def test_a_deny_that_comes_meanwhile_stops_a_call_half_way(house, add):
    async def work():
        guest = house.passing()
        first = await guest.call("srv__elicit")
        add("deny", "elicit", priority=1)
        second = await guest.again("srv__elicit", {}, first, {"q": ACCEPT})
        assert second["isError"] and len(house.ran("elicit")) == 1
        assert [each.result for each in await house.recorded()] == ["denied", "cancelled"]

    run(house, work, **STATELESS_SERVER)


def test_a_stateless_client_is_not_handed_a_question_it_cannot_show(house):
    async def work():
        guest = house.passing(capabilities={})
        error = await guest.error("tools/call", {"name": "srv__elicit"})
        assert "did not declare" in error["message"]

    run(house, work, **STATELESS_SERVER)


def test_a_stateless_server_hears_who_the_client_is(house):
    async def work():
        guest = house.passing(capabilities={"elicitation": {}, "odd": {}})
        await guest.call("srv__echo", _meta={LEVEL_KEY: "info", "own": 1})
        (sent,) = [line["params"]["_meta"] for line in house.log() if line.get("tool") == "echo"]
        assert (
            sent[CAPABILITIES_KEY] == {"elicitation": {}} and sent[LEVEL_KEY] == "info" and sent["own"] == 1
        )

    run(house, work, **STATELESS_SERVER)


# -- parts ------------------------------------------------------------------------------------------------


def client(era=HANDSHAKE, **capabilities):
    made = Client(era=era, agent="a", label="l", owner="o", visit=Visit("s"), send=lambda _message: None)
    made.capabilities = capabilities
    return made


def test_what_belongs_to_one_connection_is_not_passed_on():
    meta = {VERSION_KEY: "x", CAPABILITIES_KEY: {}, SUBSCRIPTION_KEY: 1, "progressToken": 2, "own": 3}
    assert forwarded({"a": 1, "_meta": meta}) == {"a": 1, "_meta": {"own": 3}}
    assert forwarded({"a": 1, "_meta": {"progressToken": 2}}) == {"a": 1}
    assert forwarded({"a": 1, "_meta": "odd"}) == {"a": 1, "_meta": "odd"}


def test_an_envelope_says_what_can_be_asked_of_the_client():
    made = client(STATELESS, elicitation={"form": {}}, experimental={"x": 1})
    assert envelope(made)[CAPABILITIES_KEY] == {"elicitation": {"form": {}}}


@pytest.mark.parametrize(
    ("capabilities", "method", "params", "fine"),
    [
        ({"elicitation": {}}, "elicitation/create", {}, True),
        ({"elicitation": {}}, "elicitation/create", {"mode": "url"}, False),
        ({"elicitation": {"url": {}}}, "elicitation/create", {"mode": "url"}, True),
        ({"elicitation": {"url": {}}}, "elicitation/create", {}, False),
        ({"elicitation": {"form": {}}}, "elicitation/create", {"mode": ["url"]}, True),
        ({"sampling": {}}, "sampling/createMessage", {}, True),
        ({}, "sampling/createMessage", {}, False),
        ({"roots": {}}, "roots/list", {}, True),
        ({"roots": {}, "tools": {}}, "tools/call", {}, False),
    ],
)
def test_a_client_is_asked_only_what_it_declared(capabilities, method, params, fine):
    if fine:
        check_capability(client(**capabilities), method, params)
    else:
        with pytest.raises(RpcError):
            check_capability(client(**capabilities), method, params)
