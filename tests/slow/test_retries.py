"""Runs of a small suite whose tests fail: which are run again, and what the end of a run says."""

from test_suite_tools import run, write

FLAKY = """
import pathlib
def test_second_time_lucky():
    met = pathlib.Path(__file__).with_suffix(".met")
    known = met.exists()
    met.touch()
    assert known
"""
FAILING = "def test_never(): assert False\n"


def test_a_test_that_passes_alone_is_listed_as_flaky_and_the_run_is_green(tmp_path):
    write(tmp_path, "test_flaky.py", FLAKY)
    ended = run(tmp_path, "--retry")
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "FLAKY " in ended.stdout
    assert "test_second_time_lucky" in ended.stdout.partition("FLAKY ")[2]
    assert ended.stdout.rstrip().endswith("1 passed, 0 failed")


def test_nothing_is_run_again_unless_asked(tmp_path):
    write(tmp_path, "test_flaky.py", FLAKY)
    ended = run(tmp_path)
    assert ended.returncode == 1
    assert "FLAKY" not in ended.stdout


def test_a_test_that_fails_twice_is_red(tmp_path):
    write(tmp_path, "test_flaky.py", FLAKY)
    write(tmp_path, "test_failing.py", FAILING)
    ended = run(tmp_path, "--retry")
    assert ended.returncode == 1
    assert ended.stdout.rstrip().endswith("1 passed, 1 failed")


def test_a_flaky_fault_test_is_red(tmp_path):
    write(tmp_path, "faults/test_flaky.py", FLAKY)
    ended = run(tmp_path, "--retry")
    assert ended.returncode == 1
    assert "Not run again: a safety property failed." in ended.stdout
