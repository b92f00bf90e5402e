import asyncio
import contextlib
import gc
import json
import os
import signal
import subprocess
import sys
import threading

import pytest
import uvloop

from checkrein.doors.gateway import leftovers, stdio_pipe
from checkrein.doors.gateway.messages import LARGEST
from checkrein.doors.gateway.pipes import Gone, PipeError
from checkrein.doors.gateway.stdio_pipe import StdioPipe, environment
from checkrein.settings.servers import ServerSpec
from checkrein.settings.sources import state_dir
from doors.gateway.back import GOOD, is_running, spec_of, write
from doors.gateway.moved_loop import pass_seconds
from doors.gateway.moved_loop import run as run_on_moved_loop
from patience import PATIENCE, soon, until

# Says who it is, then goes on as the test wants.
HELLO = """
import json, os, signal, subprocess, sys, time
def put(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n"); sys.stdout.flush()
"""
STUBBORN = (
    HELLO
    + """
signal.signal(signal.SIGTERM, signal.SIG_IGN)
source = "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"
child = subprocess.Popen([sys.executable, "-c", source], stdout=subprocess.PIPE)
child.stdout.readline()
put(method="pids", params={"pids": [os.getpid(), child.pid]})
"""
)
FOREVER = "\nwhile True: time.sleep(600)\n"


class Ends:
    """A pipe with what it heard and how it ended."""

    def __init__(self, spec):
        self.heard, self.ends = [], []
        self.pipe = StdioPipe(spec, self.heard.append, self.ends.append)

    def pids(self):
        return self.heard[0]["params"]["pids"]


def run(spec, use):
    async def main():
        ends = Ends(spec)
        await ends.pipe.open()
        try:
            await use(ends)
        finally:
            await ends.pipe.close()
        assert not is_running(ends.pipe.pid)
        assert not list((state_dir() / "gateway").iterdir())
        assert len(ends.ends) == 1
        return ends

    return run_on_moved_loop(main())


async def patience_ends():
    """The time is over in which a process may leave by itself, and then because it was told to."""
    for _ in range(2):
        await pass_seconds(stdio_pipe._TERM_SECONDS)


def test_messages_go_both_ways_whatever_their_size(tmp_path):
    large = {"text": "é\n" * 2_000_000, "unknown": [1, 2.5, None]}

    async def use(ends):
        for number in range(3):
            ends.pipe.send({"jsonrpc": "2.0", "id": number, "method": "echo", "params": large})
        await soon(lambda: len(ends.heard) == 3)
        assert not ends.ends and ends.pipe.ended == ""

    ends = run(spec_of(tmp_path), use)
    assert ends.heard == [{"jsonrpc": "2.0", "id": number, "result": large} for number in range(3)]
    assert ends.ends == ["closed"] == [ends.pipe.ended]


def test_a_server_is_given_only_what_it_needs_of_our_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("OUR_SECRET", "hunter2")
    monkeypatch.setenv("PASSED", "on")
    spec = spec_of(tmp_path, inherit=("PASSED", "NOT_SET"), env={"OWN": "x"})

    async def use(ends):
        ends.pipe.send({"jsonrpc": "2.0", "id": 1, "method": "env"})
        await soon(lambda: ends.heard)

    found = run(spec, use).heard[0]["result"]
    assert found.pop("cwd") == str(tmp_path)
    assert "OUR_SECRET" not in found and "NOT_SET" not in found
    assert (found["PASSED"], found["OWN"], found["HOME"]) == ("on", "x", str(tmp_path))
    assert set(found) - {"LC_CTYPE"} == set(environment(spec))


def test_what_a_server_was_told_wins_over_what_it_inherits(monkeypatch):
    monkeypatch.setenv("LANG", "C")
    assert (
        environment(ServerSpec(name="a", command="x", env={"LANG": "de_DE.UTF-8"}))["LANG"] == "de_DE.UTF-8"
    )


@pytest.mark.parametrize("ending", ["", "\\n"])
def test_a_message_that_is_too_long_ends_it(tmp_path, ending):
    source = HELLO + f'sys.stdout.write("x" * {LARGEST + 1} + "{ending}"); sys.stdout.flush()' + FOREVER

    async def use(ends):
        await soon(lambda: ends.ends)
        with pytest.raises(Gone, match="more than"):
            ends.pipe.send({"jsonrpc": "2.0", "method": "x"})

    assert "more than 16,777,216 bytes" in run(spec_of(tmp_path, source), use).ends[0]


def test_a_few_lines_that_are_no_messages_do_no_harm(tmp_path):
    source = HELLO + 'print("starting up ...\\n\\n  \\n[]\\n{}\\n" * 33); put(method="here")' + FOREVER

    async def use(ends):
        await soon(lambda: ends.heard)
        assert not ends.ends

    ends = run(spec_of(tmp_path, source), use)
    assert ends.heard == [{"jsonrpc": "2.0", "method": "here"}]
    assert ends.pipe.tail[-3].startswith("not a message") and "starting up ..." in ends.pipe.tail[-3]


