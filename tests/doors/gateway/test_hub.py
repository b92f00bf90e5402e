"""Every message of a client, in both eras: who may say what, and that nothing breaks or slips through."""

import asyncio

import pytest
from ground import examples
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from checkrein.doors.gateway import clients as clients_module
from checkrein.doors.gateway import hub as hub_module
from checkrein.doors.gateway import visits as visits_module
from checkrein.doors.gateway.messages import (
    CAPABILITIES_KEY,
    HANDSHAKE,
    INFO_KEY,
    STATELESS,
    VERSION_KEY,
    MalformedError,
    decode,
    encode,
    is_request,
)
from patience import soon

STATELESS_ONLY = {"server/discover", "subscriptions/listen"}
BOTH_ERAS = {
    "tools/list",
    "tools/call",
    "prompts/list",
    "prompts/get",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "completion/complete",
}
HANDSHAKE_ONLY = {"initialize", "ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"}


def run(house, work, *, servers=(("srv", {}),), **opening):
    async def main():
        for name, env in servers:
            house.server(name, env=env)
        async with house.opened(**opening):
            await work()

    asyncio.run(main())


# -- beginning ---------------------------------------------------------------------------------------------


def test_a_handshake_says_what_is_behind_and_nothing_more(house):
    async def work():
        guest = await house.guest()
        greeting = guest.greeting
        assert greeting["protocolVersion"] == "2025-11-25" and greeting["serverInfo"]["name"] == "checkrein"
        assert greeting["capabilities"] == {
            "tools": {"listChanged": True},
            "prompts": {"listChanged": True},
            "resources": {"listChanged": True, "subscribe": True},
            "completions": {},
            "logging": {},
        }
        assert "resultType" not in greeting
        assert await guest.error("initialize", {"protocolVersion": "2025-11-25", "capabilities": {}})
        old = house.hub.meet(era=HANDSHAKE, agent="", label="x", owner="x", send=lambda _message: None)
        for asked, spoken in (("2024-11-05", "2024-11-05"), ("1999-01-01", "2025-11-25")):
            old.initialized = False
            params = {"protocolVersion": asked, "capabilities": {}, "clientInfo": {"name": "n" * 200}}
            message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
            answer = await house.hub.handle(old, message, guest)
            assert answer["result"]["protocolVersion"] == spoken
        assert old.agent == "n" * 80

    run(house, work)


def test_what_no_server_can_do_is_not_claimed(house):
    async def work():
        guest = await house.guest()
        assert guest.greeting["capabilities"] == {"tools": {"listChanged": True}}
        discovered = await house.passing().ask("server/discover")
        assert discovered["capabilities"] == {"tools": {"listChanged": True}}
        assert discovered["supportedVersions"] == ["2026-07-28"]
        assert (discovered["ttlMs"], discovered["cacheScope"]) == (0, "private")

    run(house, work, servers=(("srv", {"CAPS": '{"tools": {}}'}),))


def test_instructions_are_those_a_person_accepted(house):
    async def work():
        guest = await house.guest()
        assert "instructions" not in guest.greeting
        house.accept("srv")
        assert "Be kind." in (await house.guest()).greeting["instructions"]
        assert "Be kind." in (await house.passing().ask("server/discover"))["instructions"]

    run(house, work, servers=(("srv", {"SAYS": "Be kind."}),), accept=False)


@pytest.mark.parametrize(
    "params",
    [{}, {"protocolVersion": 7, "capabilities": {}}, {"protocolVersion": "2025-11-25"}, {"capabilities": {}}],
)
def test_a_handshake_without_version_or_capabilities_is_refused(house, params):
    async def work():
        client = house.hub.meet(era=HANDSHAKE, agent="a", label="a", owner="a", send=lambda _message: None)
        message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
        answer = await house.hub.handle(client, message, None)
        assert answer["error"]["code"] == -32602
        listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
        assert (await house.hub.handle(client, listing, None))["error"]["code"] == -32600

    run(house, work, servers=())


