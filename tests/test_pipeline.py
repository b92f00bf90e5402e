import threading

import msgspec
import pytest

from checkrein import memory
from checkrein import pipeline as pipeline_module
from checkrein.asking import Answerer, Remember
from checkrein.call import ToolCall, canonical, tool_call
from checkrein.errors import InputError, NotFoundError
from checkrein.ledger.entries import body_of_row, fold
from checkrein.ledger.query import Filter, entries
from checkrein.ledger.verify import verify
from checkrein.pipeline import Pipeline
from checkrein.policies import Policies
from checkrein.settings.sources import state_dir
from checkrein.store import questions, records, rules
from checkrein.store.grants import end_session_grants
from checkrein.store.phases import clear_phase, set_phase
from checkrein.store.sqlite import SqliteStore
from checkrein.store.trust import put_trust, trust_of


def bash(command="ls", project="", **extra):
    return tool_call({"tool": "Bash", "arguments": {"command": command}, "project": project, **extra})


def kinds(pipeline):
    return [row[2] for row in records.after(pipeline.store, 0)]


def score(pipeline, project, domain):
    return trust_of(pipeline.store, project)[domain]["score"]


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


def test_every_verdict_is_on_the_record_before_it_leaves(pipeline):
    for command in ("ls", "make x", "git push", "curl https://x.example"):
        decided = pipeline.decide(bash(command))
        (found,) = [each for each in entries(pipeline.store, Filter()) if each.id == decided.entry]
        assert (found.decision, found.stage) == (decided.verdict.decision, decided.verdict.stage)


@pytest.mark.parametrize("where", ["append", "new_head"])
def test_a_verdict_that_cannot_be_recorded_is_deny(pipeline, monkeypatch, where):
    def broken(*_args, **_more):
        raise OSError(5, "Input/output error")

    target = pipeline.ledger if where == "append" else records
    monkeypatch.setattr(target, "append", broken)
    verdict = pipeline.decide(bash("ls")).verdict
    assert (verdict.word, verdict.stage) == ("deny", "record")
    assert "could not be judged and recorded" in verdict.reasons[0].text
    monkeypatch.undo()
    assert kinds(pipeline) == []
    assert pipeline.decide(bash("ls")).verdict.word == "allow"


def test_a_full_disk_denies_with_a_clear_word_and_heals(pipeline):
    assert pipeline.decide(bash("ls")).verdict.word == "allow"
    pages = pipeline.store.query("PRAGMA page_count")[0][0]
    pipeline.store._writer.execute(f"PRAGMA max_page_count = {pages + 3}")
    big = tool_call({"tool": "Read", "arguments": {"file_path": "x" * 60_000}})
    verdict = pipeline.decide(big).verdict
    assert (verdict.word, verdict.stage) == ("deny", "record")
    assert "full" in verdict.reasons[0].text
    assert "Free some space" in verdict.remedy
    pipeline.store._writer.execute("PRAGMA max_page_count = 1000000")
    assert pipeline.decide(big).verdict.word == "allow"


@pytest.mark.parametrize(("module", "stage"), [(memory, "classify"), (pipeline_module, "decide")])
def test_a_stage_that_breaks_is_a_refusal(pipeline, monkeypatch, module, stage):
    def broken(*_args, **_more):
        raise RuntimeError("boom")

    monkeypatch.setattr(module, stage, broken)
    verdict = pipeline.decide(bash("ls")).verdict
    assert (verdict.word, verdict.decision) == ("deny", "blocked")
    assert "boom" in verdict.reasons[0].text


def test_a_closed_store_denies(clock):
    made = Pipeline(SqliteStore.open(state_dir()), state_dir(), clock=clock)
    made.close()
    assert made.decide(bash("ls")).verdict.word == "deny"


