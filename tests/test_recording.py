"""Verdicts on the record: before they leave, whole, readable, and with all that they use up."""

import threading

import pytest

from checkrein.call import ToolCall, canonical, tool_call
from checkrein.ledger.query import Filter, entries
from checkrein.ledger.verify import verify
from checkrein.pipeline import Pipeline
from checkrein.settings.sources import state_dir
from checkrein.store import questions, records, rules
from checkrein.store.sqlite import SqliteStore
from checkrein.store.trust import put_trust, trust_of
from deciding import asked, bash, in_session, kinds


@pytest.mark.parametrize("where", ["arguments", "session", "agent", "output"])
def test_halves_of_letters_are_recorded_and_read_back(home, clock, where):
    """A program may hand over any text; what cannot be a letter must not make the record unreadable."""
    half = "half \udc80 \ud83d"
    first = Pipeline(SqliteStore.open(state_dir()), state_dir(), clock=clock)
    more = {"arguments": {"command": f"ls {half}"}} if where == "arguments" else {}
    given = {"tool": "Bash", "arguments": {"command": "ls"}, **more}
    decided = first.decide(ToolCall(**given, **({where: half} if where in ("session", "agent") else {})))
    assert decided.verdict.stage != "record"
    first.finish(decided.entry, "success", output=half if where == "output" else "done")
    (line,) = [each for path in state_dir().glob("audit/*/*.jsonl") for each in path.read_text().splitlines()]
    first.close()
    again = Pipeline(SqliteStore.open(state_dir()), state_dir(), clock=clock)
    assert again.ledger.broken == "" and again.mirror.trouble == ""
    assert verify(again.store, state_dir(), again.ledger.signer.public).ok
    (found,) = entries(again.store, Filter())
    assert (found.id, found.result) == (decided.entry, "success") and "\\udc80" in line
    again.close()


@pytest.mark.invariant("a verdict leaves only after its record is committed")
def test_every_verdict_is_on_the_record_before_it_leaves(pipeline):
    for command in ("ls", "make x", "git push", "curl https://x.example"):
        decided = pipeline.decide(bash(command))
        (found,) = [each for each in entries(pipeline.store, Filter()) if each.id == decided.entry]
        assert (found.decision, found.stage) == (decided.verdict.decision, decided.verdict.stage)


class Faulty:
    """A real store whose writes fail while it is `broken`: before anything is done, or at the commit."""

    def __init__(self, store):
        self._store, self.broken = store, ""

    def write(self, work, **how):
        if self.broken == "begin":
            raise OSError(5, "Input/output error")
        return self._store.write(self._failing(work) if self.broken == "commit" else work, **how)

    @staticmethod
    def _failing(work):
        def fails(tx):
            work(tx)
            raise OSError(5, "Input/output error")

        return fails

    def __getattr__(self, name):
        return getattr(self._store, name)


@pytest.fixture
def faulty(clock):
    store = Faulty(SqliteStore.open(state_dir()))
    made = Pipeline(store, state_dir(), clock=clock)
    yield store, made
    store.broken = ""
    made.close()


@pytest.mark.invariant("a verdict leaves only after its record is committed")
@pytest.mark.invariant("if recording fails, the verdict is deny")
@pytest.mark.parametrize("command", ["ls", "make x", "git push"])
@pytest.mark.parametrize("broken", ["begin", "commit"])
def test_a_verdict_that_cannot_be_recorded_is_deny(faulty, broken, command):
    store, pipeline = faulty
    usual = pipeline.judge(bash(command)).verdict.word
    store.broken = broken
    verdict = pipeline.decide(bash(command), asking=True).verdict
    assert (verdict.word, verdict.stage) == ("deny", "record")
    assert "could not be judged and recorded" in verdict.reasons[0].text
    store.broken = ""
    assert kinds(pipeline) == []
    assert pipeline.decide(bash(command)).verdict.word == usual


def test_a_full_disk_denies_with_a_clear_word_and_heals(pipeline):
    assert pipeline.decide(bash("ls")).verdict.word == "allow"
    pages = pipeline.store.query("PRAGMA page_count")[0][0]
    pipeline.store.write(lambda tx: tx.query(f"PRAGMA max_page_count = {pages + 3}"), alone=True)
    big = tool_call({"tool": "Read", "arguments": {"file_path": "x" * 60_000}})
    verdict = pipeline.decide(big).verdict
    assert (verdict.word, verdict.stage) == ("deny", "record")
    assert "full" in verdict.reasons[0].text
    assert "Free some space" in verdict.remedy
    pipeline.store.write(lambda tx: tx.query("PRAGMA max_page_count = 1000000"), alone=True)
    assert pipeline.decide(big).verdict.word == "allow"