def test_each_era_has_its_own_methods(house):
    async def work():
        assert set(house.hub._handshake) == BOTH_ERAS | HANDSHAKE_ONLY
        assert set(house.hub._stateless) == BOTH_ERAS | STATELESS_ONLY
        old, new = await house.guest(), house.passing()
        for method in STATELESS_ONLY | {"tasks/get", "", "x" * 5000}:
            assert (await old.error(method))["code"] == -32601
        for method in HANDSHAKE_ONLY | {"tasks/get"}:
            assert (await new.error(method))["code"] == -32601
        assert await old.ask("ping") == {}

    run(house, work, servers=())


@pytest.mark.parametrize(
    ("meta", "code"),
    [
        ({VERSION_KEY: "2026-07-28"}, -32602),
        ({CAPABILITIES_KEY: {}}, -32602),
        ({VERSION_KEY: 7, CAPABILITIES_KEY: {}}, -32602),
        ({VERSION_KEY: "2026-07-28", CAPABILITIES_KEY: []}, -32602),
        ({VERSION_KEY: "1999-01-01", CAPABILITIES_KEY: {}}, -32022),
    ],
)
def test_a_stateless_request_says_who_sends_it(house, meta, code):
    async def work():
        guest = await house.guest(STATELESS)
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": {"_meta": meta}}
        answer = await house.hub.handle(guest.client, message, guest)
        assert answer["error"]["code"] == code

    run(house, work, servers=())


def test_what_one_stateless_request_declares_holds_for_that_request(house):
    """Two requests on one line at the same time, one of them from somebody who can be asked."""

    async def work():
        guest = await house.guest(STATELESS)
        params = {"name": "srv__echo", "arguments": {}}
        able = asyncio.ensure_future(guest.raw("tools/call", params))
        await asyncio.sleep(0)
        guest.capabilities = {}
        unable = asyncio.ensure_future(guest.raw("tools/call", {**params, "arguments": {"x": 1}}))
        first, second = await asyncio.gather(able, unable)
        assert first["result"]["resultType"] == "input_required"
        assert second["result"]["isError"] and second["result"]["resultType"] == "complete"

    run(house, work)


# -- lists -------------------------------------------------------------------------------------------------


def test_tools_come_under_their_servers_names_with_everything_else_they_say(house):
    async def work():
        for guest in (await house.guest(), house.passing()):
            listed = await guest.ask("tools/list")
            names = [tool["name"] for tool in listed["tools"]]
            assert names == sorted(names) and {"a__echo", "b__echo"} <= set(names)
            (tool,) = [tool for tool in listed["tools"] if tool["name"] == "a__delete_all"]
            assert (
                tool["annotations"] == {"destructiveHint": True}
                and tool["description"] == "It does delete_all"
            )
            assert [each["name"] for each in (await guest.ask("prompts/list"))["prompts"]] == [
                "a__greet",
                "b__greet",
            ]
            for method in ("tools/list", "prompts/list"):
                assert (await guest.error(method, {"cursor": "x"}))["code"] == -32602
        stateless = await house.passing().ask("tools/list")
        assert (stateless["ttlMs"], stateless["cacheScope"], stateless["resultType"]) == (
            0,
            "private",
            "complete",
        )

    run(house, work, servers=(("a", {}), ("b", {})))


def test_each_name_leads_to_its_own_server(house, add):
    async def work():
        guest = await house.guest()
        await guest.call("a__echo", {"x": "a"})
        await guest.call("b__echo", {"x": "b"})
        assert house.ran("echo", "a") == [{"x": "a"}] and house.ran("echo", "b") == [{"x": "b"}]
        prompt = await guest.ask("prompts/get", {"name": "b__greet"})
        assert prompt["messages"][0]["content"]["text"] == "hello from b"
        for odd in ("greet", "c__greet", None, 7, ["b__greet"]):
            assert (await guest.error("prompts/get", {"name": odd}))["code"] == -32602

    add("allow", "*", server="a")
    add("allow", "echo", server="b")
    run(house, work, servers=(("a", {}), ("b", {})))


def test_what_policy_always_refuses_is_not_listed_and_refused_when_called_all_the_same(house, add):
    async def work():
        guest = await house.guest()
        names = {tool["name"] for tool in (await guest.ask("tools/list"))["tools"]}
        assert "srv__echo" not in names and "srv__strict" in names
        assert (await guest.call("srv__echo"))["isError"]

    add("deny", "echo")
    run(house, work)


