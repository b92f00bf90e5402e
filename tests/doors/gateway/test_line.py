import asyncio

import pytest

from checkrein.doors.gateway import line as line_module
from checkrein.doors.gateway.line import FAILED, READY, STARTING, STOPPED, WAITING, Line, status_of
from checkrein.doors.gateway.messages import HANDSHAKE, STATELESS
from checkrein.doors.gateway.pipes import Gone, PipeError, pipe_for
from checkrein.doors.gateway.upstream import Upstream, WrongEra
from checkrein.errors import ConfigError
from doors.gateway.back import Ear, spec_of
from doors.gateway.moved_loop import pass_seconds
from doors.gateway.moved_loop import run as run_on_moved_loop
from patience import PATIENCE, soon


class Owner(Ear):
    """Who has a line: opens real connections, or fails as told."""

    def __init__(self, spec, *, wanted=True, era=HANDSHAKE):
        super().__init__()
        self.spec, self.wanted, self.errors, self.opened, self.said = spec, wanted, [], 0, []
        self.line = Line("good", era, {}, open=self.open, wanted=lambda: self.wanted, say=self.said.append)

    async def open(self, line):
        self.opened += 1
        if self.errors:
            raise self.errors.pop(0)
        made = Upstream("good", lambda hear, over: pipe_for(self.spec, hear, over), self)
        line.opening = made
        await made.start(era=line.era, capabilities={}, info={"name": "t"}, seconds=PATIENCE)
        return made

    def ended(self, upstream, why):
        super().ended(upstream, why)
        self.line.lost(upstream, why)


@pytest.fixture
def run(tmp_path):
    def run(use, **more):
        async def main():
            owner = Owner(spec_of(tmp_path), **more)
            try:
                await use(owner, owner.line)
            finally:
                await owner.line.stop()
            assert owner.line.state == STOPPED and owner.line.ready is None
            assert len(asyncio.all_tasks()) == 1

        run_on_moved_loop(main())

    return run


def test_it_is_opened_once_for_all_who_wait(run):
    async def use(owner, line):
        assert line.state == STOPPED and line.ready is None
        waiting = [asyncio.create_task(line.reach(PATIENCE)) for _ in range(5)]
        await soon(lambda: line.state == STARTING)
        assert len(set(await asyncio.gather(*waiting))) == 1 == owner.opened
        assert line.state == READY and await line.reach(PATIENCE) is line.ready

    run(use)


def test_pauses_double_up_to_a_minute_and_begin_again_after_a_healthy_one(run):
    async def use(owner, line):
        owner.errors = [PipeError(f"No {number}.") for number in range(9)]
        with pytest.raises(PipeError, match=r"No 0\."):
            await line.reach(PATIENCE)
        assert line.state == WAITING and line.next_try is not None
        for _ in range(9):
            await pass_seconds(line_module.LONGEST_PAUSE)
        await soon(lambda: line.ready)
        pauses = [said.split(" in ")[1].removesuffix(" s.") for said in owner.said]
        assert pauses == ["0.5", "1", "2", "4", "8", "16", "32", "60", "60"] and line.next_try is None
        await pass_seconds(line_module.HEALTHY_SECONDS)
        with pytest.raises(Gone):
            await line.ready.request("crash", {}, seconds=PATIENCE)
        assert owner.said[-1].endswith("in 0.5 s.") and line.restarts == 1
        assert line.tail == ("I am dying",)
        await pass_seconds(line_module.FIRST_PAUSE)
        await soon(lambda: line.ready)

    run(use)


@pytest.mark.parametrize(
    "error", [PipeError("Never.", lasting=True), ConfigError("env", None, "is not set", "Set it.")]
)
def test_what_lasts_is_tried_again_only_when_somebody_asks(run, error):
    async def use(owner, line):
        owner.errors = [error]
        with pytest.raises(type(error)):
            await line.reach(PATIENCE)
        await pass_seconds(2 * line_module.LONGEST_PAUSE)
        assert line.state == FAILED and owner.opened == 1 and line.error is error
        assert (await line.reach(PATIENCE)).ready and line.error is None

    run(use)


def test_nobody_waits_through_a_long_pause(run, monkeypatch):
    monkeypatch.setattr(line_module, "FIRST_PAUSE", 100 * PATIENCE)

    async def use(owner, line):
        owner.errors = [PipeError("Broken.")]
        for _ in range(3):
            with pytest.raises(PipeError, match="Broken"):
                await line.reach(PATIENCE)
        assert owner.opened == 1 and line.state == WAITING

    run(use)


def test_it_is_not_opened_again_when_nobody_wants_it_any_more(run):
    async def use(owner, line):
        owner.errors = [PipeError("Broken.")]
        with pytest.raises(PipeError):
            await line.reach(PATIENCE)
        assert line.state == WAITING
        owner.wanted = False
        await pass_seconds(line_module.FIRST_PAUSE)
        await soon(lambda: line.state == FAILED)
        assert owner.opened == 1

    run(use)


def test_an_era_that_is_not_spoken_is_no_failure_to_repeat(run):
    async def use(owner, line):
        owner.errors = [WrongEra("No.", sure=True)]
        with pytest.raises(WrongEra):
            await line.reach(PATIENCE)
        await pass_seconds(2 * line_module.LONGEST_PAUSE)
        assert owner.opened == 1 and line.error is None

    run(use)


def test_an_error_nobody_thought_of_is_a_failure_like_others(run):
    async def use(owner, line):
        owner.errors = [KeyError("oops")]
        with pytest.raises(KeyError):
            await line.reach(PATIENCE)
        await pass_seconds(line_module.FIRST_PAUSE)
        await soon(lambda: line.ready)
        assert "KeyError" in owner.said[0]

    run(use)


def test_waiting_has_its_end(run):
    async def use(owner, line):
        async def never(_line):
            await asyncio.Event().wait()

        line._open = never
        with pytest.raises(PipeError, match="still being started"):
            await line.reach(0.05)
        assert line.state == STARTING

    run(use)


def test_only_a_quiet_idle_handshake_connection_is_asked_whether_it_lives(run, monkeypatch):
    async def use(owner, line):
        later = asyncio.get_running_loop().time() + 61
        assert not line.is_quiet(later)
        upstream = await line.reach(PATIENCE)
        assert line.is_quiet(later) is (line.era == HANDSHAKE)
        assert not line.is_quiet(later - 2)
        busy = asyncio.create_task(upstream.request("silent", {}, seconds=None))
        await soon(lambda: upstream.busy)
        assert not line.is_quiet(later + 100)
        busy.cancel()
        await line.check()
        assert upstream.ready

    run(use)
    run(use, era=STATELESS)


def test_the_status_is_that_of_the_best_line(run):
    assert status_of("x", [])["state"] == STOPPED

    async def use(owner, line):
        await line.reach(PATIENCE)
        other = Line("good", HANDSHAKE, {}, open=owner.open, wanted=lambda: False, say=owner.said.append)
        other.restarts = 3
        found = status_of("good", [other, line])
        assert (found["state"], found["connections"], found["restarts"]) == (READY, 1, 3)
        assert found["pid"] == line.ready.pid and set(found) == set(status_of("x", []))

    run(use)
