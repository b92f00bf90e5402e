"""What servers say by themselves: looked at before it is offered, and heard only by who may hear it."""

import asyncio
import time
from itertools import pairwise

import pytest
from ground import examples
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from checkrein.doors.gateway import news as news_module
from checkrein.doors.gateway.messages import LEVEL_KEY, SUBSCRIPTION_KEY, MalformedError, decode, encode
from doors.gateway.house import told
from doors.gateway.moved_loop import pass_seconds
from doors.gateway.moved_loop import run as run_on_moved_loop
from patience import soon

TOOLS = "notifications/tools/list_changed"


@pytest.fixture(autouse=True)
def everything_is_allowed(add):
    return add("allow", "*")


def run(house, work, **more):
    asyncio.run(with_server(house, work, **more))


async def with_server(house, work, **more):
    house.server(**more)
    async with house.opened():
        await work()


def names(listed):
    return {tool["name"] for tool in listed["tools"]}


@pytest.mark.invariant("what a server changes about itself is looked at before it is offered, or called")
def test_an_acceptance_a_refusal_and_a_rug_pull_are_told(house):
    async def main():
        house.server()
        async with house.opened(accept=False):
            guest = await house.guest()
            assert (await guest.ask("tools/list"))["tools"] == []
            house.accept("srv", ["echo", "evolve"])
            assert guest.methods() == [TOOLS]
            assert names(await guest.ask("tools/list")) == {"srv__echo", "srv__evolve"}
            await guest.call("srv__evolve")
            await soon(lambda: guest.methods() == [TOOLS, TOOLS])
            assert names(await guest.ask("tools/list")) == {"srv__evolve"}
            rows = [row for row in house.hub.catalogue.review("srv") if row["name"] == "evolve"]
            house.hub.news.changed(house.hub.catalogue.refuse("srv", rows, "ada"))
            assert guest.methods() == [TOOLS] * 3 and names(await guest.ask("tools/list")) == set()

    asyncio.run(main())


def test_a_rule_that_takes_a_tool_out_of_the_list_is_told(house, add):
    async def work():
        guest = await house.guest()
        house.hub.look_at_rules()
        house.hub.look_at_rules()
        assert guest.methods() == []
        remove = add("deny", "echo", priority=1)
        house.hub.look_at_rules()
        assert guest.methods() == [TOOLS]
        assert "srv__echo" not in names(await guest.ask("tools/list"))
        remove()
        house.hub.look_at_rules()
        assert guest.methods() == [TOOLS, TOOLS]
        assert "srv__echo" in names(await guest.ask("tools/list"))

    run(house, work)


def test_only_who_has_begun_a_session_hears_of_lists(house):
    async def work():
        early = house.hub.meet(era="handshake", agent="e", label="e", owner="e", send=pytest.fail)
        house.hub.news.changed(frozenset({"tools", "prompts", "instructions"}))
        house.hub.leave(early)

    run(house, work)


def test_a_stateless_stream_hears_what_it_asked_for_with_its_own_number(house):
    async def work():
        guest = house.passing()
        wanted = {"notifications": {"toolsListChanged": True, "resourceSubscriptions": ["note://one"]}}
        task = asyncio.ensure_future(guest.raw("subscriptions/listen", wanted, number="mine"))
        await soon(lambda: len(guest.heard) == 2)
        first, second = guest.heard
        assert first["method"] == "notifications/subscriptions/acknowledged"
        assert first["params"]["notifications"] == wanted["notifications"]
        assert (
            second["method"] == "notifications/resources/updated" and second["params"]["uri"] == "note://one"
        )
        house.hub.news.changed(frozenset({"tools", "prompts"}))
        assert guest.methods()[2:] == [TOOLS]
        assert all(each["params"]["_meta"][SUBSCRIPTION_KEY] == "mine" for each in guest.heard)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert house.hub.subscriptions._open == []
        await soon(lambda: {"resources/unsubscribe": "note://one"} in house.log())

    run(house, work)


def test_the_lists_of_a_connection_that_came_while_another_was_read_are_read_too(house, monkeypatch):
    """The first reading ends with its connection; the one that took its place is not forgotten."""
    monkeypatch.setattr(news_module, "_PAUSE", 0.01)

    async def work():
        upstream = house.hub.fleet.ready()[0]
        held, seen = asyncio.Event(), []
        tools = house.hub.inventory.tools

        async def slowly(which):
            seen.append(which)
            if len(seen) == 1:
                await held.wait()
            return await tools(which)

        house.hub.inventory.tools = slowly
        old = type(upstream)("srv", lambda hear, over: _Silent(), house.hub.news)
        house.hub.news.refresh(old)
        house.hub.news.refresh(upstream)
        old._over("gone")
        held.set()
        await soon(lambda: upstream in seen)

    run(house, work)


