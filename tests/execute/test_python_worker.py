"""A worker's process: the one we installed, bare, ended whatever it does, and never with two scripts."""

import asyncio
import os
import signal
import stat
import sys
import textwrap
from importlib import metadata
from pathlib import Path

import pytest

from checkrein.execute import python_worker
from checkrein.execute.python_wire import part
from checkrein.execute.python_words import Completed, Done, Refused, configure, feed
from checkrein.execute.python_worker import LostError, NoInterpreterError, program, started
from patience import PATIENCE, soon, until
from scripts import freeze, state, workers

FRESH = {"seconds": PATIENCE, "memory": 64 << 20, "checked": False, "stubs": ""}


def with_worker(use, path=None):
    async def go():
        worker = await started(path or program())
        try:
            return await asyncio.wait_for(use(worker), PATIENCE)
        finally:
            await worker.bury()

    return asyncio.run(go())


async def ready(worker):
    assert await worker.ask(configure(**FRESH)) == Done()


def fake(folder, text):
    """A worker that says what it likes."""
    path = folder / "fake"
    head = f"#!{sys.executable}\nimport os, sys, time\n"
    path.write_text(head + textwrap.dedent(text), encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@pytest.mark.invariant("it is not looked for anywhere else")
def test_the_interpreter_is_the_one_its_package_installed(monkeypatch, tmp_path):
    """What anybody puts on a path or in a variable is not run."""
    real = program()
    planted = fake(tmp_path, "")
    (tmp_path / "monty").symlink_to(planted)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setenv("MONTY_BIN", str(planted))
    assert program() == real and real.name == "monty"


def test_without_its_package_it_says_what_to_install(monkeypatch):
    def missing(name):
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(python_worker.metadata, "distribution", missing)
    with pytest.raises(NoInterpreterError) as caught:
        program()
    assert "checkrein[eval]" in caught.value.remedy


def test_one_that_cannot_be_started_says_so(tmp_path):
    with pytest.raises(NoInterpreterError, match="cannot run here"):
        with_worker(None, tmp_path / "nothing")


def test_a_worker_knows_nothing_of_where_it_runs(monkeypatch):
    monkeypatch.setenv("SECRET_TOKEN", "abc")

    async def use(worker):
        await ready(worker)
        about = Path(f"/proc/{worker.pid}")
        files = {os.readlink(each).partition(":")[0] for each in (about / "fd").iterdir()}
        return (about / "environ").read_bytes(), os.readlink(about / "cwd"), files

    environment, folder, files = with_worker(use)
    assert environment == b"" and folder == "/"
    assert files <= {"pipe", "/dev/null", "anon_inode"}


def test_turns_one_after_the_other_and_what_was_printed_in_them():
    async def use(worker):
        heard = []
        worker.hear = heard.append
        await ready(worker)
        assert await worker.ask(feed("x = 2\nprint('a')\nprint('é')", checked=False)) == Completed(None)
        assert await worker.ask(feed("x + 1", checked=False)) == Completed(3)
        return "".join(heard)

    assert with_worker(use) == "a\né\n"


def test_nothing_is_left_after_it_forgot_and_it_serves_on():
    async def use(worker):
        await ready(worker)
        await worker.ask(feed("x = 2", checked=False))
        assert await worker.forget()
        await ready(worker)
        return await worker.ask(feed("x", checked=False))

    assert type(with_worker(use)).__name__ == "Lookup"


def test_a_worker_in_a_turn_forgets_nothing_and_is_asked_nothing():
    async def use(worker):
        await ready(worker)
        turn = asyncio.ensure_future(worker.ask(feed("while True: pass", checked=False)))
        await soon(lambda: worker.busy)
        assert not await worker.forget()
        with pytest.raises(LostError):
            await worker.ask(feed("1", checked=False))
        worker.end()
        with pytest.raises(LostError):
            await turn

    with_worker(use)


@pytest.mark.invariant("every worker that was started is ended and buried, whatever it does")
@pytest.mark.parametrize("way", ["given up", "killed"])
def test_a_turn_that_is_given_up_ends_with_its_worker(way):
    async def use(worker):
        await ready(worker)
        turn = asyncio.ensure_future(worker.ask(feed("while True: pass", checked=False)))
        await soon(lambda: worker.busy)
        if way == "killed":
            os.kill(worker.pid, signal.SIGKILL)
        else:
            turn.cancel()
        await asyncio.wait([turn])
        assert turn.cancelled() or isinstance(turn.exception(), LostError)
        assert worker.lost
        await worker.bury()
        assert state(worker.pid) == ""
        with pytest.raises(LostError):
            await worker.ask(feed("1", checked=False))

    with_worker(use)


@pytest.mark.parametrize(
    "says",
    [
        "b'\\xff' * 8",
        "b'\\x02\\0\\0\\0\\x0a\\xff'",
        "b'\\x01\\0\\0\\0\\x08'",
        "b'\\0\\0\\0\\0'",
        "b'\\x02\\0\\0\\0\\x10\\x01'",
        "b''",
    ],
)
def test_one_that_says_nothing_sensible_is_ended(tmp_path, says):
    path = fake(tmp_path, f"os.read(0, 1000)\nos.write(1, {says})\nif {says}:\n    time.sleep(600)")

    async def use(worker):
        with pytest.raises(LostError):
            await worker.ask(configure(**FRESH))
        assert worker.lost

    with_worker(use, path)


def test_one_that_speaks_unasked_is_ended(tmp_path):
    """INVARIANT: nothing a worker says ahead of a question is taken for the answer."""
    path = fake(tmp_path, "os.write(1, b'\\x02\\0\\0\\0\\x52\\0')\ntime.sleep(600)")

    async def use(worker):
        await soon(lambda: worker.lost)
        with pytest.raises(LostError):
            await worker.ask(configure(**FRESH))

    with_worker(use, path)


def test_a_worker_that_speaks_another_protocol_says_so(monkeypatch):
    monkeypatch.setattr("checkrein.execute.python_words._PROTOCOL", 4_000)

    async def use(worker):
        return await worker.ask(configure(**FRESH))

    refused = with_worker(use)
    assert isinstance(refused, Refused) and "protocol" in refused.message


def test_a_worker_that_hangs_while_it_forgets_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(python_worker, "_FORGETTING_SECONDS", 0.2)

    async def use(worker):
        await ready(worker)
        freeze(worker.pid)
        assert not await worker.forget()
        return worker.lost

    assert with_worker(use)


def test_one_that_comes_when_nobody_waits_for_it_is_gone():
    async def use():
        for _ in range(10):
            starting = asyncio.ensure_future(started(program()))
            await asyncio.sleep(0)
            starting.cancel()
            await asyncio.wait([starting])
        await soon(lambda: not workers(), failing=workers)

    asyncio.run(use())


@pytest.mark.invariant("until it is waited for, its number is nobody else's")
def test_one_that_was_ended_keeps_its_number_until_it_is_buried():
    async def use(worker):
        await ready(worker)
        worker.end()
        await soon(lambda: state(worker.pid) in ("Z", ""), failing="it still runs")
        assert state(worker.pid) == "Z"
        await worker.bury()
        assert state(worker.pid) == ""

    with_worker(use)


def test_a_message_of_any_size_gets_there():
    async def use(worker):
        await ready(worker)
        long = "x" * (8 << 20)
        return await worker.ask(feed(f"len('{long}')", checked=False))

    assert with_worker(use) == Completed(8 << 20)


def test_requests_are_of_the_schema_the_worker_knows():
    """A message it does not know is refused by the worker, and the session goes on."""

    async def use(worker):
        await ready(worker)
        refused = await worker.ask(part(4, part(2, part(5))))
        assert type(refused).__name__ == "Raised"
        return await worker.ask(feed("1", checked=False))

    assert with_worker(use) == Completed(1)


def test_one_that_is_gone_before_it_is_asked_is_heard_of_at_once():
    """However much of a question it was asked, and whatever of its end is seen by then."""

    async def nothing(_worker):
        pass

    async def dead(worker):
        # The loop does not turn meanwhile: it has not heard of it.
        until(lambda: state(worker.pid) == "Z")

    async def lost(worker):
        await soon(lambda: worker.lost)

    async def go():
        for size in (1, 1 << 10, 1 << 20):
            for seen in (nothing, dead, lost):
                worker = await started(program())
                await ready(worker)
                os.kill(worker.pid, signal.SIGKILL)
                await seen(worker)
                with pytest.raises(LostError):
                    await asyncio.wait_for(worker.ask(feed("#" * size, checked=False)), PATIENCE)
                await worker.bury()

    asyncio.run(go())
    assert workers() == {}