def test_ac_014_broken_settings_block_everything_until_they_are_fixed(pipeline, user_settings):
    assert pipeline.decide(bash("ls")).verdict.word == "allow"
    for broken in (
        "trust = [",
        "[trust]\ninitial_score = 0.9",
        "[[rules]]\naction = 'allow'",
        "[trust]\nscore = 1",
    ):
        user_settings(broken)
        verdict = pipeline.decide(bash("ls")).verdict
        assert (verdict.decision, verdict.stage) == ("blocked", "settings")
        assert "config.toml" in verdict.reasons[0].text or "rules[1]" in verdict.reasons[0].text
    user_settings("")
    assert pipeline.decide(bash("ls")).verdict.word == "allow"


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


def test_ac_028_a_fresh_installation_starts_at_030(pipeline):
    verdict = pipeline.decide(bash("ls")).verdict
    assert verdict.trust == {"file_read": 0.3}
    assert trust_of(pipeline.store, "") == {}


def test_ac_029_what_was_earned_is_there_after_a_restart(clock, project):
    first = Pipeline(SqliteStore.open(state_dir()), state_dir(), clock=clock)
    for _ in range(7):
        first.finish(first.decide(bash("ls", project)).entry, "success")
    earned = score(first, project, "file_read")
    first.close()
    again = Pipeline(SqliteStore.open(state_dir()), state_dir(), clock=clock)
    assert again.decide(bash("ls", project)).verdict.trust == {"file_read": earned}
    again.close()


def test_trust_is_earned_by_project_and_domain(pipeline, project):
    pipeline.finish(pipeline.decide(bash("ls", project)).entry, "success")
    pipeline.finish(pipeline.decide(bash("pytest", project)).entry, "failure")
    assert score(pipeline, project, "file_read") == pytest.approx(0.335)
    assert score(pipeline, project, "test_run") == pytest.approx(0.255)
    assert pipeline.decide(bash("ls", "/elsewhere")).verdict.trust == {"file_read": 0.3}


def test_an_outcome_reported_twice_counts_once(pipeline, project):
    decided = pipeline.decide(bash("ls", project))
    for _ in range(3):
        pipeline.finish(decided.entry, "success")
    pipeline.finish(decided.entry, "failure")
    assert trust_of(pipeline.store, project)["file_read"]["total_operations"] == 1
    assert kinds(pipeline) == ["decided", "finished"]


@pytest.mark.parametrize("outcome", ["unknown", "timeout", "cancelled", "denied"])
def test_only_success_and_failure_move_trust(pipeline, project, outcome):
    pipeline.finish(pipeline.decide(bash("ls", project)).entry, outcome)
    assert trust_of(pipeline.store, project) == {}


def test_a_refused_call_that_reports_success_earns_nothing(pipeline, project):
    refused = pipeline.decide(bash("git push", project))
    pipeline.finish(refused.entry, "success")
    asked = pipeline.decide(bash("make x", project))
    pipeline.answer(asked.entry, "denied", actor="ada", channel="terminal")
    pipeline.finish(asked.entry, "success")
    assert trust_of(pipeline.store, project) == {}


def test_the_global_domain_is_never_credited(pipeline, project):
    pipeline.finish(pipeline.decide(tool_call({"tool": "Mystery", "project": project})).entry, "success")
    assert trust_of(pipeline.store, project) == {}


def test_a_session_wakes_what_slept_too_long(pipeline, project, clock):
    pipeline.finish(pipeline.decide(bash("ls", project)).entry, "success")
    clock.pass_days(20)
    pipeline.start_session(project, "s2")
    assert trust_of(pipeline.store, project)["file_read"]["is_warming_up"] is True
    pipeline.start_session(project, "s3")
    assert trust_of(pipeline.store, project)["file_read"]["warmup_remaining"] == 5