class _Silent:
    pid, tail, ended, fault = None, (), "", None

    def send(self, message):
        """Nobody hears it."""


def test_a_private_connections_lists_are_not_what_everybody_is_offered(house):
    async def work():
        guest = await house.guest(answers={"elicitation/create": {"action": "decline"}})
        await guest.call("srv__elicit")
        assert told(await guest.call("srv__echo")) == "said {}"
        before = house.hub.catalogue.tools()
        await guest.call("srv__evolve")
        assert house.hub.catalogue.tools() is before
        assert (await guest.call("srv__echo"))["isError"], "at its own connection echo is another tool now"

    run(house, work)


# -- logs -------------------------------------------------------------------------------------------------


def test_a_log_line_goes_to_the_client_whose_call_it_can_be_about(house):
    async def work():
        one, two = await house.guest(), await house.guest(agent="two")
        await two.call("srv__echo")
        await one.call("srv__log", {"level": "warning"})
        assert one.methods() == ["notifications/message"] and two.methods() == []

    run(house, work)


def test_a_log_line_that_could_be_anothers_reaches_nobody(house):
    async def work():
        one, two = await house.guest(), await house.guest(agent="two")
        waiting = asyncio.ensure_future(two.raw("tools/call", {"name": "srv__slow"}))
        await soon(lambda: house.ran("slow"))
        await one.call("srv__log")
        assert one.methods() == [] and two.methods() == []
        two.cancel(two.last)
        await waiting
        # Between calls nobody can tell either, as both have used the connection.
        upstream = house.hub.fleet.ready()[0]
        house.hub.news.heard(upstream, {"method": "notifications/message", "params": {"level": "error"}})
        assert one.methods() == [] and two.methods() == []

    run(house, work)


def test_who_is_alone_now_hears_nothing_that_may_be_about_who_left(house):
    async def work():
        one, two = await house.guest(), await house.guest(agent="two")
        await two.call("srv__echo")
        two.leave()
        await one.call("srv__echo")
        upstream = house.hub.fleet.ready()[0]
        assert two.client.id not in upstream.users
        house.hub.news.heard(upstream, {"method": "notifications/message", "params": {"level": "error"}})
        assert one.methods() == []

    run(house, work)


def test_each_client_hears_from_the_level_it_set(house):
    async def work():
        guest = await house.guest()
        await guest.ask("logging/setLevel", {"level": "warning"})
        assert {"level": "warning"} in house.log()
        for level in ("info", "warning", "critical", "odd", 7):
            await guest.call("srv__log", {"level": level})
        heard = [each["params"]["level"] for each in guest.heard]
        assert heard == ["warning", "critical", "odd", 7]
        other = await house.guest(agent="two")
        await other.ask("logging/setLevel", {"level": "debug"})
        assert house.log()[-1] == {"level": "debug"}
        await guest.ask("logging/setLevel", {"level": "error"})
        assert house.log()[-1] == {"level": "debug"}, "the most curious one decides what is sent"
        assert (await guest.error("logging/setLevel", {"level": "loud"}))["code"] == -32602
        # A server that starts again is told again.
        await house.hub.fleet.keeper("srv").restart()
        await soon(lambda: house.log().count({"level": "debug"}) == 3)

    run(house, work)


def test_a_stateless_request_hears_logs_only_where_it_says_so(house):
    async def work():
        guest = house.passing()
        await guest.call("srv__log")
        await guest.call("srv__log", _meta={LEVEL_KEY: "no such level"})
        assert guest.heard == []
        await guest.call("srv__log", _meta={LEVEL_KEY: "error"})
        assert guest.heard == []
        await guest.call("srv__log", _meta={LEVEL_KEY: "debug"})
        assert guest.methods() == ["notifications/message"]

    run(house, work)


# -- resources that change --------------------------------------------------------------------------------


def test_only_who_subscribed_hears_of_an_update(house):
    async def work():
        one, two = await house.guest(), await house.guest(agent="two")
        await one.ask("resources/subscribe", {"uri": "note://one"})
        await soon(lambda: one.heard)
        assert one.heard[0]["params"] == {"uri": "note://one"} and two.heard == []
        upstream = house.hub.fleet.ready()[0]
        for odd in ({}, {"uri": 7}, {"uri": "note://two"}):
            house.hub.news.heard(upstream, {"method": "notifications/resources/updated", "params": odd})
        assert len(one.heard) == 1

    run(house, work)


@pytest.mark.invariant("what one client's own connection says, no other client hears")
def test_an_update_from_one_clients_own_connection_is_for_it_alone(house):
    async def main():
        house.server(share="client")
        async with house.opened():
            one, two = await house.guest(), await house.guest(agent="two")
            for guest in (one, two):
                await guest.ask("resources/subscribe", {"uri": "note://one"})
            await soon(lambda: one.heard and two.heard)
            assert len(one.heard) == len(two.heard) == 1

    asyncio.run(main())


