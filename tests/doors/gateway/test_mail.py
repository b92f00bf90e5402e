"""What goes onto the record in one moment goes together, and everybody hears of their own."""

import asyncio
import sqlite3
import threading
from functools import partial

import pytest

from checkrein.call import ToolCall
from checkrein.core.decision import DecisionRequest
from checkrein.doors.gateway.mail import CROWD, Mail
from checkrein.errors import StoreError
from checkrein.settings.sources import state_dir
from checkrein.store import Offer, records, rules
from checkrein.store.changes import change_number, set_number
from checkrein.store.sqlite import SqliteStore
from doors.gateway.loop_turns import loop_turns
from patience import PATIENCE, soon


def note(name, number):
    return lambda tx: set_number(tx, name, number)


def heard(error):
    if error is not None:
        raise error
    return "written"


def groups(pipeline, monkeypatch):
    """How many works each hand-over had."""
    found, offer = [], pipeline.store.offer

    def counted(offers):
        found.append(len(offers))
        offer(offers)

    monkeypatch.setattr(pipeline.store, "offer", counted)
    return found


def test_what_is_sent_in_one_moment_is_one_group_and_is_there_when_it_is_answered(pipeline, monkeypatch):
    found = groups(pipeline, monkeypatch)

    async def go():
        mail = Mail(pipeline.store)

        async def one(number):
            assert await mail.send(note(f"n{number}", number + 1), heard).answer() == "written"
            return change_number(pipeline.store, f"n{number}")

        return await asyncio.gather(*(one(number) for number in range(30)))

    assert asyncio.run(go()) == list(range(1, 31))
    # Whoever comes first has nobody to wait for.
    assert found == [1, 29]


def test_who_is_answered_by_the_writer_gets_their_own(pipeline):
    held, go_on = threading.Event(), threading.Event()

    def slow(_tx):
        held.set()
        go_on.wait()

    async def go():
        mail = Mail(pipeline.store)
        thread = threading.Thread(target=pipeline.store.write, args=(slow,))
        thread.start()
        held.wait()
        letters = [mail.send(note(f"n{n}", n), lambda _error, n=n: n) for n in range(200)]
        await loop_turns()
        assert not any(each.coming.done() for each in letters)
        go_on.set()
        found = await asyncio.gather(*(each.answer() for each in letters))
        thread.join()
        return found

    assert asyncio.run(go()) == list(range(200))


def test_one_that_cannot_be_written_takes_no_other_along(pipeline):
    def bad(_tx):
        raise ValueError("mine")

    async def go():
        mail = Mail(pipeline.store)
        letters = [mail.send(each, heard) for each in (note("a", 1), bad, note("b", 2))]
        return await asyncio.gather(*(each.answer() for each in letters), return_exceptions=True)

    first, second, third = asyncio.run(go())
    assert (first, third) == ("written", "written") and isinstance(second, ValueError)
    assert [change_number(pipeline.store, name) for name in "ab"] == [1, 2]


@pytest.mark.parametrize("late", [False, True])
def test_who_stopped_waiting_is_heard_for(pipeline, late):
    """Cancelled before it was written or after: it happened, and somebody learns of it."""
    unwanted = []

    async def go():
        mail = Mail(pipeline.store)

        async def wait():
            mail.send(note("b", 1), heard)
            await mail.send(note("a", 1), heard).answer(unwanted.append)

        task = asyncio.create_task(wait())
        await asyncio.sleep(0)
        if late:
            asyncio.get_running_loop().call_soon(task.cancel)
        else:
            task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await soon(lambda: unwanted)

    asyncio.run(go())
    assert unwanted == ["written"]
    assert change_number(pipeline.store, "a") == 1


def test_a_store_that_is_closed_is_an_answer(pipeline):
    async def go():
        mail = Mail(pipeline.store)
        pipeline.store.close()
        with pytest.raises(StoreError):
            await mail.send(note("a", 1), heard).answer()

    asyncio.run(go())


def test_what_waits_is_written_once_a_crowd_was_told_and_has_sent_on(pipeline):
    happened = []

    async def go():
        mail = Mail(
            pipeline.store, lambda: [Offer(note("meanwhile", 7), lambda _: happened.append("written"))]
        )

        async def one(number):
            await mail.send(note("a", number), heard).answer()
            asyncio.get_running_loop().call_soon(happened.append, "sent on")

        await one(0)
        await loop_turns()
        assert happened == ["sent on"]
        await asyncio.gather(*(one(number) for number in range(CROWD + 1)))
        await soon(lambda: "written" in happened)

    asyncio.run(go())
    assert happened == ["sent on"] * (CROWD + 2) + ["written"]
    assert change_number(pipeline.store, "meanwhile") == 7


