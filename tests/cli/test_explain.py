import json
import subprocess
import sys
from pathlib import Path

from patience import PATIENCE


def test_a_command_is_explained_in_words(run):
    text = run("explain", "rm -rf build")
    assert text.startswith("ASK rm -rf build\nhuman_required decided by autonomy\n")
    assert "high risk" in text
    assert "Answer the question" in text


def test_a_tool_is_explained_by_door(run):
    answer = run.json(
        "explain", "--tool", "mcp__mail__send", "--args", '{"to": "x"}', "--door", "gateway", "--json"
    )
    assert (answer["verdict"], answer["stage"]) == ("deny", "floor")
    assert answer["risk"]["domains"] == ["mcp:mail"]
    answer = run.json("explain", "--tool", "mcp__wiki__find", "--door", "gateway", "--json")
    assert (answer["verdict"], answer["stage"]) == ("ask", "unmatched")


def test_the_real_policy_and_trust_are_used(run, user_settings):
    user_settings('[[rules]]\naction = "deny"\ntool = "Bash"\nwhen = [{path = "command", contains = "rm "}]')
    assert run.json("explain", "rm -rf build", "--json")["rule"] == "file#1"
    user_settings("broken = [")
    assert run.json("explain", "ls", "--json")["stage"] == "settings"


def test_a_rule_under_a_folder_follows_links(run, user_settings, project):
    user_settings('[[rules]]\naction = "allow"\ntool = "Write"\nwhen = [{path = "file_path", under = "src"}]')
    Path(project, "src").mkdir()
    Path(project, "src", "out").symlink_to("/etc")
    inside = run.json("explain", "--tool", "Write", "--args", '{"file_path": "src/a.py"}', "--json")
    assert inside["verdict"] == "allow"
    outside = run.json("explain", "--tool", "Write", "--args", '{"file_path": "src/out/passwd"}', "--json")
    assert outside["verdict"] == "ask"


def test_words_that_make_no_question_are_refused(run):
    assert "shell command or --tool" in run("explain", code=2)
    assert "shell command or --tool" in run("explain", "ls", "--tool", "Read", code=2)
    assert "--args is not JSON" in run("explain", "--tool", "Read", "--args", "{", code=2)
    assert "not a tool call" in run("explain", "--tool", "Read", "--args", "[]", code=2)


def test_agent_text_cannot_drive_the_terminal(run):
    assert "\x1b[2J" not in run("explain", "ls \x1b[2J\u202e")


def test_lines_are_answered_in_order_bad_ones_with_an_error(run):
    questions = [
        '{"call": {"tool": "Read"}}',
        "not json",
        '{"call": {"tool": 5}}',
        "",
        '{"call": {"tool": "x"}}',
    ]
    answers = [
        json.loads(line) for line in run("explain", "--jsonl", input="\n".join(questions)).splitlines()
    ]
    assert [answer.get("verdict") or answer["error"]["code"] for answer in answers] == [
        "allow",
        "input.invalid",
        "input.invalid",
        "ask",
    ]


def test_each_line_is_answered_before_the_next_is_asked():
    command = [sys.executable, "-m", "checkrein", "explain", "--jsonl"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        for _ in range(3):
            process.stdin.write(b'{"call": {"tool": "Read"}}\n')
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["verdict"] == "allow"
        process.stdin.close()
        assert process.wait(PATIENCE) == 0


def test_lines_read_and_write_no_state(run, home, user_settings):
    user_settings("broken = [")
    assert json.loads(run("explain", "--jsonl", input='{"call": {"tool": "Read"}}\n'))["verdict"] == "allow"
    assert not (home / "state").exists()