def test_roots_that_change_are_told_to_the_clients_own_connections(house):
    async def work():
        guest = await house.guest(answers={"elicitation/create": {"action": "decline"}})
        await guest.call("srv__elicit")
        guest.hear({"method": "notifications/roots/list_changed"})
        await guest.call("srv__env")
        guest.hear({"method": "notifications/roots/list_changed"})
        await soon(lambda: {"roots_changed": True} in house.log())
        assert house.log().count({"roots_changed": True}) == 1

    run(house, work)


def test_a_list_that_cannot_be_read_is_said_and_calls_do_not_trust_it(house):
    async def work():
        upstream = house.hub.fleet.ready()[0]
        upstream.capabilities = {"tools": {}, "prompts": {}}
        request = upstream.request

        async def broken(method, *args, **more):
            if method == "tools/list":
                raise TimeoutError("no answer")
            return await request(method, *args, **more)

        upstream.request = broken
        house.hub.news.heard(upstream, {"method": TOOLS})
        await house.settled()
        assert any("could not be read" in line for line in house.said)
        result = await (await house.guest()).call("srv__echo")
        assert result["isError"] and "cannot be read" in told(result) and house.ran("echo") == []

    run(house, work)


# -- anything ----------------------------------------------------------------------------------------------

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=5,
)
METHODS = st.sampled_from(
    [
        "notifications/tools/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
    ]
    + ["notifications/message", "notifications/cancelled", "notifications/progress", "notifications/x"]
    + ["elicitation/create", "sampling/createMessage", "roots/list", "ping", "tools/call", "x"]
)
KEYS = st.sampled_from(
    ["uri", "level", "requestId", "progressToken", "message", "mode", "requestedSchema", "_meta"]
)
MESSAGES = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0")},
    optional={
        "id": st.integers(0, 5) | st.text(max_size=2) | VALUES,
        "method": METHODS | VALUES,
        "params": st.dictionaries(KEYS, st.just("note://one") | st.just("form") | VALUES, max_size=3)
        | VALUES,
        "result": VALUES,
        "error": VALUES,
    },
)


def test_whatever_a_server_says_breaks_nothing_and_nobody_is_asked_in_our_name(house, monkeypatch):
    monkeypatch.setattr(news_module, "_PAUSE", 0.0)
    house.server()
    problems = []

    async def everything(messages):
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: problems.append(context))
        guest = await house.guest(capabilities={"elicitation": {}, "sampling": {}, "roots": {}}, answers={})
        (upstream,) = house.hub.fleet.ready()
        upstream.users.clear()
        await house.hub.fleet.reach("srv", guest.client)
        await guest.ask("resources/subscribe", {"uri": "note://one"})
        for message in messages:
            try:
                upstream._hear(decode(encode(message)))
            except MalformedError:
                continue
            await asyncio.sleep(0)
        for message in (*guest.heard, *guest.asked):
            decode(encode(message))
        asked = [each["params"]["message"] for each in guest.asked if each["method"] == "elicitation/create"]
        assert all(text.startswith("The server `srv` asks (not Checkrein)") for text in asked)
        guest.leave()

    with asyncio.Runner() as runner:
        runner.run(house.open())

        @hypothesis_settings(max_examples=examples(100), suppress_health_check=list(HealthCheck))
        @given(st.lists(MESSAGES, min_size=1, max_size=6))
        def anything(messages):
            runner.run(everything(messages))

        try:
            anything()
            assert problems == []
        finally:
            runner.run(house.close())


@pytest.mark.invariant("a server that changes long lists all the time takes a small part of everybody's")
def test_a_server_that_changes_long_lists_all_the_time_keeps_nobody_waiting(house, monkeypatch):
    learned, busy = [], 0.06

    async def work():
        loop = asyncio.get_running_loop()
        catalogue, learn = house.hub.catalogue, house.hub.catalogue.learn

        def slowly(server, **lists):
            until = time.thread_time() + busy
            while time.thread_time() < until:
                pass
            learned.append(loop.time())
            return learn(server, **lists)

        monkeypatch.setattr(catalogue, "learn", slowly)
        (upstream,) = house.hub.fleet.ready()
        changed = {"jsonrpc": "2.0", "method": TOOLS}
        while len(learned) < 3:
            house.hub.news.heard(upstream, changed)
            await pass_seconds(busy)
            await house.hub.news.listed()
        # Two rests, each many times as long as a look.
        assert all(after - before > 15 * busy for before, after in pairwise(learned))

    run_on_moved_loop(with_server(house, work))
