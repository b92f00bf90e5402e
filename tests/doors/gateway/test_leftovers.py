import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from checkrein import peers
from checkrein.doors.gateway import leftovers
from checkrein.doors.gateway.leftovers import Watcher, is_living, note, signal_group, sweep
from checkrein.settings.sources import state_dir
from doors.gateway.back import is_running
from patience import PATIENCE, until

SLEEPER = "import signal, time; signal.signal(15, signal.SIG_IGN); print(1, flush=True); time.sleep(600)"


@pytest.fixture
def sleeper():
    """Makes processes that lead groups of their own; none outlives its test."""
    made = []

    def start():
        process = subprocess.Popen(
            [sys.executable, "-c", SLEEPER], stdout=subprocess.PIPE, start_new_session=True
        )
        process.stdout.readline()
        made.append(process)
        return process

    yield start
    for each in made:
        each.kill()
        each.wait()
        each.stdout.close()


def wait_until_ended(process):
    process.wait(PATIENCE)
    assert process.returncode == -signal.SIGKILL


def written(process, **changes):
    path = note("some-server", process.pid)
    content = json.loads(path.read_bytes()) | changes
    path.write_text(json.dumps(content))
    return path


def test_what_a_dead_run_left_is_ended(sleeper):
    process = sleeper()
    path = written(process, owner_started="long ago")
    assert sweep() == 1
    wait_until_ended(process)
    assert not path.exists()


def test_what_a_living_run_uses_is_left_alone(sleeper):
    process = sleeper()
    path = written(process)
    assert sweep() == 0
    assert path.exists() and is_running(process.pid)


@pytest.mark.invariant("only the very process we wrote down is ended, never a later one with its number")
def test_a_later_process_with_the_same_number_is_left_alone(sleeper):
    process = sleeper()
    path = written(process, owner_started="long ago", started="long ago")
    assert sweep() == 0
    assert is_running(process.pid) and not path.exists()


def test_a_note_that_cannot_be_read_is_thrown_away():
    folder = state_dir() / "gateway"
    folder.mkdir(parents=True)
    (folder / "broken-1").write_bytes(b"{")
    (folder / "oauth").mkdir()
    assert sweep() == 0
    assert [each.name for each in folder.iterdir()] == ["oauth"]


def test_a_process_that_is_gone_is_not_written_down(sleeper):
    process = sleeper()
    process.kill()
    process.wait()
    assert note("gone", process.pid) is None


def test_a_note_says_who_and_whose(sleeper):
    process = sleeper()
    content = json.loads(note("a", process.pid).read_bytes())
    own = peers.process(os.getpid())
    assert content == {
        "pid": process.pid,
        "started": peers.process(process.pid).started,
        "owner": own.pid,
        "owner_started": own.started,
    }


def test_the_watcher_ends_what_is_still_on_its_list_and_nothing_else(sleeper):
    first, second, third = sleeper(), sleeper(), sleeper()
    watcher = Watcher()
    for each in (first, second, third):
        watcher.add(each.pid)
    watcher.remove(second.pid)
    process = watcher._process
    process.stdin.close()
    process.wait(PATIENCE)
    wait_until_ended(first)
    wait_until_ended(third)
    assert is_running(second.pid)


def test_the_watcher_is_there_only_while_it_is_needed(sleeper):
    process, watcher = sleeper(), Watcher()
    assert watcher.pid is None
    watcher.add(process.pid)
    pid = watcher.pid
    assert is_running(pid)
    watcher.remove(process.pid)
    assert watcher.pid is None and not is_running(pid) and is_running(process.pid)


def test_a_watcher_that_was_killed_is_replaced(sleeper):
    first, second, watcher = sleeper(), sleeper(), Watcher()
    watcher.add(first.pid)
    old = watcher.pid
    os.kill(old, signal.SIGKILL)
    until(lambda: not is_running(old))
    watcher.add(second.pid)
    assert watcher.pid != old
    process = watcher._process
    process.stdin.close()
    process.wait(PATIENCE)
    wait_until_ended(first)
    wait_until_ended(second)


def _ignores(pid, number):
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    mask = next(line.split()[1] for line in lines if line.startswith("SigIgn"))
    return bool(int(mask, 16) >> (number - 1) & 1)


@pytest.mark.skipif(sys.platform != "linux", reason="looks at what the system says of a process")
def test_the_watcher_cannot_be_talked_into_leaving_early(sleeper):
    process, watcher = sleeper(), Watcher()
    watcher.add(process.pid)
    until(lambda: _ignores(watcher.pid, signal.SIGTERM))
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        os.kill(watcher.pid, number)
    watcher.add(process.pid)
    assert is_running(watcher.pid)
    watcher.remove(process.pid)


def test_a_group_lives_while_any_of_it_does(sleeper):
    process = sleeper()
    assert is_living(process.pid)
    process.kill()
    # Not buried yet: its number is still there, it does not run.
    until(lambda: not is_living(process.pid))
    assert signal_group(process.pid, 0)
    process.wait()
    assert not signal_group(process.pid, 0) and not is_living(process.pid)


def test_there_is_one_watcher_for_all():
    assert isinstance(leftovers.watcher, Watcher) and leftovers.watcher.pid is None
