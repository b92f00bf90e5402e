"""kill -9 in the middle of writing: what was acknowledged is there, what is there verifies."""

import json
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from ground import FULL, SOAK

from checkrein.ledger.checkpoints import Signer
from checkrein.ledger.entries import fold
from checkrein.ledger.mirror import default_folder
from checkrein.ledger.verify import verify
from checkrein.pipeline import Pipeline
from checkrein.settings.sources import state_dir
from checkrein.store import records
from checkrein.store.sqlite import SqliteStore
from checkrein.store.trust import trust_of
from patience import PATIENCE

KILLS = 200 if SOAK else 25 if FULL else 6
WORKER = Path(__file__).with_name("worker.py")
# The same on a loop, where many verdicts share one commit.
TOGETHER = Path(__file__).with_name("mail_worker.py")


def run_and_kill(after, program=WORKER):
    """Start the worker, kill it once it has acknowledged `after` things, and give what it acknowledged."""
    with subprocess.Popen([sys.executable, program], stdout=subprocess.PIPE, text=True) as worker:
        heard = []
        for line in worker.stdout:
            heard.append(line)
            if len(heard) == after:
                worker.send_signal(signal.SIGKILL)
        assert worker.wait(PATIENCE) == -signal.SIGKILL, "".join(heard[-3:])
    # A line cut by the kill was not heard by anyone.
    return [line.split() for line in heard if line.endswith("\n")]


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_kill_9_at_random_moments_loses_nothing_acknowledged():
    random.seed(20261115)
    acknowledged = []
    for _ in range(KILLS):
        acknowledged += run_and_kill(random.randint(1, 120))
    pipeline = Pipeline(SqliteStore.open(state_dir()), state_dir())
    found = {entry.id: entry for entry in fold(records.after(pipeline.store, 0))}
    for kind, entry in acknowledged:
        assert entry in found
        if kind == "finished":
            assert found[entry].result == "success"
        else:
            assert found[entry].verdict == kind
    report = verify(pipeline.store, state_dir(), Signer(state_dir()).public)
    assert report.ok, (report.broken, report.findings)
    trust = trust_of(pipeline.store, "/p")
    assert sum(state["total_operations"] for state in trust.values()) == len(learned(pipeline))
    assert learned(pipeline), "record and effect are one"
    assert mirrored(default_folder("/p", state_dir())) == [
        entry.id for entry in sorted(found.values(), key=lambda e: e.settled_by or 0) if entry.settled_by
    ]
    pipeline.close()


@pytest.mark.soak
@pytest.mark.timeout(1200)
def test_kill_9_while_many_verdicts_share_a_commit_loses_none_that_was_told():
    random.seed(20261116)
    acknowledged = []
    for _ in range(KILLS // 2):
        acknowledged += run_and_kill(random.randint(1, 400), TOGETHER)
    pipeline = Pipeline(SqliteStore.open(state_dir()), state_dir())
    found = {entry.id: entry for entry in fold(records.after(pipeline.store, 0))}
    assert {kind for kind, _ in acknowledged} == {"allow"}
    assert {entry for _, entry in acknowledged} <= set(found)
    report = verify(pipeline.store, state_dir(), Signer(state_dir()).public)
    assert report.ok, (report.broken, report.findings)
    # What was learned is what the record says, and no more.
    outcomes = learned(pipeline)
    state = trust_of(pipeline.store, "/p")["mcp:notes"]
    counts = (state["successes"], state["failures"])
    assert counts == (outcomes.count("success"), outcomes.count("failure")) and min(counts) > 0
    pipeline.close()


def learned(pipeline):
    """The outcomes that moved trust, as the record has them: so many successes count in an hour."""
    finished = (json.loads(row[4])["data"] for row in records.after(pipeline.store, 0, ("finished",)))
    return [data["outcome"] for data in finished if data["trust"]]


def mirrored(folder):
    return [
        json.loads(line)["id"]
        for path in sorted(folder.glob("*.jsonl"))
        for line in path.read_text().splitlines()
    ]