# -- floods, cancellations, leaving ------------------------------------------------------------------------


@pytest.mark.parametrize("era", [HANDSHAKE, STATELESS])
def test_a_number_that_is_in_use_is_refused(house, add, era):
    async def work():
        guest = await house.guest(era)
        first = asyncio.ensure_future(guest.raw("tools/call", {"name": "srv__slow"}, number=7))
        await soon(lambda: house.ran("slow"))
        again = await guest.raw("ping" if era == HANDSHAKE else "tools/list", number=7)
        assert again["error"]["code"] == -32600
        guest.cancel(7)
        assert await first is None and guest.client.flights == {}
        assert "result" in await guest.raw("tools/list", number=7)

    add("allow", "*")
    run(house, work)


def test_so_many_requests_at_once_and_no_more(house, add, monkeypatch):
    monkeypatch.setattr(hub_module, "MOST_FLIGHTS", 3)

    async def work():
        guest = await house.guest()
        tasks = [asyncio.ensure_future(guest.raw("tools/call", {"name": "srv__slow"})) for _ in range(3)]
        await soon(lambda: len(guest.client.flights) == 3)
        assert "3 requests are under way" in (await guest.error("ping"))["message"]
        other = await house.guest(agent="two")
        assert await other.ask("ping") == {}
        guest.leave()
        assert await asyncio.gather(*tasks) == [None] * 3

    assert clients_module.MOST_FLIGHTS == 1_024
    add("allow", "*")
    run(house, work)


@pytest.mark.parametrize("era", [HANDSHAKE, STATELESS])
def test_who_leaves_leaves_nothing_behind(house, add, era):
    async def work():
        before = len(asyncio.all_tasks())
        guest = await house.guest(era, capabilities={"elicitation": {}, "roots": {}}, answers={})
        calls = [
            asyncio.ensure_future(guest.raw("tools/call", {"name": f"srv__{tool}"}))
            for tool in ("slow", "elicit")
        ]
        if era == HANDSHAKE:
            await guest.ask("resources/subscribe", {"uri": "note://one"})
            await soon(lambda: guest.asked)
        else:
            listening = {"notifications": {"resourceSubscriptions": ["note://one"]}}
            calls.append(asyncio.ensure_future(guest.raw("subscriptions/listen", listening)))
            await soon(lambda: house.ran("slow") and house.ran("elicit"))
        guest.leave()
        guest.leave()
        await asyncio.gather(*calls)
        hub = house.hub
        await soon(lambda: len(asyncio.all_tasks()) <= before + 1)
        assert hub.clients == {} and not hub.in_passing and not hub.relay.runs and hub.watches._holders == {}
        assert hub.subscriptions._open == [] and guest.client.flights == {} and not guest.client._asked
        assert guest.client.id not in hub.fleet._shared_by
        assert all(guest.client.id not in upstream.users for upstream in hub.fleet.ready())

    add("allow", "*")
    run(house, work)


def test_an_owner_that_is_turned_out_is_out_in_every_way(house, add):
    async def work():
        guest = await house.guest(owner="http:1", answers={})
        passing, other = house.passing(owner="http:1"), house.passing(owner="http:2")
        parked = await passing.call("srv__elicit")
        assert parked["resultType"] == "input_required"
        running = asyncio.ensure_future(passing.raw("tools/call", {"name": "srv__slow"}))
        await soon(lambda: house.ran("slow"))
        assert house.hub.turn_out("http:1") == 1
        assert await running is None
        assert guest.client.id not in house.hub.clients and not house.hub.relay.runs
        assert not (await other.call("srv__echo")).get("isError")

    add("allow", "*")
    run(house, work)


def test_stateless_requests_of_one_owner_are_one_session_until_it_pauses(house, monkeypatch):
    async def work():
        meta = house.passing().meta()

        def visit(owner):
            return house.hub.passing(agent="a", label="a", owner=owner, meta=meta).visit

        first = visit("http:1")
        assert visit("http:1") is first and visit("http:2") is not first
        first.last_used -= visits_module.SESSION_PAUSE + 1
        assert visit("http:1").session != first.session
        monkeypatch.setattr(visits_module, "_MOST_VISITS", 3)
        kept = [visit(f"http:{number}") for number in range(10)]
        assert [visit(f"http:{number}") is kept[number] for number in (9, 8, 7)] == [True] * 3
        assert visit("http:0") is not kept[0], "the oldest made room"

    run(house, work, servers=())


