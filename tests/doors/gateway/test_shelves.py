"""Tools that only a client's own connection shows: pinned as every other, and nobody else's."""

import asyncio
import sys

import pytest

from checkrein.doors.gateway import news as news_module
from checkrein.doors.gateway.shelves import MOST_DEFINITIONS, OwnShelves, Shelf, shelved
from doors.gateway.back import write
from doors.gateway.house import told
from patience import soon


def tool(name, **more):
    return {"name": name, "inputSchema": {"type": "object"}, **more}


def names(definitions):
    return [each.name for each in definitions]


# -- sorting -----------------------------------------------------------------------------------------------


def test_what_cannot_be_used_stands_apart():
    found = shelved(
        "srv", [tool("a"), tool("twice"), tool("twice", title="x"), tool(""), 5], [{"name": "p"}], "do"
    )
    assert set(found.usable) == {("tool", "a"), ("prompt", "p"), ("instructions", "")}
    assert [each.fault for each in found.unusable if each.name == "twice"] == [
        "Its server has several of this name."
    ] * 2
    assert len(found.unusable) == 4
    assert names(found) == ["", "p", "a", *names(found.unusable)]


@pytest.mark.parametrize("raw", [None, 5, "tools", {"a": 1}])
def test_what_is_no_list_is_empty(raw):
    assert shelved("srv", raw, raw) == Shelf({}, [])


def test_no_more_are_looked_at_than_can_be():
    assert (
        len(shelved("srv", [tool(f"t{n}") for n in range(MOST_DEFINITIONS + 5)]).usable) == MOST_DEFINITIONS
    )


def test_what_goes_beyond_has_a_name_of_its_own():
    shared = shelved("srv", [tool("a"), tool("twice"), tool("twice")])
    own = shelved("srv", [tool("a", title="another"), tool("twice"), tool("b"), tool("")])
    assert names(own.beyond(shared)) == ["b", ""]


def test_own_shelves_are_by_client_and_server():
    own, shared = OwnShelves(), {"srv": shelved("srv", [tool("a")])}
    assert not own.put("1", "srv", Shelf({}, [])), "nothing is as it was before"
    assert ("1", "srv") in own and ("2", "srv") not in own
    assert own.put("1", "srv", shelved("srv", [tool("b")]))
    assert not own.put("1", "srv", shelved("srv", [tool("b")]))
    assert own.put("2", "srv", shelved("srv", [tool("b"), tool("c")]))
    assert names(own.of_client("1", shared)) == ["b"] and own.of_client("3", shared) == []
    assert names(own.of_server("srv", shared)) == ["b", "c"]
    # Of a server that is away nothing is known, and what everybody has is nobody's own.
    assert own.of_client("1", {}) == own.of_server("srv", {}) == []
    assert names(own.of_server("srv", {"srv": shelved("srv", [tool("b")])})) == ["c"]
    own.forget("2")
    assert names(own.of_server("srv", shared)) == ["b"] and own.clients() == ["1"]
    own.withdraw("srv")
    assert own.of_server("srv", shared) == []


# -- on the way --------------------------------------------------------------------------------------------

# Asks for roots as soon as it can, and then has a tool for each of them; also one that says which it is.
ROOTED = r"""
import json, os, sys
LOG = os.environ["LOG"]
tools = [{"name": "count", "description": "Counts.", "inputSchema": {"type": "object"}}]
def put(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method, number, params = message.get("method"), message.get("id"), message.get("params", {})
    if method is None and number == "roots":
        for each in message.get("result", {}).get("roots", []):
            found = {"name": "search_" + each["name"], "description": "Searches " + each["uri"]}
            tools.append({**tools[0], **found})
        put({"method": "notifications/tools/list_changed"})
    elif method == "initialize":
        rooted = "roots" in params["capabilities"]
        put({"id": number, "result": {"protocolVersion": params["protocolVersion"],
             "capabilities": {"tools": {"listChanged": True}}, "serverInfo": {"name": "r", "version": "1"}}})
    elif method in ("notifications/initialized", "notifications/roots/list_changed") and rooted:
        del tools[1:]
        put({"id": "roots", "method": "roots/list"})
    elif method == "tools/list":
        put({"id": number, "result": {"tools": tools}})
    elif method == "tools/call":
        with open(LOG, "a") as file:
            file.write(json.dumps({"tool": params["name"], "arguments": params.get("arguments", {})}) + "\n")
        put({"id": number, "result": {"content": [{"type": "text", "text": "did " + params["name"]}]}})
    elif number is not None:
        put({"id": number, "error": {"code": -32601, "message": "no"}})
"""


