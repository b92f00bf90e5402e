"""Workers: taken, ended, replaced."""

import asyncio
import os
import signal

import pytest

from checkrein.execute import js_nursery
from checkrein.execute.js_nursery import LostError, Nursery, NurseryError
from javascript_ground import compiled, running
from patience import soon


def with_nursery(use, **options):
    async def main():
        nursery = Nursery(compiled(), **options)
        try:
            return await use(nursery)
        finally:
            await nursery.close()

    return asyncio.run(main())


@pytest.mark.invariant("every worker that was taken is killed and buried, whatever it does")
def test_every_worker_is_another_process_and_is_gone_when_ended():
    async def use(nursery):
        workers = [await nursery.take() for _ in range(3)]
        pids = {worker.pid for worker in workers}
        assert len(pids) == 3
        assert pids <= set(running(nursery.pid))
        for worker in workers:
            worker.end()
            worker.end()
            with pytest.raises(LostError):
                await worker.ask({"do": "dump"})
        await soon(lambda: not pids & set(running(nursery.pid)))
        # Buried, not only dead: nothing is left to be counted.
        await soon(lambda: not any(os.path.exists(f"/proc/{pid}") for pid in pids))

    with_nursery(use, spares=1)


def test_spares_of_a_process_that_ended_are_not_handed_out():
    async def use(nursery):
        taken = await nursery.take()
        await soon(lambda: len(nursery._spares) == 2)
        stale = list(nursery._spares)
        os.kill(nursery.pid, signal.SIGKILL)
        nursery._process.wait()
        # That the process is gone is found out before anything is heard of its workers.
        taken.end()
        assert nursery.pid is None and not any(each.lost for each in stale)
        worker = await nursery.take()
        assert worker not in stale
        worker.end()

    with_nursery(use)


def test_a_spare_that_died_is_not_handed_out():
    async def use(nursery):
        (await nursery.take()).end()
        await soon(lambda: len(nursery._spares) == 2)
        for spare in list(nursery._spares):
            os.kill(spare.pid, signal.SIGKILL)
        await soon(lambda: all(spare.lost for spare in nursery._spares))
        worker = await nursery.take()
        assert not worker.lost
        worker.end()

    with_nursery(use)


def test_closing_leaves_nothing():
    async def use(nursery):
        await nursery.take()
        return nursery.pid

    pid = with_nursery(use)
    assert not os.path.exists(f"/proc/{pid}")


def test_a_sandbox_that_does_not_start_is_said(monkeypatch):
    monkeypatch.setattr(js_nursery.sys, "executable", "/bin/false")

    async def use(nursery):
        with pytest.raises(NurseryError, match="does not start"):
            await nursery.take()

    with_nursery(use)
