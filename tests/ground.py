"""What several tests stand on: the shared vectors, a clock that is moved by hand, long or short campaigns."""

import json
import os
from pathlib import Path

from checkrein.call import tool_call
from checkrein.classify import classify

SOAK = os.environ.get("CHECKREIN_SOAK") == "1"
# `make test-all` and `make soak` try every example of a property; `make test` this many at the most.
FULL = SOAK or os.environ.get("CHECKREIN_TESTS") == "all"
QUICK_EXAMPLES = 25
PROJECT = "/home/dev/app"
VECTORS = Path(__file__).parent / "vectors"


def vectors(name):
    lines = (VECTORS / name).read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in lines if line]


class Clock:
    """Stands still until it is moved."""

    def __init__(self, now=1_800_000_000.0):
        self.now = now

    def __call__(self):
        return self.now

    def pass_days(self, days):
        self.now += days * 86_400


def judge(command):
    """What the classifier says of a shell line, in a project of its own."""
    call = {
        "tool": "Bash",
        "arguments": {"command": command},
        "project": "/home/dev/app",
        "cwd": "/home/dev/app",
    }
    return classify(tool_call(call), home="/home/dev")


def examples(count):
    """How many examples a hypothesis test tries: all in the full tier, fewer in the quick one."""
    return count if FULL else min(count, QUICK_EXAMPLES)
