"""What holds is looked up once for all calls of a moment, and no call that comes after a change misses it."""

import asyncio
import threading

import pytest

from doors.gateway.house import told


def opened(house, work):
    async def main():
        house.server()
        async with house.opened():
            await work(await house.guest())

    asyncio.run(main())


@pytest.mark.invariant("a change takes effect on the next call")
def test_a_change_that_was_made_before_a_call_came_holds_for_it(house, add):
    """However busy the moment is: calls before it were judged in the same turn of the loop."""

    async def work(guest):
        remove = add("allow", "echo")
        for number in range(20):
            before = [asyncio.ensure_future(guest.call("srv__echo", {"n": number})) for _ in range(4)]
            # They begin now, and find what holds in this moment.
            await asyncio.sleep(0)
            remove()
            remove = add("deny", "echo")
            # As a call comes in: with a task of its own, from the moment it was read.
            after = await asyncio.ensure_future(guest.call("srv__echo", {"after": number}))
            assert after["isError"] and told(after).startswith("Checkrein refused this call.")
            await asyncio.gather(*before)
            remove()
            remove = add("allow", "echo")
            assert not (await guest.call("srv__echo", {"again": number})).get("isError")
        ran = house.ran("echo")
        assert not [each for each in ran if "after" in each]
        assert len([each for each in ran if "again" in each]) == 20

    opened(house, work)


def test_a_change_made_by_another_thread_holds_for_whatever_comes_behind_it(house, add):
    async def work(guest):
        remove = add("allow", "echo")
        loop = asyncio.get_running_loop()
        for number in range(10):
            denied = loop.create_future()

            def change(number=number, denied=denied, remove=remove):
                remove()
                found = add("deny", "echo")
                loop.call_soon_threadsafe(denied.set_result, found)

            thread = threading.Thread(target=change)
            thread.start()
            while not denied.done():
                await guest.call("srv__echo", {"before": number})
            after = await guest.call("srv__echo", {"after": number})
            assert after["isError"]
            thread.join()
            denied.result()()
            remove = add("allow", "echo")
        assert not [each for each in house.ran("echo") if "after" in each]

    opened(house, work)


def test_policy_is_looked_up_once_for_a_moment_and_again_for_the_next(house, add, monkeypatch):
    async def work(guest):
        policies, looked_up = house.hub.pipeline.policies, []
        find = policies.of

        def of(project, door="", *more, **named):
            looked_up.append(1)
            return find(project, door, *more, **named)

        monkeypatch.setattr(policies, "of", of)

        async def cost(count):
            looked_up.clear()
            calls = [asyncio.ensure_future(guest.call("srv__echo", {"n": n})) for n in range(count)]
            await asyncio.gather(*calls)
            return len(looked_up)

        await cost(1)
        many, one = await cost(20), await cost(1)
        assert one > 0, "the next moment looks again"
        assert many < 20 * one, "calls of one moment share what was looked up"

    add("allow", "echo")
    opened(house, work)
