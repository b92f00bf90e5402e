"""What a person answers about a call, and what becomes of it."""

import click
import pytest

from checkrein.cli import chat_answering
from checkrein.cli.chat_answering import answer, described
from checkrein.errors import InputError

CALL = {
    "run": "r1",
    "call_id": "c1",
    "session": "s1",
    "name": "notes__drop",
    "arguments": {"title": "a"},
    "question": {
        "risk": "high",
        "reasons": ["No rule names this."],
        "offers": [{"what": "exact", "label": "exactly this"}, {"what": "family", "label": "every note"}],
    },
}


@pytest.fixture
def asked(monkeypatch):
    """Every request that was made; each may be answered or refused."""
    made = []

    def ask(request, **params):
        made.append((request, params))
        if request == "session":
            return {"run": {"id": "r1"}, "calls": {"r1/c1": CALL}}
        if params.get("edited") == {"bad": 1}:
            raise InputError("The arguments do not fit the tool.")
        return {"answer": "approved" if request == "approve" else "denied"}

    monkeypatch.setattr(chat_answering, "ask_chat", ask)
    monkeypatch.delenv("EDITOR", raising=False)
    monkeypatch.delenv("VISUAL", raising=False)
    return made


def types(*lines):
    left = list(lines)
    return lambda _prompt: left.pop(0)


@pytest.mark.parametrize(
    ("lines", "request_", "params"),
    [
        (["y"], "approve", {"reason": ""}),
        (["YES fine with me"], "approve", {"reason": "fine with me"}),
        (["n too early"], "decline", {"reason": "too early"}),
        (["n", "because"], "decline", {"reason": "because"}),
        (["n", ""], "decline", {"reason": ""}),
        (["a"], "approve", {"remember": {"what": "family", "for": "session"}}),
        (["e", '{"title": "b"}'], "approve", {"edited": {"title": "b"}}),
        (["", "?", "perhaps", "y"], "approve", {"reason": ""}),
        (["e", "[1]", "e", "x", "n", "no"], "decline", {"reason": "no"}),
    ],
)
def test_each_answer_asks_for_what_it_means(asked, lines, request_, params):
    said = []
    answer(CALL, said.append, types(*lines))
    assert [each for each in asked if each[0] != "session"] == [
        (request_, {"run": "r1", "call": "c1", **params})
    ]


def test_arguments_that_do_not_fit_are_asked_for_again(asked):
    said = []
    answer(CALL, said.append, types("e", '{"bad": 1}', "y"))
    assert any("do not fit" in each for each in said)
    assert asked[-1][0] == "approve"


def test_what_somebody_else_answered_is_not_asked_for_ever(asked, monkeypatch):
    def settled(request, **_):
        if request == "session":
            return {"run": {"id": "r1"}, "calls": {"r1/c1": {**CALL, "question": None}}}
        raise InputError("This call waits for no answer: it is completed.")

    monkeypatch.setattr(chat_answering, "ask_chat", settled)
    said = []
    answer(CALL, said.append, types("y"))
    assert "waits for no answer" in said[-1]


def test_a_yes_that_a_rule_outranks_is_said(asked, monkeypatch):
    monkeypatch.setattr(chat_answering, "ask_chat", lambda *_, **__: {"answer": "overruled"})
    said = []
    answer(CALL, said.append, types("y"))
    assert "does not count" in said[-1]


def test_where_nothing_can_be_remembered_that_is_not_offered(asked):
    prompts = []

    def read(prompt):
        prompts.append(prompt)
        return "a" if len(prompts) == 1 else "y"

    answer({**CALL, "question": {"offers": []}}, lambda _: None, read)
    assert "session" not in prompts[0]
    assert [name for name, _ in asked] == ["approve"]
    assert "remember" not in asked[0][1]


def test_everything_a_person_needs_is_there_and_drives_nothing():
    call = {**CALL, "name": "notes\x1b[2J", "arguments": {"a": "\x1b]0;x\x07"}}
    text = click.unstyle("\n".join(described(call)))
    assert "high risk" in text
    assert "No rule names this." in text
    assert not set(text) & set("\x1b\x07")


def test_leaving_leaves_the_question(asked):
    def gone(_prompt):
        raise EOFError

    with pytest.raises(EOFError):
        answer(CALL, lambda _: None, gone)
    assert asked == []
