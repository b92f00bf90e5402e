"""Runs that are alive on this server: one at a time in a session, many at once, taken up after a restart."""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from chat_ground import OVER, Talk, Tools, kill, opened
from checkrein.doors.chat import Part, Run, runs
from checkrein.errors import CheckreinError, InputError
from patience import until


def test_one_answer_at_a_time(talk):
    run = talk.say("/slow 20", "/long 500")
    for ask in (
        lambda: talk.say("more"),
        lambda: talk.chat.regenerate(session=talk.id),
        lambda: talk.chat.choose(session=talk.id, message=talk.messages()[0]["id"]),
        lambda: talk.chat.edit(session=talk.id, message=talk.messages()[0]["id"], text="other"),
    ):
        with pytest.raises(InputError, match="answering here already"):
            ask()
    talk.chat.abort(run=run)
    assert talk.finish("more") == "end"
    talk.check()


def test_of_many_messages_at_once_one_is_answered(talk):
    together = threading.Barrier(8)

    def send(number):
        together.wait()
        try:
            return talk.say(f"/slow 20\n/say number {number} of many")
        except InputError:
            return ""

    with ThreadPoolExecutor(8) as pool:
        (run,) = [each for each in pool.map(send, range(8)) if each]
    assert talk.over(run) == "end"
    assert [each["role"] for each in talk.messages()] == ["user", "assistant"]
    talk.check()


def test_only_so_many_answers_are_under_way(talk, monkeypatch):
    monkeypatch.setattr(runs, "MOST", 1)
    run = talk.say("/slow 20", "/long 500")
    other = talk.chat.create()["id"]
    with pytest.raises(InputError, match="under way already"):
        talk.chat.send(session=other, text="hello")
    talk.chat.abort(run=run)
    assert talk.chat.send(session=other, text="hello")["run"]


def test_what_cannot_begin_leaves_the_session_free(talk):
    broken = {"data": "!", "name": "f", "mime_type": "a/b"}
    for text, more in (("", {}), ("hello", {"model": "nobody/has-it"}), ("x", {"attachments": [broken]})):
        with pytest.raises(CheckreinError):
            talk.say(text, **more)
        talk.chat._runs.check_free(talk.id)
    assert talk.messages() == []


def test_a_hundred_conversations_at_once_lose_nothing(talk):
    ids = [talk.chat.create()["id"] for _ in range(100)]

    def converse(id):
        last = talk.chat.session(id=id)["last"]
        talk.chat.send(session=id, text=f"/slow 1\n/long 60\n/say that was {id}")
        found, kinds = {}, []
        while not set(kinds) & set(OVER):
            events = talk.chat.events(session=id, after=last, wait=25)
            last = events["last"]
            for each in events["events"]:
                kinds.append(each["kind"])
                if each["kind"] == "text":
                    text = found.get(each["data"]["message"], "")
                    assert each["data"]["at"] == len(text)
                    found[each["data"]["message"]] = text + each["data"]["delta"]
        return kinds[-1], found

    with ThreadPoolExecutor(100) as pool:
        results = list(pool.map(converse, ids))
    for id, (kind, found) in zip(ids, results, strict=True):  # noqa: A001
        assert kind == "end"
        path = talk.store.path(id)
        assert [each.role for each in path] == ["user", "assistant"]
        assert found[path[1].id] == path[1].parts[0].text
        assert path[1].parts[0].text.endswith(f"that was {id}")
        assert path[1].parts[0].text.startswith("word1 word2")


def test_a_run_another_server_took_is_left_to_it(talking, talk):
    run = talk.say("/call notes__put {}")
    talk.asked()
    kill(talk)
    pipeline = opened()
    again = Talk(pipeline, Tools(pipeline, *talk.tools.all.values()), session=talk.id)
    holder = again.store.get_run(run).holder
    assert holder == again.chat._runs.holder
    assert not again.store.change_run(run, expect=("running", "waiting"), expect_holder="gone", holder="x")
    again.chat.abort(run=run)
    again.check()
    again.close()


def test_runs_nobody_can_go_on_with_are_said_to_be_interrupted_and_leave_no_question(talking, talk):
    """Another run's message is the last one by now: whoever waits here would wait for ever."""
    run = talk.say("/call notes__put {}")
    talk.asked()
    kill(talk)
    pipeline = opened()
    first = Talk(pipeline, Tools(pipeline))
    first.chat.close()
    first.store.add_message(talk.id, "user", [Part(text="meanwhile")])
    first.store.change_run(run, expect=("running", "waiting"), holder="gone")
    pipeline.close()
    again = talking(*talk.tools.all.values(), session=talk.id)
    assert again.ended(run) == "interrupted"
    assert again.calls()[0].status == "cancelled"
    assert again.finish("hello") == "end"
    again.check()


def test_a_server_that_ends_waits_for_nobody_for_long(talk):
    talk.say("/call notes__put {}")
    talk.asked()
    talk.chat.close()
    assert talk.chat._own.loop is None
    assert not talk.chat._own._thread.is_alive()


def test_a_run_of_a_conversation_that_is_gone_harms_nobody(talking, talk):
    talk.store.add_run(Run(id="left", session=talk.id, holder="gone"))
    kill(talk)
    again = talking()
    assert again.ended("left") == "interrupted"
    assert again.complaints == []
    until(lambda: again.chat.busy == 0)