def test_what_waits_and_cannot_be_written_is_told_and_harms_no_crowd(pipeline, monkeypatch):
    told, offer = [], pipeline.store.offer

    def full(offers):
        if any(each.tell == told.append for each in offers):
            raise StoreError("full")
        offer(offers)

    monkeypatch.setattr(pipeline.store, "offer", full)

    async def go():
        mail = Mail(pipeline.store, lambda: [Offer(note("meanwhile", 7), told.append)])
        for times in (1, 2):
            crowd = [mail.send(note(f"n{number}", 1), heard).answer() for number in range(CROWD + 1)]
            assert await asyncio.gather(*crowd) == ["written"] * (CROWD + 1)
            await soon(lambda times=times: len(told) == times)

    asyncio.run(go())
    assert [str(each) for each in told] == ["full"] * 2


def test_one_at_a_time_needs_no_waiting(pipeline):
    async def go():
        mail = Mail(pipeline.store)
        for number in range(1, 5):
            letter = mail.send(note("a", number), heard)
            assert letter.coming.done() and change_number(pipeline.store, "a") == number
            await asyncio.sleep(0)

    asyncio.run(go())


def test_what_a_crowd_sends_goes_together_from_then_on(pipeline, monkeypatch):
    found = groups(pipeline, monkeypatch)

    async def go():
        mail = Mail(pipeline.store)
        for _ in range(3):
            await asyncio.gather(*(mail.send(note("a", n), heard).answer() for n in range(10)))

    asyncio.run(go())
    assert found == [1, 9, 10, 10]


@pytest.mark.parametrize("enough", [True, False])
def test_who_is_alone_leaves_time_for_what_waits_where_there_is_enough(pipeline, enough):
    """After it sent on, and never before it heard of its own."""
    happened = []

    async def go():
        offers = [Offer(note("meanwhile", 7), lambda _: happened.append("written"))]
        mail = Mail(pipeline.store, lambda: offers, lambda: enough)
        await mail.send(note("alone", 1), heard).answer()
        happened.append("sent on")
        for _ in range(4):
            await asyncio.sleep(0)

    asyncio.run(go())
    assert happened == (["sent on", "written"] if enough else ["sent on"])


def test_what_nobody_waits_for_goes_with_the_next_and_keeps_its_place(pipeline, monkeypatch):
    found = groups(pipeline, monkeypatch)

    async def go():
        mail = Mail(pipeline.store)
        late = mail.send_later(note("a", 1), heard)
        await asyncio.sleep(0)
        assert not late.written and found == []
        await mail.send(note("a", 2), heard).answer()
        assert late.written and found == [2] and change_number(pipeline.store, "a") == 2
        alone = mail.send_later(note("b", 3), heard)
        async with asyncio.timeout(PATIENCE):
            await alone.answer()
        hurried = mail.send_later(note("c", 4), heard)
        mail.hurry()
        await asyncio.sleep(0)
        assert hurried.written

    asyncio.run(go())
    assert found == [2, 1, 1]


@pytest.mark.parametrize("error", [StoreError("mine"), ValueError("mine"), sqlite3.ProgrammingError("mine")])
@pytest.mark.parametrize("count", [1, CROWD + 2])
@pytest.mark.invariant("nobody waits for a word that never comes")
def test_nobody_waits_for_a_word_that_never_comes(pipeline, monkeypatch, error, count):
    def broken(*_):
        raise error

    monkeypatch.setattr(pipeline.store, "offer", broken)

    async def go():
        mail = Mail(pipeline.store)
        letters = [mail.send(note(f"n{number}", 1), heard) for number in range(count)]
        async with asyncio.timeout(PATIENCE):
            return await asyncio.gather(*(each.answer() for each in letters), return_exceptions=True)

    assert asyncio.run(go()) == [error] * count
    assert [change_number(pipeline.store, f"n{n}") for n in range(count)] == [0] * count


