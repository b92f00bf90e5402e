import json
from pathlib import Path

from checkrein import knocking


def test_everything_works_after_an_installation_and_the_server_is_started(run, project):
    run("install", "claude-code")
    assert not knocking.is_running()
    text = run.apart("doctor")
    assert "problem" not in text
    assert text.endswith("Everything works.\n")
    assert knocking.is_running()
    assert run.json("status", "--json")["sessions"] == []
    (probe,) = run.json("audit", "list", "--json")
    assert (probe["session_id"], probe["decision"]) == ("checkrein-doctor", "blocked")
    run("down")


def test_what_is_wrong_is_named_with_what_to_do(run, server, project):
    text = run("doctor", code=1)
    assert "problem installations: no hooks are registered" in text
    assert "Run `checkrein install claude-code`." in text
    run("install", "gemini-cli")
    file = Path(project, ".gemini", "settings.json")
    settings = json.loads(file.read_text())
    settings["hooks"]["BeforeTool"][0]["hooks"][0]["command"] = "true"
    file.write_text(json.dumps(settings))
    found = run.json("doctor", "gemini-cli", "--json", code=1)
    assert found["ok"] is False
    wrong = {each["name"]: each["text"] for each in found["checks"] if not each["ok"]}
    assert "no gate of ours" in wrong[f"gemini-cli ({project}) gate"]
    assert "1 problem(s)" in run("doctor", "codex", code=1)


def test_only_the_named_agent_is_looked_at(run, server):
    run("install", "claude-code")
    run("install", "codex")
    assert run.json("doctor", "claude-code", "--json")["ok"] is True
    assert run.json("doctor", "--json", code=1)["ok"] is False


def test_it_reports_every_problem_not_just_the_first(run, server, user_settings):
    user_settings("x = [")
    found = run.json("doctor", "--json", code=1)
    assert {each["name"] for each in found["checks"] if not each["ok"]} == {"settings", "installations"}
