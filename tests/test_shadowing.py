"""A rule set tried on a real record, judged against what really would be decided."""

from pathlib import Path

import msgspec
import pytest
from ground import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkrein.approval.families import family_of
from checkrein.asking import Remember
from checkrein.authority.phase import switch
from checkrein.call import tool_call
from checkrein.errors import InputError, LedgerError, RuleError
from checkrein.policy import decide
from checkrein.policy.rules import RuleSet, rule
from checkrein.policy.trust import Scores
from checkrein.settings.sources import content_hash
from checkrein.shadowing import LISTED, Trial, _read, sentence
from checkrein.store import records
from checkrein.store.policies import accept
from checkrein.store.rules import add_rule

TOKEN = "ghp_" + "a1" * 18
ALLOW_MAKE = {"action": "allow", "tool": "Bash", "when": [{"path": "command", "starts_with": "make "}]}
DENY_ALL = {"action": "deny", "pattern": "*"}


@pytest.fixture
def judged(pipeline, project):
    switch(pipeline, "building", "ada", "terminal")

    def judge(command="make x", *, tool="Bash", session="s1", asking=False, ask_reason="", **arguments):
        raw = {"tool": tool, "arguments": arguments or {"command": command}, "session": session}
        call = tool_call({**raw, "project": project, "cwd": project})
        return pipeline.decide(call, asking=asking, ask_reason=ask_reason)

    return judge


@pytest.fixture
def tried(pipeline):
    def run(*rules, last=500, project="", replacing="all", progress=None):
        return Trial(pipeline.store, rules, replacing).run(last, project, progress)

    return run


def words(found):
    return [(each["before"], each["after"], each["rule"]) for each in found["changes"]]


def test_it_says_what_would_change_and_by_which_rule(judged, tried, pipeline, project):
    entry = judged("make x").entry
    judged(tool="Read", file_path=f"{project}/a.md")
    deny = {"action": "deny", "tool": "Read", "id": "no-reading"}
    before = records.head(pipeline.store)
    found = tried(ALLOW_MAKE, deny)
    assert found["calls"] == 2
    assert found["sentence"] == "1 call would no longer ask, 1 would be refused."
    assert words(found) == [("allow", "deny", "no-reading"), ("ask", "allow", "tried#1")]
    assert found["counts"] == {"allow to deny": 1, "ask to allow": 1}
    changed = found["changes"][1]
    assert changed["entry"] == entry
    assert (changed["tool"], changed["input"], changed["recorded"]) == ("Bash", "make x", "ask")
    # INVARIANT: trying changes nothing.
    assert records.head(pipeline.store) == before
    assert (
        pipeline.judge(tool_call({"tool": "Bash", "arguments": {"command": "make x"}})).verdict.word == "ask"
    )


def test_your_own_rules_are_what_it_is_compared_with(judged, tried, pipeline, user_settings):
    judged("make x")
    pipeline.store.write(lambda tx: add_rule(tx, "r-1", {"action": "allow", "pattern": "*"}, 1.0))
    assert words(tried()) == [("allow", "ask", None)]
    assert tried()["changes"][0]["was"] == "r-1"
    assert tried()["changes"][0]["recorded"] == "ask"
    user_settings('[[rules]]\naction = "deny"\npattern = "*"\npriority = 1')
    assert words(tried()) == [("deny", "ask", None)]
    # In place of the stored ones only, the file's rules stay.
    assert words(tried(replacing="stored")) == []
    assert words(tried(ALLOW_MAKE | {"priority": 0}, replacing="stored")) == [("deny", "allow", "tried#1")]


def test_the_floor_and_the_phase_stay_what_they_are(judged, tried, pipeline):
    judged("rm -rf /")
    judged("make x")
    everything = {"action": "allow", "pattern": "*"}
    assert words(tried(everything)) == [("ask", "allow", "tried#1")]
    switch(pipeline, "auditing", "ada", "terminal")
    assert tried(everything)["counts"] == {"unchanged": 2}


def test_an_accepted_projects_rules_stay(judged, tried, pipeline, project, user_settings):
    judged("make x")
    user_settings('[[rules]]\naction = "ask"\ntool = "Nothing"')
    file = Path(project) / "checkrein.toml"
    file.write_text('[[rules]]\naction = "deny"\ntool = "Bash"\n')
    assert words(tried({"action": "allow", "tool": "Bash"})) == []
    sha = content_hash(file.read_bytes())
    pipeline.store.write(lambda tx: accept(tx, str(file), sha, 1.0))
    assert words(tried()) == []
    assert words(tried({"action": "allow", "tool": "Bash"})) == [("deny", "allow", "tried#1")]


