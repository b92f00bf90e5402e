import json
import os
from pathlib import Path

import pytest

from checkrein.call import tool_call
from checkrein.finishing import Outcome
from checkrein.ledger.mirror import default_folder, expire, folder_for, position_of
from checkrein.pipeline import Pipeline
from checkrein.settings.sources import state_dir
from checkrein.store.sqlite import SqliteStore
from patience import until


def lines(folder):
    return [
        json.loads(line) for path in sorted(folder.glob("*.jsonl")) for line in path.read_text().splitlines()
    ]


def call(project, command="ls"):
    return tool_call({"tool": "Bash", "arguments": {"command": command}, "project": project, "session": "s1"})


@pytest.fixture
def folder(project):
    return default_folder(project, state_dir())


def test_ac_020_ten_operations_are_ten_lines(pipeline, project, folder):
    for number in range(10):
        decided = pipeline.decide(call(project, "git push" if number % 2 else "ls"))
        if decided.verdict.word == "allow":
            pipeline.finish(decided.entry, "success")
    found = lines(folder)
    assert len(found) == 10
    assert {each["outcome"] for each in found} == {"success", "failure"}
    assert all(
        each["decision"] and each["tool_name"] == "Bash" and each["session_id"] == "s1" for each in found
    )


def test_ac_021_lines_go_to_a_file_named_by_the_day(pipeline, project, folder, clock):
    pipeline.decide(call(project, "git push"))
    clock.pass_days(1)
    pipeline.decide(call(project, "git push"))
    assert sorted(path.name for path in folder.iterdir()) == ["2027-01-15.jsonl", "2027-01-16.jsonl"]


def test_an_allowed_call_gets_its_line_at_its_outcome_a_denied_one_at_once(pipeline, project, folder):
    allowed = pipeline.decide(call(project))
    assert lines(folder) == []
    pipeline.decide(call(project, "git push"))
    assert [each["result"] for each in lines(folder)] == ["denied"]
    asked = pipeline.decide(call(project, "make x"), asking=True)
    pipeline.answer(asked.entry, "denied", actor="ada", channel="terminal")
    pipeline.finish(allowed.entry, "failure")
    assert [each["result"] for each in lines(folder)] == ["denied", "denied", "failure"]


def test_at_the_end_of_a_session_what_is_open_is_pending_and_a_late_outcome_adds_no_line(
    pipeline, project, folder
):
    late, lost = pipeline.decide(call(project)), pipeline.decide(call(project))
    done = pipeline.decide(call(project))
    pipeline.finish(done.entry, "success")
    pipeline.end_session(project, "s1")
    assert [(each["id"], each["outcome"]) for each in lines(folder)] == [
        (done.entry, "success"),
        (late.entry, "pending"),
        (lost.entry, "pending"),
    ]
    pipeline.finish(late.entry, "success")
    pipeline.end_session(project, "s1")
    assert len(lines(folder)) == 3


@pytest.mark.invariant("a line that was written before is not written again")
def test_lines_a_crash_kept_back_are_written_at_the_next_start(pipeline, project, folder, monkeypatch, clock):
    pipeline.decide(call(project, "git push"))
    with monkeypatch.context() as patched:
        patched.setattr(pipeline.mirror, "_catch_up", lambda **_: None)
        for _ in range(3):
            pipeline.decide(call(project, "git push"))
    assert len(lines(folder)) == 1
    path = next(folder.glob("*.jsonl"))
    path.write_bytes(path.read_bytes() + b'{"id": "cut sho')
    pipeline.store.close()
    again = Pipeline(SqliteStore.open(state_dir()), state_dir(), clock=clock)
    assert len(lines(folder)) == 4
    assert len({each["id"] for each in lines(folder)}) == 4
    again.close()
    Pipeline(SqliteStore.open(state_dir()), state_dir(), clock=clock).close()
    assert len(lines(folder)) == 4


def test_a_project_chooses_its_folder_and_an_unusable_one_falls_back(
    pipeline, project, folder, user_settings
):
    user_settings('[audit]\nlog_dir = "oath-harness/audit"')
    pipeline.decide(call(project, "git push"))
    assert len(lines(Path(project) / "oath-harness/audit")) == 1
    Path(project, "blocker").write_text("a file")
    user_settings('[audit]\nlog_dir = "blocker/audit"')
    pipeline.decide(call(project, "git push"))
    assert len(lines(folder)) == 1
    assert pipeline.mirror.trouble == ""


