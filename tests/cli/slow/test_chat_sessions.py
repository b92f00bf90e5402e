"""Conversations as a whole, from a script."""

import pytest

pytestmark = pytest.mark.usefixtures("server")


@pytest.fixture
def said(run):
    return run.json("chat", "--once", "/say The plover sleeps.", "--json")["session"]


def test_they_are_listed_and_shown(run, said):
    assert said in run("chat", "list")
    assert "There are none" in run("chat", "list", "--archived")
    text = run("chat", "show", said[:12])
    assert "You:\n/say The plover sleeps." in text
    assert "The plover sleeps.\n" in text.partition("You:")[2]


def test_words_are_found(run, said):
    assert said in run("chat", "search", "plover")
    assert run.json("chat", "search", "plover", "--json")[0]["session"] == said
    assert "Nothing was found" in run("chat", "search", "walrus")


@pytest.mark.parametrize("ending", ["json", "md"])
def test_out_and_in_again(run, said, home, ending):
    path = home / f"kept.{ending}"
    assert "Written" in run("chat", "export", said, "-o", str(path))
    assert "Take another name" in run("chat", "export", said, "-o", str(path), code=2)
    made = run.json("chat", "import", str(path), "--json")
    assert made["id"] != said
    assert "The plover sleeps." in run("chat", "show", made["id"])


def test_a_text_can_be_piped(run, said):
    text = run("chat", "export", said, "--form", "json")
    assert "2 messages" in run("chat", "import", "-", input=text)


def test_what_is_no_conversation_is_refused(run, home):
    for content in (b"nonsense", b"\xff\xfe", b'{"a": 1}'):
        (home / "x.json").write_bytes(content)
        run("chat", "import", str(home / "x.json"), code=2)


def test_deleting_needs_a_yes(run, said):
    assert "needs a yes" in run("chat", "delete", said, code=2)
    assert "Deleted" in run("chat", "delete", said, "--yes")
    assert "no session" in run("chat", "show", said, code=4)
