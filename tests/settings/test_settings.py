import msgspec
import pytest

from checkrein.settings import SECTIONS, TABLES, ProfileSettings, Settings, documented_keys, lineage

SEED = {
    "trust.hibernation_days": 14,
    "trust.boost_threshold": 20,
    "trust.initial_score": 0.3,
    "trust.warmup_operations": 5,
    "trust.failure_decay": 0.85,
    "risk.lambda1": 0.6,
    "risk.lambda2": 0.4,
    "autonomy.auto_approve_threshold": 0.8,
    "autonomy.human_required_threshold": 0.4,
    "model.opus_aot_threshold": 2,
    # State lives in the state directory: nothing of ours is in the project unless a person asks for it.
    "audit.log_dir": "",
}


@pytest.mark.parametrize(("key", "default"), SEED.items())
def test_the_defaults_are_the_seeds(key, default):
    section, name = key.split(".")
    assert getattr(getattr(Settings(), section), name) == default


def test_the_phases_are_the_seeds_and_the_web_may_be_read_in_all():
    phases = Settings().phases
    assert phases["planning"].denied == ("file_write_src", "shell_exec", "git_remote")
    assert phases["building"].trust_gated == ("shell_exec", "git_local")
    assert phases["auditing"].allowed == ("file_read", "git_read", "web_read")
    assert all("git_remote" in phase.denied and "web_read" in phase.allowed for phase in phases.values())


def test_only_eval_starts_with_unnamed_calls_allowed():
    loose = [name for name, door in Settings().doors.items() if door.unmatched == "allow"]
    assert loose == ["eval"]


def test_every_field_is_a_documented_key():
    fields = {
        f"{section}.{name}" for section, struct in SECTIONS.items() for name in struct.__struct_fields__
    } | {f"{table}.NAME.{name}" for table, struct in TABLES.items() for name in struct.__struct_fields__}
    assert set(documented_keys()) == fields
    assert {*SECTIONS, *TABLES, "rules", "commands"} == set(Settings.__struct_fields__)
    assert all(key.doc.endswith(".") for key in documented_keys().values())


def test_settings_cannot_be_changed_in_place():
    with pytest.raises(AttributeError):
        Settings().trust.initial_score = 1.0
    with pytest.raises(AttributeError):
        Settings().rules = ()
    Settings().phases.clear()
    assert Settings().phases == msgspec.convert(msgspec.to_builtins(Settings()), Settings).phases != {}


def test_a_lineage_names_each_ancestor_once():
    profiles = {
        "a": ProfileSettings(extends=("b", "c")),
        "b": ProfileSettings(extends=("d",)),
        "c": ProfileSettings(extends=("d", "d")),
        "d": ProfileSettings(),
    }
    assert sorted(lineage("a", profiles)) == ["a", "b", "c", "d"]
    assert lineage("d", profiles) == ("d",)