def test_a_disk_that_cannot_be_written_delays_lines_and_loses_none(pipeline, project, folder, monkeypatch):
    real = os.open

    def no_space(path, *rest):
        if str(path).endswith(".jsonl"):
            raise OSError(28, "No space left on device")
        return real(path, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(os, "open", no_space)
        decided = pipeline.decide(call(project, "git push"))
    assert decided.verdict.word == "deny"
    assert "No space" in pipeline.mirror.trouble
    pipeline.decide(call(project, "git push"))
    assert len(lines(folder)) == 2
    assert pipeline.mirror.trouble == ""


def test_a_link_planted_in_place_of_the_day_s_file_is_not_followed(pipeline, project, folder, tmp_path):
    pipeline.decide(call(project, "git push"))
    (path,) = folder.glob("*.jsonl")
    target = tmp_path / "precious"
    target.write_text("")
    path.unlink()
    path.symlink_to(target)
    pipeline.decide(call(project, "git push"))
    assert target.read_text() == ""
    assert pipeline.mirror.trouble


def test_two_projects_of_one_name_do_not_share_a_folder(tmp_path):
    assert default_folder("/a/shop", tmp_path) != default_folder("/b/shop", tmp_path)
    assert default_folder("", tmp_path).name.startswith("default-")
    assert folder_for("/a/shop", "/var/log/x", tmp_path) == Path("/var/log/x")


def test_old_files_are_removed_only_when_asked(tmp_path):
    for name in ("2026-01-01.jsonl", "2027-01-10.jsonl", "notes.txt"):
        (tmp_path / name).write_text('{"settled_by": 3}\n')
    assert expire(tmp_path, 0, 1_800_000_000.0) == []
    assert [path.name for path in expire(tmp_path, 30, 1_800_000_000.0)] == ["2026-01-01.jsonl"]
    assert (tmp_path / "notes.txt").exists()
    assert position_of(tmp_path) == 3
    assert position_of(tmp_path / "missing") == 0


def test_a_file_that_is_not_ours_sends_the_lines_elsewhere_and_stops_nothing(
    pipeline, project, folder, user_settings
):
    user_settings('[audit]\nlog_dir = "logs"')
    theirs = Path(project, "logs", "2030-01-01.jsonl")
    theirs.parent.mkdir()
    theirs.write_text("not json\n")
    decided = pipeline.decide(call(project, "git push"))
    assert decided.verdict.stage == "phase"
    assert [each["id"] for each in lines(folder)] == [decided.entry]
    assert theirs.read_text() == "not json\n"


def test_many_outcomes_at_once_hold_up_nobody_and_are_all_there_when_the_store_is_closed(
    pipeline, project, folder
):
    entries = [pipeline.decide(call(project)).entry for _ in range(300)]
    pipeline.finish_soon([Outcome(entry, "success") for entry in entries]).result()
    assert pipeline.mirror._thread is not None
    pipeline.close()
    assert [each["id"] for each in lines(folder)] == entries


def test_a_few_outcomes_are_there_at_once(pipeline, project, folder):
    entries = [pipeline.decide(call(project)).entry for _ in range(3)]
    pipeline.finish_soon([Outcome(entry, "success") for entry in entries]).result()
    assert [each["id"] for each in lines(folder)] == entries


@pytest.mark.invariant("whatever is wrong with the copy, later lines follow")
def test_whatever_is_wrong_with_the_copy_later_lines_follow(pipeline, project, folder, monkeypatch):
    entries = [pipeline.decide(call(project)).entry for _ in range(20)]
    with monkeypatch.context() as patched:
        patched.setattr(pipeline.mirror, "_copy", lambda *_: 1 / 0)
        pipeline.finish_soon([Outcome(entry, "success") for entry in entries]).result()
        until(lambda: pipeline.mirror.trouble)
    assert "division" in pipeline.mirror.trouble
    pipeline.close()
    assert [each["id"] for each in lines(folder)] == entries


def _lived(pipeline, project):
    """Calls of every kind, some with their outcome."""
    answers = ["denied", "approved"]
    for command in ("ls", "git push", "make x", "ls -l", "make y"):
        decided = pipeline.decide(call(project, command), asking=True)
        word, entry = decided.verdict.word, decided.entry
        if word == "ask":
            word = pipeline.answer(entry, answers.pop(), actor="ada", channel="terminal")
        if word == "approved":
            pipeline.claim(entry)
        if word in ("allow", "approved"):
            pipeline.finish(entry, "success", output={"b": 1, "a": [2.5, None]})


@pytest.mark.invariant("of a call that was not heard of from its beginning, everything is read")
def test_lines_made_from_memory_are_those_read_back(pipeline, project, folder):
    _lived(pipeline, project)
    heard = lines(folder)
    for path in folder.iterdir():
        path.unlink()
    pipeline.mirror._position = 0
    pipeline.mirror._written.clear()
    pipeline.mirror._recent = None
    pipeline.mirror.catch_up()
    assert heard and heard == lines(folder)


@pytest.mark.invariant("of a call that was not heard of from its beginning, everything is read")
def test_a_call_that_began_before_a_restart_gets_its_line(pipeline, project, folder, clock):
    began = pipeline.decide(call(project))
    later = Pipeline(pipeline.store, state_dir(), clock=clock)
    refused = later.decide(call(project, "git push"))
    later.finish(began.entry, "success")
    assert [(each["id"], each["result"]) for each in lines(folder)] == [
        (refused.entry, "denied"),
        (began.entry, "success"),
    ]


def test_the_store_is_not_read_for_calls_heard_of_whole(pipeline, project, folder, monkeypatch):
    pipeline.decide(call(project, "git push"))

    def unread(*_):
        raise AssertionError("read back")

    monkeypatch.setattr("checkrein.ledger.mirror.records.after", unread)
    entry = pipeline.decide(call(project)).entry
    pipeline.finish(entry, "success")
    assert [each["result"] for each in lines(folder)] == ["denied", "success"]
    assert not pipeline.mirror.trouble


def test_whoever_is_too_far_behind_reads_the_store(pipeline, project, folder, monkeypatch):
    pipeline.decide(call(project, "git push"))
    monkeypatch.setattr("checkrein.ledger.recent.MOST_ROWS", 2)
    with pipeline.mirror._copying:
        entries = [pipeline.decide(call(project)).entry for _ in range(3)]
        pipeline.finish_soon([Outcome(entry, "success") for entry in entries]).result()
    pipeline.mirror.catch_up()
    assert [each["result"] for each in lines(folder)] == ["denied", *["success"] * 3]
