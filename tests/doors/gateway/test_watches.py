"""Resources that are watched: once at each server, for as long as anybody wants it."""

import asyncio

from doors.gateway.house import until


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
        await asyncio.sleep(0.05)
        assert len(sent(house)) == 1
        one.leave()
        await until(lambda: sent(house)[1:] == [{"resources/unsubscribe": "note://one"}])
        assert house.hub.watches._holders == {}

    run(house, work)


def test_a_server_that_starts_again_is_told_again(house):
    async def work():
        guest = await house.guest()
        await guest.ask("resources/subscribe", {"uri": "note://one"})
        await house.hub.fleet.keeper("srv").restart()
        await until(lambda: sent(house) == [{"resources/subscribe": "note://one"}] * 2)

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
        await until(lambda: len(sent(house)) == 1)
        assert "resourceSubscriptions" not in sent(house)[0]["listen"]
        await guest.ask("resources/subscribe", {"uri": "note://one"})
        await until(lambda: len(sent(house)) == 2)
        assert sent(house)[1]["listen"]["resourceSubscriptions"] == ["note://one"]
        await until(lambda: guest.methods() == ["notifications/resources/updated"])
        guest.leave()
        await until(lambda: len(sent(house)) == 3)
        assert "resourceSubscriptions" not in sent(house)[2]["listen"]

    run(house, work, env={"ERAS": "stateless"})
