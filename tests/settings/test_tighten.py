import pytest

from checkrein.settings import Settings
from checkrein.settings.check import apply
from checkrein.settings.tighten import tighten


def tightened(project, user=None):
    base = apply(Settings(), user or {})
    return tighten(base, apply(base, project))


NUMBERS = [
    ("trust.initial_score", 0.1, 0.5),
    ("trust.boost_threshold", 0, 99),
    ("trust.warmup_operations", 0, 99),
    ("trust.failure_decay", 0.5, 0.99),
    ("risk.lambda1", 2.0, 0.3),
    ("risk.lambda2", 2.0, 0.0),
    ("autonomy.auto_approve_threshold", 0.9, 0.5),
    ("autonomy.human_required_threshold", 0.7, 0.2),
    ("autonomy.trust_gate_threshold", 0.9, 0.0),
    ("approval.timeout_seconds", 5, 9999),
    ("approval.release_seconds", 5, 3600),
]
NOT_THE_PROJECTS_BUSINESS = [
    ("trust.hibernation_days", 1),
    ("trust.hibernation_days", 900),
    ("audit.log_dir", "logs"),
    ("model.opus_aot_threshold", 9),
    ("retention.mirror_days", 1),
    ("retention.input_bytes", 0),
    ("retention.output_bytes", 0),
]


def value_of(settings, key):
    section, name = key.split(".")
    return getattr(getattr(settings, section), name)


@pytest.mark.parametrize(("key", "tighter", "looser"), NUMBERS)
def test_a_number_moves_only_in_the_tighter_direction(key, tighter, looser):
    section, name = key.split(".")
    result = tightened({section: {name: tighter}})
    assert (value_of(result.settings, key), result.notices) == (tighter, ())
    result = tightened({section: {name: looser}})
    assert result.settings == Settings()
    assert result.notices == (f"{key} = {looser!r} ignored",)


@pytest.mark.parametrize(("key", "value"), NOT_THE_PROJECTS_BUSINESS)
def test_what_is_neither_tighter_nor_looser_stays_the_users(key, value):
    section, name = key.split(".")
    result = tightened({section: {name: value}})
    assert result.settings == Settings()
    assert len(result.notices) == 1


def test_allow_rules_are_ignored_and_the_others_kept_apart():
    rules = [{"pattern": "*", "action": action} for action in ("allow", "ask", "deny", "allow", None)]
    result = tightened({"rules": rules}, {"rules": [{"tool": "mine", "action": "allow"}]})
    assert [rule["action"] for rule in result.rules] == ["ask", "deny"]
    assert [rule["tool"] for rule in result.settings.rules] == ["mine"]
    assert result.notices == ("3 allow rule(s) ignored",)


@pytest.mark.parametrize("phase", ["planning", "building", "auditing"])
def test_a_phase_keeps_every_denial_and_opens_nothing(phase):
    base = Settings().phases[phase]
    wish = {
        "denied": [],
        "allowed": ["shell_exec", "git_remote", "_global", "package"],
        "trust_gated": ["network"],
    }
    result = tightened({"phases": {phase: wish}}).settings.phases[phase]
    assert set(result.denied) >= set(base.denied)
    assert set(result.allowed) <= set(base.allowed)
    assert set(result.trust_gated) >= set(base.trust_gated)
    if phase != "building":
        assert "network" not in result.trust_gated


def test_a_phase_takes_more_denials_and_gates():
    result = tightened({"phases": {"building": {"denied": ["package"], "trust_gated": ["file_write"]}}})
    phase = result.settings.phases["building"]
    assert phase.denied == ("git_remote", "package")
    assert set(phase.trust_gated) == {"shell_exec", "git_local", "file_write"}


def test_a_door_becomes_stricter_and_keeps_its_profile():
    user = {"profiles": {"p": {"deny": ["x"]}, "q": {}}, "doors": {"eval": {"profile": "p"}}}
    result = tightened({"doors": {"eval": {"unmatched": "ask", "profile": "q"}}}, user)
    assert (result.settings.doors["eval"].unmatched, result.settings.doors["eval"].profile) == ("ask", "p")
    assert result.notices
    assert tightened({"doors": {"gateway": {"unmatched": "earned"}}}).settings == Settings()


def test_a_profile_takes_denials_and_questions_only():
    user = {"profiles": {"p": {"deny": ["a"], "ask": ["b"]}}}
    project = {"profiles": {"p": {"deny": ["c"], "ask": ["d"], "fallback": "allow"}, "new": {"allow": ["*"]}}}
    result = tightened(project, user)
    profile = result.settings.profiles["p"]
    assert (profile.deny, profile.ask, profile.fallback) == (("a", "c"), ("b", "d"), "deny")
    assert "new" not in result.settings.profiles
    assert len(result.notices) == 2


@pytest.mark.parametrize(
    "profiles",
    [
        {"p": {"allow": ["safe"]}},
        {"p": {"extends": "q"}, "q": {"allow": ["safe"]}},
        {"p": {}, "q": {"extends": "p", "allow": ["safe"]}},
        {"p": {}, "q": {"extends": ["p", "r"]}, "r": {"allow": ["safe"]}},
    ],
)
def test_a_question_is_not_added_where_an_allow_list_denies_the_rest(profiles):
    result = tightened({"profiles": {"p": {"ask": ["*"], "deny": ["x"]}}}, {"profiles": profiles})
    assert (result.settings.profiles["p"].ask, result.settings.profiles["p"].deny) == ((), ("x",))
    assert result.notices


def test_masking_cannot_be_used_to_hide_commands_from_the_record():
    user = {"masking": {"keys": ["pin"], "patterns": ["a+"]}}
    result = tightened({"masking": {"keys": ["pin", "command"], "patterns": []}}, user)
    assert result.settings.masking.keys == ("pin",)
    assert result.settings.masking.patterns == ("a+",)
    assert any("masking.keys" in notice for notice in result.notices)


def test_a_file_that_wants_nothing_changes_nothing():
    assert tightened({}) == tighten(Settings(), Settings())
    assert tightened({}).notices == ()
