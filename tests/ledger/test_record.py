import random
import threading

import pytest

from checkrein.errors import LedgerError, StoreFullError
from checkrein.ledger.chain import Link, first_break
from checkrein.ledger.checkpoints import Signer
from checkrein.ledger.copies import Copies, kept, newest_copy
from checkrein.ledger.record import FILE_EVERY, Ledger, _spelled, first_id, new_id
from checkrein.ledger.signing import MOST_RECORDS, MOST_SECONDS
from checkrein.ledger.terms import terms_of
from checkrein.settings.sources import state_dir
from checkrein.store import lookup, records
from checkrein.store.sqlite import SqliteStore
from patience import PATIENCE


@pytest.fixture
def ledger(clock):
    store = SqliteStore.open(state_dir())
    yield Ledger(store, Signer(state_dir()), clock)
    store.close()


def whole(ledger):
    return first_break(Link(*row) for row in records.after(ledger.store, 0))


def test_ids_sort_by_time_and_do_not_repeat():
    assert new_id(1_800_000_000.0) < new_id(1_800_000_000.002) < new_id(1_900_000_000.0)
    assert len({new_id(5.0) for _ in range(1000)}) == 1000
    assert len(new_id(1_800_000_000.0)) == 16


def test_ids_are_spelled_as_they_always_were():
    moments = (0, 1_712_345_678.901, 1_800_000_000.0)
    assert [first_id(at) for at in moments] == ["0000000000000000", "1htqw311n0000000", "1mcc5rm000000000"]
    assert _spelled(1_800_000_000_123 << 35 | 0x5A5A5A5A5) == "1mcc5rm3vpjtb9d5"
    assert _spelled((1 << 80) - 1) == "z" * 16
    chance = random.Random(1)
    numbers = sorted(chance.getrandbits(80) for _ in range(1000))
    ids = [_spelled(number) for number in numbers]
    assert ids == sorted(ids)
    letters = "0123456789abcdefghjkmnpqrstvwxyz"
    assert [sum(letters.index(x) << 5 * at for at, x in enumerate(reversed(each))) for each in ids] == numbers


def test_records_from_many_threads_make_one_chain(ledger):
    def write():
        for _ in range(50):
            ledger.store.write(lambda tx: ledger.append(tx, "note", {"tool": "x"}))

    threads = [threading.Thread(target=write) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert whole(ledger)[0] == 300


def test_a_failed_neighbour_leaves_no_hole_in_the_chain(ledger):
    gate = threading.Event()

    def fails(tx):
        ledger.append(tx, "note", {})
        raise ValueError

    futures = [ledger.store.submit(lambda tx: gate.wait(PATIENCE))]
    for number in range(9):
        work = fails if number == 4 else lambda tx: ledger.append(tx, "note", {})
        futures.append(ledger.store.submit(work))
    gate.set()
    outcomes = [future.exception(5) for future in futures]
    assert sum(outcome is not None for outcome in outcomes) == 1
    assert whole(ledger)[0] == 8


def test_a_long_record_is_checkpointed_by_itself(ledger):
    def many(tx):
        for _ in range(MOST_RECORDS + 5):
            ledger.append(tx, "note", {})

    note(ledger)
    assert signed(ledger) == [1], "the first of a process is"
    ledger.store.write(many)
    assert signed(ledger) == [1, 1 + MOST_RECORDS]
    ledger.store.write(many)
    assert signed(ledger)[2:] == [1 + 2 * MOST_RECORDS]
    for _ in range(MOST_RECORDS - 11):
        ledger.store.write(lambda tx: ledger.append(tx, "note", {}), alone=True)
        assert len(signed(ledger)) == 3
    ledger.store.write(lambda tx: ledger.append(tx, "note", {}), alone=True)
    assert signed(ledger)[3:] == [1 + 3 * MOST_RECORDS]
    assert whole(ledger)[0] == 1 + 3 * MOST_RECORDS


def signed(ledger):
    return [row[0] for row in records.checkpoints(ledger.store)]


def note(ledger, kind="note", **data):
    ledger.store.write(lambda tx: ledger.append(tx, kind, data))


@pytest.mark.invariant("the first record of a process is signed, so that a cut in front of it is seen")
def test_a_record_that_follows_an_unsigned_one_after_a_minute_is_signed(ledger, clock):
    note(ledger)
    assert signed(ledger) == [1]
    note(ledger)
    clock.now += MOST_SECONDS - 1
    note(ledger)
    assert signed(ledger) == [1]
    clock.now += 1
    note(ledger)
    assert signed(ledger) == [1, 4]
    clock.now += 10 * MOST_SECONDS
    note(ledger)
    assert signed(ledger) == [1, 4], "it is the first unsigned one that counts"
    clock.now -= 5
    note(ledger)
    assert signed(ledger) == [1, 4, 6], "nobody knows how old the one before is"


def test_a_server_s_first_record_is_signed_when_it_comes_by(ledger):
    ledger.sign_first_record_later()
    note(ledger)
    assert signed(ledger) == []
    ledger.keep_signed()
    assert signed(ledger) == [1]
    note(ledger)
    ledger.keep_signed()
    assert signed(ledger) == [1]


def test_a_server_s_first_answer_is_signed_at_once(ledger):
    ledger.sign_first_record_later()
    note(ledger, "answered")
    assert signed(ledger) == [1]


def test_who_comes_by_signs_what_waits_for_a_minute(ledger, clock):
    note(ledger)
    note(ledger)
    ledger.keep_signed()
    clock.now += MOST_SECONDS - 4
    ledger.keep_signed()
    assert signed(ledger) == [1]
    ledger.keep_signed(5)
    assert signed(ledger) == [1, 2]
    ledger.keep_signed(5)
    assert signed(ledger) == [1, 2]


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("answered", {}),
        ("released", {}),
        ("granted", {}),
        ("session_ended", {}),
        ("decided", {"verdict": "deny"}),
    ],
)
@pytest.mark.invariant("no more than 63 records, and none of a person or a refusal, are committed unsigned")
def test_what_matters_is_signed_with_its_record(ledger, kind, data):
    note(ledger)
    note(ledger, "decided", verdict="allow")
    assert signed(ledger) == [1]
    note(ledger, kind, **data)
    assert signed(ledger) == [1, 3]


