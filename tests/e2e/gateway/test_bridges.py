"""A client of one era before a server that knows only the other: what either asks is understood by both."""

import asyncio

import pytest

from e2e.gateway import parts
from e2e.gateway.gate import Gate
from e2e.gateway.guests import Guest, connected, soon, words
from e2e.gateway.test_guests import yes

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.timeout(180),
]
MODES = {"old": "2026-07-28", "new": "legacy"}
ways = pytest.mark.parametrize(
    ("server", "way"), [(server, way) for server in MODES for way in ("stdio", "http")]
)


@pytest.fixture(scope="module")
def gate():
    with Gate().entered() as made:
        made.add("old", parts.everything("handshake"))
        made.add("new", parts.everything("stateless"))
        made.add("careful_old", parts.everything("handshake"), allow=False)
        made.add("careful_new", parts.everything("stateless"), allow=False)
        made.token = made.client()
        yield made


def run(work):
    return asyncio.run(work)


@ways
def test_the_server_speaks_only_its_own_era(gate, server, way):
    found = {each["name"]: each for each in gate.verb("upstream.list")["servers"]}
    assert found[server]["era"] == {"old": "handshake", "new": "stateless"}[server]

    async def work():
        async with connected(gate, Guest(), way, MODES[server]) as client:
            total = await client.call_tool(f"{server}__add", {"a": 2, "b": 3})
            broken = await client.call_tool(f"{server}__test_error_handling", {})
        assert total.structured_content == {"sum": 5}
        assert broken.is_error

    run(work())


@ways
def test_what_the_server_asks_reaches_the_client(gate, server, way):
    async def work():
        content = {"username": "ada", "email": "ada@example.com"}
        guest = Guest("ada", says={"action": "accept", "content": content})
        async with connected(gate, guest, way, MODES[server]) as client:
            told = [
                words(await client.call_tool(f"{server}__{tool}", given))
                for tool, given in (
                    ("test_elicitation", {"message": "Who is it?"}),
                    ("test_sampling", {"prompt": "Think."}),
                    ("test_roots", {}),
                )
            ]
        assert '"username": "ada"' in told[0]
        assert told[1:] == ["LLM response: ada's model", "file:///home/ada"]
        (asked,) = guest.asked
        assert f"`{server}`" in asked.message and "Who is it?" in asked.message

    run(work())


@ways
def test_a_person_s_yes_and_then_the_server_s_own_question(gate, server, way):
    """Our question first, then the server's: the call runs once, with both answers."""

    def says(params):
        fields = params.requested_schema["properties"]
        filled = {"username": "ada", "email": "ada@example.com"}
        return {"action": "accept", "content": filled} if "username" in fields else yes(params)

    async def work():
        guest = Guest("ada", says=says)
        async with connected(gate, guest, way, MODES[server]) as client:
            message = f"Who is it on {way}?"
            told = await client.call_tool(f"careful_{server}__test_elicitation", {"message": message})
        assert '"username": "ada"' in words(told), told
        assert [f"of server `careful_{server}`" in each.message for each in guest.asked] == [True, False]

    run(work())


@ways
def test_progress_and_log_lines_come_across(gate, server, way):
    async def work():
        seen, guest = [], Guest(log_level="info")

        async def note(progress, total, message):
            seen.append(progress)

        async with connected(gate, guest, way, MODES[server]) as client:
            if MODES[server] == "legacy":
                await client.set_logging_level("info")
            await client.call_tool(f"{server}__test_tool_with_progress", {}, progress_callback=note)
            await client.call_tool(f"{server}__test_tool_with_logging", {})
            await soon(lambda: len(guest.logged) == 3)
        assert seen == [0, 50, 100]

    run(work())


@ways
def test_calling_off_comes_across(gate, server, way):
    async def work():
        started = asyncio.Event()

        async def note(progress, total, message):
            started.set()

        async with connected(gate, Guest(), way, MODES[server]) as client:

            async def count():
                return int(words(await client.call_tool(f"{server}__count_called_off", {})))

            before = await count()
            waiting = asyncio.ensure_future(
                client.call_tool(f"{server}__wait_forever", {}, progress_callback=note)
            )
            await asyncio.wait_for(started.wait(), 10)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            async with asyncio.timeout(10):
                while await count() == before:
                    await asyncio.sleep(0.05)

    run(work())
