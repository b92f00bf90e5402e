"""A verdict is repeated only while everything it was made from is the very same."""

from pathlib import Path

import msgspec
import pytest

from checkrein.asking import Remember
from checkrein.call import Effect, ToolCall
from checkrein.core.decision import DecisionRequest
from checkrein.store import rules
from checkrein.store.trust import delete_trust

CALL = {"tool": "echo", "server": "notes", "door": "gateway", "session": "s1"}


def call(project, **more):
    return ToolCall(**{**CALL, "project": project, "arguments": {"n": 1}, **more})


def add(pipeline, rule_id, body):
    pipeline.note("rule_changed", {}, lambda tx: rules.add_rule(tx, rule_id, body, pipeline.clock()))


@pytest.fixture
def allowed(pipeline):
    add(pipeline, "r1", {"action": "allow", "server": "notes", "pattern": "*", "priority": 10})
    return pipeline


def test_the_same_verdict_is_given_again(allowed, project):
    first = allowed.judge(call(project)).verdict
    assert allowed.judge(call(project, arguments={"n": 2})).verdict is first


def test_a_plain_yes_is_not_classified_again(allowed, project, monkeypatch):
    """Of the same tool and the same past; whatever its arguments are as long as they name nothing."""
    first = allowed.judge(call(project))
    monkeypatch.setattr(allowed._judging._memory, "known", None)
    assert allowed.judge(call(project, arguments={"text": "hello"})).verdict is first.verdict
    others = [{"cwd": "/"}, {"project": "/"}, {"arguments": {"text": "/etc/passwd"}}, {"tool": "other"}]
    others += [{"server": "s"}, {"annotations": {"readOnlyHint": True}}]
    others += [{"history": (Effect("read", "secret", "/x"),)}]
    for other in others:
        with pytest.raises(TypeError):
            allowed.judge(call(project, **other))


def test_a_new_rule_counts_for_the_next_call(allowed, project):
    assert allowed.judge(call(project)).verdict.word == "allow"
    add(allowed, "r2", {"action": "deny", "server": "notes", "tool": "echo", "priority": 1})
    assert allowed.judge(call(project)).verdict.word == "deny"


def test_earned_trust_counts_for_the_next_call(allowed, project):
    first = allowed.judge(call(project)).verdict
    decided = allowed.decide(call(project))
    allowed.finish(decided.entry, "success")
    assert allowed.judge(call(project)).verdict is not first


@pytest.mark.parametrize(
    "extra",
    [
        {"when": {"n": {"equals": 2}}},
        {"expires_at": 4_000_000_000},
        {"uses": 3},
    ],
)
def test_rules_that_look_at_arguments_the_clock_or_a_count_are_asked_every_time(pipeline, project, extra):
    add(pipeline, "r3", {"action": "deny", "server": "notes", "tool": "echo", **extra})
    first = pipeline.judge(call(project)).verdict
    assert pipeline.judge(call(project)).verdict is not first


def test_an_argument_rule_decides_each_call_by_its_own_arguments(allowed, project):
    add(
        allowed,
        "r4",
        {
            "action": "deny",
            "server": "notes",
            "tool": "echo",
            "priority": 1,
            "when": {"n": {"equals": 2}},
        },
    )
    assert allowed.judge(call(project)).verdict.word == "allow"
    assert allowed.judge(call(project, arguments={"n": 2})).verdict.word == "deny"
    assert allowed.judge(call(project)).verdict.word == "allow"


def test_a_verdict_is_old_after_a_while(allowed, project, clock):
    first = allowed.judge(call(project)).verdict
    clock.now += 61
    assert allowed.judge(call(project)).verdict is not first


def test_another_session_with_another_past_is_another_call(allowed, project):
    allowed.judge(call(project))
    path = call(project, arguments={"path": "/etc/shadow"})
    assert allowed.judge(path).verdict.risk.category > allowed.judge(call(project)).verdict.risk.category


def put(pipeline, work):
    pipeline.store.write(work)


CHANGES = {
    "a rule is changed": lambda p, **_: put(
        p, lambda tx: rules.update_rule(tx, "r1", {"action": "deny", "server": "notes", "pattern": "*"}, 1.0)
    ),
    "a rule is taken away": lambda p, **_: put(p, lambda tx: rules.delete_rule(tx, "r1")),
    "rules change places": lambda p, **_: put(p, lambda tx: rules.reorder_rules(tx, ["r1"])),
    "a rule for every tool": lambda p, **_: add(
        p, "r9", {"action": "deny", "pattern": "mcp__*", "priority": 1}
    ),
    "the settings are written": lambda user_settings, **_: user_settings(
        '[[rules]]\naction = "deny"\ntool = "mcp__notes__echo"\npriority = 1\n'
    ),
    "a profile is put on the door": lambda user_settings, **_: user_settings(
        '[profiles.strict]\ndeny = ["notes__*"]\n[doors.gateway]\nprofile = "strict"\n'
    ),
    "the settings are broken": lambda user_settings, **_: user_settings("rules = 7\n"),
    "the project restricts itself": lambda project, **_: Path(project, "checkrein.toml").write_text(
        '[[rules]]\naction = "deny"\ntool = "mcp__notes__echo"\n', encoding="utf-8"
    ),
}


