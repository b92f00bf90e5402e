"""Where models come from: keys are asked for, and shown by nothing."""

import pytest

from checkrein.settings.sources import user_file

pytestmark = pytest.mark.usefixtures("server")
KEY = "sk-hunter2-hunter2-hunter2"


def everything(home):
    """All that is kept, but for where secrets are."""
    folders = (user_file().parent, home / "state")
    files = [path for folder in folders for path in folder.rglob("*") if path.is_file()]
    return b"".join(path.read_bytes() for path in files if "secret" not in path.name)


def add(run, name, *words, **more):
    return run("chat", "providers", "add", name, "--kind", "openai", *words, **more)


def test_the_built_in_one_is_there_and_answers(run):
    assert "demo" in run("chat", "providers")
    assert "demo/demo" in run("chat", "models")
    assert run.json("chat", "models", "--json")[0]["default"]
    assert run.json("chat", "providers", "test", "demo", "--json")["ok"]


def test_a_key_is_piped_in_and_shown_by_nothing(run, home):
    out = add(run, "work", "--model", "gpt-4o", input=f"{KEY}\n")
    out += run("chat", "providers") + run("chat", "providers", "--json") + run("logs")
    assert KEY not in out
    assert KEY.encode() not in everything(home)
    (work, _) = run.json("chat", "providers", "--json")
    assert (work["name"], work["has_key"], work["models"]) == ("work", True, ["gpt-4o"])
    assert "work/gpt-4o" in run("chat", "models")


def test_a_key_is_taken_from_a_variable(run, monkeypatch):
    monkeypatch.setenv("SOME_KEY", KEY)
    add(run, "work", "--key-env", "SOME_KEY")
    assert run.json("chat", "providers", "--json")[0]["has_key"]
    assert "not set here" in add(run, "other", "--key-env", "NO_SUCH_KEY", code=2)


def test_no_option_takes_a_key(run):
    assert "--key " not in run("chat", "providers", "add", "--help")


def test_the_default_and_back(run):
    add(run, "work", "--model", "gpt-4o", "--no-key")
    assert "work/gpt-4o" in run("chat", "providers", "default", "work/gpt-4o")
    assert run.json("chat", "models", "--json")[0]["default"]
    assert "needs a yes" in run("chat", "providers", "remove", "work", code=2)
    run("chat", "providers", "remove", "work", "--yes")
    assert [each["name"] for each in run.json("chat", "providers", "--json")] == ["demo"]


def test_what_does_not_answer_says_so_and_exits_1(run, unused_port):
    url = f"http://127.0.0.1:{unused_port}/v1"
    run("chat", "providers", "add", "local", "--kind", "compatible", "--base-url", url, "--no-key")
    text = run("chat", "providers", "test", "local", code=1)
    assert KEY not in text
    assert text.strip()


def test_what_cannot_be_is_said(run):
    assert "no provider" in run("chat", "providers", "remove", "nobody", "--yes", code=4)
    assert "built-in" in run("chat", "providers", "remove", "demo", "--yes", code=2)
