"""Programs of a test: started in a group of their own, waited for without sleeping blindly, ended by id."""

import contextlib
import os
import signal
import subprocess
from pathlib import Path

SOMEBODY = 1000


def as_user(words, uid):
    """The command line under another user's number; root only. What root may read stays readable."""
    if uid is None:
        return list(words)
    return ["unshare", "--user", f"--map-user={uid}", f"--map-group={uid}", *words]


def run(words, *, env, cwd, uid=None, seconds=60.0, input=None):
    """Run to its end; a program that takes too long is ended with all it started."""
    process = subprocess.Popen(
        as_user(words, uid),
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL if input is None else subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    try:
        stdout, stderr = process.communicate(input, timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        stdout, stderr = process.communicate()
        raise AssertionError(f"{words[0]} did not end in {seconds} s\n{stdout}\n{stderr}") from None
    return subprocess.CompletedProcess(words, process.returncode, stdout, stderr)


@contextlib.contextmanager
def running(words, *, env, cwd, uid=None):
    """A program in the background for as long as the block lasts."""
    process = subprocess.Popen(
        as_user(words, uid),
        env=env,
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield process
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def is_alive(pid):
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] != "Z"
    except ProcessLookupError:
        return False
    except OSError:
        return True
