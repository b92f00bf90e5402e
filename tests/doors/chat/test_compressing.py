"""Compressing a conversation: by itself or by hand, and nothing that was told is forgotten."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from chat_ground import told
from checkrein.errors import CheckreinError, InputError
from patience import PATIENCE, until

LIMIT = 32_000


def fill(talk, tokens):
    """One turn that takes about this many tokens."""
    talk.models.acts = []
    assert talk.finish(f"/long {tokens // 2}") == "end"


def test_a_fact_is_known_after_three_compressions(talk):
    talk.finish("My dog is called Balthasar.")
    for number in range(3):
        talk.finish(f"Fact number {number}: the tower has {number}00 steps.")
        talk.finish("/long 300")
        outcome = talk.chat.compress(session=talk.id, retention=0)
        assert outcome["compressed"], outcome
        assert outcome["new_tokens"] < outcome["original_tokens"]
    talk.finish("/recall Balthasar")
    assert talk.answer() == "I know Balthasar."
    for number in range(3):
        talk.finish(f"/recall {number}00 steps")
        assert talk.answer() == f"I know {number}00 steps."
    talk.finish("/recall Zanzibar")
    assert talk.answer() == "I do not know Zanzibar."
    assert "Balthasar" not in str(talk.models.last.messages[-1]), "it is in the summary"
    assert len(talk.messages()) == 24, "the history stays whole"
    assert talk.chat.session(id=talk.id)["snapshot"]["text"].count("Balthasar") == 1


def test_the_compressed_context_is_what_is_sent(talk):
    talk.finish("/say a unicorn was seen", "/long 500")
    talk.finish("/say so")
    before = talk.chat.tokens(session=talk.id)
    talk.chat.compress(session=talk.id, retention=0)
    after = talk.chat.tokens(session=talk.id)
    assert after["breakdown"]["summary"] > 0
    talk.finish("hello")
    said = talk.models.said()
    assert said.count("a unicorn was seen") == 1, "as a bullet of the summary"
    assert after["used"] < before["used"] / 2
    assert len(talk.models.last.messages) == 3


def test_it_compresses_by_itself_before_a_request_that_is_too_long(talk):
    talk.finish("My cat is called Melchior.")
    fill(talk, 20_000)
    fill(talk, 14_000)
    assert told(talk, "compressed") == []
    assert talk.finish("/recall Melchior") == "end"
    (outcome,) = told(talk, "compressed")
    assert outcome["compressed"], outcome
    assert outcome["new_tokens"] < outcome["original_tokens"]
    assert talk.answer() == "I know Melchior."
    assert talk.chat.tokens(session=talk.id)["used"] < LIMIT


def test_what_is_just_sent_counts_too(talk):
    talk.finish("My cat is called Melchior.")
    fill(talk, 20_000)
    used = talk.chat.tokens(session=talk.id)["used"]
    assert used < LIMIT * 0.95
    typed = "word " * (LIMIT - used)
    assert talk.chat.tokens(session=talk.id, input=typed)["needs_compression"] is True
    assert talk.finish(typed) == "end"
    assert [each["compressed"] for each in told(talk, "compressed")] == [True]


def test_a_session_can_say_it_is_not_compressed_by_itself(talk):
    talk.chat.update(id=talk.id, auto_compress=False)
    fill(talk, 20_000)
    fill(talk, 14_000)
    talk.finish("hello")
    assert told(talk, "compressed") == []
    talk.chat.update(id=talk.id, auto_compress=True)
    talk.finish("hello")
    assert len(told(talk, "compressed")) == 1


def test_where_no_summary_can_be_made_the_whole_is_sent_and_that_is_said(talk, monkeypatch):
    talk.finish("My cat is called Melchior.")
    fill(talk, 20_000)
    fill(talk, 14_000)

    async def fails(*_given, **_more):
        raise CheckreinError("The summariser is out.")

    monkeypatch.setattr("checkrein.doors.chat.compressing._asked_once", fails)
    assert talk.finish("/recall Melchior") == "end"
    (outcome,) = told(talk, "compressed")
    assert (outcome["compressed"], outcome["failed"]) == (False, True)
    assert "The summariser is out." in outcome["reason"]
    assert talk.answer() == "I know Melchior."
    assert talk.store.snapshots(talk.id) == []
    assert len(talk.models.last.messages) > 5


@pytest.mark.parametrize("retention", [0, 400, None])
def test_the_preview_is_what_compressing_does(talk, retention):
    for number in range(4):
        talk.finish(f"Fact {number}.", "/long 200")
    preview = talk.chat.preview(session=talk.id, retention=retention)
    assert talk.chat.preview(session=talk.id, retention=retention) == preview, "looking changes nothing"
    outcome = talk.chat.compress(session=talk.id, retention=retention)
    assert outcome["compressed"] == preview["compressed"]
    assert outcome["summarised"] == len(preview["summarised"])
    if preview["compressed"]:
        assert outcome["original_tokens"] == preview["tokens_before"]
        kept = preview["tokens_after"] - preview["summary_tokens"]
        snapshot = talk.chat.session(id=talk.id)["snapshot"]
        assert snapshot["cutoff"] == preview["cutoff"]
        assert outcome["new_tokens"] == kept + snapshot["tokens"]


def test_by_hand_while_a_model_answers_is_refused(talk):
    run = talk.say("/slow 20", "/long 500")
    with pytest.raises(InputError, match="answering here already"):
        talk.chat.compress(session=talk.id)
    talk.chat.abort(run=run)
    talk.check()


def test_while_it_compresses_nothing_is_sent(talk, monkeypatch):
    begun, go_on = threading.Event(), threading.Event()

    async def slowly(*_given, **_more):
        begun.set()
        await asyncio.to_thread(go_on.wait, PATIENCE)
        return "- so"

    talk.finish("/long 300")
    talk.finish("/long 300")
    monkeypatch.setattr("checkrein.doors.chat.compressing._asked_once", slowly)
    with ThreadPoolExecutor(1) as pool:
        compressing = pool.submit(talk.chat.compress, session=talk.id, retention=0)
        assert begun.wait(PATIENCE)
        with pytest.raises(InputError, match="already"):
            talk.say("hello")
        go_on.set()
        assert compressing.result()["compressed"]
    assert talk.finish("hello") == "end"


def test_stopped_while_it_compresses_the_run_is_over(talk, monkeypatch):
    talk.finish("so")
    fill(talk, 20_000)
    fill(talk, 14_000)
    begun = []

    async def never(*_given, **_more):
        begun.append(1)
        await asyncio.Event().wait()

    monkeypatch.setattr("checkrein.doors.chat.compressing._asked_once", never)
    run = talk.say("hello")
    until(lambda: begun)
    assert talk.chat.abort(run=run) == {"aborted": True}
    assert talk.store.snapshots(talk.id) == []
    talk.check()


def test_a_branch_keeps_its_own_summary(talk):
    talk.finish("My dog is called Balthasar.")
    talk.finish("/long 300")
    first = talk.messages()[0]["id"]
    talk.chat.compress(session=talk.id, retention=0)
    assert talk.over(talk.chat.edit(session=talk.id, message=first, text="/recall Balthasar")["run"]) == "end"
    assert talk.answer() == "I do not know Balthasar.", "the other branch never heard of it"
    talk.chat.choose(session=talk.id, message=first)
    talk.finish("/recall Balthasar")
    assert talk.answer() == "I know Balthasar."
