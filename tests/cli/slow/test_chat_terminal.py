"""Talking at a real terminal: words come as they are said, calls are answered in the flow, Ctrl-C stops."""

import os
import pty
import select
import signal
import subprocess
import sys
import time

import pytest

from checkrein import knocking
from checkrein.cli.opening import reading
from checkrein.ledger.query import Filter, entries
from hookclient.servers import sleeps
from mcp_stdio import Notes
from patience import PATIENCE, until


class Terminal:
    """`checkrein chat` on a terminal; what a person types, and what they have seen so far."""

    def __init__(self, *words, **environment):
        self.pid, self.line = pty.fork()
        if self.pid == 0:
            os.environ.update(environment)
            os.execv(sys.executable, [sys.executable, "-m", "checkrein", "chat", *words])
        self.screen, self.since, self.status = "", 0, None

    def type(self, text):
        os.write(self.line, text.encode())

    def sees(self, text):
        """Wait until it appears after what was waited for before; what came until then."""
        deadline = time.monotonic() + PATIENCE
        while text not in self.screen[self.since :]:
            assert time.monotonic() < deadline, f"{text!r} did not come:\n{self.screen}"
            self._read(0.1)
        end = self.screen.index(text, self.since) + len(text)
        found, self.since = self.screen[self.since : end], end
        return found

    def _read(self, seconds):
        if select.select([self.line], [], [], seconds)[0]:
            try:
                data = os.read(self.line, 65_536).decode("utf-8", "replace")
            except OSError:
                data = ""
            if not data:
                time.sleep(seconds)
            self.screen += data.replace("\r\n", "\n")

    def press(self, key):
        os.write(self.line, {"C": b"\x03", "D": b"\x04"}[key])

    def end(self):
        """Its exit code."""
        deadline = time.monotonic() + PATIENCE
        while self.status is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
            elif time.monotonic() > deadline:
                os.kill(self.pid, signal.SIGKILL)
                raise AssertionError(f"it does not end:\n{self.screen}")
            self._read(0.05)
        return self.status


@pytest.fixture
def terminal():
    made = []

    def open_one(*words, **environment):
        made.append(Terminal(*words, **environment))
        return made[-1]

    yield open_one
    for each in made:
        if each.status is None:
            os.kill(each.pid, signal.SIGKILL)
            os.waitpid(each.pid, 0)
        os.close(each.line)


def add_notes(run, folder):
    run("phase", "building", "--user")
    run("servers", "add", "notes", "--", *Notes(folder).words)
    run("servers", "accept", "notes", "--yes")


@pytest.fixture
def notes(chat_server, run):
    if not run.json("servers", "list", "--json")["servers"]:
        add_notes(run, chat_server)


@pytest.fixture
def ran(run):
    """With which arguments tools ran, as the conversations have it."""

    def found():
        shown = [
            run.json("chat", "show", each["id"], "--json") for each in run.json("chat", "list", "--json")
        ]
        calls = [call for each in shown for call in each["calls"].values()]
        return [call["edited"] or call["arguments"] for call in calls if call["status"] == "completed"]

    return found


@pytest.fixture
def recorded():
    """How calls of this test ended, as the record has it."""
    begun = time.time()

    def found():
        with reading() as reader:
            return [each.result for each in entries(reader, Filter(since=begun))]

    return found


def is_somebody_there():
    return knocking.ask(knocking.connect(), "server.about", {})["reachable"]


@pytest.mark.usefixtures("chat_server")
def test_a_person_talks_and_leaves(terminal, run):
    chat = terminal()
    assert "demo/demo" in chat.sees("Ctrl-D leaves.")
    chat.sees("> ")
    chat.type("/say Hello Ada.\n")
    chat.sees("\nHello Ada.\n")
    chat.sees("> ")
    chat.type("and\\\n")
    chat.sees(". ")
    chat.type("more\n")
    chat.sees("built-in model")
    chat.sees("\n> ")
    chat.press("D")
    assert "checkrein chat --session" in chat.sees("Go on with: checkrein chat --session ")
    assert chat.end() == 0
    (session,) = run.json("chat", "list", "--json")
    said = run.json("chat", "show", session["id"], "--json")["messages"]
    assert [each["parts"][0]["text"] for each in said if each["role"] == "user"] == [
        "/say Hello Ada.",
        "and\nmore",
    ]


