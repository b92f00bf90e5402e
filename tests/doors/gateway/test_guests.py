"""A door in the same process uses the gateway: from its own loop, with what a client would see."""

import asyncio
import json
import sys
import threading

import pytest

from checkrein.doors.gateway import guests as guests_module
from checkrein.doors.gateway.guests import Guests, StoppedError
from checkrein.errors import InputError, NotFoundError, StoreError
from doors.gateway.back import after, write
from doors.gateway.house import SERVER
from doors.gateway.visitor import DOOR, RICH, Visitor, elsewhere
from patience import PATIENCE, soon, until


def states(visitor):
    return {each["name"]: each["state"] for each in visitor.gateway.servers()}


def names(tools):
    return {each.tool for each in tools}


# -- tools ----------------------------------------------------------------------------------------------


def test_tools_are_listed_as_they_were_accepted(visitor):
    visitor.open()

    async def work():
        found = {each.tool: each for each in await visitor.guest.tools()}
        strict = found["strict"]
        assert (strict.name, strict.server, strict.description) == ("srv__strict", "srv", "It does strict")
        assert strict.schema["required"] == ["n"] and strict.schema["properties"] == {
            "n": {"type": "integer"}
        }
        assert strict.trusted and len(strict.definition) == 64
        assert found["delete_all"].annotations == {"destructiveHint": True, "pinned": True}
        # Our own tools are the gateway's clients', not other doors'.
        assert {each.server for each in found.values()} == {"srv"}
        assert await visitor.guest.tool("srv__strict") == strict

    asyncio.run(work())


def test_nothing_is_listed_or_called_that_nobody_accepted(visitor):
    visitor.open(accept=False)

    async def work():
        assert await visitor.guest.tools() == []
        assert "Nobody has accepted it" in await visitor.guest.tool("srv__echo")
        assert "no tool" in await visitor.guest.tool("srv__nothing")
        await asyncio.to_thread(visitor.accept, "srv", {"echo"})
        assert names(await visitor.guest.tools()) == {"echo"}
        call, entry = await visitor.judged("slow", {"seconds": 0})
        came = await visitor.carry(call, entry)
        assert came.kind == "unsent" and "Nobody has accepted it" in came.text

    asyncio.run(work())
    assert visitor.house.ran("slow") == []


def test_what_policy_always_refuses_is_not_listed(visitor, add):
    visitor.open()

    async def work():
        visitor.allow_no_more()
        remove = add("deny", "crash")
        add("deny", "echo", when={"n": {"equals": 1}})
        listed = names(await visitor.guest.tools())
        assert "crash" not in listed and "echo" in listed
        assert await visitor.guest.tools() == await visitor.guest.tools(project="")
        remove()
        assert "crash" in names(await visitor.guest.tools())

    asyncio.run(work())


@pytest.mark.invariant("what a server says of its tools never says that it is trusted")
def test_a_server_nobody_vouches_for_says_nothing_of_trust(visitor):
    visitor.house.server(
        "far", source=SERVER.replace('"readOnlyHint": True', '"readOnlyHint": True, "pinned": True')
    )
    visitor.open()
    visitor.accept("far")

    async def work():
        found = await visitor.guest.tool("far__read_notes")
        assert not found.trusted and found.annotations == {"readOnlyHint": True}

    asyncio.run(work())


def test_arguments_are_held_against_the_schema(visitor):
    visitor.open()

    async def work():
        assert await visitor.guest.faults("srv__strict", {"n": 1}) == []
        assert await visitor.guest.faults("srv__strict", {"n": "x"}) and await visitor.guest.faults(
            "srv__strict", {}
        )
        assert "no tool" in (await visitor.guest.faults("srv__nothing", {}))[0]

    asyncio.run(work())


