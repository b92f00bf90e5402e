"""A thousand Python scripts one after another leave nothing behind."""

from scripts import run_in, with_engine, workers


def test_a_thousand_runs_do_not_grow():
    def resident():
        with open("/proc/self/statm") as statm:
            return int(statm.read().split()[1]) * 4096 + sum(workers().values())

    async def use(engine):
        source = "x = await fs__read(text='x' * 10000)\nprint(len(x['text']))\nlen(x['text'])"
        for _ in range(50):
            await run_in(engine, source)
        before = resident()
        for _ in range(1000):
            assert (await run_in(engine, source)).value == 10000
        return resident() - before

    assert with_engine(use) < 50 << 20