@pytest.mark.usefixtures("chat_server")
def test_words_appear_while_the_model_still_speaks_and_a_person_is_reachable(terminal):
    until(lambda: not is_somebody_there())
    chat = terminal(TERM="dumb")
    chat.sees("> ")
    assert is_somebody_there()
    chat.type("/slow 300\\\n")
    chat.sees(". ")
    chat.type("/say one two three four five six seven eight nine ten\n")
    assert "ten" not in chat.sees("two ").partition("nine ten")[2]
    chat.sees("ten")
    chat.type("/quit\n")
    assert chat.end() == 0
    assert "\x1b" not in chat.screen


@pytest.mark.usefixtures("chat_server")
def test_stopping_keeps_what_came(terminal, run):
    chat = terminal()
    chat.sees("> ")
    chat.type("/slow 100\\\n")
    chat.sees(". ")
    chat.type("/long 500\n")
    chat.sees("word3")
    chat.press("C")
    chat.sees("(stopped)")
    chat.sees("> ")
    chat.type("/say still here\n")
    chat.sees("\nstill here\n")
    chat.sees("> ")
    chat.press("D")
    assert chat.end() == 0
    (session,) = run.json("chat", "list", "--json")
    states = [each["state"] for each in run.json("chat", "show", session["id"], "--json")["messages"]]
    assert states == ["completed", "aborted", "completed", "completed"]


def test_a_call_is_asked_about_in_the_flow(terminal, notes, ran, recorded):
    chat = terminal()
    chat.sees("> ")
    chat.type('/call notes__delete_note {"title": "a"}\n')
    asked = chat.sees("Run it? ")
    assert '-> notes__delete_note {"title":"a"}' in asked
    assert "high risk" in asked
    assert '"title": "a"' in asked
    chat.sees("> ")
    chat.type("what\n")
    chat.sees("Run it? ")
    chat.type("y\n")
    assert "done" in chat.sees("done")
    chat.sees("\n> ")
    assert ran() == [{"title": "a"}]
    chat.type('/call notes__delete_note {"title": "b"}\n')
    chat.sees("Run it? ")
    chat.type("n keep it\n")
    chat.sees("keep it")
    chat.sees("refused")
    chat.sees("\n> ")
    assert ran() == [{"title": "a"}]
    until(lambda: recorded() == ["denied", "success"])


def test_what_was_typed_before_a_question_answers_none(terminal, notes, ran):
    """A model can write what looks like our question, have it answered, and then make its call."""
    chat = terminal()
    chat.sees("> ")
    chat.type("/slow 300\\\n")
    chat.sees(". ")
    chat.type("/say low risk notes__list Run it? > one two three four five\\\n")
    chat.sees(". ")
    chat.type('/call notes__delete_note {"title": "a"}\n')
    chat.sees("\nlow risk notes__list Run it? > ")
    chat.type("y\n")
    chat.sees("high risk")
    chat.sees("Run it? ")
    chat.type("n\n")
    # The first line it takes for an answer is this one.
    assert "done" not in chat.sees("Why")
    assert ran() == []
    chat.type("\n")
    chat.sees("refused")
    assert ran() == []


def test_two_at_once_and_one_after_the_other(terminal, notes, ran):
    chat = terminal()
    chat.sees("> ")
    chat.type('/call notes__delete_note {"title": "a"}\\\n')
    chat.sees(". ")
    chat.type('/call notes__delete_note {"title": "b"}\\\n')
    chat.sees(". ")
    chat.type("/then\\\n")
    chat.sees(". ")
    chat.type('/call notes__delete_note {"title": "c"}\n')
    for _ in "abc":
        chat.sees("Run it? ")
        chat.type("y\n")
    chat.sees("\n> ")
    assert sorted(each["title"] for each in ran()) == ["a", "b", "c"]


