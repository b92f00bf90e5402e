"""The MCP SDK's own client before the gateway, over stdio and HTTP, in both eras."""

import asyncio
import contextlib
import itertools

import pytest

from e2e.gateway import parts
from e2e.gateway.gate import Gate
from e2e.gateway.guests import MODES, Guest, connected, soon, words

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.timeout(180),
]
WAYS = [*itertools.product(("stdio", "http"), MODES), ("portable", "auto")]
ways = pytest.mark.parametrize(("way", "mode"), WAYS)
NAME, ASKING = "everything__", "asks__"
WATCHED = "test://watched-resource"


@pytest.fixture(scope="module")
def gate():
    with Gate().entered() as made:
        made.add("everything", parts.everything())
        made.add("asks", parts.everything(), allow=False)
        made.token = made.client()
        yield made


def run(work):
    return asyncio.run(work)


@ways
def test_tools_are_listed_and_called(gate, way, mode):
    async def work():
        async with connected(gate, Guest(), way, mode) as client:
            tools = {each.name: each for each in (await client.list_tools()).tools}
            total = await client.call_tool(f"{NAME}add", {"a": 2, "b": 3})
            broken = await client.call_tool(f"{NAME}test_error_handling", {})
        assert tools[f"{NAME}add"].annotations.read_only_hint
        assert total.structured_content == {"sum": 5}
        assert broken.is_error and "intentionally" in words(broken)

    run(work())


@ways
def test_arguments_that_do_not_fit_never_reach_the_server(gate, way, mode):
    async def work():
        async with connected(gate, Guest(), way, mode) as client:
            refused = await client.call_tool(f"{NAME}add", {"a": "two", "b": 3})
        assert refused.is_error and "a" in words(refused)

    run(work())


def yes(params):
    """A person who says yes, in whatever field the question has."""
    fields = params.requested_schema["properties"]
    return {"action": "accept", "content": {name: _first(field) for name, field in fields.items()}}


def _first(field):
    if "default" in field:
        return field["default"]
    options = field.get("enum") or [each["const"] for each in field.get("oneOf", ())]
    return options[0] if options else {"boolean": True, "string": ""}.get(field["type"], 1)


@ways
def test_a_yes_in_the_client_lets_the_call_through(gate, way, mode):
    async def work():
        guest = Guest(says=yes)
        async with connected(gate, guest, way, mode) as client:
            told = await client.call_tool(f"{ASKING}echo", {"text": "with a yes"})
        assert words(told) == "with a yes", told
        (asked,) = guest.asked
        assert "asks" in asked.message and "echo" in asked.message

    run(work())


@pytest.mark.parametrize("answer", ["decline", "cancel"])
@ways
def test_a_no_in_the_client_stops_the_call(gate, way, mode, answer):
    async def work():
        guest = Guest(says={"action": answer})
        async with connected(gate, guest, way, mode) as client:
            # A no holds for a session, and over HTTP a token's stateless requests are one.
            text = f"with a no {way} {mode} {answer}"
            told = await client.call_tool(f"{ASKING}echo", {"text": text})
        assert told.is_error and told.content[0].text != text
        assert len(guest.asked) == 1

    run(work())


@ways
def test_a_client_that_cannot_ask_is_refused(gate, way, mode):
    async def work():
        async with connected(gate, Guest(asks=False), way, mode) as client:
            told = await client.call_tool(f"{ASKING}echo", {"text": "unasked"})
        assert told.is_error and "unasked" not in words(told)

    run(work())


@ways
def test_what_a_server_asks_reaches_the_client_that_called(gate, way, mode):
    """Two at once: each hears only what its own call led to."""

    async def one(name):
        content = {"username": name, "email": f"{name}@example.com"}
        guest = Guest(name, says={"action": "accept", "content": content})
        async with connected(gate, guest, way, mode) as client:
            asked = client.call_tool(f"{NAME}test_elicitation", {"message": f"Who is {name}?"})
            sampled = client.call_tool(f"{NAME}test_sampling", {"prompt": f"Think of {name}."})
            rooted = client.call_tool(f"{NAME}test_roots", {})
            return guest, [words(each) for each in await asyncio.gather(asked, sampled, rooted)]

    async def work():
        # From its first question on, the gateway knows that this server asks its clients.
        async with connected(gate, Guest("eve"), way, mode) as client:
            for tool, given in (
                ("elicitation", {"message": "?"}),
                ("sampling", {"prompt": "?"}),
                ("roots", {}),
            ):
                with contextlib.suppress(Exception):
                    await client.call_tool(f"{NAME}test_{tool}", given)
        return await asyncio.gather(one("ada"), one("bob"))

    for name, (guest, told) in zip(("ada", "bob"), run(work()), strict=True):
        assert f'"username": "{name}"' in told[0]
        assert told[1:] == [f"LLM response: {name}'s model", f"file:///home/{name}"]
        (asked,) = guest.asked
        assert f"Who is {name}?" in asked.message and "everything" in asked.message
        assert [each.messages[0].content.text for each in guest.sampled] == [f"Think of {name}."]


