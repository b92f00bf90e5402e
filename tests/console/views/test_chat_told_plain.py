"""What comes over the line of an open page misleads its reader no more than the page itself does."""

import pytest

from checkrein.console.signin import SignIn, cookie_header, cookies_of
from checkrein.console.views.chat_told import Teller
from checkrein.console.visits import Visit
from checkrein.doors.chat import Event

HOSTILE, SPELLED = "50 % \u202egnp.exe\x1b[31m", "50 % ⟨U+202E⟩gnp.exe⟨U+001B⟩[31m"


@pytest.fixture
def teller(console):
    signin = SignIn()
    opened = signin.open(signin.link())
    session = signin.session(cookies_of(cookie_header(opened).partition(";")[0]), opened.place)
    visit = Visit(desk=console.desk, session=session, path="/chat/s1")
    return Teller(visit, {"session": {"id": "s1", "title": "One"}, "messages": []})


@pytest.mark.parametrize(("kind", "told"), [("notice", "notice"), ("error", "trouble")])
def test_how_far_a_tool_is_and_what_went_wrong_are_spelled_out(teller, kind, told):
    ((said, data),) = teller.told([Event("e-1", kind, "s1", "r1", {"text": HOSTILE})], 0.0)
    assert (said, data["text"]) == (told, SPELLED)


def test_the_name_of_a_tool_is_spelled_out(teller):
    call = {
        "run": "r1",
        "call_id": "c",
        "message": "m",
        "name": HOSTILE,
        "tool": HOSTILE,
        "status": "running",
    }
    found = dict(teller.told([Event("e-1", "tool_running", "s1", "r1", {"call": call})], 0.0))
    assert found["card"]["tool"] == SPELLED
    assert not {"\u202e", "\x1b"} & set(found["card"]["html"])