def test_a_score_nobody_earned_is_set_aside_and_named(pipeline, project):
    pipeline.finish(pipeline.decide(bash("ls", project)).entry, "success")
    forged = trust_of(pipeline.store, project)["file_read"] | {"score": 0.99}
    pipeline.store.write(lambda tx: put_trust(tx, project, "file_read", forged))
    verdict = pipeline.decide(bash("ls", project)).verdict
    assert verdict.trust == {"file_read": 0.3}
    assert kinds(pipeline)[-2:] == ["trust_quarantined", "decided"]
    assert trust_of(pipeline.store, project) == {}


def test_a_rule_takes_effect_on_the_next_call_and_its_uses_run_out(pipeline):
    allow = {"action": "allow", "tool": "Bash", "uses": 2}
    pipeline.note("rule_changed", {}, lambda tx: rules.add_rule(tx, "r1", allow, 1.0))
    words = [pipeline.decide(bash("make x")).verdict.word for _ in range(4)]
    assert words == ["allow", "allow", "ask", "ask"]


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


def test_a_project_file_tightens_at_once_and_loosens_only_when_accepted(pipeline, project, home):
    from pathlib import Path

    from checkrein.settings.sources import content_hash
    from checkrein.store.policies import accept

    path = Path(project, "checkrein.toml")
    path.write_text('[[rules]]\naction = "allow"\ntool = "Bash"\n[[rules]]\naction = "deny"\ntool = "Read"\n')
    assert pipeline.decide(bash("make x", project)).verdict.word == "ask"
    assert pipeline.decide(tool_call({"tool": "Read", "project": project})).verdict.word == "deny"
    sha256 = content_hash(path.read_bytes())
    pipeline.note("policy_accepted", {}, lambda tx: accept(tx, str(path), sha256, 1.0))
    assert pipeline.decide(bash("make x", project)).verdict.word == "allow"
    path.write_text(path.read_text() + "# changed\n")
    assert pipeline.decide(bash("make x", project)).verdict.word == "ask"


def test_a_released_call_passes_the_floor_and_no_deny(pipeline, user_settings):
    assert pipeline.decide(bash("curl https://x.example")).verdict.stage == "floor"
    assert pipeline.decide(bash("curl https://x.example"), released=True).verdict.stage == "release"
    user_settings('[[rules]]\naction = "deny"\ntool = "Bash"')
    assert pipeline.decide(bash("curl https://x.example"), released=True).verdict.word == "deny"


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
    decided = pipeline.decide(tool_call({"tool": "Mystery"}))
    pipeline.answer(decided.entry, "approved", actor="ada", channel="terminal")
    assert seen == [False, True, True, False, True]


def test_words_that_do_not_exist_are_refused(pipeline):
    decided = pipeline.decide(bash("ls"))
    with pytest.raises(InputError):
        pipeline.finish(decided.entry, "great")
    with pytest.raises(InputError):
        pipeline.answer(decided.entry, "yes", actor="a", channel="c")
    for method in (pipeline.start, lambda entry: pipeline.finish(entry, "success")):
        with pytest.raises(NotFoundError):
            method("nobody")
    assert kinds(pipeline) == ["decided"]


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


@pytest.mark.parametrize("command", ["make build", "node server.js", "./run.sh", "ls && make"])
def test_ac_024_planning_blocks_shell_exec(pipeline, project, command):
    decided = pipeline.decide(bash(command, project), phase="planning")
    assert (decided.verdict.decision, decided.verdict.stage) == ("blocked", "phase")
    assert "planning" in decided.verdict.reasons[0].text


@pytest.mark.parametrize(
    "call",
    [
        {"tool": "Write", "arguments": {"file_path": "a.txt", "content": "x"}},
        {"tool": "Edit", "arguments": {"file_path": "src/a.py", "old_string": "a", "new_string": "b"}},
        {"tool": "Write", "arguments": {"file_path": "docs/a.md", "content": "x"}},
        {"tool": "Bash", "arguments": {"command": "cat x > src/a.py"}},
    ],
)
def test_ac_025_auditing_blocks_file_write(pipeline, project, call):
    decided = pipeline.decide(tool_call({**call, "project": project}), phase="auditing")
    assert (decided.verdict.decision, decided.verdict.stage) == ("blocked", "phase")


