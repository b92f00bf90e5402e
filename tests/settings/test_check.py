import tomllib

import pytest

from checkrein.errors import ConfigError
from checkrein.settings import Settings
from checkrein.settings.check import apply


def test_ac_019_an_initial_score_above_a_half_is_refused():
    with pytest.raises(ConfigError) as caught:
        apply(Settings(), {"trust": {"initial_score": 0.51}}, "settings.toml")
    error = caught.value
    assert (error.key, error.value, error.source) == ("trust.initial_score", 0.51, "settings.toml")
    assert "0.5" in error.remedy
    assert apply(Settings(), {"trust": {"initial_score": 0.5}}).trust.initial_score == 0.5


REFUSED = {
    "trust.initial_score": ["0.3", True, None, -0.1, float("nan"), float("inf"), [0.3], {}],
    "trust.failure_decay": [0.49, 1.0, 1, 5],
    "trust.hibernation_days": [-1, 1.5, "14", True, 10**30],
    "trust.boost_threshold": [-1, 2.0],
    "trust.trust_score_override": [1.0],
    "trust.score": [1.0],
    "trust.initial_scor": [0.3],
    "risk.lambda1": [-0.1, 11, 0.1, 0.19],
    "risk.auto_approve_critical": [True],
    "autonomy.human_required_threshold": [0, 0.8, 0.9, -1],
    "autonomy.auto_approve_threshold": [0.4, 1.1],
    "autonomy.critical": ["allow"],
    "audit.log_dir": [5, None, []],
    "masking.keys": ["password", [1], [""]],
    "approval.timeout_seconds": [0, 1 << 64],
    "doors.hooks": [{"unmatched": "allow"}, {"unmatched": []}, {"profile": "nobody"}, 5],
    "doors.window": [{}],
    "phases.building": [{"denied": ["shel_exec"]}, {"denied": ["x"], "allowed": ["x"]}, {"banned": []}],
    "phases.auditing": [{"denied": ["mcp:*"]}, {"denied": ["file_read"], "trust_gated": ["file_read"]}],
    "phases.resting": [{}],
    "profiles.p": [{"allow": None}, {"allow": "x"}, {"extends": "q"}, {"extends": "p"}, {"fallback": "ask"}],
    "profiles.a b": [{}],
    "profiles.p.score_override": [1],
    "evaluation.profiles": [{"p": {"denylist": ["x"], "deny": []}}, {"p": 5}, 5],
    "evaluation.defaultProfile": ["nobody"],
    "evaluation.mode": ["x"],
    "rules": [{}, "x", [5]],
    "score_override": [1],
    "nonsense": [1],
}


def nested(dotted, value):
    for part in reversed(dotted.split(".")):
        value = {part: value}
    return value


@pytest.mark.parametrize(
    ("key", "value"), [(key, value) for key, values in REFUSED.items() for value in values]
)
def test_what_cannot_be_right_is_refused_with_key_reason_and_remedy(key, value):
    with pytest.raises(ConfigError) as caught:
        apply(Settings(), nested(key, value), "here.toml")
    error = caught.value
    assert error.key
    assert error.reason
    assert error.remedy
    assert str(error).startswith("here.toml: ")


@pytest.mark.parametrize(
    "raw", [None, [], "x", 5, {"trust": None}, {"trust": []}, {"phases": {"building": []}}]
)
def test_what_is_not_a_table_is_refused(raw):
    with pytest.raises(ConfigError, match="must be a table"):
        apply(Settings(), raw)


@pytest.mark.parametrize(
    "value", ["1979-05-27", "07:32:00", "1979-05-27T07:32:00Z", "inf", "nan", "-inf", "true"]
)
@pytest.mark.parametrize(
    "key", ["trust.initial_score", "trust.hibernation_days", "audit.log_dir", "masking.keys"]
)
def test_toml_types_in_the_wrong_place_are_refused(key, value):
    with pytest.raises(ConfigError):
        apply(Settings(), tomllib.loads(f"{key} = {value}"))


@pytest.mark.parametrize(
    ("raw", "hint"),
    [
        ({"trust": {"initial_scores": 0.1}}, "`trust.initial_score`"),
        ({"trst": {}}, "`trust`"),
        ({"phases": {"bilding": {}}}, "`phases.building`"),
        ({"phases": {"building": {"denied": ["git_remot"]}}}, "`git_remote`"),
        ({"doors": {"hook": {}}}, "`doors.hooks`"),
        ({"profiles": {"reader": {}, "b": {"extends": "readr"}}}, "`reader`"),
    ],
)
def test_a_typo_is_answered_with_what_was_meant(raw, hint):
    with pytest.raises(ConfigError) as caught:
        apply(Settings(), raw)
    assert caught.value.remedy == f"Did you mean {hint}?"


@pytest.mark.invariant("no file sets a score")
@pytest.mark.parametrize(
    "raw",
    [
        {"trust": {"trust_score_override": 1.0}},
        {"overrides": {}},
        {"trust": {"scores": {"file_read": 1}}},
        {"rules": [{"tool": "x", "action": "allow", "score": 1}]},
        {"doors": {"hooks": {"ScoreOverride": 1}}},
        {"phases": {"building": {"x": [{"y": {"override": 1}}]}}},
    ],
)
def test_a_score_override_is_refused_by_name_at_any_depth(raw):
    with pytest.raises(ConfigError, match="scores are earned"):
        apply(Settings(), raw)