def test_what_depends_on_a_masked_value_is_not_guessed(judged, tried):
    judged(f"make x TOKEN={TOKEN}")
    looks = {"tool": "Bash", "when": [{"path": "command", "contains": "prod"}]}
    found = tried({"action": "deny", **looks})
    assert found["counts"] == {"cannot tell": 1}
    assert found["changes"] == []
    (untold,) = found["cannot_tell"]
    assert "masked" in untold["why"]
    assert TOKEN not in str(found)
    assert "1 cannot be told" in found["sentence"]
    # Where both ways lead to the same word, it can be told.
    assert tried({"action": "ask", **looks})["counts"] == {"unchanged": 1}
    assert words(tried({"action": "deny", **looks}, {"action": "deny", "tool": "Bash"})) == [
        ("ask", "deny", None)
    ]
    assert words(tried({"action": "deny", "tool": "Bash"}, {"action": "allow", **looks})) == [
        ("ask", "deny", "tried#1")
    ]


def test_what_was_cut_is_not_guessed_either(judged, tried, user_settings):
    user_settings("[retention]\ninput_bytes = 40")
    judged("make " + "x" * 200)
    user_settings("")
    assert tried(ALLOW_MAKE)["counts"] == {"cannot tell": 1}


def test_what_people_said_then_stands_on_both_sides(judged, tried, pipeline):
    entry = judged("make x", asking=True).entry
    pipeline.answer(entry, "approved", actor="ada", channel="terminal", remember=Remember())
    granted = judged("make x", asking=True)
    assert granted.verdict.stage == "grant"
    held = judged("echo hi", ask_reason="somebody must look")
    assert held.verdict.stage == "hold"
    found = tried({"action": "ask", "tool": "Bash"})
    assert words(found) == []
    assert words(tried(DENY_ALL)) == [
        ("ask", "deny", "tried#1"),
        ("allow", "deny", "tried#1"),
        ("ask", "deny", "tried#1"),
    ]
    # What a person must look at is looked at, whatever the rules allow.
    assert words(tried({"action": "allow", "pattern": "*"})) == [("ask", "allow", "tried#1")]


def test_a_question_that_answered_itself_is_still_one(judged, tried, pipeline):
    entry = judged("make x", asking=True).entry
    pipeline.answer(entry, "denied", actor="ada", channel="terminal")
    assert judged("make x", asking=True).verdict.stage == "repeat"
    assert words(tried(ALLOW_MAKE)) == [("deny", "allow", "tried#1"), ("ask", "allow", "tried#1")]
    assert words(tried({"action": "ask", "tool": "Bash"})) == []


def test_a_released_call_stays_released(judged, tried, pipeline):
    call = tool_call({"tool": "Bash", "arguments": {"command": "rm -rf /"}})
    assert pipeline.decide(call, released=True).verdict.word == "allow"
    assert words(tried()) == []


def test_only_the_newest_and_only_one_project(judged, tried, pipeline, tmp_path):
    for number in range(6):
        judged(f"make {number}")
    pipeline.decide(tool_call({"tool": "Bash", "arguments": {"command": "make z"}, "project": str(tmp_path)}))
    assert tried(DENY_ALL, last=3)["calls"] == 3
    assert tried(DENY_ALL, project=str(tmp_path))["calls"] == 1
    found = tried(DENY_ALL, last=2, project=judged("make 7").verdict and str(tmp_path / "project"))
    assert [each["input"] for each in found["changes"]] == ["make 7", "make 5"]


def test_progress_is_told(judged, tried):
    for number in range(3):
        judged(f"make {number}")
    heard = []
    tried(progress=lambda done, total: heard.append((done, total)))
    assert heard == [(3, 3)]


@pytest.mark.parametrize("last", [0, -1, 100_001])
def test_there_is_a_most(tried, last):
    with pytest.raises(InputError, match="last"):
        tried(last=last)


def test_a_rule_that_cannot_be_right_is_named(tried):
    with pytest.raises(RuleError, match="Rule 2"):
        tried(DENY_ALL, {"action": "deny"})
    with pytest.raises(RuleError, match="same id"):
        tried({**DENY_ALL, "id": "a"}, {**DENY_ALL, "id": "a"})


def test_a_record_that_cannot_be_read_is_said(pipeline):
    with pytest.raises(LedgerError, match="Record 7"):
        _read((7, 1.0, "decided", "e", "{}", ""))


