"""Streams of stateless clients: what each asked for, under the number it gave."""

import asyncio

import pytest

from checkrein.doors.gateway import subscriptions as subscriptions_module
from checkrein.doors.gateway.clients import Client, Visit
from checkrein.doors.gateway.messages import STATELESS, SUBSCRIPTION_KEY, RpcError
from checkrein.doors.gateway.subscriptions import Subscriptions


class Ear:
    def __init__(self):
        self.heard = []

    def send(self, message):
        self.heard.append(message)


def client(owner="o"):
    made = Client(era=STATELESS, agent="a", label="l", owner=owner, visit=Visit("s"), send=lambda _: None)
    made.id = f"stateless:{owner}"
    return made


async def nothing(_uri):
    """Nobody watches."""


def open_stream(subscriptions, ear, wanted, *, who=None, number=1):
    listening = subscriptions.listen(who or client(), number, {"notifications": wanted}, ear, nothing)
    return asyncio.ensure_future(listening)


def test_a_stream_is_acknowledged_first_and_ends_with_its_number():
    async def main():
        subscriptions, ear = Subscriptions(), Ear()
        task = open_stream(
            subscriptions, ear, {"toolsListChanged": True, "promptsListChanged": 1, "odd": True}
        )
        await asyncio.sleep(0)
        (first,) = ear.heard
        assert first["method"] == "notifications/subscriptions/acknowledged"
        assert first["params"]["notifications"] == {"toolsListChanged": True}
        subscriptions.list_changed("tools")
        subscriptions.list_changed("prompts")
        assert [each["method"] for each in ear.heard[1:]] == ["notifications/tools/list_changed"]
        subscriptions.end()
        assert await task == {"_meta": {SUBSCRIPTION_KEY: 1}}
        assert subscriptions._open == []

    asyncio.run(main())


@pytest.mark.invariant("a subscription's notices carry the id its own client gave it")
def test_an_update_goes_to_who_wants_it_and_keeps_what_else_it_says():
    async def main():
        subscriptions, one, two = Subscriptions(), Ear(), Ear()
        tasks = [
            open_stream(subscriptions, one, {"resourceSubscriptions": ["x://1"]}, number="one"),
            open_stream(subscriptions, two, {"resourceSubscriptions": ["x://2"]}, number=2, who=client("p")),
        ]
        await asyncio.sleep(0)
        subscriptions.updated("x://1", {"uri": "x://1", "_meta": {"own": 1}})
        assert one.heard[1]["params"]["_meta"] == {"own": 1, SUBSCRIPTION_KEY: "one"} and len(two.heard) == 1
        # From a connection of one client's own, nobody else's stream hears it.
        subscriptions.updated("x://2", {"uri": "x://2"}, only="stateless:o")
        assert len(two.heard) == 1
        subscriptions.updated("x://2", {"uri": "x://2"}, only="stateless:p")
        assert len(two.heard) == 2
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert subscriptions._open == []

    asyncio.run(main())


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"notifications": []},
        {"notifications": {"resourceSubscriptions": "x"}},
        {"notifications": {"resourceSubscriptions": [1]}},
        {"notifications": {"resourceSubscriptions": ["x"] * 1_001}},
    ],
)
def test_what_is_not_asked_for_properly_is_refused(params):
    async def main():
        with pytest.raises(RpcError):
            await Subscriptions().listen(client(), 1, params, Ear(), nothing)

    asyncio.run(main())


def test_one_client_has_so_many_streams_and_no_more(monkeypatch):
    monkeypatch.setattr(subscriptions_module, "MOST_OF_ONE", 2)

    async def main():
        subscriptions = Subscriptions()
        tasks = [open_stream(subscriptions, Ear(), {}) for _ in range(3)]
        await asyncio.sleep(0)
        with pytest.raises(RpcError):
            await tasks[2]
        other = open_stream(subscriptions, Ear(), {}, who=client("p"))
        await asyncio.sleep(0)
        subscriptions.end()
        await asyncio.gather(*tasks[:2], other)

    asyncio.run(main())
