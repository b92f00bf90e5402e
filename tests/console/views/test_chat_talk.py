import json

import pytest

from checkrein.doors.chat.offering import Offering
from console import browsing
from patience import until

pipeline = browsing.pipeline


@pytest.fixture
def own(talk):
    return talk("chat.create", title="Trial")["id"]


@pytest.fixture
def now(talk, own):
    """The conversation once it is as it should be."""

    def look(ready):
        def found():
            session = talk("chat.session", id=own)
            return session if ready(session) else None

        return until(found, failing=lambda: talk("chat.session", id=own))

    return look


def over(found):
    return found["run"] is None


def asks(number):
    return lambda found: sum(1 for each in found["calls"].values() if each.get("question")) == number


@pytest.fixture
def asked(visitor, own, now):
    """Two calls that wait; their run and numbers."""
    calls = [f"/call echo__{each} {json.dumps({'title': each})}" for each in ("read_note", "write_note")]
    assert (
        visitor.piece(f"/chat/{own}/send", {"text": "\n".join([*calls, "/then", "/results"])}).status == 200
    )
    found = now(asks(2))
    return {each["tool"]: each for each in found["calls"].values()}


def said(found):
    return found["messages"][-1]["parts"][-1]["text"]


def test_said_and_answered(visitor, own, now):
    assert visitor.piece(f"/chat/{own}/send", {"text": "/say Hello."}).status == 200
    assert said(now(over)) == "Hello."
    assert visitor.post(f"/chat/{own}/send", {"text": "/say Again."}).status == 303
    assert visitor.piece(f"/chat/{own}/send", {"text": "  "}).status == 400


def test_a_file_goes_along(visitor, own, now):
    files = json.dumps([{"name": "a.txt", "mime_type": "text/plain", "data": "cGx1bXM="}])
    visitor.piece(f"/chat/{own}/send", {"text": "/say Seen.", "attachments": files})
    assert "plums" in visitor.get(f"/chat/{own}").text
    now(over)
    wrong = json.dumps([{"name": "a", "data": "nonsense!"}])
    assert visitor.piece(f"/chat/{own}/send", {"text": "x", "attachments": wrong}).status == 400


def test_edited_asked_again_and_chosen(visitor, own, now):
    visitor.piece(f"/chat/{own}/send", {"text": "/say One."})
    first = now(over)["messages"]
    visitor.piece(f"/chat/{own}/regenerate", {"message": first[1]["id"]})
    assert len(now(over)["siblings"]) == 2
    visitor.piece(f"/chat/{own}/edit", {"message": first[0]["id"], "text": "/say Two."})
    assert said(now(over)) == "Two."
    assert visitor.piece(f"/chat/{own}/choose", {"message": first[1]["id"]}).status == 200
    assert said(now(over)) == "One."
    assert visitor.piece(f"/chat/{own}/edit", {"message": first[0]["id"], "text": ""}).status == 400
    assert visitor.piece(f"/chat/{own}/choose", {"message": "nobodys"}).status in (400, 404)


def test_allowed_and_refused_with_a_reason(visitor, own, asked, now):
    yes, no = asked["read_note"], asked["write_note"]
    page = visitor.get(f"/chat/{own}").text
    assert page.count('data-state="waiting"') == 2
    visitor.post(f"/chat/{own}/answer", {"run": yes["run"], "call": yes["call_id"], "answer": "approved"})
    sent = {"run": no["run"], "call": no["call_id"], "answer": "denied", "message": "not today"}
    assert visitor.piece(f"/chat/{own}/answer", sent).status == 200
    told = said(now(over))
    assert "read_note got" in told
    assert "not today" in told
    assert visitor.piece(f"/chat/{own}/answer", sent).status == 409


def test_edited_arguments_run_and_nonsense_does_not(visitor, own, asked, now):
    one = asked["write_note"]
    sent = {"run": one["run"], "call": one["call_id"], "answer": "edited"}
    for wrong in ("{", "[]", "", '{"other": 1}'):
        assert visitor.piece(f"/chat/{own}/answer", sent | {"edited": wrong}).status == 400, wrong
    assert visitor.piece(f"/chat/{own}/answer", sent | {"edited": '{"title": "right"}'}).status == 200
    other = asked["read_note"]
    visitor.piece(f"/chat/{own}/answer", sent | {"call": other["call_id"], "answer": "denied"})
    assert '"right"' in said(now(over))