@ways
def test_progress_comes_back_to_the_call(gate, way, mode):
    async def work():
        seen = []

        async def note(progress, total, message):
            seen.append((progress, total))

        async with connected(gate, Guest(), way, mode) as client:
            await client.call_tool(f"{NAME}test_tool_with_progress", {}, progress_callback=note)
        assert seen == [(0, 100), (50, 100), (100, 100)]

    run(work())


@ways
def test_calling_off_reaches_the_server(gate, way, mode):
    async def work():
        started = asyncio.Event()

        async def note(progress, total, message):
            started.set()

        async with connected(gate, Guest(), way, mode) as client:
            before = int(words(await client.call_tool(f"{NAME}count_called_off", {})))
            call = client.call_tool(f"{NAME}wait_forever", {}, progress_callback=note)
            waiting = asyncio.ensure_future(call)
            await asyncio.wait_for(started.wait(), 10)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            async with asyncio.timeout(10):
                while int(words(await client.call_tool(f"{NAME}count_called_off", {}))) == before:
                    await asyncio.sleep(0.05)

    run(work())


@ways
def test_resources_prompts_and_completion(gate, way, mode):
    async def work():
        guest = Guest()
        async with connected(gate, guest, way, mode) as client:
            listed = [str(each.uri) for each in (await client.list_resources()).resources]
            text = (await client.read_resource(listed[0])).contents[0].text
            templates = (await client.list_resource_templates()).resource_templates
            made = await client.read_resource("test://template/7/data")
            prompts = [each.name for each in (await client.list_prompts()).prompts]
            got = await client.get_prompt(f"{NAME}test_prompt_with_arguments", {"arg1": "one", "arg2": "two"})
            ref = guest.types.PromptReference(type="ref/prompt", name=f"{NAME}test_prompt_with_arguments")
            known = await client.complete(ref, {"name": "arg1", "value": "par"})
        assert "test://static-text" in listed and "static text resource" in text
        assert templates and '"7"' in made.contents[0].text
        assert f"{NAME}test_simple_prompt" in prompts
        assert "arg1='one'" in got.messages[0].content.text
        assert known.completion.values == ["paris", "park", "party"]

    run(work())


async def watched(client):
    """The resource as it is offered: two servers have one of that name, so one of them is told apart."""
    found, cursor = [], None
    while True:
        page = await client.list_resources(cursor=cursor)
        found += [str(each.uri) for each in page.resources]
        if not (cursor := page.next_cursor):
            break
    apart = f"mcp+everything:{WATCHED}"
    assert (apart in found) != (f"mcp+asks:{WATCHED}" in found)
    return apart if apart in found else WATCHED


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_changes_and_log_lines_arrive_in_the_handshake_era(gate, way):
    async def work():
        # A client that cannot be asked anything shares the server with others.
        guest = Guest(asks=False, samples=False, roots=False)
        async with connected(gate, guest, way, "legacy") as client:
            await client.set_logging_level("info")
            await client.call_tool(f"{NAME}test_tool_with_logging", {})
            await soon(lambda: len(guest.logged) == 3)
            before = {each.name for each in (await client.list_tools()).tools}
            await client.call_tool(f"{NAME}test_trigger_tool_change", {})
            await soon(lambda: "notifications/tools/list_changed" in guest.heard)
            after = {each.name for each in (await client.list_tools()).tools}
            assert before ^ after == {f"{NAME}test_dynamic_tool"}
            await client.subscribe_resource(await watched(client))
            await client.call_tool(f"{NAME}touch_watched", {})
            await soon(lambda: "notifications/resources/updated" in guest.heard)

    run(work())


@pytest.mark.parametrize("way", ["stdio", "http"])
def test_changes_and_log_lines_arrive_in_the_stateless_era(gate, way):
    async def work():
        guest = Guest(log_level="info", cache=None)
        async with connected(gate, guest, way, "2026-07-28") as client:
            await client.call_tool(f"{NAME}test_tool_with_logging", {})
            await soon(lambda: len(guest.logged) == 3)
            before = {each.name for each in (await client.list_tools()).tools}
            uri = await watched(client)
            async with client.listen(tools_list_changed=True) as changes:
                await client.call_tool(f"{NAME}test_trigger_tool_change", {})
                await asyncio.wait_for(anext(aiter(changes)), 10)
                after = {each.name for each in (await client.list_tools()).tools}
            async with client.listen(resource_subscriptions=[uri]) as changes:
                await client.call_tool(f"{NAME}touch_watched", {})
                updated = await asyncio.wait_for(anext(aiter(changes)), 10)
        assert before ^ after == {f"{NAME}test_dynamic_tool"}
        assert updated.uri == uri

    run(work())


def test_every_call_is_on_the_record(gate):
    async def work():
        async with connected(gate, Guest(), "stdio", "auto") as client:
            await client.call_tool(f"{NAME}echo", {"text": "to be found again"})

    run(work())
    found = [each for each in gate.entries() if "to be found again" in str(each["tool_input"])]
    assert [(each["tool_name"], each["result"]) for each in found] == [("mcp__everything__echo", "success")]
    assert gate.verifies()