def rooted(*folders):
    roots = [{"uri": f"file:///projects/{each}", "name": each} for each in folders]
    return {"capabilities": {"roots": {}}, "answers": {"roots/list": {"roots": roots}}}


async def listed(guest):
    return [each["name"] for each in (await guest.ask("tools/list"))["tools"]]


def pending(house):
    return {
        row["name"]: row for row in house.hub.catalogue.review("srv") if row["state"] in ("new", "changed")
    }


def run(house, work, source=ROOTED, **more):
    async def main():
        house.server(source=source, **more)
        async with house.opened():
            await work()

    asyncio.run(main())


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    monkeypatch.setattr(news_module, "_PAUSE", 0.01)


async def accepted(house, name):
    await soon(lambda: name in pending(house))
    house.accept("srv", {name})


def test_what_only_one_clients_own_connection_shows_is_offered_to_nobody_else(house, add):
    async def work():
        add("allow", "*")
        ada = await house.guest(**rooted("shop"))
        bob = await house.guest(agent="bob", **rooted("garden"))
        eve = await house.guest(agent="eve", capabilities={})
        assert await listed(ada) == await listed(bob) == await listed(eve) == ["srv__count"]
        await soon(lambda: {"search_shop", "search_garden"} <= set(pending(house)))
        row = pending(house)["search_shop"]
        assert "Only clients whose own connection" in row["flags"][0] and row["state"] == "new"
        refused = await ada.call("srv__search_shop")
        assert refused["isError"] and "Nobody has accepted it yet" in told(refused)
        for each in (ada, bob, eve):
            each.heard.clear()
        await accepted(house, "search_shop")
        assert await listed(ada) == ["srv__count", "srv__search_shop"]
        assert await listed(bob) == await listed(eve) == ["srv__count"]
        assert ada.methods() == ["notifications/tools/list_changed"] and bob.methods() == eve.methods() == []
        assert told(await ada.call("srv__search_shop", {"q": 1})) == "did search_shop"
        for other in (bob, eve, house.passing(agent="http", owner="token:9")):
            error = await other.error("tools/call", {"name": "srv__search_shop", "arguments": {}})
            assert "There is no tool" in error["message"]
        assert house.ran("search_shop") == [{"q": 1}]
        assert (await house.last()).tool_name.endswith("search_shop")

    run(house, work)


def test_a_yes_to_a_tool_of_ones_own_lets_it_run(house, add):
    async def work():
        add("ask", "*")
        opening = rooted("shop")
        opening["capabilities"]["elicitation"] = {}
        opening["answers"]["elicitation/create"] = {"action": "accept"}
        ada = await house.guest(**opening)
        await listed(ada)
        await accepted(house, "search_shop")
        assert told(await ada.call("srv__search_shop", {"q": 1})) == "did search_shop"
        assert house.ran("search_shop") == [{"q": 1}]

    run(house, work)


def test_a_tool_of_ones_own_that_changes_is_hidden_again(house, add):
    async def work():
        add("allow", "*")
        ada = await house.guest(**rooted("shop"))
        await listed(ada)
        await accepted(house, "search_shop")
        assert "srv__search_shop" in await listed(ada)
        ada.heard.clear()
        # The same name, another folder: another definition.
        ada.answers = {"roots/list": {"roots": [{"uri": "file:///etc", "name": "shop"}]}}
        ada.hear({"jsonrpc": "2.0", "method": "notifications/roots/list_changed"})
        await soon(lambda: pending(house).get("search_shop", {}).get("state") == "changed")
        assert pending(house)["search_shop"]["diff"]
        assert await listed(ada) == ["srv__count"]
        assert "notifications/tools/list_changed" in ada.methods()
        assert "changed since" in told(await ada.call("srv__search_shop"))
        assert house.ran("search_shop") == []

    run(house, work)


