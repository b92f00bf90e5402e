"""Requests that are no tool calls: passed on to whose they are, bound to who asked, their words untrusted."""

import json

import pytest

from doors.gateway.house import with_servers


@pytest.mark.parametrize("era", ["handshake", "stateless"])
def test_what_a_server_asks_while_a_resource_is_read_comes_back_with_a_state_of_ours(house, era):
    async def work(_guest):
        guest = house.passing()
        first = await guest.ask("resources/read", {"uri": "note://ask"})
        assert first["resultType"] == "input_required" and first["requestState"] != "mine"
        ((key, wanted),) = first["inputRequests"].items()
        assert wanted["params"]["message"].startswith("The server `srv` asks (not Checkrein)")
        back = {"uri": "note://ask", "requestState": first["requestState"], "inputResponses": {key: {"x": 1}}}
        other = house.passing(owner="test:2")
        for who, changed in (
            (other, {}),
            (guest, {"uri": "note://one"}),
            (guest, {"requestState": "made up"}),
        ):
            assert (await who.error("resources/read", {**back, **changed}))["code"] == -32602
        assert [each["request"] for each in house.events("request_refused")] == ["resources/read"] * 3
        second = await guest.ask("resources/read", back)
        said = json.loads(second["contents"][0]["text"])
        assert said == ({"x": 1} if era == "handshake" else [{key: {"x": 1}}, "mine"])
        assert (await guest.error("resources/read", back))["code"] == -32602, "once"

    with_servers(house, work, srv={"ERAS": era})


def test_what_a_resource_says_is_untrusted(house, add):
    async def work(guest):
        await guest.ask("resources/read", {"uri": "x://1"})
        await guest.call("a__weblookup")
        assert "has read what the server `a` returned" in guest.asked[0]["params"]["message"]
        other = await house.guest(agent="two")
        await other.ask("prompts/get", {"name": "a__greet"})
        await other.call("a__weblookup")
        assert "has read what the server `a` returned" in other.asked[0]["params"]["message"]

    add("allow", "*", server="a")
    listed = json.dumps([{"uri": "x://1", "name": "x"}])
    with_servers(house, work, a={"RESOURCES": listed})


def test_completions_go_to_the_server_the_reference_names(house):
    async def work(guest):
        for uri, values in (("t://{x}", ["a", "t://{x}"]), ("mcp+b:t://{x}", ["b", "t://{x}"])):
            await guest.ask("resources/templates/list", {})
            ref = {"type": "ref/resource", "uri": uri}
            argument = {"name": "x", "value": ""}
            result = await guest.ask("completion/complete", {"ref": ref, "argument": argument})
            assert result["completion"]["values"] == values
        ref = {"type": "ref/prompt", "name": "b__greet"}
        result = await guest.ask("completion/complete", {"ref": ref, "argument": argument})
        assert result["completion"]["values"] == ["b", "greet"]
        for odd in (None, {}, {"type": "ref/prompt"}, {"type": "ref/resource", "uri": 7}, "x"):
            assert "error" in await guest.raw("completion/complete", {"ref": odd})

    template = json.dumps([{"uriTemplate": "t://{x}", "name": "t"}])
    with_servers(house, work, a={"TEMPLATES": template}, b={"TEMPLATES": template})


def test_a_prompt_that_is_not_offered_reaches_no_server(house):
    async def work(guest):
        for odd in (None, 7, "greet", "srv__nothing", "other__greet"):
            assert (await guest.error("prompts/get", {"name": odd}))["code"] == -32602

    with_servers(house, work, srv={})