def test_the_first_list_waits_for_servers_that_start_but_not_for_ever(visitor, monkeypatch):
    # Whoever was waited for too short a time would not be listed.
    monkeypatch.setattr(guests_module, "_PATIENCE", PATIENCE)
    go = visitor.house.folder / "go"
    visitor.house.server("late", source=after(go, SERVER), trusted=True)
    go.touch()
    visitor.open()
    visitor.accept("late")
    visitor.close()
    go.unlink()
    again = Visitor(visitor.pipeline, visitor.house, visitor.said)

    async def waits():
        listing = asyncio.ensure_future(again.guest.tools())
        await soon(lambda: again.gateway._guests._under_way)
        for _ in range(10):
            await asyncio.to_thread(again.do, lambda: None)
        assert not listing.done()
        go.touch()
        return await listing

    try:
        again.open(accept=False)
        assert {each.server for each in asyncio.run(waits())} == {"srv", "late"}
    finally:
        again.close()
    never = Visitor(visitor.pipeline, visitor.house, visitor.said)
    visitor.house.server("late", source="import time; time.sleep(600)")
    monkeypatch.setattr(guests_module, "_PATIENCE", 0.05)
    try:
        never.open(accept=False)
        until(lambda: {"srv": "ready"}.items() <= states(never).items())

        async def twice():
            async with asyncio.timeout(PATIENCE):
                await never.guest.tools()
            # Whoever waited for the late one a second time would wait for ever.
            monkeypatch.setattr(guests_module, "_PATIENCE", 100 * PATIENCE)
            async with asyncio.timeout(PATIENCE):
                return await never.guest.tools()

        assert {each.server for each in asyncio.run(twice())} == {"srv"}
    finally:
        never.close()


def test_how_servers_do(visitor):
    visitor.house.server("broken", source="raise SystemExit(3)")
    visitor.open()

    async def work():
        await visitor.guest.tools()
        broken, good = await visitor.guest.servers()
        assert (good["name"], good["state"], good["error"], good["trusted"]) == ("srv", "ready", "", True)
        assert good["tools"] == len(await visitor.guest.tools())
        assert broken["name"] == "broken" and broken["state"] != "ready" and broken["tools"] == 0

    asyncio.run(work())


# -- loops and ends -------------------------------------------------------------------------------------


def test_guests_are_served_on_several_loops_at_once(visitor):
    visitor.open()

    async def work(session):
        found = await asyncio.gather(
            *(visitor.made("echo", {"who": session, "n": n}, session=session) for n in range(10))
        )
        return [each.text for each in found]

    with elsewhere(work("one")) as one, elsewhere(work("two")) as two:
        mine = asyncio.run(work("three"))
    for session, texts in (("one", one[0]), ("two", two[0]), ("three", mine)):
        assert texts == [f'said {{"who": "{session}", "n": {n}}}' for n in range(10)]


def test_progress_is_told_on_the_loop_that_waits(visitor):
    visitor.open()
    heard = []

    class Heard:
        def append(self, text):
            heard.append((text, threading.current_thread()))

    came = asyncio.run(visitor.made("progress", heard=Heard()))
    assert came.text == "done"
    # What came fast is told as the latest of it.
    assert heard and heard[-1] == ("2", threading.current_thread())


def test_whoever_stops_waiting_cancels_it_upstream(visitor):
    visitor.open()

    async def work():
        call, entry = await visitor.judged("slow", {"seconds": 600})
        waits = asyncio.ensure_future(visitor.carry(call, entry))
        await soon(lambda: visitor.house.ran("slow"))
        waits.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waits
        await soon(lambda: any("cancelled" in line for line in visitor.house.log()))
        found = await asyncio.to_thread(visitor.record, entry)
        assert (found.result, found.evidence) == ("cancelled", "client")
        again = await visitor.carry(call, entry)
        assert again.kind == "unsent" and len(visitor.house.ran("slow")) == 1

    asyncio.run(work())


def test_a_call_given_up_before_anybody_looked_at_it_is_on_the_record_and_never_runs(visitor):
    visitor.open()

    async def work():
        await visitor.made("env")
        call, entry = await visitor.judged("echo")
        held, free = threading.Event(), threading.Event()
        visitor.gateway._own.loop.call_soon_threadsafe(lambda: (held.set(), free.wait(PATIENCE)))
        await asyncio.to_thread(held.wait, PATIENCE)
        waits = asyncio.ensure_future(visitor.carry(call, entry))
        await soon(lambda: visitor.gateway._guests._under_way)
        waits.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waits
        free.set()
        found = await asyncio.to_thread(visitor.record, entry)
        assert (found.result, found.evidence) == ("cancelled", "client")
        assert (await visitor.carry(call, entry)).kind == "unsent"

    asyncio.run(work())
    assert visitor.house.ran("echo") == []


