"""What tests wait and measure with: it notices what never happens and what takes too long."""

import asyncio
import os
import signal
import subprocess
import sys
import time

import pytest

import patience
from patience import Awake, soon, until, within


def test_what_never_happens_fails_in_words(monkeypatch):
    monkeypatch.setattr(patience, "PATIENCE", 0.05)
    with pytest.raises(AssertionError, match="still 7"):
        until(lambda: None, failing=lambda: "still 7")
    with pytest.raises(AssertionError, match="never happened"):
        asyncio.run(soon(lambda: 0))


def test_what_happens_is_handed_over():
    values = iter([0, "", "this"])
    assert until(lambda: next(values)) == "this"


def test_a_wait_counts_and_too_long_a_one_fails():
    with Awake.during() as took:
        time.sleep(0.3)
    assert took.seconds > 0.2
    with pytest.raises(AssertionError):
        asyncio.run(within(asyncio.sleep(0.3), 0.1))
    assert asyncio.run(within(asyncio.sleep(0, "come"), 5)) == "come"


def test_what_is_slept_through_hardly_counts():
    code = "from patience import Awake\nwith Awake.during() as took:\n    print(flush=True)\n    input()\n"
    with subprocess.Popen(
        [sys.executable, "-c", code + "print(took.seconds)"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.path.dirname(patience.__file__)},
    ) as process:
        process.stdout.readline()
        process.send_signal(signal.SIGSTOP)
        time.sleep(2)
        process.send_signal(signal.SIGCONT)
        assert float(process.communicate("\n", timeout=patience.PATIENCE)[0]) < 1
