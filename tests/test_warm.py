"""Types are ready before threads need them."""

import subprocess
import sys

from checkrein import warm

RACE = """
import sys, threading
sys.setswitchinterval(1e-6)
import checkrein.server
from checkrein import warm
from checkrein.doors.hooks.dialects import dialect
from checkrein.doors.hooks.events import read
warm.ready()
body = b'{"session_id":"s","cwd":"/","hook_event_name":"PreToolUse","tool_name":"Bash","tool_input":{}}'
barrier = threading.Barrier(16)
def one():
    barrier.wait()
    read("claude-code", body)
threads = [threading.Thread(target=one) for _ in range(16)]
[each.start() for each in threads]
[each.join() for each in threads]
"""


def test_every_type_of_ours_is_prepared():
    import checkrein.server  # noqa: F401 - loads them

    warm.ready.cache_clear()
    assert warm.ready() > 40


def test_many_threads_may_meet_a_type_for_the_first_time_at_once():
    for _ in range(3):
        done = subprocess.run(
            [sys.executable, "-X", "faulthandler", "-c", RACE], capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr.decode()
