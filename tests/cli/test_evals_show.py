import click
import pytest

from checkrein.cli.evals_show import ended_badly, marked, show_end, show_run, show_runs, show_waiting

STEP = {
    "number": 1,
    "tool": "fs__read",
    "line": 2,
    "state": "done",
    "entry": "entry-1",
    "at": "2026-11-15T10:00:00Z",
    "arguments": {"path": "/tmp/x"},
    "verdict": "allow",
    "error": "",
    "answer": {"content": [{"type": "text", "text": "hello"}]},
}
RUN = {
    "id": "run-1",
    "state": "done",
    "profile": "",
    "language": "python",
    "agent": "claude",
    "owner": "http:1",
    "session": "s",
    "project": "",
    "made_at": "2026-11-15T10:00:00Z",
    "changed_at": "2026-11-15T10:00:01Z",
    "expires_at": "2026-11-22T10:00:00Z",
    "calls": 1,
    "asks": 0,
    "refusals": 0,
    "waiting": [],
    "source": "x = 1\nfs__read(path='/tmp/x')",
    "timeline": [STEP],
    "result": {"run_id": "run-1", "status": "done", "result": {"a": 1}, "output": "one\ntwo", "calls": []},
    "fault": "",
}
HOSTILE = "\x1b[2J\u202egnp.exe"


def test_a_run_from_its_script_to_its_end(capsys):
    show_run(RUN)
    text = capsys.readouterr().out
    assert text.startswith("DONE run-1")
    assert "     1  x = 1" in text and "✓    2  fs__read(path='/tmp/x')" in text
    assert "1. fs__read line 2  allowed" in text and '{"path":"/tmp/x"}' in text
    assert '→ {"content"' in text
    assert text.index("| one") < text.index('{"a":1}')


@pytest.mark.parametrize(
    ("states", "mark"),
    [(["done"], "✓"), (["done", "denied"], "✗"), (["asked", "done"], "?"), (["failed"], "!"), ([], " ")],
)
def test_a_line_is_marked_by_the_worst_of_its_calls(states, mark):
    lines = [click.unstyle(each) for each in marked("a\nb", [{"line": 2, "state": each} for each in states])]
    assert lines[0].startswith("  ") and lines[1].startswith(f"{mark} ")


def test_what_failed_says_where(capsys):
    error = {"kind": "time", "message": "It ran for more than 30 s.", "line": 3}
    found = {"run_id": "run-1", "status": "failed", "error": error, "output": "", "calls": []}
    show_end(found)
    assert capsys.readouterr().out == "Failed (time) on line 3: It ran for more than 30 s.\n"
    assert ended_badly(found) and not ended_badly({"status": "done"})


def test_a_refused_call_says_why_once(capsys):
    step = {**STEP, "state": "denied", "verdict": "denied: policy_arg", "error": "policy_arg", "answer": None}
    show_run({**RUN, "timeline": [step]})
    text = capsys.readouterr().out
    assert text.count("policy_arg") == 1 and "✗" in text


def test_a_run_that_cannot_be_read_says_so(capsys):
    show_run({**RUN, "source": "", "fault": "What is stored of this run cannot be read.", "timeline": []})
    text = capsys.readouterr().out
    assert "cannot be read" in text and "✓" not in text


def test_a_result_that_was_cut_is_shown_as_it_is(capsys):
    show_run({**RUN, "result": "[1,2[cut: 900000 bytes]"})
    assert "cut: 900000 bytes" in capsys.readouterr().out


def test_nothing_a_script_or_a_tool_says_drives_the_terminal(capsys):
    step = {**STEP, "tool": HOSTILE, "arguments": {HOSTILE: HOSTILE}, "answer": HOSTILE}
    end = {**RUN["result"], "result": HOSTILE, "output": HOSTILE}
    show_run({**RUN, "source": HOSTILE, "timeline": [step], "result": end, "agent": HOSTILE})
    show_runs([{**RUN, "agent": HOSTILE}])
    show_waiting(
        {"run_id": "run-1", "waiting": [{"tool": HOSTILE, "line": 1, "why": HOSTILE, "question": "q"}]}
    )
    show_end({"status": "failed", "error": {"kind": "error", "message": HOSTILE, "line": 0}, "output": ""})
    text = capsys.readouterr().out
    assert "\x1b[2J" not in text and "\u202e" not in text


def test_the_list(capsys):
    show_runs([])
    assert "checkrein eval run FILE" in capsys.readouterr().out
    waits = {**RUN, "state": "waiting", "refusals": 2, "waiting": [{"tool": "a"}]}
    show_runs([RUN, waits])
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[:3] == ["run-1", "done", "claude"]
    assert "1, 2 refused" in lines[2] and lines[3] == "1 wait for an answer: checkrein inbox"


def test_what_waits_says_how_to_answer(capsys):
    show_waiting(
        {"run_id": "run-1", "waiting": [{"tool": "fs__x", "line": 3, "why": "Why.", "question": "q1"}]}
    )
    text = capsys.readouterr().out
    assert "checkrein approve q1" in text and "checkrein eval resume run-1" in text
    show_waiting({"run_id": "run-1", "waiting": []})
    assert capsys.readouterr().out == "It still runs: checkrein eval resume run-1\n"