def test_too_many_of_them_end_it(tmp_path):
    source = HELLO + 'print("nonsense\\n" * 100); put(method="here")' + FOREVER

    async def use(ends):
        await soon(lambda: ends.ends)

    ends = run(spec_of(tmp_path, source), use)
    assert ends.ends == ["it sent 100 lines that are no messages"] and ends.heard == []


def test_answers_that_cannot_be_read_do_not_end_it(tmp_path):
    line = '{"jsonrpc":"2.0","id":1,"result":{"x":%s}}' % ("1" * 5001)
    note = '{"jsonrpc":"2.0","method":"notifications/x","params":{"x":1e400}}'
    source = HELLO + f"print('{line}\\n{note}\\n' * 150); put(method='here')" + FOREVER

    async def use(ends):
        await soon(lambda: len(ends.heard) == 151)
        assert not ends.ends and "cannot be read" in ends.pipe.tail[-1]

    heard = run(spec_of(tmp_path, source), use).heard
    assert [each["id"] for each in heard[:150]] == [1] * 150
    assert "a number that JSON readers cannot hold" in heard[0]["error"]["message"]


def test_hostile_nesting_is_no_message(tmp_path):
    source = HELLO + 'print("[" * 1_000_000); put(method="here")' + FOREVER

    async def use(ends):
        await soon(lambda: ends.heard)

    run(spec_of(tmp_path, source), use)


def test_what_it_writes_beside_the_messages_is_kept_short_and_plain(tmp_path):
    source = (
        HELLO
        + """
for number in range(20_000):
    sys.stderr.write(f"line {number} " + "x" * 200 + "\\n")
sys.stderr.write("y" * 5_000_000 + "\\n\\x1b[31mred\\x07\\u202e \\tend\\nhalf a line")
sys.stderr.flush()
put(method="here")
"""
        + FOREVER
    )

    async def use(ends):
        await soon(lambda: ends.heard and ends.pipe.tail[-1:] == ("half a line",))

    tail = run(spec_of(tmp_path, source), use).pipe.tail
    assert len(tail) == 50 and all(len(line) <= 500 for line in tail)
    assert tail[-2] == "[31mred \tend" and tail[-3] == "y" * 500 and tail[0].startswith("line 199")


def test_a_server_that_does_not_read_is_given_up(tmp_path, monkeypatch):
    monkeypatch.setattr(stdio_pipe, "MOST_UNSENT", 1 << 20)

    async def use(ends):
        with pytest.raises(Gone, match="does not read"):
            for _ in range(100):
                ends.pipe.send({"jsonrpc": "2.0", "method": "x", "params": {"text": "x" * 100_000}})

    assert run(spec_of(tmp_path, HELLO + FOREVER), use).ends == ["it does not read what it is sent"]


@pytest.mark.parametrize(
    ("last", "why"),
    [("os._exit(3)", "exit status 3"), ("os.kill(os.getpid(), 9)", "signal 9"), ("", "exit status 0")],
)
def test_how_a_process_ended_is_said_after_its_last_word(tmp_path, last, why):
    source = HELLO + f'put(method="last"); {last}'

    async def use(ends):
        await soon(lambda: ends.ends)

    ends = run(spec_of(tmp_path, source), use)
    assert ends.ends == [why] and ends.heard == [{"jsonrpc": "2.0", "method": "last"}]


@pytest.mark.invariant("all three ends are waited for from the start")
def test_one_that_ends_before_we_listen_is_heard_out(tmp_path, monkeypatch):
    watch = StdioPipe._watch

    def watch_to_its_end(pipe, process):
        watch(pipe, process)
        for each in threading.enumerate():
            if each.name == "waits for good":
                each.join()

    monkeypatch.setattr(StdioPipe, "_watch", watch_to_its_end)
    source = HELLO + 'put(method="last"); print("no such key", file=sys.stderr); sys.exit(3)'

    async def use(ends):
        await soon(lambda: ends.ends)

    ends = run(spec_of(tmp_path, source), use)
    assert ends.heard == [{"jsonrpc": "2.0", "method": "last"}]
    assert ends.ends == ["exit status 3"] and ends.pipe.tail == ("no such key",)


