"""Runs pytest for `make test` and `make test-all`, and says what the run cost and which failures were flaky.

Arguments this module does not know go to pytest. With `--retry`, a failed test runs once more, alone: if it
then passes, its name is listed as flaky and the run is green. With `--times`, the run ends with wall and
processor seconds, collection, seconds by folder and the slowest tests.
"""

from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tools.invariants import ROOT, TESTS, namings

# More failures than this are no coincidence; running each of them again would only take time.
RETRY_AT_MOST = 20
SLOWEST = 25


class Outcomes:
    """A pytest plugin of the controlling process: which tests failed, and how long each took."""

    def __init__(self) -> None:
        self.root = ROOT
        self.failed: list[str] = []
        self.counts: Counter[str] = Counter()
        self.seconds: Counter[str] = Counter()
        self.collection: list[float] = []

    def pytest_configure(self, config: pytest.Config) -> None:
        """Keep the folder that test names are relative to."""
        self.root = config.rootpath

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add one phase of one test."""
        self.seconds[report.nodeid] += report.duration
        if report.failed and report.nodeid not in self.failed:
            self.failed.append(report.nodeid)
        if report.when == "call" or not report.passed:
            self.counts[report.outcome] += 1

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Keep how long this worker needed to collect; the conftest measures it."""
        self.collection.append(getattr(node, "workeroutput", {}).get("collection_seconds", 0.0))


def may_retry(node: str, tests: Path = TESTS) -> bool:
    """Whether a failed test may run again.

    A race looks exactly like a flaky test, so a test of a safety property or of a fault fails at once.
    """
    path, _, test = node.partition("::")
    if "faults" in Path(path).parts:
        return False
    names = {"", re.split(r"\[|::", test)[0]}
    return not any(each.path == path and each.test in names for each in namings(tests))


def passes_alone(node: str, root: Path) -> bool:
    """Run one test in a process of its own, with nothing beside it."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", node]
    return subprocess.run(command, cwd=root, check=False).returncode == 0  # noqa: S603


def retry(outcomes: Outcomes) -> int:
    """Run the failed tests again where that is allowed; return the exit status of the whole run."""
    fixed = [node for node in outcomes.failed if not may_retry(node)]
    again = [node for node in outcomes.failed if node not in fixed]
    if fixed or len(again) > RETRY_AT_MOST:
        print("\nNot run again: " + ("a safety property failed." if fixed else "too many tests failed."))
        return 1
    print(f"\nRunning {len(again)} failed tests again, each alone.", flush=True)
    flaky = [node for node in again if passes_alone(node, outcomes.root)]
    print(*(f"FLAKY {node}" for node in flaky), sep="\n")
    left = len(again) - len(flaky)
    print(f"{outcomes.counts['passed'] + len(flaky)} passed, {left} failed")
    return 1 if left else 0


def processor_seconds() -> float:
    """Seconds every processor of this machine has worked, children that nobody waited for included."""
    stat = Path("/proc/stat")
    if not stat.exists():
        return sum(os.times()[:4])
    user, nice, system, *_ = stat.read_text(encoding="ascii").split("\n", 1)[0].split()[1:]
    return (int(user) + int(nice) + int(system)) / os.sysconf("SC_CLK_TCK")


def print_times(outcomes: Outcomes, wall: float, processor: float) -> None:
    """Print what the run cost."""
    folders: Counter[str] = Counter()
    tests: Counter[str] = Counter()
    for node, seconds in outcomes.seconds.items():
        folder = Path(node.partition("::")[0]).parent.as_posix()
        folders[folder] += seconds
        tests[folder] += 1
    print("\n seconds  tests  folder")
    print(*(f"{seconds:8.1f} {tests[each]:6}  {each}" for each, seconds in folders.most_common()), sep="\n")
    print("\n seconds  slowest tests")
    print(*(f"{seconds:8.1f}  {node}" for node, seconds in outcomes.seconds.most_common(SLOWEST)), sep="\n")
    collecting = ", ".join(f"{each:.1f}" for each in sorted(outcomes.collection)) or "not measured"
    processors = f"{processor:.0f} s processor, all programs counted"
    print(f"\n{len(outcomes.seconds)} tests · {wall:.0f} s wall · {processors}")
    print(f"collection, seconds by worker: {collecting}")


def main() -> int:
    """Run the tests; return the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tools.run_tests", description=__doc__, allow_abbrev=False
    )
    parser.add_argument("--retry", action="store_true", help="run failed tests once more, each alone")
    parser.add_argument("--times", action="store_true", help="print what the run cost")
    options, arguments = parser.parse_known_args()
    os.chdir(ROOT)
    outcomes = Outcomes()
    began, worked = time.monotonic(), processor_seconds()
    status = int(pytest.main(arguments, plugins=[outcomes]))
    if options.times:
        print_times(outcomes, time.monotonic() - began, processor_seconds() - worked)
    # Only failed tests are run again; a run that was interrupted or could not collect has failed.
    if options.retry and status == pytest.ExitCode.TESTS_FAILED:
        return retry(outcomes)
    return status


if __name__ == "__main__":
    sys.exit(main())