@pytest.mark.parametrize("error", [StoreError("mine"), ValueError("mine")])
def test_who_cannot_say_what_waits_harms_nobody(pipeline, error):
    def broken():
        raise error

    heard_of = []

    async def go():
        asyncio.get_running_loop().set_exception_handler(lambda _, what: heard_of.append(what["exception"]))
        mail = Mail(pipeline.store, broken)
        for times in (1, 2):
            crowd = [mail.send(note(f"n{number}", 1), heard).answer() for number in range(CROWD + 1)]
            assert await asyncio.gather(*crowd) == ["written"] * (CROWD + 1)
            await soon(lambda times=times: len(heard_of) == times)

    asyncio.run(go())
    assert heard_of == [error] * 2


def test_who_speaks_for_one_that_stopped_waiting_keeps_nobody_from_their_answer(pipeline):
    trouble, spoken = [], []
    held, go_on = threading.Event(), threading.Event()

    def fails(found):
        spoken.append(found)
        raise RuntimeError("mine")

    def slow(_tx):
        held.set()
        go_on.wait(PATIENCE)

    async def go():
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: trouble.append(context))
        mail = Mail(pipeline.store)
        thread = threading.Thread(target=pipeline.store.write, args=(slow,))
        thread.start()
        held.wait(PATIENCE)
        gone = asyncio.ensure_future(mail.send(note("a", 1), heard).answer(fails))
        stays = mail.send(note("b", 1), heard)
        await loop_turns()
        gone.cancel()
        await loop_turns()
        go_on.set()
        async with asyncio.timeout(PATIENCE):
            assert await stays.answer() == "written"
        await soon(lambda: trouble)
        thread.join()

    asyncio.run(go())
    assert spoken == ["written"] and len(trouble) == 1


class Faulty:
    """The writer's connection, on a system where a statement fails."""

    def __init__(self, connection, statement):
        self._connection, self._statement = connection, statement

    def execute(self, sql, *parameters):
        if self._statement in sql:
            raise sqlite3.OperationalError("disk I/O error")
        return self._connection.execute(sql, *parameters)

    def __getattr__(self, name):
        return getattr(self._connection, name)


def filled(store):
    pages = store.query("PRAGMA page_count")[0][0]
    store._writer.execute(f"PRAGMA max_page_count = {pages}")


FAULTS = {
    "a full disk": filled,
    "a commit that fails": lambda store: setattr(store, "_writer", Faulty(store._writer, "COMMIT")),
    "a record that fails": lambda store: setattr(store, "_writer", Faulty(store._writer, "INTO record")),
    "no transaction": lambda store: setattr(store, "_writer", Faulty(store._writer, "BEGIN")),
    "a closed store": lambda store: store.close(),
}


@pytest.mark.parametrize("count", [1, 3, 30])
@pytest.mark.parametrize("fault", FAULTS)
def test_no_verdict_leaves_whose_record_is_not_there(pipeline, project, fault, count):
    """INVARIANT: if recording fails, the verdict is deny, for each of those that share the commit."""
    allow = {"action": "allow", "server": "notes", "pattern": "*"}
    pipeline.note("rule_changed", {}, lambda tx: rules.add_rule(tx, "r1", allow, 1.0))
    words = {"text": "x" * 3_000}

    async def go():
        mail = Mail(pipeline.store)

        async def one(number):
            call = ToolCall(tool="read", server="notes", door="gateway", project=project, arguments=words)
            evaluation = pipeline.evaluate(DecisionRequest(call))
            if fault == "a closed store" and number:
                assert evaluation.judged is None
                return pipeline.commit(evaluation)
            assert evaluation.verdict.word == "allow" and evaluation.plain
            made = partial(pipeline.committed, evaluation)
            return await mail.send(pipeline.commit_work(evaluation), made).answer()

        whole = [await one(0)]
        FAULTS[fault](pipeline.store)
        async with asyncio.timeout(PATIENCE):
            return whole + await asyncio.gather(*(one(number + 1) for number in range(count)))

    found = asyncio.run(go())
    reader = SqliteStore.open(state_dir(), read_only=True)
    recorded = {row[3] for row in records.after(reader, 0, ("decided",))}
    reader.close()
    assert {each.entry for each in found if each.verdict.word == "allow"} == recorded
    refused = [each.verdict for each in found if each.verdict.word != "allow"]
    assert all((each.word, each.stage) == ("deny", "record") for each in refused)
    # One by itself needs neither a transaction nor a commit, and the full disk may have room for a few.
    if fault in ("a record that fails", "a closed store"):
        assert len(refused) == count
    elif count == 30:
        assert len(refused) >= count - 1
    if isinstance(pipeline.store._writer, Faulty):
        pipeline.store._writer = pipeline.store._writer._connection
