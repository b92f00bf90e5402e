import os
import subprocess
import sys
from pathlib import Path

import pytest

from checkrein import policies as policies_module
from checkrein.policies import Policies
from checkrein.settings.sources import state_dir
from checkrein.store.rules import add_rule, delete_rule
from checkrein.store.sqlite import SqliteStore


@pytest.fixture
def store():
    made = SqliteStore.open(state_dir())
    yield made
    made.close()


def names(policies, project=""):
    return [rule.id for rule in policies.of(project).policy.rules.rules]


def test_nothing_changed_nothing_compiled(store):
    policies = Policies(store)
    assert policies.of("/p") is policies.of("/p")
    assert policies.of("/p") is not policies.of("/p", phase="planning")


@pytest.mark.invariant("a change takes effect on the next call, also one made by another process")
def test_the_cache_is_dropped_on_every_change(store, user_settings):
    policies = Policies(store)
    assert names(policies) == []
    store.write(lambda tx: add_rule(tx, "r1", {"action": "ask", "tool": "x"}, 1.0))
    assert names(policies) == ["r1"]
    user_settings('[[rules]]\naction = "deny"\ntool = "y"')
    assert names(policies) == ["file#1", "r1"]
    store.write(lambda tx: delete_rule(tx, "r1"))
    assert names(policies) == ["file#1"]


def test_folder_after_folder_takes_no_more_memory(store, monkeypatch):
    monkeypatch.setattr(policies_module, "KEPT", 4)
    policies = Policies(store)
    for number in range(20):
        policies.of(f"/p{number}")
    assert len(policies._cache) <= 4
    assert policies.of("/p19") is policies.of("/p19")


@pytest.mark.invariant("a change takes effect on the next call, also one made by another process")
def test_a_change_by_another_process_is_seen(store, user_settings):
    store.close()
    reader = SqliteStore.open(state_dir(), read_only=True)
    policies = Policies(reader)
    assert names(policies) == []
    command = [sys.executable, "-m", "checkrein", "rules", "add", "deny", "--tool", "x"]
    subprocess.run(command, check=True, capture_output=True, env=os.environ)
    assert len(names(policies)) == 1
    reader.close()


def test_file_rules_come_before_stored_ones_of_equal_priority(store, user_settings):
    store.write(lambda tx: add_rule(tx, "first", {"action": "ask", "tool": "x", "priority": 5}, 1.0))
    store.write(lambda tx: add_rule(tx, "same", {"action": "ask", "tool": "x"}, 1.0))
    user_settings('[[rules]]\naction = "deny"\ntool = "y"\nid = "mine"')
    assert names(Policies(store)) == ["first", "mine", "same"]


def test_a_same_size_edit_within_the_second_is_seen(store, user_settings):
    policies = Policies(store)
    path = user_settings("[trust]\nhibernation_days = 10")
    assert policies.of("").settings.trust.hibernation_days == 10
    path.write_text("[trust]\nhibernation_days = 11")
    assert policies.of("").settings.trust.hibernation_days == 11


def test_an_unreadable_file_is_a_fault_not_a_default(store, user_settings, project):
    path = user_settings("")
    path.unlink()
    path.mkdir()
    assert "config.toml" in Policies(store).of("").policy.fault
    path.rmdir()
    assert Policies(store).of("").policy.fault == ""
    Path(project, "checkrein.toml").write_bytes(b"\xff\xfe")
    assert "TOML" in Policies(store).of(project).policy.fault
    assert Policies(store).of("").policy.fault == ""


def test_command_line_overrides_come_last(store, user_settings):
    user_settings("[trust]\nhibernation_days = 10")
    assert Policies(store, ["trust.hibernation_days=3"]).of("").settings.trust.hibernation_days == 3
    assert "hibernation" in Policies(store, ["trust.hibernation_days=-3"]).of("").policy.fault


def test_rules_that_count_uses_are_known(store):
    store.write(lambda tx: add_rule(tx, "r1", {"action": "allow", "tool": "x", "uses": 3}, 1.0))
    store.write(lambda tx: add_rule(tx, "r2", {"action": "allow", "tool": "y"}, 1.0))
    assert Policies(store).of("").counted == frozenset({"r1"})


def test_a_masking_pattern_that_cannot_be_used_is_a_fault(store, user_settings):
    user_settings('[masking]\npatterns = ["(?=x)"]')
    assert "masking.patterns" in Policies(store).of("").policy.fault
    user_settings('[masking]\nkeys = ["customer"]\npatterns = ["CUST-[0-9]+"]')
    redactor = Policies(store).of("").redactor
    assert redactor.value({"customer": "Ada", "note": "see CUST-123"}) == {
        "customer": "[masked]",
        "note": "see [masked]",
    }


def test_a_project_no_file_system_can_hold_is_a_fault(store):
    assert Policies(store).of("/p\0q").policy.fault


def test_a_conversation_waits_as_long_as_its_setting_says(store, user_settings):
    policies = Policies(store)
    assert policies.of("", "chat").patience("chat").timeout_seconds == 86_400
    assert policies.of("", "gateway").patience("gateway").timeout_seconds == 300
    user_settings("[chat]\nanswer_hours = 0.01")
    assert policies.of("", "chat").patience("chat").timeout_seconds == 300
