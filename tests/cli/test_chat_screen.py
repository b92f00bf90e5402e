"""What a conversation looks like, whatever a model or a tool says."""

import click
import pytest

from checkrein.cli.chat_screen import Screen, text_of, transcript

EVIL = "\x1b[2J\x1b]0;owned\x07\r\x9b31m\u202e"


def message(text="", **more):
    return {
        "id": "m1",
        "role": "assistant",
        "state": "completed",
        "parts": [{"kind": "text", "text": text}],
        **more,
    }


def call(**more):
    return {"call_id": "c", "name": "notes__read", "arguments": {"title": "a"}, "status": "completed", **more}


def test_an_answer_comes_piece_by_piece_and_ends_its_line(capsys):
    screen = Screen()
    screen.text("m1", "Hello ")
    screen.text("m1", "Ada")
    screen.whole(message("Hello Ada."))
    screen.say("next")
    assert capsys.readouterr().out == "Hello Ada.\nnext\n"
    assert screen.all_text == "Hello Ada."


def test_what_was_missed_is_shown_once(capsys):
    screen = Screen()
    screen.whole(message("all of it"))
    screen.whole(message("all of it"))
    screen.whole(message("x", role="user"))
    assert capsys.readouterr().out == "all of it\n"


def test_thinking_aloud_is_apart_from_the_answer(capsys):
    screen = Screen()
    screen.reasoning("hm ")
    screen.reasoning("so")
    screen.text("m1", "Yes")
    assert capsys.readouterr().out == "hm so\nYes"
    Screen(apart=True).reasoning("hm")
    assert capsys.readouterr() == ("", "")


def test_apart_only_the_answer_is_on_standard_output(capsys):
    screen = Screen(apart=True)
    screen.text("m1", "yes")
    screen.call(call())
    screen.notice("careful")
    told = capsys.readouterr()
    assert told.out == "yes\n"
    assert "notes__read" in told.err
    assert "careful" in told.err


def test_silent_keeps_the_text_and_prints_none_of_it(capsys):
    screen = Screen(silent=True)
    screen.text("m1", "yes")
    screen.whole(message("yes sir"))
    assert capsys.readouterr().out == ""
    assert screen.all_text == "yes sir"


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (
            call(milliseconds=12, output={"content": [{"type": "text", "text": "a\nb"}]}),
            "   done in 12 ms: a b",
        ),
        (call(output="plain"), "   done: plain"),
        (call(output=None), "   done: null"),
        (call(status="denied", reason="not now"), "   refused: not now"),
        (call(status="error", error="it broke"), "   error: it broke"),
        (call(status="cancelled"), "   cancelled: null"),
    ],
)
def test_a_call_ends_on_one_line(capsys, told, expected):
    Screen().result(told)
    assert capsys.readouterr().out == f"{expected}\n"


def test_nothing_drives_the_terminal(capsys):
    screen = Screen()
    screen.text("m", EVIL)
    screen.reasoning(EVIL)
    screen.call(call(name=EVIL, arguments={EVIL: EVIL}))
    screen.result(call(status="denied", reason=EVIL))
    screen.result(call(output={"content": [{"text": EVIL}]}))
    screen.notice(EVIL)
    for line in transcript(
        [message(EVIL, model=EVIL, error=EVIL, state="failed"), message(EVIL, role="user")]
    ):
        screen.say(line)
    out = capsys.readouterr().out
    assert not set(out) & set("\x1b\x07\r\x9b\u202e")


def test_a_transcript_says_who_said_what():
    parts = [
        {"kind": "reasoning", "text": "hidden"},
        {"kind": "text", "text": "Hi."},
        {"kind": "tool_invocation", "tool_name": "notes__read", "status": "denied"},
    ]
    said = [message("Hello", role="user"), {**message(), "parts": parts, "model": "m", "state": "aborted"}]
    assert [click.unstyle(each) for each in transcript(said)] == [
        "You:",
        "Hello",
        "m:",
        "Hi.",
        "-> notes__read denied",
        "(aborted) ",
    ]
    assert text_of(said[1]) == "Hi."


def test_an_attachment_is_named_not_told():
    part = {
        "kind": "attachment",
        "text": "word\n" * 9_000,
        "mime_type": "text/plain",
        "data": {"name": "a\nb"},
    }
    lines = [click.unstyle(each) for each in transcript([message(parts=[part, {**part, "data": None}])])]
    assert lines[1:] == ["[attached: a b]", "[attached: text/plain]"]
