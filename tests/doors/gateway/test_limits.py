"""How long requests may take: told once, in order, also where one is put off or ends in the same moment."""

import asyncio

import pytest

from checkrein.doors.gateway.limits import MOST_ROWS, Limits
from own_time import run_in_own_time as run


def begun(limits, told, seconds, name):
    limit = limits.begin(seconds)
    limit.watch(lambda: told.append(name))
    return limit


def timers(loop):
    return sum(not each.cancelled() for each in loop._scheduled)


def test_a_limit_is_said_once_and_can_be_put_off_and_stand_still():
    async def go():
        loop, told, limits = asyncio.get_running_loop(), [], Limits()
        limit = begun(limits, told, 0.02, "limit")
        limit.reschedule(None)
        await asyncio.sleep(0.05)
        assert told == [] and limit.when() is None and not limit.expired()
        limit.reschedule(loop.time() + 0.02)
        await asyncio.sleep(0.1)
        assert told == ["limit"] and limit.expired()
        begun(limits, told, 0.01, "late").end()
        await asyncio.sleep(0.05)
        assert told == ["limit"]

    run(go)


def test_those_of_one_length_are_over_in_their_order_and_those_that_ended_are_not_told():
    async def go():
        told, limits = [], Limits()
        first = begun(limits, told, 0.02, "first")
        for name in "abc":
            begun(limits, told, 0.02, name)
        first.end()
        put_off = begun(limits, told, 0.02, "put off")
        put_off.reschedule(asyncio.get_running_loop().time() + 0.15)
        await asyncio.sleep(0.06)
        later = begun(limits, told, 0.02, "later")
        await asyncio.sleep(0.05)
        assert told == ["a", "b", "c", "later"] and later.expired() and not put_off.expired()
        await asyncio.sleep(0.1)
        assert told[-1] == "put off"

    run(go)


def test_the_first_one_ending_does_not_keep_the_others_from_being_told():
    async def go():
        told, limits = [], Limits()
        first = begun(limits, told, 0.03, "first")
        await asyncio.sleep(0.01)
        begun(limits, told, 0.03, "second")
        first.end()
        await asyncio.sleep(0.1)
        assert told == ["second"]

    run(go)


def test_one_that_fails_when_told_takes_no_other_along():
    async def go():
        heard, told, limits = [], [], Limits()
        asyncio.get_running_loop().set_exception_handler(lambda _, what: heard.append(what["exception"]))

        def wrong():
            raise ValueError("wrong")

        limits.begin(0.01).watch(wrong)
        begun(limits, told, 0.01, "next")
        await asyncio.sleep(0.05)
        assert told == ["next"] and isinstance(heard[0], ValueError)

    run(go)


def test_one_that_ends_in_the_moment_it_is_over_is_not_told():
    async def go():
        told, limits = [], Limits()
        second = None

        def first():
            told.append("first")
            second.end()

        limits.begin(0.01).watch(first)
        second = begun(limits, told, 0.01, "second")
        await asyncio.sleep(0.05)
        assert told == ["first"]

    run(go)


@pytest.mark.parametrize("count", [1, 1_000])
def test_many_of_one_length_have_one_timer(count):
    async def go():
        loop, limits = asyncio.get_running_loop(), Limits()
        made = [begun(limits, [], 30.0, number) for number in range(count)]
        assert timers(loop) == 1
        for each in made:
            each.end()
        assert not limits._rows[30.0]._waiting

    run(go)


def test_lengths_without_end_are_not_remembered():
    async def go():
        told, limits = [], Limits()
        for number in range(10 * MOST_ROWS):
            begun(limits, told, 0.01 + number / 1e6, number)
        assert len(limits._rows) == MOST_ROWS
        await asyncio.sleep(0.1)
        assert sorted(told) == list(range(10 * MOST_ROWS))

    run(go)
