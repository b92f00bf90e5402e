import sys
import threading
import time

import pytest

from checkrein.call import Category, Effect, Risk, Verdict, tool_call
from checkrein.pipeline import Pipeline
from checkrein.sessions import Sessions
from checkrein.settings.sources import state_dir
from checkrein.store.sqlite import SqliteStore
from patience import PATIENCE, until

SECRET = Effect("read", "secret", "/p/.env")


class Empty:
    def query(self, sql, parameters=()):
        return []


def verdict(*effects, decision="logged_only"):
    risk = Risk(category=Category.low, effects=effects)
    return Verdict(decision=decision, stage="autonomy", risk=risk, reasons=())


def bash(command, project, session="s1"):
    return tool_call(
        {"tool": "Bash", "arguments": {"command": command}, "project": project, "session": session}
    )


def test_what_matters_later_is_remembered_and_the_rest_is_not():
    sessions = Sessions(Empty())
    written, read = Effect("write", "project", "/p/a.sh"), Effect("read", "project", "/p/a")
    sessions.note("s1", verdict(SECRET, written, read))
    assert set(sessions.history("s1")) == {SECRET, written}
    assert sessions.history("s2") == sessions.history("") == ()


def test_a_refused_call_did_nothing_and_an_asked_one_may_have():
    sessions = Sessions(Empty())
    sessions.note("s1", verdict(SECRET, decision="blocked"))
    assert sessions.history("s1") == ()
    sessions.note("s1", verdict(SECRET, decision="human_required"))
    assert sessions.history("s1") == (SECRET,)


@pytest.mark.invariant("many writes never push out a secret that was read")
def test_many_writes_never_push_out_a_secret_that_was_read():
    sessions = Sessions(Empty())
    sessions.note("s1", verdict(SECRET))
    for number in range(5_000):
        sessions.note("s1", verdict(Effect("write", "project", f"/p/{number}")))
    assert SECRET in sessions.history("s1")
    assert len(sessions.history("s1")) < 3_000


def test_the_oldest_session_is_forgotten_first(monkeypatch):
    monkeypatch.setattr("checkrein.sessions.SESSIONS", 2)
    sessions = Sessions(Empty())
    for name in ("a", "b", "a", "c"):
        sessions.note(name, verdict(SECRET))
    assert sessions.history("a")
    assert sessions.history("b") == ()


def test_a_flow_is_seen_across_calls_and_restarts(clock, project):
    """A secret read in one call, data leaving in a later one: each bearable, together critical."""
    first = Pipeline(SqliteStore.open(state_dir()), state_dir(), clock=clock)
    before = first.decide(bash("git push origin main", project)).verdict
    assert before.risk.category < Category.critical
    assert first.decide(bash("cat .env", project)).verdict.word == "ask"
    first.close()
    again = Pipeline(SqliteStore.open(state_dir()), state_dir(), clock=clock)
    after = again.decide(bash("git push origin main", project)).verdict
    other = again.decide(bash("git push origin main", project, session="s2")).verdict
    again.close()
    assert (after.risk.category, after.stage) == (Category.critical, "floor")
    assert other.risk.category < Category.critical


@pytest.mark.parametrize("session", ["s1", ""])
def test_a_call_may_bring_its_own_history(pipeline, project, session):
    call = tool_call(
        {
            "tool": "Bash",
            "arguments": {"command": "git push"},
            "project": project,
            "session": session,
            "history": [{"kind": "read", "scope": "secret", "target": "/p/.env"}],
        }
    )
    assert pipeline.decide(call).verdict.stage == "floor"


def stands_still_in(thread, function):
    """Whether the thread goes no further in this function, however often others get their turn."""

    def place():
        frame = sys._current_frames()[thread]
        return frame.f_lasti if frame.f_code is function.__code__ else None

    before = place()
    return before is not None and all(time.sleep(0.001) or place() == before for _ in range(10))


@pytest.mark.invariant(
    "what one thread notes is there for the next call, whoever reads the same session back"
)
def test_what_is_noted_while_another_thread_reads_the_session_back_is_there_for_the_next_call():
    """Two calls at once of a session nobody has met: the past of one is not lost to the other's reading."""
    reading, noted, main = threading.Event(), threading.Event(), threading.get_ident()

    class Slow(Empty):
        def query(self, sql, parameters=()):
            if threading.current_thread() is thread and not reading.is_set():
                reading.set()
                # Where reading and noting take turns, noting waits: then nothing can be lost.
                until(lambda: noted.is_set() or stands_still_in(main, Sessions.note))
            return []

    sessions = Sessions(Slow())
    thread = threading.Thread(target=sessions.history, args=("s1",))
    thread.start()
    assert reading.wait(PATIENCE)
    sessions.note("s1", verdict(SECRET))
    noted.set()
    thread.join()
    assert sessions.history("s1") == (SECRET,)


def test_many_threads_lose_nothing_of_a_session():
    sessions = Sessions(Empty())
    effects = [Effect("write", "project", f"/p/{number}") for number in range(400)]

    def work(own):
        for effect in own:
            sessions.note("s1", verdict(effect))
            assert effect in sessions.history("s1")

    threads = [threading.Thread(target=work, args=(effects[at::4],)) for at in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(sessions.history("s1")) == set(effects)


class Counted(Empty):
    def __init__(self):
        self.asked = 0

    def query(self, sql, parameters=()):
        self.asked += 1
        return []


@pytest.mark.invariant("a name is new once")
def test_of_a_session_that_was_just_named_nothing_is_read_back_once(monkeypatch):
    monkeypatch.setattr("checkrein.sessions.SESSIONS", 1)
    reader = Counted()
    sessions = Sessions(reader)
    sessions.begin("new")
    assert sessions.history("new") == () and reader.asked == 0
    sessions.history("another")
    before = reader.asked
    assert before and sessions.history("new") == () and reader.asked > before


@pytest.mark.invariant("a name is new once")
def test_a_session_that_was_new_is_read_back_when_it_is_met_again(monkeypatch, project):
    monkeypatch.setattr("checkrein.sessions.SESSIONS", 1)
    pipeline = Pipeline(SqliteStore.open(state_dir()), state_dir())
    pipeline.sessions.begin("s1")
    pipeline.decide(bash("cat .env", project))
    pipeline.decide(bash("ls", project, session="s2"))
    assert any(effect.scope == "secret" for effect in pipeline.sessions.history("s1"))
    pipeline.close()


def test_too_many_that_never_called_are_read_back_after_all(monkeypatch):
    monkeypatch.setattr("checkrein.sessions._MOST_NEW", 2)
    reader = Counted()
    sessions = Sessions(reader)
    for name in "abc":
        sessions.begin(name)
    sessions.history("c")
    assert reader.asked == 0
    sessions.history("a")
    assert reader.asked
