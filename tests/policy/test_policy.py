import math
from itertools import permutations, product

import pytest
from ground import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import checkrein.policy
from checkrein.call import DECISIONS, WORD_OF, Category, Reason, Risk, ToolCall, Verdict
from checkrein.errors import ConfigError
from checkrein.policy import UNJUDGED, UNKNOWN_RISK, Policy, decide, refuse
from checkrein.policy.load import NO_RULES, compile_policy
from checkrein.policy.rules import RuleSet, rule
from checkrein.policy.trust import Scores
from checkrein.settings import DOMAINS, PHASES, Settings
from checkrein.settings.check import apply
from checkrein.settings.tighten import tighten

NOW = 1_000.0
SEVERITY = ("allow", "ask", "deny")
CALL = ToolCall(tool="Bash", arguments={"command": "make"})


def judged(
    call=CALL, raw=None, *, trust=0.3, risk="medium", domains=("shell_exec",), complexity=0.5, **policy
):
    """The verdict under settings as a file would hold them."""
    compiled = compile_policy(apply(Settings(), raw or {}), **policy)
    assert not compiled.fault
    what = Risk(category=Category[risk], domains=domains, complexity=complexity)
    return decide(call, what, compiled, Scores({}, trust), now=NOW)


def allow(**more):
    return {"tool": "Bash", "action": "allow", **more}


@pytest.mark.invariant("critical risk is blocked whatever trust, rules and profiles say")
def test_ac_007_critical_is_blocked_at_full_trust_and_under_every_allow():
    everything = {
        "rules": [{"pattern": "*", "action": "allow"}],
        "profiles": {"p": {"allow": ["*"]}},
        "doors": {"eval": {"profile": "p"}},
    }
    for door in ("hooks", "eval"):
        verdict = judged(
            raw=everything, door=door, trust=1.0, risk="critical", domains=("file_read",), complexity=0.0
        )
        assert (verdict.decision, verdict.stage) == ("blocked", "floor")
        assert verdict.remedy


def test_a_category_that_is_only_a_number_still_meets_the_floor():
    policy = compile_policy(apply(Settings(), {"rules": [allow()]}))
    verdict = decide(CALL, Risk(category=4, domains=("file_read",)), policy, Scores({}, 1.0), now=NOW)
    assert (verdict.decision, verdict.stage) == ("blocked", "floor")


@pytest.mark.parametrize(
    ("trust", "decision"), [(0.79, "human_required"), (0.8, "human_required"), (0.99, "auto_approved")]
)
def test_ac_026_in_building_shell_commands_ask_until_trust_is_above_the_gate(trust, decision):
    verdict = judged(trust=trust, risk="low", complexity=0.0, phase="building")
    assert verdict.decision == decision
    assert verdict.stage == ("trust_gate" if trust <= 0.8 else "autonomy")


@pytest.mark.parametrize(
    ("risk", "trust", "decision"),
    [
        ("low", 0.3, "logged_only"),
        ("medium", 0.3, "human_required"),
        ("high", 0.69, "human_required"),
        ("high", 0.71, "logged_only"),
        ("low", 0.8, "auto_approved"),
    ],
)
def test_autonomy_decides_what_nobody_wrote_about(risk, trust, decision):
    verdict = judged(risk=risk, trust=trust, domains=("file_read",))
    assert (verdict.decision, verdict.stage) == (decision, "autonomy")
    assert verdict.trust == {"file_read": trust}


@pytest.mark.parametrize(
    ("phase", "domain"), [("planning", "shell_exec"), ("auditing", "file_write"), (None, "file_write")]
)
def test_a_phase_blocks_even_what_a_rule_allows(phase, domain):
    verdict = judged(raw={"rules": [allow()]}, phase=phase, domains=("file_read", domain), trust=1.0)
    assert (verdict.decision, verdict.stage) == ("blocked", "phase")


def test_a_persons_allow_outranks_trust_but_not_a_stricter_word():
    assert judged(raw={"rules": [allow()]}, trust=0.0, risk="high").decision == "auto_approved"
    profile = {"profiles": {"p": {"ask": ["Bash"]}}, "doors": {"hooks": {"profile": "p"}}}
    verdict = judged(raw={"rules": [allow()], **profile}, trust=1.0)
    assert (verdict.decision, verdict.stage) == ("human_required", "profile")
    verdict = judged(raw={"rules": [allow()]}, project_rules=[{"pattern": "*", "action": "deny"}])
    assert (verdict.decision, verdict.rule) == ("blocked", "project#1")