def test_a_gateway_that_ends_lets_nobody_wait(visitor):
    visitor.open()

    async def work():
        call, entry = await visitor.judged("slow", {"seconds": 600})
        waits = asyncio.ensure_future(visitor.carry(call, entry))
        await soon(lambda: visitor.house.ran("slow"))
        await asyncio.to_thread(visitor.close)
        came = await asyncio.wait_for(waits, PATIENCE)
        assert came.kind == "lost" and came.failed and "unknown" in came.text
        with pytest.raises(StoreError):
            await visitor.guest.tools()
        with pytest.raises(StoreError):
            await visitor.carry(call, entry)

    asyncio.run(work())


def test_a_gateway_that_ends_is_not_mistaken_for_being_cancelled(visitor):
    visitor.open()

    async def work():
        guests = visitor.gateway._guests
        waits = asyncio.ensure_future(visitor.guest._there(lambda _there: asyncio.Event().wait()))
        await soon(lambda: guests._under_way)
        for each in list(guests._under_way):
            each.cancel()
        with pytest.raises(StoppedError, match="stopped meanwhile"):
            await waits

    asyncio.run(work())


def test_work_that_a_loop_never_came_to_is_given_up_with_it(house):
    async def work():
        async with house.opened() as hub:
            return Guests(hub)

    loop = asyncio.new_event_loop()
    guests = loop.run_until_complete(work())
    waits = guests.soon(guests.tool("srv__echo"))
    assert not waits.done()
    guests.close()
    assert waits.cancelled()
    with pytest.raises(StoreError, match="not running"):
        guests.soon(guests.tool("srv__echo"))
    # Only to have it never awaited nowhere.
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    guests._over = False
    with pytest.raises(StoreError, match="not running"):
        guests.soon(guests.tool("srv__echo"))


def test_a_gateway_that_is_not_open_has_no_guests(visitor):
    with pytest.raises(StoreError, match="not running"):
        visitor.gateway.guest(DOOR)


# -- resources and prompts ------------------------------------------------------------------------------


@pytest.fixture
def two(visitor):
    many = [{"uri": f"note://{name}", "name": name} for name in ("one", "2", "3")]
    visitor.house.server(trusted=True, env={"RESOURCES": json.dumps(many)})
    visitor.house.server("far")
    return visitor.open()


def test_resources_are_listed_whole_and_read_from_the_server_that_is_named(two):
    async def work():
        found = [(each["server"], each["uri"], each["trusted"]) for each in await two.guest.resources()]
        assert sorted(found) == [
            ("far", "note://one", False),
            ("srv", "note://2", True),
            ("srv", "note://3", True),
            ("srv", "note://one", True),
        ]
        for server, trusted in (("far", False), ("srv", True)):
            read = await two.guest.read(server, "note://one")
            assert read["server"] == server and read["trusted"] is trusted
            assert read["contents"] == [{"uri": "note://one", "text": f"{server} has it"}]
        with pytest.raises(NotFoundError, match="No server"):
            await two.guest.read("nobody", "note://one")

    asyncio.run(work())


NOTES = [{"uriTemplate": "note://{who}{?day}", "name": "notes", "mimeType": "text/plain", "odd": 1}]


