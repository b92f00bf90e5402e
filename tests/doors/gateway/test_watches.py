"""Resources that are watched: once at each server, for as long as anybody wants it."""

import asyncio
import os
import signal

from patience import soon


def run(house, work, **more):
    async def main():
        house.server(**more)
        async with house.opened():
            await work()

    asyncio.run(main())


def sent(house):
    return [
        line for line in house.log() if set(line) & {"resources/subscribe", "resources/unsubscribe", "listen"}
    ]


def test_a_resource_is_subscribed_to_once_and_let_go_when_the_last_one_leaves(house):
    async def work():
        one, two = await house.guest(), await house.guest(agent="two")
        for guest in (one, one, two):
            await guest.ask("resources/subscribe", {"uri": "note://one"})
        assert sent(house) == [{"resources/subscribe": "note://one"}]
        await two.ask("resources/unsubscribe", {"uri": "note://one"})
        # Who is not subscribed takes nothing from who is.
        await two.ask("resources/unsubscribe", {"uri": "note://one"})
        # The server has read whatever was sent to it before this.
        await one.ask("resources/read", {"uri": "note://one"})
        assert len(sent(house)) == 1
        one.leave()
        await soon(lambda: sent(house)[1:] == [{"resources/unsubscribe": "note://one"}])
        assert house.hub.watches._holders == {}

    run(house, work)


def test_a_server_that_starts_again_is_told_again(house):
    async def work():
        guest = await house.guest()
        await guest.ask("resources/subscribe", {"uri": "note://one"})
        await house.hub.fleet.keeper("srv").restart()
        await soon(lambda: sent(house) == [{"resources/subscribe": "note://one"}] * 2)

    run(house, work)


def test_a_subscription_the_server_refuses_is_none(house):
    async def work():
        guest = await house.guest()
        upstream = house.hub.fleet.ready()[0]
        request = upstream.request

        async def refuses(method, *args, **more):
            if method == "resources/subscribe":
                method = "no/such"
            return await request(method, *args, **more)

        upstream.request = refuses
        await guest.error("resources/subscribe", {"uri": "note://one"})
        assert house.hub.watches._holders == {} and guest.client.subscribed == set()

    run(house, work)


def test_a_stateless_server_gets_one_stream_for_everything(house):
    async def work():
        guest = await house.guest()
        await soon(lambda: len(sent(house)) == 1)
        assert "resourceSubscriptions" not in sent(house)[0]["listen"]
        await guest.ask("resources/subscribe", {"uri": "note://one"})
        await soon(lambda: len(sent(house)) == 2)
        assert sent(house)[1]["listen"]["resourceSubscriptions"] == ["note://one"]
        await soon(lambda: guest.methods() == ["notifications/resources/updated"])
        guest.leave()
        await soon(lambda: len(sent(house)) == 3)
        assert "resourceSubscriptions" not in sent(house)[2]["listen"]

    run(house, work, env={"ERAS": "stateless"})


# -- connections of single clients -------------------------------------------------------------------------

SUBSCRIBED, NO_MORE = {"resources/subscribe": "note://one"}, {"resources/unsubscribe": "note://one"}


def updates(guest):
    return guest.methods().count("notifications/resources/updated")


def own(house, guest):
    return house.hub.fleet.own("srv", guest.client.id)


def test_each_client_with_a_connection_of_its_own_is_told_through_that_one(house):
    async def work():
        one, two = await house.guest(), await house.guest(agent="two")
        for guest in (one, two):
            await guest.ask("resources/subscribe", {"uri": "note://one"})
        await soon(lambda: sent(house) == [SUBSCRIBED] * 2)
        await soon(lambda: one.methods() == two.methods() == ["notifications/resources/updated"])
        await one.ask("resources/unsubscribe", {"uri": "note://one"})
        await soon(lambda: sent(house)[2:] == [NO_MORE])
        assert own(house, one).ready and not house.hub.watches.holds("srv", one.client.id)
        assert house.hub.watches.holds("srv", two.client.id)

    run(house, work, share="client")


def test_a_connection_of_one_client_that_breaks_is_opened_again_for_what_it_waits_for(house):
    async def work():
        one, two = await house.guest(), await house.guest(agent="two")
        await one.ask("resources/subscribe", {"uri": "note://one"})
        await two.ask("resources/read", {"uri": "note://one"})
        await soon(lambda: updates(one) == 1)
        broken = [own(house, one), own(house, two)]
        for each in broken:
            os.kill(each.pid, signal.SIGKILL)
        await soon(lambda: sent(house) == [SUBSCRIBED] * 2)
        await soon(lambda: one.methods() == ["notifications/resources/updated"] * 2)
        assert own(house, one) not in broken
        # Who waits for nothing is connected again when it asks for something.
        assert own(house, two) is None and two.methods() == []

    run(house, work, share="client")


def test_a_server_that_starts_again_is_told_again_by_everybody(house):
    async def work():
        one, two = await house.guest(), await house.guest(agent="two")
        for guest in (one, two):
            await guest.ask("resources/subscribe", {"uri": "note://one"})
        await soon(lambda: updates(one) == updates(two) == 1)
        await house.hub.fleet.keeper("srv").restart()
        await soon(lambda: sent(house) == [SUBSCRIBED] * 4)
        await soon(lambda: updates(one) == updates(two) == 2)
        one.leave()
        await soon(lambda: not house.hub.watches.holds("srv", one.client.id))
        await house.hub.fleet.keeper("srv").restart()
        await soon(lambda: updates(two) == 3)
        assert sent(house).count(SUBSCRIBED) == 5 and updates(one) == 2
        assert not [line for line in house.said if "took no" in line]

    run(house, work, share="client")


def test_one_that_shares_is_told_although_another_was_told_before_through_its_own(house, add):
    async def work():
        add("allow", "*")
        one = await house.guest(answers={"elicitation/create": {"action": "decline"}})
        await one.call("srv__elicit")
        await one.ask("resources/subscribe", {"uri": "note://one"})
        two = await house.guest(agent="two", capabilities={})
        await two.ask("resources/subscribe", {"uri": "note://one"})
        assert own(house, one) is not None and own(house, two) is None
        await soon(lambda: two.methods() == ["notifications/resources/updated"])
        assert sent(house) == [SUBSCRIBED] * 2

    run(house, work)


def test_what_was_watched_apart_is_watched_together_once_the_file_says_so(house):
    async def work():
        one, two = await house.guest(), await house.guest(agent="two")
        for guest in (one, two):
            await guest.ask("resources/subscribe", {"uri": "note://one"})
        await soon(lambda: updates(one) == updates(two) == 1)
        house.server(share="shared")
        house.hub.fleet.look()
        await soon(lambda: len(sent(house)) >= 3)
        await soon(lambda: updates(one) == updates(two) == 2)
        assert sent(house) == [SUBSCRIBED] * 3
        assert set(house.hub.watches._holders) == {("srv", "note://one", "")}
        one.leave()
        two.leave()
        await soon(lambda: sent(house)[3:] == [NO_MORE])

    run(house, work, share="client")
