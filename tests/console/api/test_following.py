"""A session as it happens, over a line that may be lost."""

import asyncio
import contextlib
import json
import socket
import threading
from types import SimpleNamespace

import pytest

from checkrein.console.api import following
from checkrein.console.serving import Console
from console.api.conftest import Program
from patience import PATIENCE, soon, until


def event(response):
    """The next event: its fields by name; comments and empty ones are passed over."""
    found = {}
    while True:
        line = response.readline().decode()
        if not line:
            return None
        if line == "\n":
            if "event" in found:
                return found
            found = {}
        elif not line.startswith(":"):
            name, _, value = line.rstrip("\n").partition(": ")
            found[name] = value


@pytest.fixture
def listen(program):
    lines = []

    def open_line(*words, by=program, **headers):
        line, response = by.listen(*words, **headers)
        lines.append(line)
        assert response.status == 200, response.read()
        assert response.headers["content-type"].startswith("text/event-stream")
        assert response.readline() == b"retry: 1000\n"
        first = response.readline().decode()
        assert first.startswith("id: ")
        response.began = first.removeprefix("id: ").strip()
        return response

    yield open_line
    for line in lines:
        line.close()


def test_what_happens_is_told_at_once(listen, talker):
    line = listen()
    talker.tell("text", message="m1", part=0, delta="Hé\nllo")
    got = event(line)
    assert (got["id"], got["event"]) == ("e-1", "text")
    assert json.loads(got["data"]) == {"run": "r1", "message": "m1", "part": 0, "delta": "Hé\nllo"}


def test_it_begins_with_where_things_are(listen, talker):
    talker.tell("text", delta="before")
    line = listen()
    assert line.began == "e-1"
    talker.tell("end")
    assert event(line)["id"] == "e-2"


@pytest.mark.parametrize("how", ["header", "address"])
def test_a_lost_line_goes_on_where_it_ended(listen, talker, how):
    for number in range(5):
        talker.tell("text", delta=str(number))
    line = listen(Last_Event_ID="e-2") if how == "header" else listen("/sessions/s1/events?after=e-2")
    assert [json.loads(event(line)["data"])["delta"] for _ in range(3)] == ["2", "3", "4"]


def test_nothing_a_client_sends_breaks_the_lines(program, talker, console):
    """A line break in an id would begin a field of its own."""
    talker.subscribe = lambda session, after, tell: pytest.fail("reached") if "\n" in after else _Quiet()
    line, response = program.listen("/sessions/s1/events?after=a%0Aevent:%20end%0Adata:%20x")
    response.readline()
    assert response.readline() == b"id: ?\n"
    line.close()


class _Quiet:
    def take(self):
        return []

    def close(self):
        pass


def test_thousands_of_events_arrive_in_order(listen, talker):
    line = listen()
    for number in range(3_000):
        talker.tell("text", delta=str(number))
    assert [json.loads(event(line)["data"])["delta"] for _ in range(3_000)] == [str(n) for n in range(3_000)]


def test_a_quiet_line_shows_that_it_lives(listen, monkeypatch):
    monkeypatch.setattr(following, "BEAT_SECONDS", 0.2)
    monkeypatch.setattr(following, "LOOK_SECONDS", 0.05)
    line = listen()
    assert line.readline() == b"\n"
    assert line.readline() == b": still here\n"


def test_a_person_counts_as_reachable_while_they_could_answer(make, listen, pipeline, monkeypatch):
    monkeypatch.setattr(following, "BEAT_SECONDS", 0.1)
    monkeypatch.setattr(following, "LOOK_SECONDS", 0.05)
    listen(by=make("plain"))
    assert not pipeline.broker.reachable
    able = make("able", approve=True)
    line, response = able.listen()
    response.readline()
    until(lambda: pipeline.broker.reachable)
    response.close()
    line.close()
    until(lambda: not pipeline.broker.reachable)


def test_our_own_page_listens_too_and_counts(visitor, pipeline, talker):
    import http.client

    line = http.client.HTTPConnection("127.0.0.1", visitor.console.port, timeout=PATIENCE)
    line.request("GET", f"{visitor.place}/chat/api/sessions/s1/events", headers={"Cookie": visitor.cookie})
    response = line.getresponse()
    response.readline()
    until(lambda: pipeline.broker.reachable)
    talker.tell("end")
    assert event(response)["event"] == "end"
    visitor.post("/sign-out")
    assert event(response) is None
    line.close()


def test_with_its_token_a_line_ends(listen, make, person, talker):
    line = listen(by=make("gone"))
    person("token.revoke", name="gone")
    assert event(line) is None
    until(lambda: all(each.closed for each in talker.lines))


def test_only_so_many_lines_are_open(program, console):
    console.desk.streams._most = 1
    first, response = program.listen()
    assert response.status == 200
    second, refused = program.listen()
    assert refused.status == 429
    assert json.loads(refused.read())["error"]["code"] == "too_many"
    first.close()
    second.close()


def test_whoever_leaves_at_once_takes_no_place_away(program, console):
    for _ in range(30):
        line = socket.create_connection(("127.0.0.1", console.port))
        line.sendall(
            f"GET /api/v1/sessions/s1/events HTTP/1.1\r\nHost: 127.0.0.1:{console.port}\r\n"
            f"Authorization: Bearer {program.token}\r\n\r\n".encode()
        )
        line.close()
    until(lambda: console.desk.streams.open == 0)


def test_whoever_leaves_while_the_line_opens_leaves_nobody_reachable_behind(console, monkeypatch):
    entered, may_enter, left = threading.Event(), threading.Event(), threading.Event()

    @contextlib.contextmanager
    def slowly():
        entered.set()
        assert may_enter.wait(PATIENCE)
        yield
        left.set()

    monkeypatch.setattr(console.desk.pipeline.broker, "attending", slowly)
    caller = SimpleNamespace(attends=True, asked=console.desk.asked, holds=lambda: True)

    async def leave():
        first = asyncio.ensure_future(anext(following._lines(console.desk, caller, "s1", "e-0")))
        await soon(entered.is_set)
        first.cancel()
        asyncio.get_running_loop().call_soon(may_enter.set)
        await asyncio.wait([first])

    asyncio.run(leave())
    assert left.wait(PATIENCE)
    assert console.desk.streams.open == 0


def test_whoever_asks_for_the_head_gets_only_that(program, console):
    answer = program("HEAD", "/sessions/s1/events")
    assert answer.status == 200
    assert console.desk.streams.open == 0


def test_a_console_that_stops_ends_the_lines(pipeline, agents, talker, person):
    console = Console(pipeline, agents, chat=lambda: talker)
    console.start(0)
    line, response = Program(console, person("token.add", name="ci")["token"]).listen()
    assert response.status == 200
    console.stop()
    assert event(response) is None
    line.close()