def test_long_lists_end_and_say_so(judged, tried, monkeypatch):
    monkeypatch.setattr("checkrein.shadowing.LISTED", 2)
    assert LISTED == 500
    for number in range(5):
        judged(f"make {number}")
    found = tried(DENY_ALL)
    assert (len(found["changes"]), found["left_out"], found["counts"]) == (2, 3, {"ask to deny": 5})


def test_sentences():
    assert sentence(9, {"unchanged": 9}) == "None of 9 calls would be decided otherwise."
    assert sentence(9, {"ask to allow": 12, "ask to deny": 1, "allow to deny": 2}) == (
        "12 calls would no longer ask, 3 would be refused."
    )
    assert sentence(9, {"deny to allow": 1, "cannot tell": 2}) == (
        "1 call would no longer be refused, 2 cannot be told because what matters is masked or cut."
    )


PIECES = ["make", "deploy", "prod", TOKEN, f"TOKEN={TOKEN}", "x" * 60, "--force"]
TESTS = st.one_of(
    st.fixed_dictionaries({"contains": st.sampled_from(PIECES)}),
    st.fixed_dictionaries({"starts_with": st.sampled_from(["make", "ma", TOKEN])}),
    st.fixed_dictionaries({"matches": st.sampled_from(["^make", "prod$", "ghp_", "masked", "cut"])}),
    st.fixed_dictionaries({"equals": st.sampled_from(["make prod", 5, TOKEN])}),
    st.fixed_dictionaries({"exists": st.booleans()}),
)
WHEN = st.lists(
    st.tuples(st.sampled_from(["command", "env.TOKEN", "env.MODE", "list[0]", "list[*]", "absent"]), TESTS),
    max_size=2,
)
RULES = st.lists(st.tuples(st.sampled_from(["allow", "ask", "deny"]), WHEN), max_size=5)
CALLS = st.lists(
    st.fixed_dictionaries(
        {"command": st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map(" ".join)},
        optional={
            "env": st.fixed_dictionaries(
                {"TOKEN": st.sampled_from([TOKEN, "x"]), "MODE": st.sampled_from("ab")}
            ),
            "list": st.lists(st.sampled_from([TOKEN, "plain", "make prod"]), max_size=3),
        },
    ),
    min_size=1,
    max_size=8,
)


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(CALLS, RULES, st.sampled_from([30, 80, 65536]))
def test_whatever_it_says_is_what_would_be_decided(pipeline, project, user_settings, calls, rules, most):
    switch(pipeline, "building", "ada", "terminal")
    user_settings(f"[retention]\ninput_bytes = {most}")
    raw = [
        {"action": action, "tool": "mytool", "when": [{"path": path, **test} for path, test in when]}
        for action, when in rules
    ]
    truth = {}
    for arguments in calls:
        call = tool_call({"tool": "mytool", "arguments": arguments, "project": project, "cwd": project})
        made = pipeline.decide(call)
        policy = pipeline.policies.of(project).policy
        tried = RuleSet([rule(each, id=f"t{number}") for number, each in enumerate(raw)])
        scores = Scores(made.verdict.trust, 0.3)
        verdict = decide(
            call,
            made.verdict.risk,
            msgspec.structs.replace(policy, rules=tried),
            scores,
            now=pipeline.clock(),
        )
        truth[made.entry] = (made.verdict.word, verdict.word)
    found = Trial(pipeline.store, raw).run(len(calls))
    changed = {each["entry"]: (each["before"], each["after"]) for each in found["changes"]}
    untold = {each["entry"] for each in found["cannot_tell"]}
    assert found["calls"] == len(calls)
    for entry, (before, after) in truth.items():
        if entry not in untold:
            # INVARIANT: what it says is what would be decided; what it cannot see it does not say.
            assert changed.get(entry, (before, before)) == (before, after)
    if most == 65536 and TOKEN not in str(calls):
        assert not untold


def test_a_call_without_a_family_can_be_tried_too(judged, tried):
    assert family_of(judged("rm -rf /").verdict.risk) is None
    assert tried(DENY_ALL)["counts"] == {"unchanged": 1}


def test_what_was_refused_unjudged_stays_refused_under_every_rule(pipeline, project, tried):
    call = tool_call({"tool": "Bash", "arguments": {"command": "make x"}, "project": project, "cwd": project})
    pipeline.refuse(call, "limit", "Too many calls.", "Wait.")
    assert tried(ALLOW_MAKE)["counts"] == {"unchanged": 1}
