import json

import pytest
from ground import vectors

from checkrein.call import tool_call


@pytest.fixture
def earned(pipeline, project):
    for outcome in ("success", "success", "failure"):
        raw = {"tool": "Bash", "arguments": {"command": "pytest"}, "project": project}
        pipeline.finish(pipeline.decide(tool_call(raw)).entry, outcome, evidence="exit status")
    pipeline.close()


def test_show_says_what_was_earned_and_what_it_means(run, earned):
    shown = run.json("trust", "show", "--json")
    assert shown["domains"]["test_run"]["score"] == pytest.approx((0.3 + 0.7 * 0.05 + 0.665 * 0.05) * 0.85)
    assert shown["inherited"] == 0.3
    text = run("trust", "show")
    assert "test_run" in text
    assert "asks" in text


def test_history_says_what_moved_it(run, earned):
    moved = run.json("trust", "history", "--json")
    assert [each["result"] for each in moved] == ["failure", "success", "success"]
    assert "failure of Bash (exit status)" in run("trust", "history", "test_run", "--limit", "1")
    assert run.json("trust", "history", "file_read", "--json") == []


def test_replay_answers_every_vector_and_every_mistake(run):
    rows = [row for row in vectors("trust.jsonl") if "config" in row]
    lines = [json.dumps({key: row[key] for key in ("config", "start", "events")}) for row in rows]
    answers = [
        json.loads(line)
        for line in run("trust", "replay", "--jsonl", input="\n".join([*lines, "x", "[]"])).splitlines()
    ]
    for row, answer in zip(rows, answers, strict=False):
        assert answer["score"] == pytest.approx(row["expected_final"]["score"], abs=row["tolerance"])
        assert answer.keys() == row["expected_final"].keys()
    assert [answer["error"]["code"] for answer in answers[-2:]] == ["input.invalid"] * 2


def test_trust_goes_out_and_comes_back(run, earned, tmp_path):
    target = tmp_path / "trust-scores.json"
    run("trust", "export", "-o", str(target))
    before = json.loads(target.read_text())
    assert before["version"] == "2"
    assert before["global_operation_count"] == 3
    run("trust", "reset", "--yes")
    assert run.json("trust", "show", "--json")["domains"] == {}
    run("trust", "import", str(target), "--yes")
    after = json.loads(run("trust", "export"))
    assert after["domains"] == before["domains"]


def test_a_v1_file_is_imported_and_leaves_as_v2(run, tmp_path):
    source = tmp_path / "old.json"
    source.write_text('{"score": 0.55, "successes": 20, "failures": 2}')
    assert "from a v1 file" in run("trust", "import", str(source), "--yes")
    assert json.loads(run("trust", "export"))["domains"]["_global"]["score"] == 0.55
    assert run.json("explain", "ls", "--json")["trust"] == {"file_read": 0.55}


def test_bad_scores_are_reported_and_bad_files_change_nothing(run, earned, tmp_path):
    source = tmp_path / "bad.json"
    source.write_text('{"version": "2", "domains": {"x": {"score": 0.99}, "y": {"score": 0.2}}}')
    report = run.json("trust", "import", str(source), "--yes", "--json")
    assert set(report["imported"]) == {"y"}
    assert set(report["quarantined"]) == {"x"}
    source.write_text("corrupted{{{")
    assert "not JSON" in run("trust", "import", str(source), "--yes", code=3)
    assert "No such file" in run("trust", "import", "/nowhere", "--yes", code=4)
    assert set(run.json("trust", "show", "--json")["domains"]) == {"y"}


def test_importing_and_resetting_need_a_yes_and_are_recorded(run, earned, tmp_path):
    assert "needs a yes" in run("trust", "reset", code=2)
    run("trust", "reset", "test_run", "--yes")
    # The commands go by the time of day, and the records before them by a clock of their own.
    assert "9 record(s)" in run("audit", "verify", code=8)
