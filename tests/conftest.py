"""A home of its own for every test, a clock that stands still, a pipeline over a real store."""

import gc
import itertools
import os
import re
import shutil
import signal
import socket
import threading
import time
from pathlib import Path

import pytest
from ground import FULL, Clock
from hypothesis import settings as hypothesis_settings

from checkrein.pipeline import Pipeline
from checkrein.settings.sources import state_dir
from checkrein.store.sqlite import SqliteStore

# A store is several times faster in memory. /dev/shm may have too little room, or refuse to run programs.
MEMORY, ROOM = Path("/dev/shm"), 4 * 2**30


def _use_memory_for_temporary_files():
    if "PYTEST_DEBUG_TEMPROOT" in os.environ or not os.access(MEMORY, os.W_OK):
        return
    may_run = not os.statvfs(MEMORY).f_flag & os.ST_NOEXEC
    if may_run and shutil.disk_usage(MEMORY).free >= ROOM:
        os.environ["PYTEST_DEBUG_TEMPROOT"] = str(MEMORY)


_use_memory_for_temporary_files()

hypothesis_settings.register_profile("checkrein", deadline=None, print_blob=True)
hypothesis_settings.load_profile("checkrein")

# Where the tests run in the background Ctrl-C is ignored, and would be by every program they start.
if (
    signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    and threading.current_thread() is threading.main_thread()
):
    signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_ignore_collect(collection_path, config):
    """Tiers are folders: `slow` runs with `make test-all`, `e2e` with `make e2e`, or when it is named."""
    if collection_path.name not in {"slow", "e2e"} or (collection_path.name == "slow" and FULL):
        return None
    named = [Path(config.invocation_params.dir, each.partition("::")[0]) for each in config.args]
    return None if any(collection_path in (each, *each.parents) for each in named) else True


@pytest.hookimpl(wrapper=True)
def pytest_collection(session):
    """Collect with garbage collection off: what is collected stays, and is not looked through later."""
    began = time.perf_counter()
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["collection_seconds"] = time.perf_counter() - began


_numbers = itertools.count()
_failed = pytest.StashKey[bool]()


@pytest.fixture
def tmp_path(request, tmp_path_factory):
    """A folder of its own; pytest's own fixture reads the names of all before it to find one that is free.

    Its name is short, so that a socket in it is: those with longer names lie in a folder all runs share.
    """
    name = re.sub(r"\W", "_", request.node.name)[:16]
    folder = tmp_path_factory.getbasetemp() / f"{name}-{next(_numbers)}"
    folder.mkdir(mode=0o700)
    yield folder
    if not request.node.stash.get(_failed, False):
        shutil.rmtree(folder, ignore_errors=True)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item):
    """Remember that a test failed: its folder stays."""
    report = yield
    item.stash[_failed] = item.stash.get(_failed, False) or report.failed
    return report


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """No test ever sees or touches the real home."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.delenv("NO_COLOR", raising=False)
    return tmp_path


@pytest.fixture
def unused_port():
    """A port nobody else has."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    return str(folder)


@pytest.fixture
def user_settings(home):
    """Writes the user's settings file."""

    def write(text):
        path = home / "config" / "checkrein" / "config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def pipeline(clock):
    made = Pipeline(SqliteStore.open(state_dir()), state_dir(), clock=clock)
    yield made
    made.close()
