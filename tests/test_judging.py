"""What holds for a call at this moment, whatever was remembered of the moment before."""

import threading

import pytest

from checkrein import judging
from checkrein.call import tool_call
from checkrein.policies import Policies
from checkrein.settings.sources import state_dir
from checkrein.store import rules
from checkrein.store.phases import clear_phase, set_phase
from checkrein.store.sqlite import SqliteStore
from deciding import bash, kinds, put_rule, set_user_phase


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


def test_a_rule_takes_effect_on_the_next_call_and_its_uses_run_out(pipeline):
    allow = {"action": "allow", "tool": "Bash", "uses": 2}
    pipeline.note("rule_changed", {}, lambda tx: rules.add_rule(tx, "r1", allow, 1.0))
    words = [pipeline.decide(bash("make x")).verdict.word for _ in range(4)]
    assert words == ["allow", "allow", "ask", "ask"]


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


def test_judging_records_nothing_and_says_what_deciding_would(pipeline, project):
    put_rule(pipeline, "allow", uses=1)
    before = kinds(pipeline)
    for _ in range(3):
        assert pipeline.judge(bash("make x", project)).verdict.rule == "r1"
    assert kinds(pipeline) == before
    assert pipeline.decide(bash("make x", project)).verdict.rule == "r1"
    assert pipeline.judge(bash("make x", project)).verdict.word == "ask"


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
    monkeypatch.setattr(judging, "PHASES_KEPT", 10)
    for number in range(50):
        pipeline.phase_of("/p", f"s{number}")
    assert len(pipeline._judging._phases[1]) <= 12


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
