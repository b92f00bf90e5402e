from checkrein.call import tool_call
from checkrein.ledger.entries import fold
from checkrein.store import records
from deciding import set_user_phase

# Every field of the classic audit trail.
SEED_FIELDS = (
    "timestamp",
    "session_id",
    "tool_name",
    "tool_input",
    "domain",
    "risk_category",
    "trust_score_before",
    "autonomy_score",
    "decision",
    "outcome",
    "trust_score_after",
)


def entry(pipeline, decided):
    return fold(records.of_entries(pipeline.store, [decided.entry]))[0]


def call(command="ls", **extra):
    return tool_call({"tool": "Bash", "arguments": {"command": command}, "session": "s1", **extra})


def test_ac_022_an_entry_has_every_field_of_the_audit_trail(pipeline):
    found = entry(pipeline, pipeline.decide(call()))
    assert all(hasattr(found, field) for field in SEED_FIELDS)
    assert (found.session_id, found.tool_name, found.decision, found.outcome) == (
        "s1",
        "Bash",
        "logged_only",
        "pending",
    )
    assert found.timestamp == "2027-01-15T08:00:00.000Z"


def test_a_call_s_story_is_folded_into_one_entry(pipeline, clock):
    decided = pipeline.decide(call())
    assert entry(pipeline, decided).status == "pending"
    clock.now += 1
    pipeline.store.write(lambda tx: pipeline.ledger.append(tx, "started", {}, entry=decided.entry))
    assert entry(pipeline, decided).status == "running"
    clock.now += 0.25
    pipeline.finish(decided.entry, "success", output="a b c", evidence="exit status")
    found = entry(pipeline, decided)
    assert (found.status, found.outcome, found.result, found.output) == (
        "completed",
        "success",
        "success",
        "a b c",
    )
    assert found.latency_ms == 250.0
    assert (found.started_at, found.completed_at) == ("2027-01-15T08:00:01.000Z", "2027-01-15T08:00:01.250Z")
    assert found.trust_score_before == 0.3
    assert round(found.trust_score_after, 6) == 0.335


def test_our_outcomes_in_the_old_words(pipeline):
    words = {}
    for outcome in ("success", "failure", "timeout", "cancelled", "unknown", "denied"):
        decided = pipeline.decide(call())
        pipeline.finish(decided.entry, outcome)
        found = entry(pipeline, decided)
        words[outcome] = (found.outcome, found.status, found.result)
    assert words == {
        "success": ("success", "completed", "success"),
        "failure": ("failure", "error", "failure"),
        "timeout": ("failure", "error", "timeout"),
        "cancelled": ("failure", "error", "cancelled"),
        "unknown": ("pending", "pending", "unknown"),
        "denied": ("failure", "denied", "denied"),
    }


def test_a_refusal_is_settled_at_once(pipeline):
    found = entry(pipeline, pipeline.decide(call("git push")))
    assert (found.decision, found.outcome, found.result, found.status) == (
        "blocked",
        "failure",
        "denied",
        "denied",
    )
    assert found.settled_by == found.seq


def test_an_asked_call_stays_human_required_whatever_the_answer(pipeline):
    set_user_phase(pipeline, "building")
    for answer, result in (("denied", "denied"), ("expired", "timeout"), ("cancelled", "cancelled")):
        decided = pipeline.decide(call(f"make {answer}"), asking=True)
        pipeline.answer(decided.entry, answer, actor="ada", channel="terminal", message="no thanks")
        found = entry(pipeline, decided)
        assert (found.decision, found.answer, found.result, found.status) == (
            "human_required",
            answer,
            result,
            "denied",
        )
        assert (found.actor, found.channel, found.message) == ("ada", "terminal", "no thanks")
    decided = pipeline.decide(call("make it"), asking=True)
    pipeline.answer(decided.entry, "approved", actor="ada", channel="terminal")
    pipeline.finish(decided.entry, "success")
    found = entry(pipeline, decided)
    assert (found.decision, found.answer, found.outcome) == ("human_required", "approved", "success")


def test_records_of_unknown_kinds_and_strangers_do_no_harm(pipeline):
    decided = pipeline.decide(call())
    pipeline.store.write(
        lambda tx: pipeline.ledger.append(tx, "from_the_future", {"x": 1}, entry=decided.entry)
    )
    pipeline.store.write(lambda tx: pipeline.ledger.append(tx, "finished", {}, entry="nobody"))
    assert entry(pipeline, decided).status == "pending"
    assert fold(records.of_entries(pipeline.store, ["nobody"])) == []
