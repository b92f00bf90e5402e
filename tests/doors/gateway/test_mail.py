"""Verdicts from another thread reach who waits for them, each its own, with few wake-ups."""

import asyncio
import threading

from checkrein.doors.gateway.mail import Mail, Told
from checkrein.judged import Decided
from checkrein.policy import refuse

VERDICT = refuse("floor", "No.", "Ask.")


def test_a_verdict_that_is_there_at_once_needs_no_waiting():
    async def go():
        told = Told(Mail())
        told(Decided("e1", VERDICT))
        assert told.decided.entry == "e1"
        assert (await told.coming()).entry == "e1"

    asyncio.run(go())


def test_each_waits_for_its_own_however_many_come_from_elsewhere():
    async def go():
        mail = Mail()
        waiting = [Told(mail) for _ in range(500)]
        coming = [each.coming() for each in waiting]

        def tell():
            for number, each in enumerate(waiting):
                each(Decided(f"e{number}", VERDICT))

        thread = threading.Thread(target=tell)
        thread.start()
        found = await asyncio.gather(*coming)
        thread.join()
        assert [each.entry for each in found] == [f"e{number}" for number in range(500)]

    asyncio.run(go())


def test_a_verdict_between_the_look_and_the_waiting_is_not_lost():
    async def go():
        for _ in range(200):
            told = Told(Mail())
            thread = threading.Thread(target=told, args=(Decided("e1", VERDICT),))
            thread.start()
            async with asyncio.timeout(5):
                assert (await told.coming()).entry == "e1"
            thread.join()

    asyncio.run(go())


def test_who_stopped_waiting_disturbs_nobody():
    async def go():
        mail = Mail()
        first, second = Told(mail), Told(mail)
        gone, coming = first.coming(), second.coming()
        gone.cancel()
        first(Decided("e1", VERDICT))
        second(Decided("e2", VERDICT))
        assert (await coming).entry == "e2"

    asyncio.run(go())
