"""Outcomes: recorded once, learned from in order, several at a time as one by one."""

import pytest

from checkrein.call import ToolCall
from checkrein.errors import InputError, NotFoundError
from checkrein.finishing import About, Outcome, known
from checkrein.ledger.entries import fold
from checkrein.store import records
from checkrein.store.rules import add_rule
from checkrein.store.trust import trust_of


@pytest.fixture(autouse=True)
def allowed(pipeline):
    rule = {"action": "allow", "server": "notes", "pattern": "*"}
    pipeline.store.write(lambda tx: add_rule(tx, "r1", rule, 1.0))


def decide(pipeline, project, number=0):
    call = ToolCall(
        tool="read", server="notes", door="gateway", session="s1", project=project, arguments={"n": number}
    )
    return pipeline.decide(call)


def entry_of(pipeline, entry):
    return fold(records.of_entries(pipeline.store, [entry]))[0]


def test_several_outcomes_teach_what_one_by_one_would(pipeline, project):
    other = f"{project}-other"
    words = ["success", "success", "failure", "success", "failure"]
    together = [decide(pipeline, project, n).entry for n in range(len(words))]
    pipeline.finish_soon([Outcome(e, w) for e, w in zip(together, words, strict=True)]).result()
    for number, word in enumerate(words):
        pipeline.finish(decide(pipeline, other, number).entry, word)
    alone, batch = (trust_of(pipeline.store, each)["mcp:notes"] for each in (other, project))
    assert alone == batch
    assert [entry_of(pipeline, each).outcome for each in together] == words


def test_what_is_known_of_a_call_spares_looking_it_up(pipeline, project):
    entry = decide(pipeline, project).entry
    about = About(project, "s1", ("mcp:notes",), pipeline.clock() - 2.0)
    pipeline.finish_soon([Outcome(entry, "success", about=about)]).result()
    found = entry_of(pipeline, entry)
    assert (found.outcome, found.latency_ms) == ("success", 2000.0)


def test_reported_twice_it_counts_once_also_in_one_breath(pipeline, project):
    entry = decide(pipeline, project).entry
    pipeline.finish_soon([Outcome(entry, "success"), Outcome(entry, "failure")]).result()
    assert entry_of(pipeline, entry).outcome == "success"
    assert trust_of(pipeline.store, project)["mcp:notes"]["total_operations"] == 1


def test_a_call_nobody_knows_keeps_no_other_off_the_record(pipeline, project):
    entry = decide(pipeline, project).entry
    pipeline.finish_soon([Outcome("nobody", "success"), Outcome(entry, "success")]).result()
    assert entry_of(pipeline, entry).outcome == "success"
    with pytest.raises(NotFoundError):
        pipeline.finish("nobody", "success")


def test_a_call_that_was_refused_teaches_nothing(pipeline, project):
    refused = pipeline.refuse(
        ToolCall(tool="read", server="notes", door="gateway", project=project), "floor", "No.", "Ask."
    )
    pipeline.finish_soon([Outcome(refused.entry, "success")]).result()
    assert "mcp:notes" not in trust_of(pipeline.store, project)


def test_a_word_that_means_nothing_is_refused(pipeline, project):
    with pytest.raises(InputError, match="great"):
        pipeline.finish_soon([Outcome(decide(pipeline, project).entry, "great")])
    with pytest.raises(InputError, match="maybe"):
        known("maybe", ("yes", "no"), "answer")