@pytest.mark.parametrize("what", ["watcher", "thread"])
def test_a_process_that_cannot_be_watched_is_ended(tmp_path, monkeypatch, what):
    def refuse(*_given, **_more):
        raise OSError(11, "Resource temporarily unavailable")

    if what == "watcher":
        monkeypatch.setattr(leftovers.watcher, "add", refuse)
    else:
        monkeypatch.setattr(stdio_pipe.threading, "Thread", refuse)
    # Nobody says when it is gone, so it is waited for in vain.
    monkeypatch.setattr(stdio_pipe, "_TERM_SECONDS", 0.2)
    monkeypatch.setattr(stdio_pipe, "_KILL_SECONDS", 0.2)
    before = set(os.listdir("/dev/fd"))

    async def main():
        ends = Ends(spec_of(tmp_path))
        with pytest.raises(OSError, match="unavailable"):
            await ends.pipe.open()
        return ends

    ends = asyncio.run(main())
    assert ends.pipe.pid and not is_running(ends.pipe.pid)
    assert set(os.listdir("/dev/fd")) == before


def test_one_that_closes_its_output_and_lives_on_is_ended(tmp_path):
    source = HELLO + 'put(method="last"); os.close(1)' + FOREVER

    async def use(ends):
        await soon(lambda: ends.ends)

    ends = run(spec_of(tmp_path, source), use)
    assert ends.ends == ["it closed its input or output"] and ends.heard


def test_everything_it_started_ends_with_it_even_when_it_does_not_want_to(tmp_path):
    async def use(ends):
        await soon(lambda: ends.heard)
        closing = asyncio.create_task(ends.pipe.close())
        await patience_ends()
        await closing

    ends = run(spec_of(tmp_path, STUBBORN + FOREVER), use)
    assert len(ends.pids()) == 2 and not any(map(is_running, ends.pids()))


@pytest.mark.invariant("whatever ends the pipe, its whole process group is gone afterwards")
def test_everything_it_started_ends_when_it_crashes(tmp_path):
    async def use(ends):
        await soon(lambda: ends.ends)
        await soon(lambda: not any(map(is_running, ends.pids())))

    assert run(spec_of(tmp_path, STUBBORN + "os._exit(5)"), use).ends == ["exit status 5"]


def test_one_that_leaves_when_told_is_not_waited_for(tmp_path, monkeypatch):
    # Whoever waited for all of this time would wait for ever.
    monkeypatch.setattr(stdio_pipe, "_TERM_SECONDS", 100 * PATIENCE)

    async def main():
        ends = Ends(spec_of(tmp_path))
        await ends.pipe.open()
        await asyncio.wait_for(asyncio.gather(*(ends.pipe.close() for _ in range(3))), PATIENCE)
        await ends.pipe.close()
        return ends

    ends = asyncio.run(main())
    assert ends.ends == ["closed"]
    with pytest.raises(Gone):
        ends.pipe.send({"jsonrpc": "2.0", "method": "x"})


def test_closing_goes_on_when_whoever_waits_for_it_stops_waiting(tmp_path):
    async def main():
        ends = Ends(spec_of(tmp_path, STUBBORN + FOREVER))
        await ends.pipe.open()
        await soon(lambda: ends.heard)
        closing = asyncio.create_task(ends.pipe.close())
        await asyncio.sleep(0)
        closing.cancel()
        await asyncio.gather(closing, return_exceptions=True)
        await patience_ends()
        await soon(lambda: not any(map(is_running, ends.pids())))
        await ends.pipe.close()

    run_on_moved_loop(main())


def test_closing_what_was_never_opened_is_nothing(tmp_path):
    async def main():
        ends = Ends(spec_of(tmp_path))
        with pytest.raises(Gone):
            ends.pipe.send({"jsonrpc": "2.0", "method": "x"})
        await ends.pipe.close()

    asyncio.run(main())


def test_what_cannot_be_started_says_so_and_leaves_nothing(tmp_path):
    plain = write(tmp_path, "no program", "plain.txt")
    cases = {
        "no program /nowhere/x": ServerSpec(name="a", command="/nowhere/x"),
        "no program no-such-program-here": ServerSpec(name="a", command="no-such-program-here"),
        "may not be run": ServerSpec(name="a", command=str(plain)),
        "no folder": ServerSpec(name="a", command="cat", cwd="/nowhere"),
        "did not start": ServerSpec(name="a", command="cat", args=("\0",)),
    }
    for words, spec in cases.items():
        with pytest.raises(PipeError, match=words) as caught:
            asyncio.run(Ends(spec).pipe.open())
        assert caught.value.remedy


