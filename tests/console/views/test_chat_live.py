import http.client
import json
import time

import pytest

from console import browsing
from console.conftest import Visitor
from patience import PATIENCE, until

pipeline = browsing.pipeline


@pytest.fixture
def ask(console):
    return console.desk.ask


@pytest.fixture
def own(ask):
    return ask("chat.create", title="Trial")["id"]


class Listener:
    """Reads a line of events as a browser does."""

    def __init__(self, visitor, path, **headers):
        self.line = http.client.HTTPConnection("127.0.0.1", visitor.console.port, timeout=PATIENCE)
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        self.line.request("GET", visitor.place + path, headers={"Cookie": visitor.cookie} | named)
        self.response = self.line.getresponse()
        self.last = ""

    def until(self, kind, most=400):
        """Events up to one of a kind: kinds and data."""
        found = []
        for _ in range(most):
            event = self.event()
            if event is None:
                return found
            found.append(event)
            if event[0] == kind:
                return found
        raise AssertionError(found)

    def event(self):
        kind, data = "", ""
        while line := self.response.readline().decode():
            if line.startswith("id: "):
                self.last = line[4:].strip()
            elif line.startswith("event: "):
                kind = line[7:].strip()
            elif line.startswith("data: "):
                data = line[6:]
            elif not line.strip() and kind:
                return kind, json.loads(data)
        return None

    def close(self):
        self.response.close()
        self.line.close()


@pytest.fixture
def listen(visitor):
    made = []

    def make(path, **headers):
        made.append(Listener(visitor, path, **headers))
        return made[-1]

    yield make
    for each in made:
        each.close()


def start(ask, own):
    return f"/chat/{own}/live?after=0_{ask('chat.session', id=own)['last']}"


def test_what_is_said_and_answered_comes_as_pieces(listen, ask, own):
    line = listen(start(ask, own))
    assert line.response.headers["content-type"].startswith("text/event-stream")
    ask("chat.send", session=own, text="/say Hello **you**.")
    found = line.until("end")
    kinds = [kind for kind, _ in found]
    for kind in ("saved", "started", "begun", "blocks", "end"):
        assert kind in kinds
    assert "fresh" not in kinds
    assert "<strong>you</strong>" in [data for kind, data in found if kind == "saved"][-1]["html"]


def test_records_come_over_the_same_line(listen, ask, own):
    line = listen(start(ask, own))
    ask("rule.add", rule={"action": "allow", "tool": "Read"})
    found = line.until("record")
    assert found[-1][0] == "record"
    record, _, event = line.last.partition("_")
    assert int(record) > 0
    assert event == ask("chat.session", id=own)["last"]


def test_who_missed_something_looks_anew_who_missed_nothing_does_not(listen, ask, own):
    before = start(ask, own)
    ask("chat.update", id=own, title="Other")
    line = listen(before)
    assert line.until("fresh")[-1] == ("fresh", {})
    here = line.last
    line.close()
    line = listen(before, last_event_id=here)
    ask("chat.update", id=own, title="Third")
    assert [kind for kind, _ in line.until("session") if kind != "record"] == ["session"]


def test_a_mark_of_another_server_makes_the_page_look_anew(listen, own):
    line = listen(f"/chat/{own}/live?after=0_deadbeef-7")
    assert line.until("fresh")


def test_nonsense_marks_do_no_harm(listen, own):
    for after in ("", "_", "x_y", "99999999999999999999_1", "%00_%ff", "-1_-1"):
        line = listen(f"/chat/{own}/live?after={after}")
        assert line.response.status == 200
        line.close()


def test_a_conversation_that_is_deleted_says_so(listen, ask, own):
    line = listen(start(ask, own))
    ask("chat.delete", id=own)
    assert line.until("gone")


def test_only_for_who_is_signed_in_and_only_what_is_there(listen, visitor, stranger, own):
    assert listen("/chat/nobodys/live").response.status == 404
    assert stranger.request("GET", f"{visitor.place}/chat/{own}/live").status == 401


def test_signing_out_ends_the_line(listen, ask, own, visitor):
    line = listen(start(ask, own))
    visitor.post("/sign-out")
    ask("chat.update", id=own, title="Never told")
    assert [kind for kind, _ in line.until("nothing") if kind == "session"] in ([], ["session"])
    assert line.event() is None


def test_while_a_page_listens_somebody_can_be_asked(listen, ask, own, console, chat):
    line = listen(start(ask, own))
    until(lambda: chat()._lines.followers(own) and console.desk.pipeline.broker.reachable)
    line.close()

    def is_noticed():
        # A line that is gone is noticed when something is told.
        ask("chat.update", id=own, title=str(time.monotonic()))
        return not (chat()._lines.followers(own) or console.desk.feed._listeners)

    until(is_noticed)
    assert not console.desk.pipeline.broker.reachable


def test_the_console_stops_with_open_lines(own_console):
    ask = own_console.desk.ask
    own = ask("chat.create", title="Trial")["id"]
    line = Listener(Visitor(own_console).sign_in(), start(ask, own))
    own_console.stop()
    assert line.until("nothing") is not None
    line.close()