def test_reading_is_for_every_phase(pipeline, project):
    for phase in ("planning", "building", "auditing", None, "nonsense"):
        assert pipeline.decide(bash("git status", project), phase=phase).verdict.word == "allow"


def test_the_agent_cannot_touch_audit_lines_kept_in_its_project(pipeline, project, user_settings):
    write = {
        "tool": "Write",
        "arguments": {"file_path": "logs/2027-01-15.jsonl", "content": ""},
        "project": project,
    }
    assert pipeline.decide(tool_call(write)).verdict.stage != "floor"
    user_settings('[audit]\nlog_dir = "logs"')
    for call in (tool_call(write), bash("rm -r logs", project), bash("echo x >> ./logs/a.jsonl", project)):
        assert pipeline.decide(call).verdict.stage == "floor"
    assert pipeline.decide(bash("cat logs/a.jsonl", project)).verdict.word == "allow"


def test_only_a_question_is_answered_and_the_first_answer_stands(pipeline, project):
    blocked, allowed = pipeline.decide(bash("git push", project)), pipeline.decide(bash("ls", project))
    asked = pipeline.decide(bash("make x", project))
    pipeline.answer(asked.entry, "denied", actor="ada", channel="terminal")
    for decided in (blocked, allowed, asked):
        with pytest.raises(InputError, match="waits for no answer"):
            pipeline.answer(decided.entry, "approved", actor="eve", channel="terminal")
    assert kinds(pipeline).count("answered") == 1


def in_session(command, project, session="s1", **more):
    return bash(command, project, session=session, agent="claude-code", **more)


def asked(pipeline, command, project, **more):
    decided = pipeline.decide(in_session(command, project, **more), asking=True)
    assert decided.verdict.word == "ask", decided.verdict
    return decided.entry


def approve(pipeline, entry, **more):
    return pipeline.answer(entry, "approved", actor="ada", channel="terminal", **more)


def last(pipeline, kind):
    return [body_of_row(row)["data"] for row in records.after(pipeline.store, 0) if row[2] == kind][-1]


def put_rule(pipeline, action, rule_id="r1", **more):
    body = {"action": action, "tool": "Bash", **more}
    pipeline.note("rule_changed", {}, lambda tx: rules.add_rule(tx, rule_id, body, 1.0))


def set_user_phase(pipeline, name, **where):
    pipeline.note("phase_changed", {}, lambda tx: set_phase(tx, name, 1.0, **where))


def test_judging_records_nothing_and_says_what_deciding_would(pipeline, project):
    put_rule(pipeline, "allow", uses=1)
    before = kinds(pipeline)
    for _ in range(3):
        assert pipeline.judge(bash("make x", project)).verdict.rule == "r1"
    assert kinds(pipeline) == before
    assert pipeline.decide(bash("make x", project)).verdict.rule == "r1"
    assert pipeline.judge(bash("make x", project)).verdict.word == "ask"


def test_a_refusal_without_judging_is_recorded_and_cannot_be_lost(pipeline, project, monkeypatch):
    decided = pipeline.refuse(bash("ls", project), "phase", "Only a person.", "A person types it.")
    found = next(entries(pipeline.store, Filter()))
    assert (found.id, found.verdict, found.stage) == (decided.entry, "deny", "phase")
    assert (decided.verdict.word, decided.verdict.remedy) == ("deny", "A person types it.")

    def broken(*_args, **_more):
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(pipeline.ledger, "append", broken)
    assert pipeline.refuse(bash("ls", project), "phase", "x", "y").verdict.word == "deny"