def test_conditions_and_profile_names_may_speak_of_scores():
    rule = {"tool": "x", "action": "deny", "when": {"score": {"gt": 5}}}
    settings = apply(Settings(), {"rules": [rule], "profiles": {"override": {"deny": ["x"]}}})
    assert settings.rules == (rule,)
    assert settings.profiles["override"].deny == ("x",)


@pytest.mark.parametrize("raw", [{"risk": {"critical_auto": True}}, {"auto_approve_critical": 1}])
def test_approving_critical_risk_is_refused_by_name(raw):
    with pytest.raises(ConfigError, match="critical risk is never approved automatically"):
        apply(Settings(), raw)


@pytest.mark.invariant(
    "no settings let a high-risk call of an agent with no trust at all run unasked,"
    " not even the simplest call"
)
def test_no_thresholds_let_a_high_risk_call_without_any_trust_run():
    """Autonomy is clamped at 0, so a threshold of 0 would ask nobody; a simple call has complexity 0."""
    for raw in ({"autonomy": {"human_required_threshold": 0}}, {"risk": {"lambda1": 0.1, "lambda2": 5}}):
        with pytest.raises(ConfigError, match="without any trust"):
            apply(Settings(), raw)


def test_deep_nesting_and_absurd_numbers_are_refused_not_choked_on():
    deep = {}
    for _ in range(100_000):
        deep = {"a": deep}
    for raw in (deep, {"rules": [deep]}, {"retention": {"mirror_days": 1 << 20_000}}, {"x": [[1 << 20_000]]}):
        with pytest.raises(ConfigError, match=r"nested too deeply|beyond 64 bits"):
            apply(Settings(), raw)


def test_layers_add_up_and_leave_the_rest():
    first = apply(Settings(), {"trust": {"initial_score": 0.1}, "rules": [{"tool": "a"}]})
    second = apply(first, {"trust": {"boost_threshold": 3}, "rules": [{"tool": "b"}]})
    assert (second.trust.initial_score, second.trust.boost_threshold) == (0.1, 3)
    assert [rule["tool"] for rule in second.rules] == ["a", "b"]
    assert apply(second, {}) == second


def test_a_domain_named_anew_leaves_its_old_list():
    moved = apply(Settings(), {"phases": {"building": {"trust_gated": ["git_remote"]}}}).phases["building"]
    assert "git_remote" not in moved.denied
    closed = apply(Settings(), {"phases": {"building": {"denied": ["shell_exec"]}}}).phases["building"]
    assert "shell_exec" not in (*closed.allowed, *closed.trust_gated)
    assert closed.denied == ("shell_exec",)


def test_the_first_spelling_of_profiles_is_still_read():
    body = {"allowlist": ["a"], "asklist": ["b"], "denylist": ["c"], "elicitationFallback": "allow"}
    raw = {"evaluation": {"profiles": {"p": body}, "defaultProfile": "p"}}
    settings = apply(Settings(), raw)
    profile = settings.profiles["p"]
    assert (profile.allow, profile.ask, profile.deny, profile.fallback) == (("a",), ("b",), ("c",), "allow")
    assert settings.doors["eval"].profile == "p"


def test_a_circle_of_profiles_is_refused_and_shown():
    raw = {"profiles": {"a": {"extends": "b"}, "b": {"extends": ["c"]}, "c": {"extends": "a"}}}
    with pytest.raises(ConfigError, match=r"extends itself \(\w > \w > \w > \w\)"):
        apply(Settings(), raw)


def test_profiles_that_meet_again_and_again_are_checked_in_linear_time():
    raw = {f"p{n}": {"extends": [f"p{n + 1}", f"p{n + 1}", f"p{n + 2}"]} for n in range(3000)}
    raw |= {"p3000": {}, "p3001": {}}
    assert len(apply(Settings(), {"profiles": raw}).profiles) == 3002


SECRET = "xoxb-very-secret"


@pytest.mark.invariant("the value of a secret is never shown, not in an error either")
@pytest.mark.parametrize(
    "raw",
    [
        {"notify": {"urls": f"slack://{SECRET}"}},
        {"notify": {"urls": [1, f"slack://{SECRET}"]}},
        {"notify": {"urls": ["", f"slack://{SECRET}"]}},
        {"notify": {"urls": [SECRET]}},
        {"notify": {"url": [f"slack://{SECRET}"]}},
        {"notify": f"slack://{SECRET}"},
        {"connections": {"proxy_url": [SECRET]}},
        {"connections": {"proxyurl": SECRET}},
        {"notfy": {"urls": [f"slack://{SECRET}"]}},
        {"notify": {"webhook_urls": [f"http://example.com/{SECRET}"]}},
        {"notify": {"webhook_urls": [f"https://a:{SECRET}@example.com"]}},
    ],
)
def test_a_wrong_address_is_refused_without_being_shown(raw):
    with pytest.raises(ConfigError) as caught:
        apply(Settings(), raw)
    assert SECRET not in str(caught.value)
    assert SECRET not in repr(caught.value.value)


def test_events_are_chosen_from_those_there_are():
    assert apply(Settings(), {"notify": {"events": ["blocked"]}}).notify.events == ("blocked",)
    with pytest.raises(ConfigError, match='"asked" or "expiring" or "blocked"'):
        apply(Settings(), {"notify": {"events": ["everything"]}})
