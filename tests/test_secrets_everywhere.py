"""A secret in a call is in nothing that is stored, shown or sent about it: every form, a real pipeline."""

import itertools
import json

import msgspec
import pytest
from ground import vectors

from checkrein.authority.phase import switch
from checkrein.authority.question import described, offered
from checkrein.call import Category
from checkrein.ledger.export import FORMATS, export
from checkrein.ledger.query import Filter, entries, get_entry
from checkrein.notifying import Notifier
from checkrein.pipeline import Pipeline
from checkrein.settings import Notify
from checkrein.settings.sources import state_dir
from checkrein.store.questions import get_question
from checkrein.store.sqlite import SqliteStore
from deciding import in_session
from patience import until
from receiver import Receiver

FORMS = vectors("secrets.jsonl")
AUDITED = [row for row in FORMS if row.get("audit")]
KINDS = ("hunter{}secret", "Zq{}-kQ9_xv", "correct{}horse", "aGVsbG8{}+wQ==", "S3cr.et.{}x", "{}55-1234-9")


def lettered(number):
    return "".join(chr(97 + number // 26**place % 26) for place in range(3))


def filled(form, secret):
    """`@@@` is a secret and an @ behind it."""
    return form.replace("@@@", f"{secret}@").replace("@@", secret)


def planted(kinds=2):
    """Every form with different secrets, each of another kind."""
    kind, number = itertools.cycle(KINDS), itertools.count(101)
    for row in FORMS:
        for _ in range(kinds):
            at, shape = next(number), next(kind)
            secret = shape.format(lettered(at) if shape.startswith("correct") else at)
            yield row["id"], secret, filled(row["command"], secret)


PLANTED = list(planted())


def test_the_table_is_large():
    assert len(FORMS) >= 100
    assert len({secret for _, secret, _ in PLANTED}) >= 200


@pytest.fixture
def receiver():
    made = Receiver()
    yield made
    made.stop()


@pytest.fixture
def told(pipeline, receiver):
    """Has everything that happened told, at once."""
    now, said = [0.0], []
    settings = Notify(webhook_urls=(receiver.url,), urls=(receiver.apprise,), events=("asked", "blocked"))
    notifier = Notifier(pipeline, lambda: settings, said.append, monotonic=lambda: now[0])
    notifier.look()

    def tell():
        count = len(receiver.got)
        notifier.look()
        now[0] += 60.0
        notifier.look()
        until(lambda: len(receiver.got) >= count + 2)
        return said

    yield tell
    notifier.stop()


@pytest.fixture
def reopened(pipeline, clock):
    """The same store under another pipeline, as after a restart."""
    made = []

    def open_again():
        pipeline.close()
        made.append(Pipeline(SqliteStore.open(state_dir()), state_dir(), clock=clock))
        return made[-1]

    yield open_again
    for each in made:
        each.close()


def in_files(secrets):
    """Which of these stand in a file below the state directory: the store, daily lines, checkpoints, logs."""
    files = {each: each.read_bytes() for each in state_dir().rglob("*") if each.is_file()}
    assert any(each.name.endswith(".jsonl") for each in files)
    return [
        (secret, each.name)
        for secret in secrets
        for each, content in files.items()
        if secret.encode() in content
    ]


@pytest.mark.invariant("a secret found in a call is masked in all that is recorded about the call")
def test_no_secret_of_a_call_is_stored_told_or_exported(pipeline, project, receiver, told):
    switch(pipeline, "building", "ada", "terminal")
    seen, shown = {}, []
    for number, (form, secret, command) in enumerate(PLANTED):
        call = in_session(command, project, session=f"s{number}")
        decided = pipeline.decide(call, asking=True)
        seen[secret] = form
        blocked = decided.verdict.word == "deny" and decided.verdict.risk.category == Category.critical
        if decided.asked or blocked:
            shown += told()
        if decided.asked:
            question = get_question(pipeline.store, decided.entry)
            shown += [str(described(pipeline.store, question)), str(offered(pipeline, decided.entry))]
            answer = {"actor": "ada", "channel": "terminal", "message": f"use {secret} again"}
            if number % 2:
                edited = {"command": command, "description": f"with {secret}"}
                with pipeline.broker.awaiting(decided.entry):
                    pipeline.answer(decided.entry, "approved", edited=edited, **answer)
            else:
                pipeline.answer(decided.entry, "denied", **answer)
        pipeline.finish(decided.entry, "success", output={"stdout": f"logged in with {secret}."})
        pipeline.end_session(project, f"s{number}")
    pipeline.mirror.catch_up()
    told_texts = [each.body.decode() for each in receiver.got]
    exported = ["".join(export(entries(pipeline.store, Filter()), form)) for form in FORMATS]
    everything = "\n".join([*shown, *told_texts, *exported])
    assert [(seen[secret], secret) for secret in seen if secret in everything] == []
    pipeline.close()
    assert [(seen[secret], secret, name) for secret, name in in_files(seen)] == []


@pytest.mark.parametrize("row", AUDITED, ids=lambda row: row["command"][:30])
def test_what_was_found_by_use_is_masked_in_reasons_and_effects_too(pipeline, project, row):
    secret = row.get("secret", "hunter2secret")
    entry = pipeline.decide(in_session(filled(row["command"], secret), project)).entry
    found = msgspec.to_builtins(get_entry(pipeline.store, entry))
    assert secret not in json.dumps(found)
    # Only the secret goes.
    assert found["tool_input"]["command"] == filled(row["command"], "[masked]")


def test_a_call_from_before_a_restart_is_masked_by_what_its_report_repeats(pipeline, project, reopened):
    call = in_session("MY_VAR=hunter2secret ls", project)
    entry = pipeline.decide(call).entry
    later = reopened()
    later.finish(entry, "success", output="it is hunter2secret", arguments=call.arguments)
    assert get_entry(later.store, entry).output == "it is [masked]"


def test_a_call_from_before_a_restart_is_masked_by_what_its_question_holds(pipeline, project, reopened):
    entry = pipeline.decide(in_session("MY_VAR=hunter2secret make x", project), asking=True).entry
    later = reopened()
    later.answer(entry, "denied", actor="ada", channel="terminal", message="not with hunter2secret")
    assert get_entry(later.store, entry).message == "not with [masked]"