def test_templates_are_listed_with_their_parameters_and_filled_in(visitor):
    odd = [{"uriTemplate": "note://{who", "name": "broken"}, {"name": "none"}, 5]
    visitor.house.server(trusted=True, env={"TEMPLATES": json.dumps(NOTES)})
    visitor.house.server("far", env={"TEMPLATES": json.dumps([*NOTES, *odd])})
    visitor.open()

    async def work():
        found = await visitor.guest.templates()
        asked = [{"name": "who", "required": True}, {"name": "day", "required": False}]
        assert sorted(found, key=lambda each: each["server"]) == [
            {**NOTES[0], "server": "far", "trusted": False, "parameters": asked},
            {**NOTES[0], "server": "srv", "trusted": True, "parameters": asked},
        ]
        for server, trusted in (("far", False), ("srv", True)):
            read = await visitor.guest.read_filled(server, "note://{who}{?day}", {"who": "a/b", "day": "1"})
            assert (read["server"], read["trusted"], read["uri"]) == (server, trusted, "note://a%2Fb?day=1")
            assert read["contents"] == [{"uri": "note://a%2Fb?day=1", "text": f"{server} has it"}]
        with pytest.raises(InputError, match="needs a value for who"):
            await visitor.guest.read_filled("srv", "note://{who}{?day}", {})

    asyncio.run(work())
    assert [line for line in visitor.house.log() if "read" in line] == [{"read": "note://a%2Fb?day=1"}]


GARDEN = """
from mcp.server.mcpserver import MCPServer
server = MCPServer("garden")
@server.resource("plant://{bed}/{name}", mime_type="text/plain")
def plant(bed: str, name: str) -> str:
    return f"{name} grows in {bed}"
server.run()
"""


def test_a_template_of_a_server_made_with_the_sdk(visitor):
    pytest.importorskip("mcp")
    script = write(visitor.house.folder, GARDEN, "garden.py")
    visitor.house.specs["garden"] = {"command": sys.executable, "args": [str(script)]}
    visitor.house.write()
    visitor.open()

    async def work():
        (found,) = [each for each in await visitor.guest.templates() if each["server"] == "garden"]
        assert [each["name"] for each in found["parameters"]] == ["bed", "name"]
        values = {"bed": "the north bed", "name": "kale & chard"}
        read = await visitor.guest.read_filled("garden", found["uriTemplate"], values)
        assert [each["text"] for each in read["contents"]] == ["kale & chard grows in the north bed"]
        assert read["trusted"] is False

    asyncio.run(work())


def test_a_resource_whose_server_wants_to_ask_is_an_error(two):
    async def work():
        read = await two.guest.read("srv", "note://ask")
        assert "nobody who can be asked" in read["contents"][0]["text"]

    asyncio.run(work())


def test_only_accepted_prompts_are_listed_and_got(two):
    async def work():
        assert [(each["server"], each["name"]) for each in await two.guest.prompts()] == [("srv", "greet")]
        with pytest.raises(NotFoundError, match="Nobody has accepted"):
            await two.guest.prompt("far", "greet", {})
        got = await two.guest.prompt("srv", "greet", {})
        assert got["trusted"] and got["messages"][0]["content"]["text"] == "hello from srv"
        await asyncio.to_thread(two.accept, "far")
        got = await two.guest.prompt("far", "greet", {})
        assert (got["server"], got["trusted"]) == ("far", False)
        with pytest.raises(NotFoundError):
            await two.guest.prompt("srv", "nothing", {})

    asyncio.run(work())


def test_what_a_server_answers_instead_of_contents_is_not_taken_for_any(visitor):
    odd = SERVER.replace(
        'answer({"contents": [{"uri": params["uri"], "text": NAME + " has it"}]})',
        'answer({"contents": "x"})',
    )
    gone = odd.replace(
        'answer({"messages"',
        'put({"id": number, "error": {"code": -32000, "message": "no"}}) or ({"messages"',
    )
    visitor.house.server(trusted=True, source=gone)
    visitor.open()

    async def work():
        assert (await visitor.guest.read("srv", "note://one"))["contents"] == []
        with pytest.raises(InputError, match="no"):
            await visitor.guest.prompt("srv", "greet", {})

    asyncio.run(work())


def test_results_come_whole(visitor):
    source = SERVER.replace('done(text("said " + json.dumps(arguments)))', f"done({RICH!r})")
    visitor.house.server(trusted=True, source=source)
    visitor.open()
    came = asyncio.run(visitor.made("echo"))
    assert (came.kind, came.content, came.failed) == ("result", RICH, False)
    assert came.text == "a picture\nand more"