@pytest.mark.invariant("a project's own rule never allows")
def test_a_projects_own_rule_never_allows():
    verdict = judged(project_rules=[{"pattern": "*", "action": "allow"}], trust=0.0, risk="high")
    assert (verdict.decision, verdict.rule) == ("human_required", None)


@pytest.mark.parametrize(
    ("door", "decision"), [("hooks", "logged_only"), ("gateway", "human_required"), ("eval", "auto_approved")]
)
def test_a_call_nobody_names_is_answered_as_the_door_says(door, decision):
    assert judged(door=door, risk="low", domains=("file_read",)).decision == decision


def test_the_strictest_domain_decides():
    scores = Scores({"file_read": 0.9, "package": 0.1}, 0.3)
    risk = Risk(category=Category.low, domains=("file_read", "package"))
    verdict = decide(CALL, risk, compile_policy(Settings()), scores, now=NOW)
    assert (verdict.decision, verdict.trust) == ("human_required", {"file_read": 0.9, "package": 0.1})


def test_a_verdict_says_why():
    raw = {"rules": [{"tool": "Bash", "action": "deny", "reason": "not here", "when": {"n": {"gt": 1}}}]}
    verdict = judged(raw=raw)
    reason = verdict.reasons[0]
    assert (verdict.rule, reason.text) == ("file#1", "Rule file#1 says deny Bash when n gt 1.")
    assert [child.text.split(",")[0] for child in reason.children] == ["not here", "`n` is missing"]


def released(raw=None, **policy):
    compiled = compile_policy(apply(Settings(), raw or {}), **policy)
    risk = Risk(category=Category.critical, domains=("shell_exec",))
    return decide(CALL, risk, compiled, Scores({}, 0.0), now=NOW, released=True)


def test_a_release_passes_the_floor_and_every_question_but_no_denial():
    ask = {"rules": [{"tool": "Bash", "action": "ask"}]}
    assert released().stage == released(ask).stage == "release"
    assert released({"rules": [{"tool": "Bash", "action": "deny"}]}).decision == "blocked"
    assert released(phase="auditing").decision == "blocked"
    assert released(fault="broken").decision == "blocked"


def approved(raw=None, *, risk="medium", domains=("shell_exec",), released=False, **policy):
    compiled = compile_policy(apply(Settings(), raw or {}), **policy)
    what = Risk(category=Category[risk], domains=domains)
    return decide(CALL, what, compiled, Scores({}, 0.0), now=NOW, released=released, approved=True)


def test_a_person_s_yes_answers_every_question():
    asking = {
        "rules": [{"tool": "Bash", "action": "ask"}],
        "profiles": {"p": {"ask": ["*"]}},
        "doors": {"hooks": {"profile": "p"}},
    }
    for verdict in (approved(), approved(asking), approved(door="gateway"), approved(risk="high")):
        assert (verdict.decision, verdict.stage, verdict.rule) == ("auto_approved", "approval", None)


@pytest.mark.parametrize(
    ("more", "stage"),
    [
        ({"risk": "critical"}, "floor"),
        ({"fault": "broken"}, "settings"),
        ({"phase": "auditing"}, "phase"),
        ({"phase": None}, "phase"),
        ({"domains": ("git_remote",)}, "phase"),
        ({"raw": {"rules": [{"tool": "Bash", "action": "deny"}]}}, "rules"),
        ({"raw": {"rules": [{"tool": "Bash", "action": "deny", "when": {"n": {"gt": 1}}}]}}, "rules"),
        ({"raw": {"profiles": {"p": {"deny": ["Bash"]}}, "doors": {"hooks": {"profile": "p"}}}}, "profile"),
        ({"raw": {"profiles": {"p": {"allow": ["Read"]}}, "doors": {"hooks": {"profile": "p"}}}}, "profile"),
    ],
)
def test_a_person_s_yes_outranks_no_denial(more, stage):
    verdict = approved(**more)
    assert (verdict.decision, verdict.stage) == ("blocked", stage)


def test_an_allow_rule_is_not_used_up_by_a_call_a_person_approved():
    assert approved({"rules": [{"tool": "Bash", "action": "allow", "uses": 1}]}).rule is None


def test_released_says_more_than_approved():
    assert approved(risk="critical", released=True).stage == "release"


def test_a_yes_never_turns_a_deny_of_a_project_s_own_file_round():
    policy = compile_policy(
        Settings(), project_rules=[{"tool": "Bash", "action": "deny"}, {"tool": "Bash", "action": "ask"}]
    )
    verdict = decide(CALL, Risk(category=Category.low), policy, Scores({}, 1.0), now=NOW, approved=True)
    assert verdict.decision == "blocked"