# INVARIANT of the module: whatever ends the pipe, its whole process group is gone afterwards.
OWNER = """
import asyncio, sys
from checkrein.doors.gateway.stdio_pipe import StdioPipe
from checkrein.settings.servers import ServerSpec

async def main():
    heard = asyncio.Event()
    def hear(message):
        print(*message["params"]["pids"], flush=True)
    spec = ServerSpec(name="stubborn", command=sys.executable, args=("-I", sys.argv[1]))
    pipe = StdioPipe(spec, hear, print)
    await pipe.open()
    await heard.wait()

asyncio.run(main())
"""


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_when_we_are_killed(tmp_path, number):
    script, owner = write(tmp_path, STUBBORN + FOREVER), write(tmp_path, OWNER, "owner.py")
    with subprocess.Popen([sys.executable, str(owner), str(script)], stdout=subprocess.PIPE) as process:
        pids = [int(each) for each in process.stdout.readline().split()]
        assert len(pids) == 2 and all(map(is_running, pids))
        os.kill(process.pid, number)
    until(lambda: not any(map(is_running, pids)))


def test_a_process_is_written_down_while_it_runs(tmp_path):
    async def use(ends):
        (found,) = (state_dir() / "gateway").iterdir()
        assert found.name == f"good-{ends.pipe.pid}"
        assert found.stat().st_mode & 0o777 == 0o600
        assert json.loads(found.read_bytes())["pid"] == ends.pipe.pid

    run(spec_of(tmp_path, GOOD), use)


@pytest.mark.parametrize("steps", range(8))
def test_giving_up_while_it_opens_leaves_neither_process_nor_file(tmp_path, steps):
    async def main():
        # What a loop opens once and keeps is no leak.
        first = Ends(spec_of(tmp_path))
        await first.pipe.open()
        await first.pipe.close()
        before = len(os.listdir("/dev/fd"))
        ends = Ends(spec_of(tmp_path))
        opening = asyncio.create_task(ends.pipe.open())
        for _ in range(steps):
            await asyncio.sleep(0)
        opening.cancel()
        await asyncio.gather(opening, return_exceptions=True)
        await ends.pipe.close()
        assert ends.pipe.pid is None or not is_running(ends.pipe.pid)
        assert len(os.listdir("/dev/fd")) == before

    asyncio.run(main())
    gc.collect()


def test_one_that_ends_before_we_are_connected_ends_like_any_other(tmp_path):
    async def main():
        for _ in range(20):
            ends = Ends(ServerSpec(name="a", command="/bin/sh", args=("-c", "echo no >&2; exit 7")))
            await ends.pipe.open()
            await soon(lambda ends=ends: ends.ends)
            await ends.pipe.close()
            assert ends.ends == ["exit status 7"] and ends.pipe.tail == ("no",)

    asyncio.run(main())
    gc.collect()


def test_one_that_closed_its_input_at_once_is_told_by_its_end(tmp_path, monkeypatch):
    class Closed:
        """What the loop gives us where the other end is gone already."""

        def __init__(self, made):
            self._made = made
            made.close()

        def set_write_buffer_limits(self, high):
            raise RuntimeError("the handler is closed")

        def __getattr__(self, name):
            return getattr(self._made, name)

    async def main():
        loop = asyncio.get_running_loop()
        connected = loop.connect_write_pipe

        async def closed(*given):
            made, protocol = await connected(*given)
            return Closed(made), protocol

        monkeypatch.setattr(loop, "connect_write_pipe", closed, raising=False)
        ends = Ends(ServerSpec(name="a", command="/bin/sh", args=("-c", "sleep 0.2; exit 3")))
        await ends.pipe.open()
        ends.pipe.send({"jsonrpc": "2.0", "method": "hello"})
        await soon(lambda: ends.ends)
        await ends.pipe.close()
        assert ends.ends == ["exit status 3"]

    asyncio.run(main())
    gc.collect()


@pytest.mark.parametrize("kind", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_descriptor_is_closed_once_whatever_the_loop(tmp_path, kind):
    """A second close would hit whatever another thread opened meanwhile under the same number."""
    troubles, stopped = [], threading.Event()

    def others():
        while not stopped.is_set():
            mine = [os.open("/dev/null", os.O_RDONLY) for _ in range(4)]
            try:
                for each in mine:
                    os.fstat(each)
                    os.close(each)
            except OSError as error:
                troubles.append(error)

    async def come_and_go(times):
        for _ in range(times):
            ends = Ends(ServerSpec(name="a", command="/bin/sh", args=("-c", "exit 3")))
            await ends.pipe.open()
            await soon(lambda ends=ends: ends.ends)
            await ends.pipe.close()

    async def main():
        # What the loop itself opens with its first server is there before anything is counted.
        await come_and_go(1)
        before = _descriptors()
        thread.start()
        await come_and_go(40)
        stopped.set()
        thread.join()
        assert _descriptors() == before

    thread = threading.Thread(target=others)
    with asyncio.Runner(loop_factory=kind) as runner:
        runner.run(main())
    assert not troubles


def _descriptors():
    """This process's pipes; whatever else tests before this one left is not ours to count."""
    gc.collect()
    found = []
    for each in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            found += [each] if os.readlink(f"/proc/self/fd/{each}").startswith("pipe:") else []
    return found
