import itertools

import msgspec
import pytest

from checkrein.console.signin import SignIn, cookie_header, cookies_of
from checkrein.console.views.chat_told import PAUSE_SECONDS, Teller
from checkrein.console.visits import Visit


class Event(msgspec.Struct):
    kind: str
    data: dict
    run: str = "r1"


def wrote(delta, at=None, message="m2", part=0, kind="text"):
    data = {"message": message, "part": part, "delta": delta}
    return Event(kind, data if at is None else data | {"at": at})


@pytest.fixture
def visit(console):
    signin = SignIn()
    opened = signin.open(signin.link())
    session = signin.session(cookies_of(cookie_header(opened).partition(";")[0]), opened.place)
    return Visit(desk=console.desk, session=session, path="/chat/s1")


@pytest.fixture
def teller(visit):
    return Teller(visit, {"session": {"id": "s1", "title": "One"}, "messages": []})


def kinds(told):
    return [kind for kind, _ in told]


def test_the_first_words_come_at_once_the_next_after_a_pause(teller):
    first = teller.told([wrote("Hello ")], 1.0)
    assert kinds(first) == ["begun", "blocks"]
    assert first[1][1]["html"] == "<p>Hello</p>\n"
    assert teller.told([wrote("there")], 1.01) == []
    assert teller.due == pytest.approx(1.0 + PAUSE_SECONDS)
    assert teller.later(1.03) == []
    [(kind, data)] = teller.later(1.07)
    assert (kind, data["first"], data["html"]) == ("blocks", 0, "<p>Hello there</p>\n")
    assert teller.due is None


def test_only_what_changed_is_told_again(teller):
    teller.told([wrote("One\n\nTwo\n\nThr")], 1.0)
    [(_, data)] = teller.told([wrote("ee")], 2.0)
    assert (data["first"], data["html"]) == (1, "<p>Two</p>\n<p>Three</p>\n") or data["first"] == 2
    assert data["html"].endswith("<p>Three</p>\n")


def test_what_was_written_comes_before_what_is_done_about_it(teller):
    teller.told([wrote("a")], 1.0)
    told = teller.told([wrote("b"), Event("end", {})], 1.01)
    assert kinds(told) == ["blocks", "end"]


def test_who_comes_in_the_middle_goes_on_from_there(visit):
    part = {"kind": "text", "text": "Hello"}
    message = {"id": "m2", "state": "streaming", "role": "assistant", "parts": [part]}
    teller = Teller(visit, {"session": {"id": "s1", "title": "One"}, "messages": [message]})
    [(_, data)] = teller.told([wrote("Hello", at=0), wrote(" there", at=5)], 1.0)
    assert data["html"] == "<p>Hello there</p>\n"
    [(_, data)] = teller.told([wrote("re, you", at=9)], 2.0)
    assert data["html"] == "<p>Hello there, you</p>\n"


def test_a_gap_makes_the_page_look_anew(teller):
    assert kinds(teller.told([wrote("there", at=6)], 1.0)) == ["fresh"]


def test_a_long_block_is_told_less_often(teller):
    teller.told([wrote("```\n" + "x" * 400_000)], 1.0)
    teller.told([wrote("y")], 1.5)
    assert teller.due > 1.9


def test_a_block_that_is_hard_to_make_is_told_less_often(visit):
    # Every block takes three seconds.
    ticks = itertools.count(step=3.0)
    session = {"session": {"id": "s1", "title": "One"}, "messages": []}
    teller = Teller(visit, session, clock=lambda: next(ticks))
    teller.told([wrote("hard")], 0.0)
    teller.told([wrote("er")], 0.0)
    assert teller.due > 2 * 3.0


def test_hostile_words_are_told_as_text(teller):
    told = teller.told(
        [wrote("<script>alert(1)</script>\u202e"), wrote("<b>", kind="reasoning", part=1)], 1.0
    )
    html = "".join(data["html"] for kind, data in told if kind == "blocks")
    assert "<script>" not in html
    assert "<b>" not in html
    assert "\u202e" not in html


def test_a_kept_message_takes_the_place_of_what_was_written(teller):
    teller.told([wrote("draft"), wrote("more", part=1)], 1.0)
    saved = {"id": "m2", "role": "assistant", "parts": [{"kind": "text", "text": "whole"}], "parent": "m1"}
    told = teller.told([wrote("late"), Event("message", {"message": saved})], 1.01)
    assert kinds(told) == ["blocks", "saved"]
    assert "whole" in told[1][1]["html"]
    assert told[1][1]["parent"] == "m1"
    assert teller.due is None


def test_a_result_is_told_without_a_place_of_its_own(teller):
    message = {"id": "m3", "role": "tool", "parts": [], "parent": "m2"}
    [(kind, data)] = teller.told([Event("message", {"message": message})], 1.0)
    assert (kind, data["html"], data["parent"]) == ("saved", "", "m2")


def test_a_call_is_a_card_wherever_it_stands(teller):
    call = {
        "run": "r1",
        "call_id": "c1",
        "message": "m2",
        "name": "a__b",
        "arguments": {},
        "status": "pending",
    }
    told = teller.told([Event("tool_call", {"call": call})], 1.0)
    assert kinds(told) == ["begun", "card"]
    assert told[1][1]["key"] == "r1/c1"
    [(_, data)] = teller.told([Event("tool_result", {"call": call | {"status": "completed"}})], 1.0)
    assert (data["state"], data["word"], data["asks"]) == ("completed", "done", False)
    part = {"kind": "tool_invocation", "tool_call_id": "c1", "tool_name": "a__b"}
    saved = {"id": "m2", "role": "assistant", "run": "r1", "parts": [part]}
    [(_, data)] = teller.told([Event("message", {"message": saved})], 1.0)
    assert 'data-state="completed"' in data["html"]


@pytest.mark.parametrize(
    ("kind", "data", "told"),
    [
        (
            "error",
            {"text": "no", "retry": True, "error": "key"},
            ("trouble", {"run": "r1", "text": "no", "retry": True}),
        ),
        ("notice", {"text": "hm", "level": "info"}, ("notice", {"run": "r1", "text": "hm", "level": "info"})),
        ("aborted", {}, ("aborted", {"run": "r1"})),
        ("compressed", {"summary": "long"}, ("compressed", {"run": "r1"})),
    ],
)
def test_everything_else_is_told_shortly(teller, kind, data, told):
    assert teller.told([Event(kind, data)], 1.0) == [told]


def test_a_title_misleads_nobody(teller):
    session = {"id": "s1", "title": "a\u202eb", "head": "m9", "tainted_by": "web"}
    assert teller.told([Event("session", {"session": session})], 1.0) == [
        ("session", {"head": "m9", "tainted": "web", "title": "a⟨U+202E⟩b"})
    ]
