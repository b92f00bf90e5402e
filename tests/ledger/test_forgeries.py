"""A killed server's store, forged with plain SQL by code that can write every file and does not use the key.

Every forgery is reported. What an honest kill leaves is reported as well, and the record goes on after it.
"""

import hashlib
import json
import shutil
import sqlite3

import pytest
from click.testing import CliRunner
from ground import Clock

from checkrein.call import tool_call
from checkrein.cli import checkrein
from checkrein.errors import LedgerError
from checkrein.ledger.checkpoints import KEY, Checkpoint, Signer
from checkrein.ledger.copies import FILE as COPIES
from checkrein.ledger.copies import newest_copy
from checkrein.ledger.signing import MOST_RECORDS, RESUMED
from checkrein.ledger.verify import BackgroundCheck, verify
from checkrein.pipeline import Pipeline
from checkrein.settings.sources import state_dir
from checkrein.store import records
from checkrein.store.sqlite import FILE, LOCK, SqliteStore
from patience import PATIENCE

STRANGERS = "1" * 64


def call(number, tool="Read"):
    arguments = {"file_path": f"f{number}"} if tool == "Read" else {"command": f"make x{number}"}
    return tool_call({"tool": tool, "arguments": arguments, "project": "/p", "session": "s1"})


def work(pipeline, reads=60):
    """A question that a person answers, then calls nobody is asked about."""
    asked = pipeline.decide(call(0, "Bash"), asking=True)
    pipeline.answer(asked.entry, "approved", actor="ada", channel="terminal")
    for number in range(reads - 1):
        pipeline.decide(call(number))


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def killed(tmp_path, clock):
    """The state folder as a kill leaves it: the files of a store that was not closed."""
    running = Pipeline(SqliteStore.open(state_dir()), state_dir(), clock=clock)
    work(running)
    held = tmp_path / "held"
    shutil.copytree(state_dir(), held)
    running.store.close()
    shutil.rmtree(state_dir())
    held.rename(state_dir())
    (state_dir() / LOCK).unlink()
    return state_dir()