@pytest.mark.invariant("a verdict is repeated only while everything it was made from is the very same")
@pytest.mark.parametrize("change", CHANGES)
def test_the_call_after_a_change_is_judged_anew(allowed, project, user_settings, change):
    before = [allowed.judge(call(project)).verdict for _ in range(2)]
    assert before[0] is before[1] and before[0].word == "allow"
    CHANGES[change](p=allowed, project=project, user_settings=user_settings)
    after = allowed.judge(call(project)).verdict
    assert after is not before[0]
    if change != "rules change places":
        assert after.word != "allow"


@pytest.mark.invariant("risk and trust come out the same where all they are made from is the same")
@pytest.mark.parametrize("outcome", ["success", "failure"])
def test_the_call_after_an_outcome_is_judged_by_what_was_learned(allowed, project, outcome):
    first = allowed.judge(call(project)).verdict
    allowed.finish(allowed.decide(call(project)).entry, outcome)
    after = allowed.judge(call(project)).verdict
    raised = after.trust["mcp:notes"] - first.trust["mcp:notes"]
    assert raised > 0 if outcome == "success" else raised < 0


def test_trust_that_is_imported_or_taken_away_counts_for_the_next_call(allowed, project):
    allowed.finish(allowed.decide(call(project)).entry, "success")
    first = allowed.judge(call(project)).verdict
    put(allowed, lambda tx: delete_trust(tx, project))
    assert allowed.judge(call(project)).verdict.trust["mcp:notes"] < first.trust["mcp:notes"]


@pytest.mark.invariant("a verdict is repeated only while everything it was made from is the very same")
@pytest.mark.invariant("risk and trust come out the same where all they are made from is the same")
@pytest.mark.parametrize(
    "other",
    [
        {"annotations": {"destructiveHint": True}},
        {"tool": "delete_echo"},
        {"server": "others"},
        {"arguments": {"path": "~/.ssh/id_rsa"}},
        {"history": (Effect("read", "secret", "/x"),)},
    ],
)
def test_another_call_gets_a_verdict_of_its_own(allowed, project, other):
    first = allowed.judge(call(project)).verdict
    assert allowed.judge(call(project, **other)).verdict is not first


def test_a_phase_a_door_and_a_profile_have_verdicts_of_their_own(allowed, project, user_settings):
    user_settings('[profiles.strict]\ndeny = ["notes__*"]\n')
    given = call(project)
    assert allowed.judge(given).verdict.word == "allow"
    assert allowed.judge(msgspec.structs.replace(given, profile="strict")).verdict.word == "deny"
    assert allowed.judge(msgspec.structs.replace(given, profile="gone")).verdict.word == "deny"
    writes = ToolCall(tool="Write", arguments={"file_path": "a.txt", "content": "x"}, project=project)
    for phase, denied in (("building", False), ("auditing", True), ("building", False), ("auditing", True)):
        assert (allowed.judge(writes, phase=phase).verdict.word == "deny") is denied
    hooks = msgspec.structs.replace(given, door="hooks")
    assert allowed.judge(hooks).verdict is not allowed.judge(given).verdict


def test_a_release_and_a_yes_are_never_given_again(pipeline, project):
    given = call(project, tool="send_mail")
    blocked = pipeline.judge(given).verdict
    assert blocked.word == "deny"
    assert pipeline.judge(given, released=True).verdict.word == "allow"
    assert pipeline.judge(given).verdict.word == "deny"
    asks = call(project)
    assert pipeline.judge(asks).verdict.word == "ask"
    assert pipeline.judge(asks, approved=True).verdict.word == "allow"
    assert pipeline.judge(asks).verdict.word == "ask"


def test_a_yes_with_one_use_covers_one_call(pipeline, project):
    entry = pipeline.decide(call(project), asking=True).entry
    remember = Remember(what="tool", span="uses", uses=1)
    pipeline.answer(entry, "approved", actor="ada", channel="terminal", remember=remember)
    words = [pipeline.decide(call(project, arguments={"n": n})).verdict.word for n in range(3)]
    assert words == ["allow", "ask", "ask"]


def test_a_session_that_read_untrusted_words_is_held_from_the_next_call_on(allowed, project):
    """The verdict is the same; whether a person is asked first is found out for every call."""
    given = call(project, annotations={"openWorldHint": True})

    def words(tainted_by):
        request = DecisionRequest(given, tainted_by=tainted_by)
        return [allowed.evaluate(request).verdict.word for _ in range(2)]

    assert words("") == ["allow", "allow"]
    assert words("others") == ["ask", "ask"]
    assert words("") == ["allow", "allow"]


def test_a_clock_that_goes_back_repeats_nothing(allowed, project, clock):
    first = allowed.judge(call(project)).verdict
    clock.now -= 1
    assert allowed.judge(call(project)).verdict is not first


def test_a_link_that_leads_elsewhere_is_another_call(allowed, project):
    place = Path(project, "notes.txt")
    place.write_text("x", encoding="utf-8")
    link = Path(project, "link")
    link.symlink_to(place)
    given = call(project, arguments={"path": str(link)})
    assert allowed.judge(given).verdict is allowed.judge(given).verdict
    before = allowed.judge(given).verdict
    link.unlink()
    link.symlink_to(Path.home() / ".ssh" / "id_rsa")
    after = allowed.judge(given).verdict
    assert after is not before and after.risk != before.risk
