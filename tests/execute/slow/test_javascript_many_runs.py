"""Many JavaScript scripts one after another leave nothing behind."""

import os

from checkrein.execute.sandbox import Ended
from javascript_ground import run_in, with_engine


def test_many_runs_leave_nothing_behind():
    async def use(engine):
        async def some(count):
            for _ in range(count):
                assert await run_in(engine, "await codemode.fs__read({a: 'x'.repeat(1000)}); 1") == Ended(1)

        await some(30)
        before = resident(os.getpid()), resident(engine.nursery.pid)
        await some(150)
        return before, (resident(os.getpid()), resident(engine.nursery.pid))

    before, after = with_engine(use)
    assert all(now - then < 8 << 20 for then, now in zip(before, after, strict=True))


def resident(pid):
    with open(f"/proc/{pid}/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