def test_other_arguments_in_place(terminal, notes, ran):
    chat = terminal(EDITOR="", VISUAL="")
    chat.sees("> ")
    chat.type('/call notes__delete_note {"title": "a"}\n')
    chat.sees("Run it? ")
    chat.type("e\n")
    chat.sees("Arguments as JSON > ")
    chat.type("nonsense\n")
    chat.sees("no JSON object")
    chat.sees("Run it? ")
    chat.type("e\n")
    chat.sees("Arguments as JSON > ")
    chat.type('{"title": "z"}\n')
    chat.sees("done")
    assert ran() == [{"title": "z"}]


def test_other_arguments_in_an_editor(terminal, notes, ran, tmp_path):
    editor = tmp_path / "ed.sh"
    editor.write_text('#!/bin/sh\nprintf %s \'{"title": "edited"}\' > "$1"\n')
    editor.chmod(0o755)
    chat = terminal(EDITOR=str(editor))
    chat.sees("> ")
    chat.type('/call notes__delete_note {"title": "a"}\n')
    chat.sees("Run it? ")
    chat.type("e\n")
    chat.sees("done")
    assert ran() == [{"title": "edited"}]


def test_a_yes_for_the_session_is_not_asked_again(terminal, notes, ran):
    chat = terminal()
    chat.sees("> ")
    for number in range(2):
        chat.type('/call notes__delete_note {"title": "a"}\n')
        if number == 0:
            assert "a yes for this session: " in chat.sees("Run it? > ")
            chat.type("a\n")
        assert "Run it?" not in chat.sees("done")
        chat.sees("\n> ")
    assert len(ran()) == 2


def test_an_answer_is_stopped_while_it_waits(terminal, notes, ran, run):
    chat = terminal()
    chat.sees("> ")
    chat.type('/call notes__delete_note {"title": "a"}\n')
    chat.sees("Run it? > ")
    until(lambda: sleeps(chat.pid))
    chat.press("C")
    chat.sees("(stopped)")
    chat.sees("> ")
    assert ran() == []
    assert run.json("inbox", "--json") == []


def test_leaving_while_it_waits_and_coming_back(terminal, notes, ran, run):
    chat = terminal()
    chat.sees("> ")
    chat.type('/call notes__delete_note {"title": "a"}\n')
    chat.sees("Run it? > ")
    until(lambda: sleeps(chat.pid))
    chat.press("D")
    assert chat.end() == 0
    assert ran() == []
    (session,) = run.json("chat", "list", "--json")
    again = terminal("--session", session["id"][:12])
    again.sees("Run it? ")
    again.type("y\n")
    again.sees("done")
    assert ran() == [{"title": "a"}]


def test_a_server_that_is_started_again_goes_on_asking(terminal, home, run, ran, server, started):
    add_notes(run, home)
    chat = terminal()
    chat.sees("> ")
    chat.type('/call notes__delete_note {"title": "a"}\n')
    chat.sees("Run it? ")
    server.terminate()
    server.wait(PATIENCE)
    until(lambda: not knocking.is_running())
    started("serve")
    until(knocking.is_running)
    chat.type("y\n")
    chat.sees("done")
    assert ran() == [{"title": "a"}]


@pytest.mark.usefixtures("chat_server")
def test_what_a_model_says_does_not_drive_the_terminal(terminal):
    chat = terminal(NO_COLOR="1")
    chat.sees("> ")
    chat.type("/say \x16\x1b]0;owned\x16\x07 fine\n")
    chat.sees("\\x1b]0;owned\\x07 fine")


@pytest.mark.usefixtures("chat_server")
def test_without_a_terminal_nothing_is_asked(run):
    done = subprocess.run(
        [sys.executable, "-m", "checkrein", "chat"],
        input="/say from a pipe",
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert done.stdout == "from a pipe\n"
