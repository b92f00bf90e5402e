import http.client
import json
import re

import pytest

from checkrein.console.feed import event
from checkrein.store import records
from patience import PATIENCE, until


class Listener:
    """An open page."""

    def __init__(self, visitor, after=None):
        self.line = http.client.HTTPConnection("127.0.0.1", visitor.console.port, timeout=PATIENCE)
        headers = {"Cookie": visitor.cookie} | ({"Last-Event-ID": str(after)} if after is not None else {})
        self.line.request("GET", f"{visitor.place}/feed", headers=headers)
        self.response = self.line.getresponse()
        assert self.response.status == 200
        assert self.response.headers["content-type"].startswith("text/event-stream")
        self.first = self.next()

    def next(self):
        found = {}
        while True:
            line = self.response.readline().decode().rstrip("\n")
            if not line:
                if found:
                    return found
                continue
            name, _, value = line.partition(": ")
            found[name] = value

    def until(self, kind):
        while True:
            found = self.next()
            data = json.loads(found.get("data", "{}"))
            if data.get("kind") == kind:
                return found | data

    def close(self):
        # The response holds the socket too; without both closed the server sees nobody leave.
        self.response.close()
        self.line.close()


@pytest.fixture
def listen(visitor):
    opened = []

    def make(after=None):
        opened.append(Listener(visitor, after))
        return opened[-1]

    yield make
    for each in opened:
        each.close()


def test_a_question_and_its_answer_reach_an_open_page(listen, ask, visitor):
    page = listen()
    for number in range(3):
        waiter = ask(f"make x{number}")
        assert page.until("asked")["entry"] == waiter.entry
    visitor.post(f"/inbox/answer/{waiter.entry}", {"answer": "denied"})
    answered = page.until("answered")
    assert (answered["entry"], answered["answer"]) == (waiter.entry, "denied")


def test_who_was_away_gets_what_it_missed(listen, ask, pipeline):
    page = listen()
    first = ask("make a")
    seen = int(page.until("asked")["id"])
    page.close()
    second = ask("make b")
    back = listen(after=seen)
    found = back.until("asked")
    assert found["entry"] == second.entry != first.entry
    assert int(found["id"]) > seen


def test_nothing_is_lost_between_a_page_and_its_line(visitor, ask):
    seq = re.search(r'data-seq="(\d+)"', visitor.get("/").text)[1]
    waiter = ask()
    line = http.client.HTTPConnection("127.0.0.1", visitor.console.port, timeout=PATIENCE)
    line.request("GET", f"{visitor.place}/feed?after={seq}", headers={"Cookie": visitor.cookie})
    response = line.getresponse()
    while waiter.entry.encode() not in response.readline():
        pass
    response.close()
    line.close()


def test_who_missed_too_much_looks_at_the_page_anew(listen, work):
    work(300)
    assert listen(after=1).next()["event"] == "reload"


def test_ids_are_the_numbers_of_the_ledger(listen, work, pipeline):
    page = listen()
    work(1)
    found = page.until("finished")
    assert int(found["id"]) == records.head(pipeline.store)[0]


def test_while_a_page_listens_a_person_is_reachable(listen, pipeline):
    assert not pipeline.broker.reachable
    page = listen()
    assert pipeline.broker.reachable
    page.close()
    until(lambda: not pipeline.broker.reachable)


def test_the_line_ends_with_the_session(listen, visitor, work):
    page = listen()
    visitor.post("/sign-out")
    work(1)
    assert page.response.read() == b""


def test_an_event_says_what_changed_and_nothing_a_tool_said(work, pipeline):
    work(command="echo private-words")
    rows = list(records.after(pipeline.store, 0))
    told = b"".join(event(row) for row in rows)
    assert b"private-words" not in told
    assert b'"kind":"decided"' in told


@pytest.mark.parametrize("after", ["x", "-1", "9" * 40, "1; drop"])
def test_a_number_that_is_none_is_ignored(listen, after):
    assert "id" in listen(after=after).first