def test_a_fault_blocks_before_everything():
    verdict = decide(
        CALL, Risk(category=Category.low), compile_policy(Settings(), fault="x"), Scores({}, 1.0), now=NOW
    )
    assert (verdict.decision, verdict.stage) == ("blocked", "settings")


def test_what_was_not_judged_is_refused_and_critical_to_all_that_reads_its_category():
    verdict = refuse("input", "It makes no sense.", "Send a call.")
    assert (verdict.decision, verdict.risk, verdict.remedy) == ("blocked", UNJUDGED, "Send a call.")
    assert (UNJUDGED.category, UNJUDGED.word) == (Category.critical, "unknown")
    assert (UNKNOWN_RISK.category, UNKNOWN_RISK.word) == (Category.critical, "critical")


BROKEN = {
    "trust is not a number": {"scores": Scores({"file_read": math.nan}, 0.3)},
    "one trust is not a number": {"scores": Scores({"package": math.nan, "file_read": 0.99}, 0.99)},
    "trust is above 1": {"scores": Scores({}, 5.0)},
    "trust is below 0": {"scores": Scores({}, -0.1)},
    "trust is text": {"scores": Scores({}, "0.9")},
    "trust is absent": {"scores": None},
    "complexity is not a number": {"risk": Risk(category=Category.low, complexity=math.nan)},
    "complexity is negative": {"risk": Risk(category=Category.low, complexity=-9.0)},
    "category is off the scale": {"risk": Risk(category=0)},
    "category is text": {"risk": Risk(category="low")},
    "no domain": {"risk": Risk(category=Category.low, domains=())},
    "odd domain": {"risk": Risk(category=Category.low, domains=([],))},
    "no phases": {"policy": Policy(Settings(phases={}), NO_RULES, NO_RULES)},
    "no settings": {"policy": Policy(None, NO_RULES, NO_RULES)},
    "no rules": {"policy": Policy(Settings(), None, NO_RULES)},
    "no profile": {"policy": Policy(Settings(), NO_RULES, NO_RULES, profile="p")},
    "no call": {
        "call": None,
        "policy": compile_policy(Settings(), project_rules=[{"pattern": "*", "action": "ask"}]),
    },
}


@pytest.mark.parametrize("broken", BROKEN.values(), ids=BROKEN)
def test_numbers_off_the_scale_and_broken_parts_block(broken):
    given = {
        "call": CALL,
        "risk": Risk(category=Category.low, domains=("file_read", "package")),
        "policy": compile_policy(Settings()),
        "scores": Scores({}, 0.99),
    } | broken
    verdict = decide(given["call"], given["risk"], given["policy"], given["scores"], now=NOW)
    assert verdict.decision == "blocked"
    assert verdict.reasons[0].text.startswith("Deciding failed in the ")


def test_a_path_that_cannot_be_resolved_blocks():
    def broken(_path):
        raise OSError("the disk is gone")

    rules = RuleSet([rule(allow(when={"command": {"under": "/p"}}), id="r")])
    policy = Policy(Settings(), rules, NO_RULES)
    call = ToolCall(tool="Bash", project="/p", arguments={"command": "x"})
    verdict = decide(call, Risk(category=Category.low), policy, Scores({}, 0.99), now=NOW, resolve=broken)
    assert (verdict.decision, verdict.stage) == ("blocked", "rules")


# Random policies. Everything is drawn from small pools so that names meet often.

TOOLS = ("Bash", "Read", "send", "mcp__mail__send")
SERVERS = (None, None, "mail", "web")
GLOBS = ("*", "Ba*", "*d", "s*", "mail__*", "mcp__*", "mcp__mail__s*", "Bash", "Read", "web__*d")
ARGUMENTS = ({}, {"command": "ls"}, {"command": "rm -rf /", "n": 9}, {"n": "x"}, {"path": "/p/src/x", "n": 1})
WHENS = (
    {"n": {"gt": 5}},
    {"command": {"starts_with": "ls"}},
    {"path": {"under": "src"}},
    {"command": {"exists": True}},
)
some = st.sampled_from


def each(**optional):
    """Every table with some of the optional keys, as one pool: an example costs a draw, not ten."""
    ways = [[{}, *({name: value} for value in values)] for name, values in optional.items()]
    return [{name: value for part in parts for name, value in part.items()} for parts in product(*ways)]