def test_a_held_call_asks_although_it_would_run_and_uses_up_no_rule(pipeline, project):
    put_rule(pipeline, "allow", uses=1)
    held = pipeline.decide(in_session("ls", project), hold="everybody below has failed", asking=True)
    assert (held.verdict.word, held.verdict.stage) == ("ask", "hold")
    assert held.verdict.reasons[0].text == "everybody below has failed"
    assert questions.get_question(pipeline.store, held.entry).state == "asked"
    assert pipeline.decide(bash("ls", project)).verdict.rule == "r1"


def test_holding_never_softens_a_refusal_or_a_question(pipeline, project):
    assert pipeline.decide(bash("git push", project), hold="why").verdict.word == "deny"
    assert pipeline.decide(bash("make x", project), hold="why").verdict.stage != "hold"


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


def test_an_answer_settles_the_question_with_its_record(pipeline, project):
    entry = asked(pipeline, "make x", project)
    assert pipeline.answer(entry, "denied", actor="ada", channel="terminal", message="not now") == "denied"
    question = questions.get_question(pipeline.store, entry)
    assert (question.state, question.actor, question.message) == ("denied", "ada", "not now")
    assert last(pipeline, "answered")["message"] == "not now"


def test_of_many_answers_at_once_one_is_recorded(pipeline, project):
    set_user_phase(pipeline, "building")
    entry = asked(pipeline, "make x", project)
    said = []

    def answer(name):
        try:
            said.append(pipeline.answer(entry, "approved", actor=name, channel="terminal"))
        except InputError:
            said.append("late")

    threads = [threading.Thread(target=answer, args=(name,)) for name in "abcde"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(said) == ["approved"] + ["late"] * 4
    assert kinds(pipeline).count("answered") == 1


@pytest.mark.parametrize("how", ["rule", "phase", "settings"])
def test_a_new_deny_outranks_a_yes(pipeline, project, user_settings, how):
    set_user_phase(pipeline, "building")
    entry = asked(pipeline, "make x", project)
    if how == "rule":
        put_rule(pipeline, "deny")
    elif how == "phase":
        set_user_phase(pipeline, "auditing")
    else:
        user_settings("broken = [")
    assert approve(pipeline, entry, remember=Remember()) == "denied"
    question = questions.get_question(pipeline.store, entry)
    assert (question.state, last(pipeline, "answered")["answer"]) == ("denied", "denied")
    assert "policy of this moment refuses" in question.message
    assert pipeline.store.query("SELECT * FROM grants") == []


def test_a_yes_in_the_agent_s_own_dialog_is_recorded_as_it_was(pipeline, project):
    """The call has run by the time we hear of it: a record that says refused would be false."""
    set_user_phase(pipeline, "building")
    entry = asked(pipeline, "make x", project)
    put_rule(pipeline, "deny")
    assert pipeline.answer(entry, "approved", actor="ada", channel="agent") == "approved"
    pipeline.finish(entry, "success")
    found = next(entries(pipeline.store, Filter()))
    assert (found.answer, found.status) == ("approved", "completed")


def test_whoever_waits_for_an_answer_never_runs_what_is_denied_now_whatever_the_channel(pipeline, project):
    set_user_phase(pipeline, "building")
    entry = asked(pipeline, "make x", project)
    put_rule(pipeline, "deny")
    with pipeline.broker.awaiting(entry, in_session("make x", project)):
        assert pipeline.answer(entry, "approved", actor="ada", channel="agent") == "denied"


def test_an_edited_call_is_judged_recorded_masked_and_handed_on(pipeline, project):
    set_user_phase(pipeline, "building")
    entry = asked(pipeline, "make x", project)
    secret = "hunter2-" + "very-secret"
    with pipeline.broker.awaiting(entry, in_session("make x", project)):
        with pytest.raises(InputError, match="would be refused"):
            approve(pipeline, entry, edited={"command": "git push --force"})
        assert questions.get_question(pipeline.store, entry).state == "asked"
        edited = {"command": f"API_KEY={secret} make y"}
        assert approve(pipeline, entry, edited=edited) == "approved"
    assert pipeline.broker.edited(entry) == edited
    assert "make y" in last(pipeline, "answered")["edited"]["command"]
    assert secret not in "".join(row[4] for row in records.after(pipeline.store, 0))


def test_nobody_who_could_run_it_means_no_edited_yes(pipeline, project):
    set_user_phase(pipeline, "building")
    entry = asked(pipeline, "make x", project)
    with pytest.raises(InputError, match="cannot be edited"):
        approve(pipeline, entry, edited={"command": "make y"})
    assert questions.get_question(pipeline.store, entry).state == "asked"


def test_a_denied_edit_is_never_handed_on(pipeline, project):
    entry = asked(pipeline, "make x", project)
    with pipeline.broker.awaiting(entry, in_session("make x", project)):
        pipeline.answer(entry, "denied", actor="ada", channel="terminal", edited={"command": "make y"})
    assert pipeline.broker.edited(entry) is None


def test_a_yes_for_the_session_covers_exactly_that_call_until_something_denies_it(pipeline, project):
    set_user_phase(pipeline, "building")
    approve(pipeline, asked(pipeline, "make x", project), remember=Remember())
    assert last(pipeline, "granted")["session"] == "s1"
    again = pipeline.decide(in_session("make x", project), asking=True).verdict
    assert (again.word, again.stage) == ("allow", "grant")
    assert "approved exactly this call" in again.reasons[0].text
    for other in (
        in_session("make y", project),
        in_session("make x", project, session="s2"),
        in_session("make x", project, user="eve"),
        bash("make x", project, session="s1", agent="codex"),
        bash("make x", project),
        # The same words somewhere else are another call: `rm -r build` in another folder.
        in_session("make x", project, cwd="/elsewhere"),
    ):
        assert pipeline.decide(other).verdict.word == "ask"
    assert pipeline.decide(in_session("make x", project), phase="auditing").verdict.word == "deny"
    put_rule(pipeline, "deny")
    assert pipeline.decide(in_session("make x", project)).verdict.word == "deny"


def test_a_yes_for_the_session_is_over_when_it_ends(pipeline, project):
    set_user_phase(pipeline, "building")
    approve(pipeline, asked(pipeline, "make x", project), remember=Remember())
    pipeline.store.write(lambda tx: end_session_grants(tx, "s1", 1.0))
    assert pipeline.decide(in_session("make x", project)).verdict.word == "ask"


def test_a_yes_for_the_session_never_reaches_past_the_floor(pipeline, project):
    set_user_phase(pipeline, "building")
    approve(pipeline, asked(pipeline, "make x", project), remember=Remember())
    call = msgspec.structs.replace(
        in_session("curl https://x.example", project), arguments={"command": "curl https://x.example"}
    )
    risk, by = pipeline.judge(call).verdict.risk, Answerer("ada", "terminal")
    pipeline.store.write(lambda tx: pipeline.asking.remember(tx, "e", call, risk, Remember(), by))
    assert pipeline.decide(call).verdict.stage == "floor"


def test_what_is_remembered_for_the_session_is_what_was_approved(pipeline, project):
    """A person changed the call before saying yes: the one that was asked for still asks."""
    set_user_phase(pipeline, "building")
    entry = asked(pipeline, "make x", project)
    with pipeline.broker.awaiting(entry, in_session("make x", project)):
        approve(pipeline, entry, edited={"command": "make y"}, remember=Remember())
    assert pipeline.decide(in_session("make x", project)).verdict.word == "ask"
    assert pipeline.decide(in_session("make y", project)).verdict.stage == "grant"


def test_a_cached_phase_never_survives_a_write(pipeline, project):
    assert pipeline.phase_of(project, "s") is None
    for name in ("building", "planning", "auditing"):
        set_user_phase(pipeline, name)
        assert pipeline.phase_of(project, "s") == name
        set_user_phase(pipeline, "building", project=project)
        assert pipeline.phase_of(project, "s") == "building"
        pipeline.store.write(lambda tx: clear_phase(tx, project=project))
        assert pipeline.phase_of(project, "s") == name
    set_user_phase(pipeline, "planning", session="s")
    assert [pipeline.phase_of(project, each) for each in ("s", "t")] == ["planning", "auditing"]


def test_a_phase_is_read_once_and_not_for_every_call(pipeline, project, monkeypatch):
    pipeline.phase_of(project, "s")
    monkeypatch.setattr(pipeline.store, "query", None)
    assert pipeline.phase_of(project, "s") is None


def test_no_number_of_sessions_fills_the_memory(pipeline, monkeypatch):
    monkeypatch.setattr(pipeline_module, "PHASES_KEPT", 10)
    for number in range(50):
        pipeline.phase_of("/p", f"s{number}")
    assert len(pipeline._phases[1]) <= 12


def test_phases_set_while_others_ask_are_seen_by_the_next_call(pipeline, project):
    """Whoever asks after a phase was set hears it, however many ask at the same time."""
    stop = threading.Event()

    def ask():
        while not stop.is_set():
            pipeline.phase_of(project, "s")

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for number in range(60):
            name = ("building", "auditing")[number % 2]
            pipeline.store.write(lambda tx, name=name: set_phase(tx, name, 1.0))
            assert pipeline.phase_of(project, "s") == name
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_a_cached_rule_never_survives_a_write(pipeline, project):
    assert pipeline.decide(bash("make x", project)).verdict.word == "ask"
    put_rule(pipeline, "allow")
    assert pipeline.decide(bash("make x", project)).verdict.word == "allow"
    pipeline.store.write(lambda tx: rules.update_rule(tx, "r1", {"action": "deny", "tool": "Bash"}, 1.0))
    assert pipeline.decide(bash("make x", project)).verdict.word == "deny"
    pipeline.store.write(lambda tx: rules.delete_rule(tx, "r1"))
    assert pipeline.decide(bash("make x", project)).verdict.word == "ask"


def test_a_reader_beside_the_writer_never_caches(pipeline, project):
    reader = SqliteStore.open(state_dir(), read_only=True)
    policies = Policies(reader)
    try:
        for action in ("deny", "allow"):
            put_rule(pipeline, action, rule_id=action)
            found = {each.id for each in policies.of(project).policy.rules.rules}
            assert action in found
    finally:
        reader.close()


# -- in two halves, for who must not wait ------------------------------------------------------------------


def test_a_verdict_that_is_only_considered_is_on_no_record(pipeline, project):
    considered = pipeline.consider(in_session("make x", project), asking=True)
    assert considered.judged.verdict.word == "ask" and considered.durable
    assert kinds(pipeline) == [] and questions.waiting(pipeline.store) == []
    decided = pipeline.settle(considered)
    assert decided.asked and decided.entry == considered.entry and kinds(pipeline) == ["decided", "asked"]
    assert pipeline.broker.call(decided.entry) is not None


def test_what_waits_for_the_disk_is_known_before(pipeline, project):
    durable = {
        command: pipeline.consider(in_session(command, project)).durable for command in ("ls", "rm -rf /")
    }
    assert durable == {"ls": False, "rm -rf /": True}


def test_what_cannot_be_considered_is_refused(pipeline, monkeypatch):
    monkeypatch.setattr(pipeline, "judge", lambda *_args, **_more: 1 / 0)
    assert pipeline.consider(bash("ls")).verdict.word == "deny"


def test_a_yes_that_another_used_up_meanwhile_is_asked_for_again(pipeline, project):
    set_user_phase(pipeline, "building")
    entry = asked(pipeline, "make x", project)
    approve(pipeline, entry, remember=Remember(what="exact", span="uses", uses=1))
    first, second = (pipeline.consider(in_session("make x", project), asking=True) for _ in range(2))
    assert first.judged.verdict.word == second.judged.verdict.word == "allow"
    assert pipeline.settle(first).verdict.word == "allow"
    again = pipeline.settle(second)
    assert again.verdict.word == "ask" and again.asked and again.entry != second.entry


def test_why_a_call_is_held_may_depend_on_the_verdict_and_is_asked_only_about_an_allow(pipeline, project):
    seen = []

    def hold(judged):
        seen.append(judged.verdict.word)
        return "somebody is watching"

    held = pipeline.consider(in_session("ls", project), hold=hold, asking=True)
    assert (
        held.judged.verdict.word == "ask"
        and held.judged.verdict.stage == "hold"
        and held.judged.consent is None
    )
    pipeline.consider(in_session("make x", project), hold=hold)
    pipeline.consider(in_session("rm -rf /", project), hold=hold)
    assert seen == ["allow"]


def test_whether_anybody_can_be_asked_is_found_out_only_where_somebody_must_be(pipeline, project):
    looked = []

    def nobody():
        looked.append(1)
        return False

    assert pipeline.decide(in_session("ls", project), asking=nobody).verdict.word == "allow"
    assert looked == []
    decided = pipeline.decide(in_session("make x", project), asking=nobody)
    assert decided.verdict.word == "ask" and not decided.asked and looked == [1]
    assert questions.waiting(pipeline.store) == []


def test_a_yes_lets_one_call_begin_however_many_come_for_it(pipeline, project):
    set_user_phase(pipeline, "building")
    entry = asked(pipeline, "make x", project)
    assert not pipeline.begin(entry), "nobody has answered yet"
    approve(pipeline, entry)
    taken = []
    threads = [threading.Thread(target=lambda: taken.append(pipeline.begin(entry))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(taken) == [False] * 7 + [True] and kinds(pipeline).count("started") == 1


def test_a_no_a_plain_allow_and_what_has_ended_let_nothing_begin(pipeline, project):
    set_user_phase(pipeline, "building")
    no = asked(pipeline, "make x", project)
    pipeline.answer(no, "denied", actor="ada", channel="terminal")
    ended = asked(pipeline, "make y", project)
    approve(pipeline, ended)
    pipeline.finish(ended, "cancelled")
    allowed = pipeline.decide(in_session("ls", project)).entry
    assert [pipeline.begin(entry) for entry in (no, ended, allowed)] == [False] * 3
    with pytest.raises(NotFoundError):
        pipeline.begin("no-such-entry")


def test_outcomes_are_recorded_together_and_one_unknown_call_keeps_no_other_off_the_record(pipeline):
    one, two = (pipeline.decide(bash(command)).entry for command in ("ls", "ls -l"))
    outcomes = [
        pipeline_module.Outcome(one, "success", "out"),
        pipeline_module.Outcome("no-such-entry", "success"),
        pipeline_module.Outcome(two, "unknown", None, "connection lost"),
        pipeline_module.Outcome(one, "failure"),
    ]
    pipeline.finish_soon(outcomes).result(5)
    found = {each.id: each for each in entries(pipeline.store, Filter())}
    assert (found[one].result, found[two].result, found[two].evidence) == (
        "success",
        "unknown",
        "connection lost",
    )
    assert kinds(pipeline).count("finished") == 2
    with pytest.raises(InputError):
        pipeline.finish_soon([pipeline_module.Outcome(one, "splendid")])


def test_the_record_says_what_was_approved_instead(pipeline):
    call = ToolCall(tool="lookup", server="notes", arguments={"name": "x"}, door="chat", session="s")
    entry = pipeline.decide(call, asking=True).entry
    with pipeline.broker.awaiting(entry, call):
        pipeline.answer(entry, "approved", actor="me", channel="console", edited={"name": "y"})
    (found,) = fold(records.of_entries(pipeline.store, [entry]))
    other = msgspec.structs.replace(call, arguments={"name": "y"})
    assert (found.edited, found.edited_hash) == ({"name": "y"}, other.argument_hash)
    assert found.argument_hash == call.argument_hash