@pytest.mark.invariant("a head is signed in the transaction of the record it covers, or that is not written")
def test_a_record_whose_checkpoint_cannot_be_signed_is_not_written(ledger, clock):
    class Failing(Signer):
        fails = True

        def sign(self, *said):
            if self.fails:
                raise LedgerError("The record cannot be signed.")
            return super().sign(*said)

    note(ledger)
    signer = Failing(state_dir())
    again = Ledger(ledger.store, signer, clock)
    with pytest.raises(LedgerError, match="cannot be signed"):
        note(again)
    signer.fails = False
    note(again)
    signer.fails = True
    with pytest.raises(LedgerError, match="cannot be signed"):
        note(again, "answered")
    assert (whole(again)[0], signed(again)) == (2, [1, 2])
    for _ in range(MOST_RECORDS - 1):
        note(again)
    with pytest.raises(LedgerError, match="cannot be signed"):
        note(again)
    assert whole(again)[0] == MOST_RECORDS + 1
    signer.fails = False
    note(again, "answered")
    assert signed(again) == [1, 2, MOST_RECORDS + 2]


@pytest.mark.invariant("a checkpoint is on the disk before its copy is")
def test_a_checkpoint_is_copied_once_its_commit_waited_for_the_disk(clock):
    store = SqliteStore.open(state_dir())
    copies = Copies(state_dir(), newest_copy(state_dir()))
    ledger, seen = Ledger(store, Signer(state_dir()), clock, copies=copies), []

    def answer(tx):
        ledger.append(tx, "answered", {})
        # Looked at while the commit has not happened, then once it has.
        tx.before_commit(lambda _: seen.append(kept(state_dir())))
        tx.after(lambda: seen.append((tx.durable, kept(state_dir()))))

    store.write(answer)
    assert seen == [[], (False, [])]
    store.write(answer, durable=True)
    assert seen[2] in ([], kept(state_dir())[:1]), "the first one may be copied by itself by now"
    durable, copied = seen[3]
    assert durable and [each.content["seq"] for each in copied] == [1, 2]
    store.close()


@pytest.mark.invariant("nothing is signed on top of a checkpoint that our key did not sign")
@pytest.mark.parametrize("key", ["another", "none"])
def test_no_other_key_goes_on_with_a_record(ledger, clock, key):
    note(ledger, "answered")
    (state_dir() / "ledger.key").unlink()
    if key == "another":
        assert Signer(state_dir()).public
    again = Ledger(ledger.store, Signer(state_dir()), clock)
    again.open(ledger.store)
    with pytest.raises(LedgerError, match="not signed by this installation"):
        note(again, "answered")
    assert signed(again) == [1]
    assert (state_dir() / "ledger.key").exists() == (key == "another")


def test_nothing_new_is_not_signed_again(ledger):
    assert ledger.store.write(ledger.checkpoint) is None
    note(ledger)
    assert ledger.store.write(ledger.checkpoint) is None
    note(ledger)
    assert ledger.store.write(ledger.checkpoint).content["seq"] == 2
    assert ledger.store.write(ledger.checkpoint) is None


def test_the_start_up_check_finds_a_change_since_the_last_checkpoint(ledger):
    for _ in range(3):
        ledger.store.write(lambda tx: ledger.append(tx, "note", {"n": 1}))
    ledger.store.write(ledger.checkpoint)
    for _ in range(3):
        ledger.store.write(lambda tx: ledger.append(tx, "note", {"n": 1}))
    ledger.open(ledger.store)
    assert ledger.broken == ""

    def forge(tx):
        tx.execute("DROP TRIGGER record_no_update")
        tx.execute("UPDATE record SET body = replace(body, '\"n\":1', '\"n\":2') WHERE seq = 5")

    ledger.store.write(forge)
    ledger.open(ledger.store)
    assert "record 5" in ledger.broken
    with pytest.raises(LedgerError, match="does not verify"):
        ledger.store.write(lambda tx: ledger.append(tx, "note", {}))