def lists(pool, most=3):
    """Every list of up to `most`, the short ones as often as the long."""
    found = [[list(way) for way in product(pool, repeat=length)] for length in range(most + 1)]
    return [way for ways in found for way in ways * (len(found[-1]) // len(ways))]


RULE = some(
    [
        {**named, "action": action, "server": server, "priority": priority, **when}
        for named in [*({"tool": name} for name in TOOLS), *({"pattern": name} for name in GLOBS)]
        for action, server, priority in product(SEVERITY, SERVERS, (1, 2, 3))
        for when in ({}, {}, *({"when": when} for when in WHENS))
    ]
)
PROFILE = st.fixed_dictionaries(
    {},
    optional={
        "allow": some(lists(GLOBS)),
        "ask": some(lists(GLOBS)),
        "deny": some(lists(GLOBS)),
        "extends": some([[], ["q"], ["r"], ["q", "r"]]),
        "fallback": some(["allow", "deny"]),
    },
)
PLACES = (*DOMAINS, "mcp:mail")
PHASE = st.fixed_dictionaries(
    {}, optional=dict.fromkeys(("allowed", "denied", "trust_gated"), some(lists(PLACES, 4)))
)
DOOR = each(unmatched=["ask", "earned", "allow"], profile=["p", "q", "r"])
UNITS = (0.0, 0.1, 0.3, 0.4, 0.45, 0.5, 0.79, 0.8, 0.81, 0.9, 1.0)
UNIT = some(UNITS)
THRESHOLDS = ("auto_approve_threshold", "human_required_threshold", "trust_gate_threshold")
RAW = st.fixed_dictionaries(
    {},
    optional={
        "trust": some(each(initial_score=[0.0, 0.2, 0.5])),
        "risk": some(each(lambda1=[0.25, 0.6, 2], lambda2=[0, 0.4, 3])),
        "autonomy": some(each(**dict.fromkeys(THRESHOLDS, UNITS))),
        "phases": st.dictionaries(some(list(PHASES)), PHASE, max_size=2),
        "doors": some(each(hooks=DOOR, eval=DOOR)),
        "profiles": st.dictionaries(some(["p", "q", "r"]), PROFILE, max_size=3),
        "rules": st.lists(RULE, max_size=4),
    },
)
ONE_OR_TWO = [*permutations(PLACES, 1), *permutations(PLACES, 2)]
RISK = some(
    [
        Risk(category=category, domains=domains, complexity=complexity)
        for category in (Category.low, Category.low, Category.medium, Category.high, Category.critical)
        for domains in ONE_OR_TWO
        for complexity in UNITS
    ]
)
CALLS = some(
    [
        ToolCall(tool=tool, server=server, arguments=arguments, project="/p")
        for tool, server, arguments in product(TOOLS, SERVERS, ARGUMENTS)
    ]
)
PHASE_NAME = some([*PHASES, "building", "building", None, "unknown"])
DOOR_NAME = some(["hooks", "hooks", "eval", "gateway"])


def usable(base, raw):
    """`base` with every section of `raw` that may be laid over it."""
    for name in ("profiles", *raw):
        try:
            base = apply(base, {name: raw.get(name, {})})
        except ConfigError:
            continue
    return base


def severity(verdict):
    return SEVERITY.index(verdict.word)


@settings(max_examples=examples(2500))
@given(RAW, RISK, CALLS, UNIT, PHASE_NAME, DOOR_NAME, st.booleans())
def test_decide_never_raises_and_critical_never_runs(raw, risk, call, trust, phase, door, released):
    policy = compile_policy(usable(Settings(), raw), door=door, phase=phase)
    verdict = decide(call, risk, policy, Scores({}, trust), now=NOW, released=released)
    assert isinstance(verdict, Verdict)
    assert verdict.decision in DECISIONS
    assert verdict.word == WORD_OF[verdict.decision]
    assert verdict.reasons[0].text
    assert not verdict.reasons[0].text.startswith("Deciding failed")
    assert verdict.remedy or verdict.word == "allow"
    if risk.category is Category.critical and not released:
        assert verdict.decision == "blocked"


@settings(max_examples=examples(1500))
@given(RAW, RISK, CALLS, UNIT, UNIT, PHASE_NAME, DOOR_NAME)
def test_more_trust_is_never_more_restrictive(raw, risk, call, one, other, phase, door):
    policy = compile_policy(usable(Settings(), raw), door=door, phase=phase)
    less, more = sorted((one, other))
    for rest in (less, more):
        lower = decide(call, risk, policy, Scores({risk.domains[0]: less}, rest), now=NOW)
        higher = decide(call, risk, policy, Scores({risk.domains[0]: more}, rest), now=NOW)
        assert severity(higher) <= severity(lower)
        assert DECISIONS.index(higher.decision) <= DECISIONS.index(lower.decision)


@settings(max_examples=examples(1500))
@given(RAW, RULE, RISK, CALLS, UNIT, PHASE_NAME, DOOR_NAME, st.booleans(), st.booleans())
def test_an_added_deny_rule_is_never_more_permissive(
    raw, extra, risk, call, trust, phase, door, released, first
):
    base = usable(Settings(), raw)
    deny = rule({**extra, "action": "deny", "priority": 0 if first else extra["priority"]}, id="extra")
    before = compile_policy(base, door=door, phase=phase)
    after = compile_policy(base, stored=[deny], door=door, phase=phase)
    given_ = {"now": NOW, "released": released}
    old = decide(call, risk, before, Scores({}, trust), **given_)
    new = decide(call, risk, after, Scores({}, trust), **given_)
    assert severity(new) >= severity(old)


EVERY_RISK = [
    Risk(category=category, domains=(domain,), complexity=0.5)
    for category in (Category.low, Category.high)
    for domain in ("file_read", "shell_exec", "git_remote", "docs_write", "mcp:mail")
]
EVERY_CALL = [
    ToolCall(tool=tool, server=server, arguments=ARGUMENTS[2], project="/p")
    for tool, server in (("Bash", None), ("Read", None), ("send", "mail"))
]


def with_project(base, raw):
    """What an unaccepted project file makes of the settings, as the sources do it."""
    for name in ("profiles", *raw):
        try:
            apply(base, {key: raw[key] for key in ("profiles", name) if key in raw})
        except ConfigError:
            raw = {key: value for key, value in raw.items() if key != name}
    try:
        return tighten(base, apply(base, raw))
    except ConfigError:
        return tighten(base, base)


# Profiles matter only where a door uses them, so here one always does.
LISTED = st.builds(
    lambda raw, own, door: {**raw, "profiles": {**raw.get("profiles", {}), "p": own}, "doors": door},
    RAW,
    PROFILE,
    st.fixed_dictionaries({name: st.just({"profile": "p"}) for name in ("hooks", "eval")}),
)


@settings(max_examples=examples(3500))
@given(RAW | LISTED, RAW, some([0.0, 0.5, 0.85, 1.0]), PHASE_NAME, DOOR_NAME, st.booleans())
def test_an_unaccepted_project_file_never_makes_any_verdict_more_permissive(
    user, project, trust, phase, door, released
):
    base = usable(Settings(), user)
    tightened = with_project(base, project)
    before = compile_policy(base, door=door, phase=phase)
    after = compile_policy(tightened.settings, project_rules=tightened.rules, door=door, phase=phase)
    assert not after.fault or before.fault
    known = Scores({"shell_exec": trust}, base.trust.initial_score)
    lower = Scores({"shell_exec": trust}, tightened.settings.trust.initial_score)
    for call in EVERY_CALL:
        for risk in EVERY_RISK:
            old = decide(call, risk, before, known, now=NOW, released=released)
            new = decide(call, risk, after, lower, now=NOW, released=released)
            assert severity(new) >= severity(old), (call, risk)
            assert DECISIONS.index(new.decision) >= DECISIONS.index(old.decision), (call, risk)


STAGES = ("autonomy", "_floor", "_phase", "_written", "_earned", "decision_for")


class Unspeakable(Exception):  # noqa: N818 - hostile on purpose
    def __repr__(self):
        return "?"


@pytest.mark.invariant("an error in any stage is the most restrictive answer")
@settings(max_examples=examples(1000))
@given(
    RAW,
    RISK,
    CALLS,
    some(STAGES),
    some(
        [
            ValueError("x"),
            KeyError(),
            RecursionError(),
            MemoryError(),
            Unspeakable(),
            StopIteration(),
            OSError(),
        ]
    ),
    DOOR_NAME,
)
def test_after_an_error_in_a_stage_nothing_is_allowed(raw, risk, call, stage, error, door):
    policy = compile_policy(usable(Settings(), raw), door=door)
    failures = []

    def fails(*_arguments):
        failures.append(stage)
        raise error

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkrein.policy, stage, fails)
        verdict = decide(call, risk, policy, Scores({}, 1.0), now=NOW)
    if failures:
        assert verdict.decision == "blocked"
        assert type(error).__name__ in verdict.reasons[0].text
    assert isinstance(verdict.reasons[0], Reason)