def test_a_closed_store_denies(clock):
    made = Pipeline(SqliteStore.open(state_dir()), state_dir(), clock=clock)
    made.close()
    assert made.decide(bash("ls")).verdict.word == "deny"


def test_ac_023_secrets_in_a_command_are_masked_in_the_record(pipeline):
    secret = "s3cr3t-" + "value-99"
    pipeline.decide(bash(f"API_KEY={secret} curl localhost"))
    pipeline.decide(bash(f"curl -H 'Authorization: Bearer {secret}' https://x.example"))
    pipeline.decide(tool_call({"tool": "Write", "arguments": {"env": {"DB_PASSWORD": secret}}}))
    decided = pipeline.decide(bash("ls"))
    pipeline.finish(decided.entry, "success", output=f"DB_PASSWORD={secret}\n")
    whole = "".join(row[4] for row in records.after(pipeline.store, 0))
    assert secret not in whole
    assert "API_KEY=" in whole


def test_a_score_nobody_earned_is_set_aside_and_named(pipeline, project):
    pipeline.finish(pipeline.decide(bash("ls", project)).entry, "success")
    forged = trust_of(pipeline.store, project)["file_read"] | {"score": 0.99}
    pipeline.store.write(lambda tx: put_trust(tx, project, "file_read", forged))
    verdict = pipeline.decide(bash("ls", project)).verdict
    assert verdict.trust == {"file_read": 0.3}
    assert kinds(pipeline)[-2:] == ["trust_quarantined", "decided"]
    assert trust_of(pipeline.store, project) == {}


def test_calls_at_once_never_use_a_rule_more_often_than_allowed(pipeline):
    allow = {"action": "allow", "tool": "Bash", "uses": 5}
    pipeline.note("rule_changed", {}, lambda tx: rules.add_rule(tx, "r1", allow, 1.0))
    words = []

    def decide():
        words.extend(pipeline.decide(bash("make x")).verdict.word for _ in range(5))

    threads = [threading.Thread(target=decide) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(words) == ["allow"] * 5 + ["ask"] * 15


def test_denies_and_high_risk_allows_are_durable(pipeline, monkeypatch):
    seen = []
    real = pipeline.store.write

    def write(work, *, durable=False, alone=False):
        seen.append(durable)
        return real(work, durable=durable, alone=alone)

    monkeypatch.setattr(pipeline.store, "write", write)
    pipeline.note(
        "rule_changed", {}, lambda tx: rules.add_rule(tx, "r", {"action": "allow", "tool": "Bash"}, 1.0)
    )
    seen.clear()
    pipeline.decide(bash("ls"))
    pipeline.decide(bash("rm -rf build"))
    pipeline.decide(bash("git push"))
    decided = pipeline.decide(tool_call({"tool": "Mystery"}), asking=True)
    pipeline.answer(decided.entry, "approved", actor="ada", channel="terminal")
    assert seen == [False, True, True, False, True]


def test_hostile_calls_are_judged_and_recorded(pipeline):
    deep = {}
    for _ in range(300):
        deep = {"x": deep}
    for arguments in (
        deep,
        {"command": "\ud800\udfff\x00"},
        {"command": 10**400},
        {"x" * 10_000: "y" * 200_000},
    ):
        decided = pipeline.decide(tool_call({"tool": "Bash", "arguments": arguments, "session": "\ud800"}))
        assert decided.verdict.word in ("ask", "deny")
    assert canonical(deep)


def test_asking_makes_a_question_that_waits_and_runs_out(pipeline, project, clock):
    entry = asked(pipeline, "make x", project)
    (question,) = questions.waiting(pipeline.store)
    assert (question.entry, question.session, question.project) == (entry, "s1", project)
    assert question.binding == in_session("make x", project).binding
    assert question.expires_at > clock()
    assert kinds(pipeline) == ["decided", "asked"]
    pipeline.decide(in_session("make y", project))
    pipeline.decide(in_session("ls", project), asking=True)
    pipeline.decide(in_session("git push", project), asking=True)
    assert len(questions.waiting(pipeline.store)) == 1
