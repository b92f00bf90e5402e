"""A disk that fills up: refusals with a clear word, nothing corrupt, and work goes on once there is room."""

import os
import resource
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from checkrein.call import tool_call
from checkrein.ledger.checkpoints import Signer
from checkrein.ledger.verify import verify
from checkrein.pipeline import Pipeline
from checkrein.settings.sources import state_dir
from checkrein.store.sqlite import SqliteStore

CALL = tool_call({"tool": "Read", "arguments": {"file_path": "x" * 5000}, "project": "/p"})


def fill(pipeline, most=5000):
    """Decide until refused; the refusal."""
    for _ in range(most):
        verdict = pipeline.decide(CALL).verdict
        if verdict.word == "deny":
            return verdict
    raise AssertionError("the disk never filled up")


def check(folder, pipeline, make_room):
    verdict = fill(pipeline)
    assert verdict.stage == "record"
    assert verdict.decision == "blocked"
    assert pipeline.decide(CALL).verdict.word == "deny"
    make_room()
    assert pipeline.decide(CALL).verdict.word == "allow"
    pipeline.close()
    store = SqliteStore.open(folder, read_only=True)
    report = verify(store, folder, Signer(folder).public)
    store.close()
    assert report.ok, report.broken
    return verdict


@pytest.fixture
def small_disk(tmp_path):
    """A file system of two megabytes, where the system lets us make one."""
    place = tmp_path / "small"
    place.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(place)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode:
        pytest.skip(
            "no right to mount a small file system here; the file size limit below covers the same ground"
        )
    yield place
    subprocess.run(["umount", "-l", str(place)], check=True)


def test_a_full_file_system_denies_and_heals(small_disk, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(small_disk))
    ballast = small_disk / "ballast"
    ballast.write_bytes(b"x" * 600_000)
    pipeline = Pipeline(SqliteStore.open(state_dir()), state_dir())
    verdict = check(state_dir(), pipeline, ballast.unlink)
    assert "full" in verdict.reasons[0].text
    assert "Free some space" in verdict.remedy


def test_a_file_size_limit_denies_and_heals():
    """The same through a quota, in a process of its own: the limit cannot be raised again for the others."""
    done = subprocess.run([sys.executable, __file__], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "healed\n"


def main():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    pipeline = Pipeline(SqliteStore.open(state_dir()), state_dir())
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_500_000, hard))
    check(state_dir(), pipeline, lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard)))
    sys.stdout.write("healed\n")


if __name__ == "__main__":
    assert Path(os.environ["XDG_STATE_HOME"]).is_absolute()
    main()