def test_an_answer_nobody_knows_is_none(visitor, own, asked):
    one = asked["write_note"]
    sent = {"run": one["run"], "call": one["call_id"], "answer": "perhaps"}
    assert visitor.piece(f"/chat/{own}/answer", sent).status == 400
    assert visitor.piece(f"/chat/{own}/answers", {"answer": "perhaps"}).status == 400
    assert visitor.piece(f"/chat/{own}/answer", sent | {"answer": "denied", "call": "none"}).status == 404


def test_remembered_as_the_inbox_does(visitor, own, asked, talk):
    one = asked["read_note"]
    sent = {"run": one["run"], "call": one["call_id"], "answer": "approved", "remember": "exact", "for": "1h"}
    assert visitor.piece(f"/chat/{own}/answer", sent | {"remember": "everything"}).status == 400
    assert visitor.piece(f"/chat/{own}/answer", sent).status == 200
    assert len(talk("grant.list")) == 1


def test_all_at_once_each_for_itself(visitor, own, asked, now):
    picks = [f"{each['run']}/{each['call_id']}" for each in asked.values()]
    assert visitor.piece(f"/chat/{own}/answers", {"answer": "approved", "pick": picks}).status == 200
    assert "read_note got" in said(now(over))
    answer = visitor.piece(f"/chat/{own}/answers", {"answer": "denied", "pick": picks})
    assert answer.status == 400
    assert "2 of 2 were not answered" in answer.text


def test_stopped(visitor, own, asked, now):
    run = asked["read_note"]["run"]
    assert "Stopped." in visitor.piece(f"/chat/{own}/stop", {"run": run}).text
    now(over)
    assert "over already" in visitor.piece(f"/chat/{own}/stop", {"run": run}).text


def test_the_gauge_says_its_numbers(visitor, own):
    empty = visitor.piece(f"/chat/{own}/gauge", {"text": ""}).text
    full = visitor.piece(f"/chat/{own}/gauge", {"text": "many words " * 20_000}).text
    assert 'data-band="green"' in empty
    assert 'data-band="red"' in full
    assert "Compression recommended." in full
    assert "what you write" in full


def test_compressing_is_seen_before_it_is_done(visitor, own, now):
    assert "nothing to compress" in visitor.piece(f"/chat/{own}/preview").text
    assert visitor.piece(f"/chat/{own}/compress", {}).status == 400
    assert visitor.post(f"/chat/{own}/compress", {}).status == 303
    for _ in range(3):
        visitor.piece(f"/chat/{own}/send", {"text": "/long 300"})
        now(over)
    page = visitor.piece(f"/chat/{own}/preview?retention=0").text
    assert "messages become a summary" in page
    assert "about" in page
    assert "Compressed:" in visitor.piece(f"/chat/{own}/compress", {"retention": "0"}).text
    assert "Earlier messages are a summary" in visitor.get(f"/chat/{own}").text
    assert visitor.piece(f"/chat/{own}/preview?retention=much").status == 400


def test_tools_are_switched(visitor, own, talk):
    page = visitor.piece(f"/chat/{own}/tools").text
    assert page.count("checked") == 5
    known = ["echo", "echo__read_note", "echo__write_note"]
    sent = {"known": known, "on": ["echo", "echo__read_note"]}
    assert visitor.piece(f"/chat/{own}/offer", sent).status == 200
    assert talk("chat.session", id=own)["session"]["tools_off"] == ("echo__write_note",)
    assert visitor.piece(f"/chat/{own}/tools").text.count("checked") == 4


def test_what_servers_offer_to_attach(visitor, talk):
    page = visitor.piece("/chat/attach").text
    assert 'data-uri="note://plum"' in page
    assert 'data-name="about"' in page
    assert 'name="topic" required' in page
    assert 'data-template="fruit://{kind}{?year}"' in page
    assert '<input name="kind" required>' in page and '<input name="year">' in page


@pytest.mark.parametrize("arguments", [5, "abc", None, {"a": 1}, [None, 3, {"title": "x"}, {"name": 7}]])
def test_a_prompt_in_the_wrong_form_closes_no_dialog(visitor, talk, monkeypatch, arguments):
    offered = [{"server": "notes", "name": "sum", "arguments": arguments, "title": "Sum up"}]
    monkeypatch.setattr(Offering, "prompts", lambda _self: offered)
    answer = visitor.piece("/chat/attach")
    assert answer.status == 200
    prompts = answer.text.partition("<h3>Prompts</h3>")[2]
    assert "Sum up" in prompts
    assert "<input name" not in prompts
