import asyncio

import pytest

from checkrein.execute.python_ahead import Ahead


async def wrong():
    raise RuntimeError("the worker is gone")


def test_a_turn_is_taken_while_something_else_is_done():
    taken = []

    async def turn():
        taken.append(1)

    async def go():
        ahead = Ahead()
        ahead.begin(turn())
        assert ahead.task is not None and not taken
        await ahead.checked()
        assert ahead.task is None and taken

    asyncio.run(go())


def test_what_went_wrong_is_said_to_who_goes_on_and_to_nobody_before():
    async def go():
        ahead = Ahead()
        ahead.begin(wrong())
        await ahead.landed()
        with pytest.raises(RuntimeError, match="gone"):
            await ahead.checked()

    asyncio.run(go())


def test_one_that_is_given_up_is_over():
    ended = []

    async def turn():
        try:
            await asyncio.sleep(60)
        finally:
            ended.append(1)

    async def go():
        ahead = Ahead()
        await ahead.give_up()
        ahead.begin(turn())
        await ahead.give_up()
        assert ahead.task is None and ended
        await ahead.checked()

    asyncio.run(go())