def test_a_fault_of_ours_is_one_requests_fault(house):
    async def work():
        guest = await house.guest()
        house.hub.catalogue.prompts = lambda: 1 / 0
        error = await guest.error("prompts/list")
        assert error["code"] == -32603 and "ZeroDivisionError" not in error["message"]
        assert any("ZeroDivisionError" in line for line in house.said)
        assert await guest.ask("ping") == {}

    run(house, work, servers=())


# -- anything ----------------------------------------------------------------------------------------------

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
METHODS = st.sampled_from(
    sorted(
        {
            *BOTH_ERAS,
            *HANDSHAKE_ONLY,
            *STATELESS_ONLY,
            "notifications/cancelled",
            "notifications/initialized",
        }
        | {"notifications/roots/list_changed", "notifications/progress", "x"}
    )
)
KEYS = st.sampled_from(
    ["name", "arguments", "uri", "cursor", "_meta", "ref", "level", "requestState", "inputResponses"]
    + ["notifications", "requestId", "protocolVersion", "capabilities", "progressToken", "argument", "task"]
)
NAMES = st.sampled_from(
    ["srv__echo", "srv__strict", "srv__delete_all", "srv__greet", "note://one", "mcp+srv:x", "srv"]
)
META = st.fixed_dictionaries(
    {VERSION_KEY: st.just("2026-07-28") | VALUES, CAPABILITIES_KEY: st.just({"elicitation": {}}) | VALUES},
    optional={INFO_KEY: VALUES, "progressToken": VALUES, "io.modelcontextprotocol/logLevel": VALUES},
)
PARAMS = st.dictionaries(KEYS, NAMES | VALUES, max_size=5) | st.tuples(
    META, st.dictionaries(KEYS, NAMES | VALUES, max_size=4)
).map(lambda pair: {**pair[1], "_meta": pair[0]})
MESSAGES = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0") | VALUES},
    optional={
        "id": st.integers(0, 3) | st.text(max_size=2) | VALUES,
        "method": METHODS | VALUES,
        "params": PARAMS | VALUES,
        "result": VALUES,
        "error": VALUES,
    },
)


def test_whatever_comes_is_answered_properly_and_runs_nothing(house, add):
    """In both eras: every answer is well formed, nothing raises, and no tool runs that nobody allowed."""
    house.server()
    add("deny", "delete_all")

    async def everything(messages, era):
        guest, fence = await house.guest(era, answers={}), await house.guest(agent="fence")
        tasks = []
        for message in messages:
            try:
                read = decode(encode(message))
            except MalformedError:
                continue
            if is_request(read):
                tasks.append((read, asyncio.ensure_future(house.hub.handle(guest.client, read, guest))))
                await asyncio.sleep(0)
            else:
                house.hub.hear(guest.client, read)
        # What is read after all of it was read: the server has answered what it was asked before.
        assert (await fence.ask("resources/read", {"uri": "note://one"}))["contents"]
        guest.leave()
        fence.leave()
        for read, task in tasks:
            answer = await task
            if answer is not None:
                assert answer["jsonrpc"] == "2.0" and answer["id"] == read["id"]
                assert ("result" in answer) != ("error" in answer)
                if "error" in answer:
                    assert isinstance(answer["error"]["code"], int) and isinstance(
                        answer["error"]["message"], str
                    )
                encode(answer)
        assert guest.client.flights == {}

    with asyncio.Runner() as runner:
        runner.run(house.open())

        @hypothesis_settings(max_examples=examples(150), suppress_health_check=list(HealthCheck))
        @given(st.lists(MESSAGES, min_size=1, max_size=6), st.sampled_from([HANDSHAKE, STATELESS]))
        def anything(messages, era):
            runner.run(everything(messages, era))

        try:
            anything()
            assert not [line for line in house.said if "a request failed" in line], house.said
            ran = [line for line in house.log() if "tool" in line]
            assert ran == []
            assert house.hub.clients == {}
        finally:
            runner.run(house.close())
