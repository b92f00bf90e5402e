"""A server that is killed at any step of a conversation: nothing runs twice, nothing that waits is lost."""

import json
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from ground import SOAK

from patience import PATIENCE

TESTS = Path(__file__).parent.parent
# Before and after each write and around what tools do: the conversation has about 140 such steps.
POINTS = range(1, 150) if SOAK else range(2, 140, 7)


@pytest.fixture(scope="module")
def work():
    """Has a job done by a process that may die of it; how it ended."""
    command = [sys.executable, str(TESTS / "faults" / "chat_worker.py")]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env={"PYTHONPATH": str(TESTS)}
    )

    def ask(**job):
        process.stdin.write(json.dumps(job) + "\n")
        process.stdin.flush()
        return int(process.stdout.readline())

    yield ask
    process.stdin.close()
    process.wait(PATIENCE)
    process.stdout.close()


def ran(place):
    log = place / "ran"
    return Counter(int(line) for line in log.read_text().split()) if log.exists() else Counter()


def check(place):
    report, times = json.loads((place / "report").read_text()), ran(place)
    assert report["open"] == 0
    assert (report["ended"], report["answer"]) == ("end", "still here")
    assert times[3] == 0, "what a person changed never runs as it was"
    assert max(times[each] for each in (2, 30, 4)) <= 1, "nothing runs twice"
    assert times[1] <= 2, "but what only reads may"
    for call in report["calls"]:
        times_it = times[30 if call["n"] == 3 else call["n"]]
        assert call["status"] in ("completed", "error", "denied", "cancelled")
        if call["status"] == "completed":
            assert times_it >= 1
            assert (call["edited"] == {"n": 30}) is (call["n"] == 3)
        elif times_it:
            assert "is unknown" in call["error"], call
    if report["runs"] and report["runs"][-1] == "done":
        assert len(report["calls"]) == 4, "it went on to the end"
    return report


def test_without_a_fault_it_goes_to_the_end(work, tmp_path):
    assert work(do="begin", place=str(tmp_path), die=0) == 0
    assert ran(tmp_path) == {1: 1, 2: 1, 30: 1, 4: 1}
    assert work(do="go on", place=str(tmp_path)) == 0
    report = check(tmp_path)
    assert report["runs"] == ["done"]
    assert [each["status"] for each in report["calls"]] == ["completed"] * 4


@pytest.mark.parametrize("step", POINTS)
def test_killed_at_any_step_nothing_runs_twice_and_nothing_that_waits_is_lost(work, tmp_path, step):
    code = work(do="begin", place=str(tmp_path), die=step)
    assert code in (0, 9)
    assert work(do="go on", place=str(tmp_path)) == 0
    report = check(tmp_path)
    assert set(report["runs"]) <= {"done", "interrupted"}
    assert code or report["runs"] == ["done"]
