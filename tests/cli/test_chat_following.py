"""An answer followed to its end, also over a server that goes away."""

import signal
import threading

import pytest

from checkrein.cli import chat_following
from checkrein.cli.chat_following import Following
from checkrein.cli.chat_screen import Screen
from checkrein.errors import StoreError
from patience import PATIENCE

CALL = {"call_id": "c1", "run": "r1", "name": "n__t", "arguments": {}, "status": "pending", "entry": "e1"}


class Chat:
    """Answers requests with what a test laid out; each list of events is handed out once."""

    def __init__(self, *batches, session=None):
        self.batches, self.known, self.asked, self.aborted = list(batches), session, [], threading.Event()

    def __call__(self, request, **params):
        self.asked.append((request, params))
        if request == "abort":
            self.aborted.set()
            return {"aborted": True}
        if request == "session":
            return self.known
        batch = self.batches.pop(0)
        if isinstance(batch, Exception):
            raise batch
        if callable(batch):
            batch = batch()
        return {"events": batch, "last": batch[-1]["id"] if batch else params["after"]}


def event(number, kind, run="r1", **data):
    return {"id": f"e-{number}", "kind": kind, "run": run, "data": data}


@pytest.fixture
def follow(monkeypatch, capsys):
    def run(chat, answer=None):
        monkeypatch.setattr(chat_following, "ask_chat", chat)
        monkeypatch.setattr(chat_following, "_AGAIN_SECONDS", 0.0)
        following = Following("s1", "r1", Screen(), answer)
        ended = following.until_over("e-0")
        return ended, following, capsys.readouterr().out

    return run


def test_from_the_first_word_to_the_end(follow):
    chat = Chat(
        [
            event(1, "started"),
            event(2, "text", message="m", delta="Hel"),
            event(3, "text", "other", message="x", delta="!"),
        ],
        [],
        [event(4, "text", message="m", delta="lo"), event(5, "usage", output_tokens=1), event(6, "end")],
    )
    ended, following, out = follow(chat)
    assert (ended, out, following.usage) == ("done", "Hello", {"output_tokens": 1})
    assert [params["after"] for _, params in chat.asked] == ["e-0", "e-3", "e-3"]


@pytest.mark.parametrize(("kind", "state"), [("end", "done"), ("error", "failed"), ("aborted", "aborted")])
def test_how_it_ended(follow, kind, state):
    ended, following, _ = follow(Chat([event(1, kind, text="so")]))
    assert ended == state
    assert following.error == ("so" if kind == "error" else "")


def test_another_answers_end_is_not_ours(follow):
    assert follow(Chat([event(1, "end", "r0")], [event(2, "end")]))[0] == "done"


def test_each_call_is_asked_about_once(follow):
    asked = []
    chat = Chat(
        [event(1, "tool_call", call=CALL), event(2, "approval_required", call=CALL)],
        [
            event(3, "approval_required", call=CALL),
            event(4, "tool_result", call={**CALL, "status": "denied"}),
        ],
        [event(5, "end")],
    )
    _, following, out = follow(chat, asked.append)
    assert asked == [CALL]
    assert out.count("-> n__t") == 1
    assert following.calls["c1"]["status"] == "denied"


def test_without_a_person_it_says_where_to_answer(follow):
    out = follow(Chat([event(1, "approval_required", call=CALL)], [event(2, "end")]))[2]
    assert "checkrein approve e1" in out


def test_a_server_that_comes_back_is_found(follow):
    known = {
        "run": {"id": "r1"},
        "messages": [
            {"id": "m", "run": "r1", "role": "assistant", "state": "streaming", "parts": [{"text": "Hello"}]}
        ],
        "calls": {"r1/c1": {**CALL, "question": {"offers": []}}},
    }
    asked = []
    chat = Chat(
        [event(1, "text", message="m", delta="Hel")],
        StoreError("gone"),
        [event(2, "reload", "")],
        [event(3, "end")],
        session=known,
    )
    ended, _, out = follow(chat, asked.append)
    assert ended == "done"
    assert "went away" in out
    assert out.count("Hel") == 1
    assert len(asked) == 1


@pytest.mark.parametrize(
    ("state", "ended"), [("completed", "done"), ("aborted", "aborted"), ("interrupted", "failed")]
)
def test_what_ended_meanwhile_is_known_from_what_is_kept(follow, state, ended):
    message = {"id": "m", "run": "r1", "role": "assistant", "state": state, "parts": [{"text": "All."}]}
    known = {"run": None, "messages": [message], "calls": {}}
    came, _, out = follow(Chat([event(1, "reload", "")], session=known))
    assert (came, out) == (ended, "All.\n")


def test_a_server_that_stays_away_is_given_up(follow):
    with pytest.raises(StoreError, match="does not come back"):
        follow(Chat(*[StoreError("gone")] * 30))


def test_the_first_interrupt_stops_the_answer_and_loses_nothing(follow):
    chat = Chat()

    def pressed():
        signal.raise_signal(signal.SIGINT)
        assert chat.aborted.wait(PATIENCE)
        return [event(1, "text", message="m", delta="kept"), event(2, "aborted")]

    chat.batches = [pressed]
    ended, _, out = follow(chat)
    assert (ended, out) == ("aborted", "kept")


def test_the_second_leaves(follow):
    chat = Chat()

    def pressed():
        for _ in range(2):
            signal.raise_signal(signal.SIGINT)
        return []

    chat.batches = [pressed]
    with pytest.raises(KeyboardInterrupt):
        follow(chat)


def test_an_interrupt_while_a_person_is_asked_stops_the_answer(follow):
    chat = Chat([event(1, "approval_required", call=CALL)])

    def answer(_call):
        signal.raise_signal(signal.SIGINT)
        raise AssertionError("it was not interrupted")

    chat.batches.append(lambda: [event(2, "aborted")] if chat.aborted.wait(PATIENCE) else [])
    assert follow(chat, answer)[0] == "aborted"
