import csv
import io
import json
import sqlite3

import pytest

from checkrein.call import tool_call
from checkrein.ledger.copies import newest_copy
from checkrein.settings.sources import state_dir
from checkrein.store.sqlite import FILE


@pytest.fixture
def recorded(pipeline, project):
    ids = []
    for command in ("ls", "git push", "make x", "pytest"):
        raw = {"tool": "Bash", "arguments": {"command": command}, "project": project, "session": "s1"}
        decided = pipeline.decide(tool_call(raw), asking=True)
        ids.append(decided.entry)
    pipeline.finish(ids[0], "success")
    pipeline.answer(ids[2], "denied", actor="ada", channel="terminal", message="not today")
    pipeline.close()
    return ids


def test_list_speaks_the_audit_trail_s_words(run, recorded):
    found = run.json("audit", "list", "--json")
    assert [each["id"] for each in found] == list(reversed(recorded))
    asked = found[1]
    assert (asked["decision"], asked["answer"], asked["outcome"], asked["result"]) == (
        "human_required",
        "denied",
        "failure",
        "denied",
    )
    assert run("audit", "list", "--limit", "1").count("\n") == 2


def test_filters_narrow_the_list(run, recorded, project):
    def found(*words):
        return [each["tool_input"]["command"] for each in run.json("audit", "list", "--json", *words)]

    assert found("--decision", "blocked") == ["git push"]
    assert found("--domain", "test_run") == ["pytest"]
    assert found("--project", project, "--session", "s1", "--tool", "Bash", "--since", "2020-01-01") != []
    assert found("--project", "/elsewhere") == []
    assert found("--until", "2020-01-01") == []
    assert found("--session", "other") == []
    assert "not a time" in run("audit", "list", "--since", "noon", code=2)


def test_show_tells_a_call_s_whole_story(run, recorded):
    text = run("audit", "show", recorded[2])
    assert "ASK Bash" in text
    assert "not today" in text
    story = run.json("audit", "show", recorded[2], "--json")
    assert [each["kind"] for each in story["records"]] == ["decided", "asked", "answered"]
    assert "no call" in run("audit", "show", "nobody", code=4)


def test_verify_is_happy_and_names_the_first_broken_record(run, recorded):
    text = run("audit", "verify")
    assert "8 record(s) and 4 checkpoint(s) verify" in text
    assert "Not shown: whether code that can read ledger.key wrote another history" in text
    with sqlite3.connect(state_dir() / FILE) as database:
        database.executescript(
            "DROP TRIGGER record_no_update;"
            "UPDATE record SET body = replace(body, 'denied', 'granted') WHERE seq = 7"
        )
    database.close()
    assert "record 7 was changed" in run("audit", "verify", code=6)
    report = run.json("audit", "verify", "--json", code=6)
    assert (report["ok"], report["broken"]["seq"], report["records"]) == (False, 7, 6)


def test_a_cut_tail_is_found_against_a_checkpoint_kept_elsewhere(run, recorded, tmp_path):
    witness = tmp_path / "witness.json"
    witness.write_text(run("audit", "checkpoint"))
    assert json.loads(json.loads(witness.read_text())["body"])["seq"] == 8
    assert "Up to record 8 this is the record" in run("audit", "verify", "--against", str(witness))
    with sqlite3.connect(state_dir() / FILE) as database:
        database.executescript(
            "DROP TRIGGER record_no_delete; DROP TRIGGER checkpoint_no_delete;"
            "DELETE FROM checkpoint; DELETE FROM record WHERE seq = 8"
        )
    database.close()
    (state_dir() / "checkpoints.jsonl").unlink()
    newest_copy(state_dir()).unlink()
    assert "there is no checkpoint at all" in run("audit", "verify", code=8)
    assert "cut" in run("audit", "verify", "--against", str(witness), code=6)
    assert "not a checkpoint" in run("audit", "verify", "--against", __file__, code=2)
    assert "No such file" in run("audit", "verify", "--against", "/nowhere", code=4)


def test_export_writes_every_format(run, recorded, tmp_path):
    assert len(run("audit", "export").splitlines()) == 4
    assert len(json.loads(run("audit", "export", "--format", "json"))) == 4
    rows = list(
        csv.DictReader(io.StringIO(run("audit", "export", "--format", "csv", "--decision", "blocked")))
    )
    assert [row["decision"] for row in rows] == ["blocked"]
    target = tmp_path / "out.jsonl"
    run("audit", "export", "-o", str(target))
    assert len(target.read_text().splitlines()) == 4


def test_stats_count(run, recorded):
    counted = run.json("audit", "stats", "--json")
    assert counted["calls"] == 4
    assert counted["decision"] == {"logged_only": 2, "blocked": 1, "human_required": 1}
    assert "4 call(s)" in run("audit", "stats")


def test_an_empty_record_is_no_error(run):
    assert run.json("audit", "list", "--json") == []
    assert run.json("audit", "stats", "--json")["calls"] == 0
    assert "0 record(s)" in run("audit", "verify")
    assert "Nothing has been recorded" in run("audit", "checkpoint", code=4)
