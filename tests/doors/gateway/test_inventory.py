"""What a connection says its tools are, read from it and compared with what was accepted."""

import asyncio

import pytest

from checkrein.call import digest
from checkrein.doors.gateway.inventory import Inventory, pages
from checkrein.doors.gateway.messages import RpcError

ECHO = {"name": "echo", "inputSchema": {"type": "object"}}


class Connection:
    """Answers lists from a script; each answer is a page, or what is raised."""

    def __init__(self, *answers, capabilities=None):
        self.answers, self.asked = list(answers), []
        self.capabilities = {"tools": {}, "prompts": {}} if capabilities is None else capabilities

    async def request(self, method, params, *, seconds):
        assert seconds == 30.0
        self.asked.append((method, params))
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        await asyncio.sleep(0)
        if isinstance(answer, Exception):
            raise answer
        return answer


def differs(inventory, connection, tool="echo", accepted=None):
    return asyncio.run(inventory.differs(connection, tool, digest(ECHO) if accepted is None else accepted))


@pytest.mark.invariant("a call reaches a connection only where its tool is, word for word, what was accepted")
def test_a_tool_is_compared_with_what_this_connection_shows():
    inventory, connection = Inventory(), Connection({"tools": [ECHO, {"name": "other"}]})
    assert differs(inventory, connection) == ""
    assert differs(inventory, connection) == "" and len(connection.asked) == 1, "read once"
    assert differs(inventory, connection, accepted="else") and differs(inventory, connection, "missing")
    other = Connection({"tools": [{**ECHO, "title": "Another"}]})
    assert "not the accepted one" in differs(inventory, other)


@pytest.mark.parametrize("tools", [[ECHO, ECHO], [], None, "x", [None, 7, {"name": 7}]])
def test_what_is_there_twice_or_not_at_all_is_not_it(tools):
    assert "not the accepted one" in differs(Inventory(), Connection({"tools": tools}))


@pytest.mark.parametrize("fault", [RpcError(-1, "no"), TimeoutError("late")])
def test_what_cannot_be_read_is_not_called(fault):
    assert "cannot be read" in differs(Inventory(), Connection(fault))


def test_after_a_word_of_change_it_is_read_again():
    inventory, connection = Inventory(), Connection({"tools": [ECHO]}, {"tools": [{**ECHO, "title": "New"}]})
    assert differs(inventory, connection) == ""
    inventory.outdated(connection)
    assert "not the accepted one" in differs(inventory, connection)


def test_a_reading_that_a_change_overtook_does_not_count():
    async def main():
        inventory = Inventory()
        connection = Connection({"tools": [ECHO]}, {"tools": [{**ECHO, "title": "New"}]})
        reading = asyncio.ensure_future(inventory.differs(connection, "echo", digest(ECHO)))
        await asyncio.sleep(0)
        inventory.outdated(connection)
        assert "not the accepted one" in await reading and len(connection.asked) == 2

    asyncio.run(main())


def test_many_who_need_it_at_once_share_one_reading_and_one_that_gives_up_spoils_it_for_nobody():
    async def main():
        inventory, connection = Inventory(), Connection({"tools": [ECHO]})
        asking = [
            asyncio.ensure_future(inventory.differs(connection, "echo", digest(ECHO))) for _ in range(9)
        ]
        await asyncio.sleep(0)
        asking[0].cancel()
        assert await asyncio.gather(*asking[1:]) == [""] * 8
        assert len(connection.asked) == 1 and len(inventory._readings) == 0
        await inventory.close()

    asyncio.run(main())


def test_closing_ends_what_is_being_read():
    async def main():
        inventory = Inventory()

        class Silent(Connection):
            async def request(self, *_args, **_more):
                await asyncio.Event().wait()

        silent = Silent()
        asking = asyncio.ensure_future(inventory.differs(silent, "echo", "x"))
        await asyncio.sleep(0)
        await inventory.close()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert len(asyncio.all_tasks()) == 1

    asyncio.run(main())


def test_a_tool_that_changes_all_the_time_is_not_called():
    async def main():
        inventory = Inventory()

        class Restless(Connection):
            async def request(self, *args, **more):
                found = await super().request(*args, **more)
                inventory.outdated(self)
                return found

        assert "all the time" in await inventory.differs(Restless({"tools": [ECHO]}), "echo", digest(ECHO))

    asyncio.run(main())


def test_pages_are_read_to_the_end_within_bounds():
    async def main():
        two = Connection({"tools": [1], "nextCursor": "a"}, {"tools": [2], "nextCursor": ""})
        assert await pages(two, "tools") == [1, 2]
        assert two.asked == [("tools/list", {}), ("tools/list", {"cursor": "a"})]
        endless = Connection({"tools": [], "nextCursor": "x"})
        assert await pages(endless, "tools") == [] and len(endless.asked) == 100
        many = Connection({"tools": [0] * 1500, "nextCursor": "x"})
        assert len(await pages(many, "tools")) == 3000
        assert await pages(Connection({"tools": [1]}, capabilities={}), "tools") == []
        odd = Connection(["not", "a", "page"])
        assert await pages(odd, "prompts") == []

    asyncio.run(main())


def test_many_calls_at_once_on_a_fresh_connection_read_its_tools_once():
    inventory, connection = Inventory(), Connection({"tools": [ECHO]})

    async def go():
        return await asyncio.gather(*(inventory.differs(connection, "echo", digest(ECHO)) for _ in range(20)))

    assert asyncio.run(go()) == [""] * 20
    assert len(connection.asked) == 1


def test_one_that_stops_waiting_ends_the_reading_for_nobody_else():
    inventory, connection = Inventory(), Connection({"tools": [ECHO]})

    async def go():
        first = asyncio.ensure_future(inventory.differs(connection, "echo", digest(ECHO)))
        second = asyncio.ensure_future(inventory.differs(connection, "echo", digest(ECHO)))
        await asyncio.sleep(0)
        first.cancel()
        return await second

    assert asyncio.run(go()) == ""