def test_a_full_disk_costs_no_link(ledger):
    ledger.store.write(lambda tx: ledger.append(tx, "note", {}))
    pages = ledger.store.query("PRAGMA page_count")[0][0]
    ledger.store.write(lambda tx: tx.query(f"PRAGMA max_page_count = {pages + 3}"), alone=True)
    with pytest.raises(StoreFullError):
        ledger.store.write(lambda tx: ledger.append(tx, "note", {"big": "x" * 200_000}))
    ledger.store.write(lambda tx: tx.query("PRAGMA max_page_count = 1000000"), alone=True)
    ledger.store.write(lambda tx: ledger.append(tx, "note", {}))
    assert whole(ledger)[0] == 2


def test_entries_are_filed_in_bulk_and_none_is_forgotten(ledger, clock):
    def decide(number):
        return lambda tx: ledger.append(tx, "decided", {"n": number}, entry=f"e{number:03}", terms=["tool:x"])

    many = FILE_EVERY + 86
    for number in range(many):
        ledger.store.write(decide(number))
    ledger.store.write(lambda tx: None)
    filed = lookup.filed(ledger.store)
    assert 0 < filed <= many
    again = Ledger(ledger.store, ledger.signer, clock)
    again.open(ledger.store)
    again.store.write(again.file)
    assert lookup.filed(ledger.store) == many
    assert len(lookup.find(ledger.store, ["tool:x"], "", "", 1000)) == filed


def test_what_was_not_filed_before_a_crash_is_filed_after_it(ledger, clock):
    data = {"project": "/p", "session": "s", "tool": "Bash", "decision": "blocked", "domains": ["a", "b"]}
    ledger.store.write(lambda tx: ledger.append(tx, "decided", data, entry="e1", terms=terms_of(data)))
    assert lookup.find(ledger.store, ["domain:b"], "", "", 10) == []
    again = Ledger(ledger.store, ledger.signer, clock)
    again.open(ledger.store)
    again.store.write(again.file)
    assert lookup.find(ledger.store, ["domain:b", "project:/p"], "", "", 10) == ["e1"]


@pytest.mark.parametrize("body", ["not json", "[]", "{}"])
def test_a_record_nobody_can_read_breaks_the_ledger_not_the_program(ledger, clock, body):
    ledger.store.write(lambda tx: ledger.append(tx, "decided", {}, entry="e1", terms=["tool:x"]))
    ledger.store.write(ledger.checkpoint)

    def forge(tx):
        tx.execute("DROP TRIGGER record_no_update")
        tx.execute("UPDATE record SET body = ?", (body,))

    ledger.store.write(forge)
    again = Ledger(ledger.store, ledger.signer, clock)
    again.open(ledger.store)
    assert again.broken
    with pytest.raises(LedgerError):
        ledger.store.write(lambda tx: again.append(tx, "note", {}))


def decided(ledger, number):
    return lambda tx: ledger.append(tx, "decided", {"n": number}, entry=f"e{number:03}", terms=["tool:x"])


@pytest.mark.invariant("what could not be filed now is filed with the next")
@pytest.mark.parametrize("lost", ["the group that is to have it filed", "the filing itself"])
def test_what_could_not_be_filed_is_filed_with_the_next(ledger, monkeypatch, lost):
    """Neither a group that is taken back nor a disk that is full for a moment ends the filing for good."""
    for number in range(FILE_EVERY):
        ledger.store.write(decided(ledger, number))
    if lost == "the filing itself":
        monkeypatch.setattr(lookup, "file", broken)
        ledger.store.write(decided(ledger, 900))
        ledger.store.write(lambda tx: None)
        monkeypatch.undo()
    else:
        with pytest.raises(StoreFullError):
            ledger.store.write(lambda tx: (decided(ledger, 900)(tx), broken()))
    assert lookup.filed(ledger.store) == 0
    ledger.store.write(decided(ledger, 901))
    ledger.store.write(lambda tx: None)
    assert lookup.filed(ledger.store) >= FILE_EVERY
    assert len(ledger._unfiled) < FILE_EVERY


def test_who_writes_anyway_files_a_lot_that_is_worth_it(ledger):
    for number in range(FILE_EVERY // 2):
        assert not ledger.worth_filing
        ledger.store.write(decided(ledger, number))
    assert ledger.worth_filing
    ledger.store.write(ledger.file)
    assert not ledger.worth_filing
    assert lookup.filed(ledger.store) == FILE_EVERY // 2
    assert len(lookup.find(ledger.store, ["tool:x"], "", "", 1000)) == FILE_EVERY // 2


def broken(*_):
    raise StoreFullError("The disk is full.")