def test_each_version_is_accepted_for_itself(house, add):
    """Two clients whose tools have one name: whose version nobody accepted does not have it."""

    async def work():
        add("allow", "*")
        ada = await house.guest(**rooted("shop"))
        other = {"roots/list": {"roots": [{"uri": "file:///home/bob/shop", "name": "shop"}]}}
        bob = await house.guest(agent="bob", capabilities={"roots": {}}, answers=other)
        await listed(ada)
        await listed(bob)

        def versions():
            return [row for row in house.hub.catalogue.review("srv") if row["name"] == "search_shop"]

        await soon(lambda: len(versions()) == 2)
        picks = [row for row in versions() if "file:///projects/shop" in row["shown"]]
        house.hub.news.changed(house.hub.catalogue.accept("srv", picks, "ada"))
        assert await listed(ada) == ["srv__count", "srv__search_shop"]
        assert await listed(bob) == ["srv__count"]
        assert (await bob.call("srv__search_shop"))["isError"]
        assert house.ran("search_shop") == []
        assert house.hub.catalogue.counts("srv") == {"offered": 2, "hidden": 1}

    run(house, work)


def test_who_leaves_takes_its_tools_along(house):
    async def work():
        ada = await house.guest(**rooted("shop"))
        await listed(ada)
        await accepted(house, "search_shop")
        ada.leave()
        assert names(house.hub.catalogue._own.of_server("srv", house.hub.catalogue._shelves)) == []
        assert house.hub.catalogue.own_tools(ada.client.id) == []
        again = await house.guest(**rooted("shop"))
        # It was accepted once, in exactly this version.
        await listed(again)
        await soon(lambda: house.hub.catalogue.own_tools(again.client.id))
        assert await listed(again) == ["srv__count", "srv__search_shop"]

    run(house, work)


def test_what_was_its_own_goes_with_the_server_and_policy_holds_for_it(house, add):
    async def work():
        ada = await house.guest(**rooted("shop"))
        await listed(ada)
        await accepted(house, "search_shop")
        never = add("deny", "search_shop")
        assert await listed(ada) == ["srv__count"]
        assert (await ada.call("srv__search_shop"))["isError"]
        never()
        assert "srv__search_shop" in await listed(ada)
        ada.heard.clear()
        house.specs.clear()
        house.write()
        house.hub.fleet.look()
        assert await listed(ada) == [] and "notifications/tools/list_changed" in ada.methods()
        assert house.ran("search_shop") == []

    run(house, work)


SDK = """
import anyio
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp_types import CallToolResult, ListToolsResult, TextContent, Tool

async def tools(ctx, params):
    known = [str(each.uri).rpartition("/")[2] for each in (await ctx.session.list_roots()).roots]
    made = [Tool(name=each, input_schema={"type": "object"}) for each in ["count", *known]]
    return ListToolsResult(tools=made)

async def call(ctx, params):
    return CallToolResult(content=[TextContent(type="text", text="did " + params.name)])

async def main():
    server = Server("rooted", on_list_tools=tools, on_call_tool=call)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())

anyio.run(main)
"""


def test_a_server_made_with_the_sdk_that_looks_at_roots_when_it_lists(house, add):
    pytest.importorskip("mcp")

    async def main():
        add("allow", "*")
        script = write(house.folder, SDK, "sdk.py")
        house.specs["srv"] = {"command": sys.executable, "args": [str(script)]}
        house.write()
        async with house.opened():
            ada = await house.guest(**rooted("shop"))
            eve = await house.guest(agent="eve", capabilities={})
            assert await listed(ada) == await listed(eve) == ["srv__count"]
            await accepted(house, "shop")
            assert await listed(ada) == ["srv__count", "srv__shop"] and await listed(eve) == ["srv__count"]
            assert told(await ada.call("srv__shop")) == "did shop"

    asyncio.run(main())
