import shutil
import sqlite3

import pytest

from checkrein.call import tool_call
from checkrein.ledger.checkpoints import Checkpoint, Signer
from checkrein.ledger.copies import FILE as CHECKPOINTS
from checkrein.ledger.copies import kept, newest_copy
from checkrein.ledger.verify import BackgroundCheck, verify
from checkrein.settings.sources import state_dir
from checkrein.store import records
from checkrein.store.sqlite import FILE, SqliteStore
from patience import PATIENCE


@pytest.fixture
def state(pipeline):
    """A finished store: six records, the first of them signed, and the one that closes it, signed."""
    for number in range(6):
        pipeline.decide(tool_call({"tool": "Read", "arguments": {"file_path": f"f{number}"}}))
    pipeline.close()
    return state_dir()


def forge(folder, script):
    """What someone with the file in their hands can do."""
    with sqlite3.connect(folder / FILE) as database:
        for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            database.execute(f"DROP TRIGGER {name}")
        database.executescript(script)
    database.close()


def report(folder, **extra):
    store = SqliteStore.open(folder, read_only=True)
    try:
        return verify(store, folder, Signer(folder).public, **extra)
    finally:
        store.close()


def test_an_untouched_record_verifies(state):
    found = report(state)
    assert (found.ok, found.records, found.checkpoints) == (True, 7, 2)


@pytest.mark.parametrize(
    "script,seq",
    [
        ("UPDATE record SET body = replace(body, 'logged_only', 'blocked') WHERE seq = 3", 3),
        ("UPDATE record SET entry = 'x' WHERE seq = 2", 2),
        (
            "DELETE FROM lookup WHERE entry = (SELECT entry FROM record WHERE seq = 5) AND term LIKE 'tool%'",
            5,
        ),
        ("UPDATE lookup SET term = 'tool:Write' WHERE term = 'tool:Read'", 1),
        ("DELETE FROM record WHERE seq = 4", 4),
        ("DELETE FROM record WHERE seq = 7", 7),
        ("DELETE FROM record WHERE seq > 2", 3),
        ("DELETE FROM checkpoint; DELETE FROM record WHERE seq = 7", 7),
        ("DELETE FROM checkpoint; DELETE FROM record", 1),
        ("UPDATE checkpoint SET body = replace(body, '\"seq\":7', '\"seq\":5')", 5),
        ("UPDATE checkpoint SET signature = '00' WHERE seq = 7", 7),
    ],
)
def test_the_first_broken_record_is_named(state, script, seq):
    forge(state, script)
    found = report(state)
    assert not found.ok
    assert found.broken.seq == seq


def test_a_record_cut_together_with_all_its_checkpoints_is_caught_by_one_kept_elsewhere(state):
    witness = kept(state)[-1]
    forge(
        state,
        "DELETE FROM checkpoint; DELETE FROM record WHERE seq > 3",
    )
    (state / CHECKPOINTS).unlink()
    newest_copy(state).unlink()
    assert report(state).broken is None
    found = report(state, witnesses=(witness,))
    assert "cut" in found.broken.reason


def test_a_rewritten_chain_under_another_key_is_caught(state, tmp_path):
    stranger = tmp_path / "stranger"
    stranger.mkdir()
    forged = Signer(stranger).sign(6, records_head(state), 1.0)
    forge(state, f"UPDATE checkpoint SET body = '{forged.body}', signature = '{forged.signature}'")
    assert "not signed by this installation" in report(state).broken.reason


def records_head(folder):
    store = SqliteStore.open(folder, read_only=True)
    head = records.head(store)[1]
    store.close()
    return head


def test_progress_is_reported(state, monkeypatch):
    monkeypatch.setattr("checkrein.ledger.verify._STEP", 2)
    seen = []
    report(state, progress=seen.append)
    assert seen == [2, 4, 6]


def test_a_checkpoint_kept_elsewhere_agrees_with_an_untouched_record(state):
    assert report(state, witnesses=tuple(kept(state))).ok
    wrong = Signer(state).sign(3, "00" * 32, 1.0)
    assert report(state, witnesses=(Checkpoint(wrong.body, wrong.signature),)).broken.seq == 3


def test_the_background_check_stops_a_ledger_that_was_tampered_with(state, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(state, copy)
    forge(copy, "UPDATE record SET body = replace(body, 'logged_only', 'blocked') WHERE seq = 1")
    from checkrein.pipeline import Pipeline

    made = Pipeline(SqliteStore.open(copy), copy)
    assert made.ledger.broken == "", "the bounded check starts at the checkpoint and cannot see this"
    check = BackgroundCheck(made.store, copy, made.ledger)
    check.start()
    check.join(PATIENCE)
    assert "record 1" in made.ledger.broken
    decided = made.decide(tool_call({"tool": "Read"}))
    assert (decided.verdict.word, decided.verdict.stage) == ("deny", "record")
    assert "does not verify" in decided.verdict.reasons[0].text
    made.close()
