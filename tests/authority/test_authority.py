import json
import os

import pytest

from checkrein import authority, peers
from checkrein.agents import user_name
from checkrein.authority.chat_requests import REQUESTS
from checkrein.errors import InputError, NotFoundError, PersonOnlyError
from checkrein.store.agents import Session, put_session

PERSON_ONLY = {
    "client.add": {"name": "x"},
    "client.revoke": {"id": "x"},
    "installation.add": {"agent": "claude-code", "folder": ""},
    "installation.remove": {"agent": "claude-code", "folder": ""},
    "phase.set": {"name": "building"},
    "phase.clear": {},
    "policy.accept": {"project": "/", "sha256": ""},
    "policy.revoke": {"project": "/"},
    "question.answer": {"id": "x", "answer": "approved"},
    "question.call": {"id": "x"},
    "rule.add": {"rule": {"action": "allow", "tool": "Bash"}},
    "rule.edit": {"id": "x", "changes": {}},
    "rule.move": {"id": "x", "priority": 1},
    "rule.remove": {"id": "x"},
    "run.start": {"source": "return 1"},
    "run.resume": {"id": "x"},
    "run.cancel": {"id": "x"},
    "console.open": {},
    "grant.revoke": {"id": "g-1"},
    "notify.test": {},
    "passphrase.set": {"new": "a long passphrase"},
    "question.answer_all": {"answers": []},
    "release.make": {"entry": "1m7f"},
    "server.attend": {},
    "server.stop": {},
    "trust.import": {"project": "/", "content": b"{}"},
    "trust.reset": {"project": "/"},
    "run.show": {"id": "x"},
    "upstream.accept": {"name": "x", "picks": []},
    "upstream.add": {"name": "x", "entry": {"command": "x"}},
    "upstream.import": {"servers": []},
    "upstream.logs": {"name": "x"},
    "upstream.refuse": {"name": "x", "picks": []},
    "upstream.reload": {},
    "upstream.remove": {"name": "x"},
    "upstream.remove_secret": {"name": "x"},
    "upstream.restart": {"name": "x"},
    "upstream.set_secret": {"name": "x", "value": "y"},
    "upstream.sign_in": {"name": "x"},
    "upstream.sign_in_state": {"name": "x"},
    "upstream.sign_out": {"name": "x"},
    "upstream.start": {"name": "x"},
    "upstream.stop": {"name": "x"},
    "upstream.test": {"name": "x"},
    "token.add": {"name": "x"},
    "token.revoke": {"name": "x"},
    **{f"chat.{name}": {} for name, each in REQUESTS.items() if each.person},
}
OPEN = (
    "chat.status",
    "client.list",
    "grant.list",
    "installation.list",
    "ledger.checkpoint",
    "passphrase.state",
    "phase.show",
    "question.list",
    "run.list",
    "server.about",
    "shadow.try",
    "token.list",
    "upstream.browse",
    "upstream.list",
    "upstream.review",
    "upstream.secrets",
)
# What a program asks for its own gated calls; a person's word is not among it.
PROGRAMS = tuple(f"library.{name}" for name in "decide finish go_on meet pause take wait withdraw".split())


@pytest.fixture
def as_agent(pipeline):
    """The process above this one is a gated agent from now on."""
    above = peers.process(os.getppid())
    met = Session(
        agent="claude-code",
        id="s1",
        project="",
        started_at=1.0,
        process=above.pid,
        process_started=above.started,
    )
    pipeline.store.write(lambda tx: put_session(tx, met))


def test_every_verb_is_either_for_everyone_or_for_people():
    for noun in authority._NOUNS:
        __import__(f"checkrein.authority.{noun}")
    assert {name for name, each in authority._VERBS.items() if each.person} == set(PERSON_ONLY)
    everyone = {name for name, each in authority._VERBS.items() if not each.person}
    assert everyone == {*OPEN, *PROGRAMS}


@pytest.mark.invariant("only a person answers, grants, writes rules, switches phases or stops the server")
@pytest.mark.parametrize("name", PERSON_ONLY)
def test_only_a_person_may_and_the_attempt_is_recorded(as_agent, do, recorded, pipeline, name):
    with pytest.raises(PersonOnlyError, match="claude-code session s1"):
        do(name, **PERSON_ONLY[name])
    assert [each["request"] for each in recorded("request_refused")] == [name]
    assert pipeline.store.query("SELECT count(*) FROM record") == [(1,)]


# What is looked at by name is not there.
@pytest.mark.parametrize("name", OPEN)
def test_looking_is_for_everyone(pipeline, as_agent, do, recorded, name):
    pipeline.note("test", {})
    do(name)
    assert recorded("request_refused") == []


def test_an_agent_that_has_ended_holds_nobody_back(do, pipeline):
    dead = Session(
        agent="codex", id="s2", project="", started_at=1.0, process=os.getppid(), process_started="long ago"
    )
    pipeline.store.write(lambda tx: put_session(tx, dead))
    do("phase.set", name="building")


@pytest.mark.parametrize("name", ["nonsense", "rule.nonsense", "os.system", "__init__.x", ""])
def test_what_nobody_knows_is_refused(do, name):
    with pytest.raises(InputError, match="no request"):
        do(name)


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("rule.add", {}),
        ("rule.add", {"rule": "deny everything"}),
        ("rule.edit", {"id": 7}),
        ("rule.remove", {"id": ["x"]}),
        ("rule.move", {"id": "x", "priority": "first"}),
        ("trust.import", {"project": "/", "content": 5}),
        ("trust.reset", {"project": None}),
        ("policy.accept", {"project": "/"}),
        ("policy.revoke", {}),
        ("phase.set", {}),
        ("phase.set", {"name": ["building"]}),
        ("phase.set", {"name": "building", "session": ["s"]}),
        ("phase.clear", {"project": {}}),
        ("phase.show", {"project": {"a": 1}}),
        ("installation.remove", {"agent": {}, "folder": []}),
        ("question.answer", {"id": 5, "answer": "approved"}),
        ("question.answer", {"id": "x", "answer": "approved", "edited": ["ls"]}),
        ("question.answer", {"id": "x", "answer": "approved", "for_session": "yes"}),
        ("question.answer", {"answer": "approved"}),
        ("installation.add", {"agent": "claude-code"}),
    ],
)
def test_a_request_that_makes_no_sense_is_a_sentence_and_changes_nothing(do, pipeline, name, params):
    with pytest.raises(InputError, match="cannot be understood"):
        do(name, **params)
    assert pipeline.store.query("SELECT count(*) FROM record") == [(0,)]


def test_the_actor_is_who_the_kernel_says(asked):
    assert asked.actor == user_name(os.getuid())


def test_answers_travel_as_json():
    assert json.loads(authority.as_answer(lambda: {"a": 1})) == {"value": {"a": 1}}

    def fail():
        raise NotFoundError("There is no x.", remedy="Look.")

    assert json.loads(authority.as_answer(fail)) == {
        "error": "NotFoundError",
        "message": "There is no x.",
        "remedy": "Look.",
    }
    broken = json.loads(authority.as_answer(lambda: 1 / 0))
    assert "ZeroDivisionError" in broken["message"]