class Forger:
    """Rewrites a store with plain SQL. Triggers are dropped and, at the end, restored."""

    def __init__(self, folder):
        self.folder = folder
        self.database = sqlite3.connect(folder / FILE, isolation_level=None)
        sql = "SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'"
        self.triggers = dict(self.database.execute(sql).fetchall())

    def __enter__(self):
        for name in self.triggers:
            self.database.execute(f"DROP TRIGGER {name}")
        return self

    def __exit__(self, *_):
        for sql in self.triggers.values():
            self.database.execute(sql)
        self.database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self.database.close()

    @property
    def bodies(self):
        rows = self.database.execute("SELECT body FROM record ORDER BY seq").fetchall()
        return [json.loads(row[0]) for row in rows]

    def rewrite(self, bodies):
        """The whole chain anew, every hash right."""
        self.database.execute("DELETE FROM record")
        previous = "0" * 64
        for seq, said in enumerate(bodies, start=1):
            said["seq"] = seq
            body = json.dumps(said, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
            previous = hashlib.sha256((previous + body).encode()).hexdigest()
            row = (seq, said["at"], said["kind"], said["entry"], body, previous)
            self.database.execute("INSERT INTO record VALUES (?, ?, ?, ?, ?, ?)", row)

    def forget(self, after=0):
        """Remove the checkpoints after a record from the store and from the file beside it."""
        self.database.execute("DELETE FROM checkpoint WHERE seq > ?", (after,))
        file = self.folder / COPIES
        lines = [line for line in file.read_text().splitlines() if seq_of(line) <= after]
        file.write_text("".join(f"{line}\n" for line in lines))

    def sign(self, signer):
        """One checkpoint of the last record, by another key."""
        seq, sealed = self.database.execute("SELECT seq, hash FROM record ORDER BY seq DESC").fetchone()
        made = signer.sign(seq, sealed, 1_800_000_000.0)
        self.database.execute("INSERT INTO checkpoint VALUES (?, ?, ?)", (seq, made.body, made.signature))
        line = json.dumps({"body": made.body, "signature": made.signature})
        (self.folder / COPIES).write_text(f"{line}\n")

    @property
    def signed(self):
        return [row[0] for row in self.database.execute("SELECT seq FROM checkpoint ORDER BY seq")]


def seq_of(line):
    return json.loads(json.loads(line)["body"])["seq"]


def drop_all_but_two(forger):
    forger.database.execute("DELETE FROM record WHERE seq > 2")
    forger.forget(2)


def drop_what_was_not_signed(forger):
    """Everything that is left is signed; nothing shows how much more there was."""
    forger.database.execute("DELETE FROM record WHERE seq > ?", (forger.signed[-1],))


def drop_what_was_answered(forger):
    forger.database.execute("DELETE FROM record WHERE seq > ?", (forger.signed[0],))
    forger.forget(forger.signed[0])


def alter_an_actor(forger):
    bodies = forger.bodies
    next(each for each in bodies if each["kind"] == "answered")["data"]["actor"] = "root"
    forger.rewrite(bodies)
    forger.forget()


def remove_one_and_renumber(forger):
    bodies = forger.bodies
    del bodies[40]
    forger.rewrite(bodies)


def invent_a_checkpoint_to_come(forger):
    made = Signer(forger.folder).sign(10**6, STRANGERS, 1.0)
    forger.database.execute("INSERT INTO checkpoint VALUES (?, ?, ?)", (10**6, made.body, "00"))


def append_what_nobody_can_read(forger):
    last = forger.bodies[-1]
    forger.rewrite([*forger.bodies, {**last, "kind": RESUMED, "data": [7], "entry": ""}])


def append_an_answer(forger):
    answer = {"answer": "approved", "actor": "root", "channel": "terminal", "message": ""}
    last = forger.bodies[-1]
    forged = {"at": last["at"], "data": answer, "entry": last["entry"], "kind": "answered"}
    forger.rewrite([*forger.bodies, forged])


def make_everything_anew(forger):
    (forger.folder / KEY).unlink()
    alter_an_actor(forger)
    (forger.folder / COPIES).unlink()


def make_everything_anew_under_a_key_of_their_own(forger):
    make_everything_anew(forger)
    forger.sign(Signer(forger.folder))


def date_one_1970(forger):
    forged = {**forger.bodies[-1], "at": 0.0}
    forger.rewrite([*forger.bodies, forged])


def remove_a_checkpoint(forger):
    forger.database.execute("DELETE FROM checkpoint WHERE seq = ?", (forger.signed[0],))


def remove_a_checkpoint_everywhere(forger):
    with_others = forger.signed
    assert len(with_others) > 1
    remove_a_checkpoint(forger)
    file = forger.folder / COPIES
    file.write_text("".join(f"{line}\n" for line in file.read_text().splitlines()[1:]))


def remove_a_copy(forger):
    file = forger.folder / COPIES
    file.write_text("".join(f"{line}\n" for line in file.read_text().splitlines()[1:]))


def leave_a_trigger_out(forger):
    del forger.triggers["record_no_delete"]


def leave_a_trigger_without_effect(forger):
    name = "record_no_update"
    forger.triggers[name] = f"CREATE TRIGGER {name} BEFORE UPDATE ON record BEGIN SELECT 1; END"


def add_a_trigger(forger):
    forger.triggers["helpful"] = "CREATE TRIGGER helpful AFTER INSERT ON record BEGIN DELETE FROM rule; END"


# The forgery, what the report says, and whether the record is broken by it (exit 6) or in doubt (exit 8).
FORGERIES = [
    (drop_all_but_two, "cut", True),
    (drop_what_was_answered, "cut", True),
    (drop_what_was_not_signed, "may have been cut off", False),
    (alter_an_actor, "not the one the checkpoint there was made for", True),
    (remove_one_and_renumber, "is not proven", False),
    (invent_a_checkpoint_to_come, "cut", True),
    (append_what_nobody_can_read, "lacks the checkpoint it is written with", True),
    (append_an_answer, "lacks the checkpoint it is written with", True),
    (make_everything_anew, "ledger.key is gone", True),
    (make_everything_anew_under_a_key_of_their_own, "made anew", True),
    (date_one_1970, "dated 1970-01-01", False),
    (remove_a_checkpoint, "was removed from the store", False),
    (remove_a_checkpoint_everywhere, "is missing", False),
    (remove_a_copy, "was removed from", False),
    (leave_a_trigger_out, "record_no_delete is missing", False),
    (leave_a_trigger_without_effect, "record_no_update was changed", False),
    (add_a_trigger, "helpful is not ours", False),
]


def report_of(folder, now, **more):
    store = SqliteStore.open(folder, read_only=True)
    try:
        return verify(
            store, folder, Signer(folder).public if (folder / KEY).exists() else "", now=now, **more
        )
    finally:
        store.close()


def told(report):
    return [*([report.broken.reason] if report.broken else []), *(each.reason for each in report.findings)]


def resealed(folder, clock):
    """The killed server's store after a start that signed what was left, and another kill."""
    pipeline = Pipeline(SqliteStore.open(folder), folder, clock=clock)
    pipeline.ledger.keep_signed()
    pipeline.store.close()


@pytest.mark.parametrize(
    ("forge", "says", "broken"), FORGERIES, ids=lambda each: getattr(each, "__name__", "")
)
@pytest.mark.invariant("a record that is signed at once and has no checkpoint was not written by us")
def test_every_forgery_of_a_killed_servers_store_is_reported(killed, clock, forge, says, broken):
    if forge in (remove_a_checkpoint_everywhere, remove_a_copy, remove_a_checkpoint):
        resealed(killed, clock)
    with Forger(killed) as forger:
        forge(forger)
    found = report_of(killed, clock.now + 3600)
    assert not found.ok
    assert (found.broken is not None) == broken
    assert any(says in each for each in told(found)), told(found)


@pytest.mark.parametrize(
    ("forge", "says", "broken"), FORGERIES, ids=lambda each: getattr(each, "__name__", "")
)
@pytest.mark.invariant("a checkpoint of a record that is not there keeps no later one from being signed")
def test_no_server_goes_on_with_a_forged_record_as_if_nothing_were(killed, clock, forge, says, broken):
    """What contradicts a checkpoint refuses every call from the first on; the rest is found again later."""
    if forge in (remove_a_checkpoint_everywhere, remove_a_copy, remove_a_checkpoint):
        resealed(killed, clock)
    with Forger(killed) as forger:
        forge(forger)
    clock.now += 3600
    pipeline = Pipeline(SqliteStore.open(killed), killed, clock=clock)
    words = [pipeline.decide(call(number)).verdict.word for number in range(3)]
    assert words == ["deny" if broken else "allow"] * 3
    pipeline.close()
    found = report_of(killed, clock.now)
    in_the_end = forge in (remove_one_and_renumber, drop_what_was_not_signed)
    assert [each.kind for each in found.notes] == ["start"] if in_the_end else not found.ok


def run(*words, code):
    done = CliRunner().invoke(checkrein, words, prog_name="checkrein")
    assert done.exit_code == code, done.output
    return done.output


def test_the_command_reports_them(killed):
    assert "is not proven" in run("audit", "verify", code=8)
    with Forger(killed) as forger:
        leave_a_trigger_out(forger)
    found = json.loads(run("audit", "verify", "--json", code=8))
    assert not found["ok"] and found["broken"] is None
    assert "the trigger record_no_delete is missing" in [each["reason"] for each in found["findings"]]
    with Forger(killed) as forger:
        append_an_answer(forger)
    assert "(answered) lacks the checkpoint" in run("audit", "verify", code=6)


def test_an_honest_kill_leaves_an_unsigned_end_and_nothing_else(killed, clock):
    found = report_of(killed, clock.now + 1)
    assert found.broken is None and 0 < found.unsigned < MOST_RECORDS
    assert ([each.kind for each in found.findings], found.notes) == (["unsigned"], ())


@pytest.mark.invariant("what was found unsigned is signed together with a record that says so")
def test_the_next_start_signs_the_end_and_the_doubt_stays(killed, clock):
    unsigned = report_of(killed, clock.now).unsigned
    clock.now += 3600
    pipeline = Pipeline(SqliteStore.open(killed), killed, clock=clock)
    assert pipeline.decide(call(1)).verdict.word == "allow"
    pipeline.end_session("/p", "s1")
    rows = [json.loads(row[4]) for row in records.after(pipeline.store, 0, (RESUMED,))]
    assert [(each["data"]["unsigned"], each["data"]["doubts"]) for each in rows] == [(unsigned, [])]
    pipeline.close()
    found = report_of(killed, clock.now + 3600)
    assert (found.ok, found.unsigned) == (True, 0)
    assert [(each.kind, each.seq) for each in found.notes] == [("start", rows[0]["seq"])]
    assert f"{unsigned} record(s)" in found.notes[0].reason


@pytest.mark.invariant("a record that was not closed says so once it goes on")
def test_a_kill_right_after_a_checkpoint_is_told_as_well(killed, clock):
    with Forger(killed) as forger:
        drop_what_was_not_signed(forger)
    pipeline = Pipeline(SqliteStore.open(killed), killed, clock=clock)
    pipeline.ledger.keep_signed()
    pipeline.close()
    found = report_of(killed, clock.now)
    assert found.ok and "may have been cut off" in found.notes[0].reason


def test_a_running_server_is_no_finding(clock):
    pipeline = Pipeline(SqliteStore.open(state_dir()), state_dir(), clock=clock)
    for number in range(130):
        pipeline.decide(call(number))
        if number % 10 == 0:
            found = report_of(state_dir(), clock.now)
            assert found.ok, told(found)
            assert any(each.kind == "unsigned" for each in found.notes) == bool(found.unsigned)
    late = report_of(state_dir(), clock.now + 3600)
    assert "does not sign it" in told(late)[0]
    pipeline.close()
    assert report_of(state_dir(), clock.now + 3600) == report_of(state_dir(), clock.now)


def test_a_key_made_anew_is_reported_when_the_folder_is_gone_and_made_again(killed, clock):
    with Forger(killed):
        pass
    shutil.rmtree(killed)
    pipeline = Pipeline(SqliteStore.open(killed), killed, clock=clock)
    assert pipeline.decide(call(1)).verdict.word == "allow"
    pipeline.close()
    found = report_of(killed, clock.now)
    assert found.broken is None
    assert [each.kind for each in found.findings] == ["start"]
    assert "an earlier record, which reached record" in told(found)[0]
    store = SqliteStore.open(killed, read_only=True)
    said = json.loads(next(iter(records.after(store, 0, (RESUMED,))))[4])["data"]
    store.close()
    assert "signature" in said["earlier"], "what the earlier one signed is kept in the new one"


def test_without_any_copy_a_new_key_is_not_seen_and_the_report_says_so(killed, clock):
    """What no check of these files can know, a checkpoint kept elsewhere can."""
    witness = (killed / COPIES).read_text().splitlines()[-1]
    with Forger(killed) as forger:
        make_everything_anew_under_a_key_of_their_own(forger)
    newest_copy(killed).write_text((killed / COPIES).read_text().strip())
    assert [each.kind for each in report_of(killed, clock.now).findings] == ["unsigned"], "it was not closed"
    kept = killed.parent / "elsewhere.json"
    kept.write_text(witness)
    assert "Not shown: whether code that can read ledger.key" in run("audit", "verify", code=8)
    assert "made anew" in run("audit", "verify", "--against", str(kept), code=6)


def test_a_copy_that_is_missing_is_reported_and_stays_on_the_record(killed, clock):
    newest_copy(killed).unlink()
    assert any("newest checkpoint is missing" in each for each in told(report_of(killed, clock.now)))
    pipeline = Pipeline(SqliteStore.open(killed), killed, clock=clock)
    pipeline.decide(call(1))
    pipeline.close()
    assert newest_copy(killed).exists()
    assert any("newest checkpoint was missing" in each for each in told(report_of(killed, clock.now)))


def test_a_store_that_was_moved_is_known_by_its_key(killed, clock, tmp_path):
    moved = tmp_path / "moved"
    killed.rename(moved)
    with Forger(moved) as forger:
        drop_what_was_answered(forger)
    assert any("reached record" in each for each in told(report_of(moved, clock.now)))


def test_findings_before_a_checkpoint_that_a_person_kept_are_notes(clock):
    pipeline = Pipeline(SqliteStore.open(state_dir()), state_dir(), clock=clock)
    pipeline.decide(call(1))
    clock.now -= 90_000
    pipeline.decide(call(2))
    pipeline.store.write(pipeline.ledger.checkpoint, durable=True)
    _, body, signature = records.last_checkpoint(pipeline.store)
    pipeline.close()
    found = report_of(state_dir(), clock.now)
    assert [(each.kind, each.seq) for each in found.findings] == [("time", 2)]
    found = report_of(state_dir(), clock.now, witnesses=(Checkpoint(body, signature),))
    assert (found.ok, found.against, [each.kind for each in found.notes]) == (True, 2, ["time"])


def test_a_clock_set_back_is_reported_and_stops_nothing(clock):
    pipeline = Pipeline(SqliteStore.open(state_dir()), state_dir(), clock=clock)
    for step in (0, -3, -600, 0):
        clock.now += step
        assert pipeline.decide(call(1)).verdict.word == "allow"
    pipeline.close()
    found = report_of(state_dir(), clock.now)
    assert found.ok
    assert [(each.kind, each.seq) for each in found.notes] == [("clock", 3)]
    assert SqliteStore.open(state_dir()).close() is None


def test_a_store_of_an_earlier_version_opens_and_goes_on(killed, clock):
    """Its checkpoints name none before them, and its answers may be unsigned."""
    with Forger(killed) as forger:
        signer = Signer(killed)
        forger.forget()
        forger.database.execute("DELETE FROM checkpoint")
        sealed = forger.database.execute("SELECT hash FROM record WHERE seq = 1").fetchone()[0]
        body = json.loads(signer.sign(1, sealed, clock.now).body)
        del body["previous"]
        text = json.dumps(body, sort_keys=True, separators=(",", ":"))
        made = (text, signer._private().sign(text.encode()).hex())
        forger.database.execute("INSERT INTO checkpoint VALUES (1, ?, ?)", made)
        line = json.dumps({"body": made[0], "signature": made[1]})
        (killed / COPIES).write_text(f"{line}\n")
        newest_copy(killed).unlink()
    found = report_of(killed, clock.now)
    assert found.broken is None and found.unsigned > MOST_RECORDS - 5
    pipeline = Pipeline(SqliteStore.open(killed), killed, clock=clock)
    assert pipeline.decide(call(1)).verdict.word == "allow"
    pipeline.close()
    found = report_of(killed, clock.now)
    assert found.broken is None and found.unsigned == 0
    assert [each.kind for each in (*found.notes, *found.findings)] == ["start"]


def test_the_background_check_says_what_it_found(killed, clock):
    with Forger(killed) as forger:
        leave_a_trigger_out(forger)
    pipeline, said = Pipeline(SqliteStore.open(killed), killed, clock=clock), []
    check = BackgroundCheck(pipeline.store, killed, pipeline.ledger, said.append)
    check.start()
    check.join(PATIENCE)
    assert any("the trigger record_no_delete is missing" in each for each in said)
    assert pipeline.ledger.broken == ""
    pipeline.close()


def test_rows_whose_records_are_gone_are_reported(clock):
    """Nothing else may show a record that was cut together with every checkpoint and copy."""
    pipeline = Pipeline(SqliteStore.open(state_dir()), state_dir(), clock=clock)
    work(pipeline, 3)
    pipeline.close()
    with Forger(state_dir()) as forger:
        forger.database.execute("DELETE FROM lookup")
        forger.database.execute("DELETE FROM record")
        forger.forget()
    (state_dir() / COPIES).unlink()
    newest_copy(state_dir()).unlink()
    texts = told(report_of(state_dir(), clock.now))
    assert any("the table question knows calls that have no record" in each for each in texts)
    assert any("counter `filed`" in each for each in texts)


def test_without_a_key_that_can_be_read_nothing_is_answered_and_nothing_runs(clock):
    pipeline = Pipeline(SqliteStore.open(state_dir()), state_dir(), clock=clock)
    asked = pipeline.decide(call(1, "Bash"), asking=True)
    pipeline.close()
    key = (state_dir() / KEY).read_bytes()
    (state_dir() / KEY).write_bytes(b"no key")
    pipeline = Pipeline(SqliteStore.open(state_dir()), state_dir(), clock=clock)
    with pytest.raises(LedgerError, match="cannot be signed"):
        pipeline.answer(asked.entry, "approved", actor="ada", channel="terminal")
    assert not pipeline.claim(asked.entry), "a yes that is not on the record is none"
    verdict = pipeline.decide(call(1)).verdict
    assert (verdict.word, verdict.stage) == ("deny", "record")
    assert "ledger.key" in verdict.reasons[0].text
    push = tool_call({"tool": "Bash", "arguments": {"command": "git push"}, "project": "/p"})
    assert pipeline.decide(push).verdict.word == "deny"
    (state_dir() / KEY).write_bytes(key)
    assert pipeline.decide(call(1)).verdict.word == "allow"
    pipeline.answer(asked.entry, "approved", actor="ada", channel="terminal")
    pipeline.close()
    assert report_of(state_dir(), clock.now).ok
