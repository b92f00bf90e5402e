"""Effects that are bearable alone and not together."""

from __future__ import annotations

import pytest

from checkrein.call import Category, Effect
from checkrein.classify.flows import flows

SECRET = Effect("read", "secret", "/p/.env")
SHOWN = Effect("secret", "environment", "env")
OUT = Effect("network", "outside", "x.example")


def worst(now, history=()):
    return max((finding.category for finding in flows(now, tuple(history))), default=Category.low)


@pytest.mark.invariant("a secret that was read and data that leaves are critical together")
@pytest.mark.parametrize("secret", [SECRET, SHOWN])
@pytest.mark.parametrize(
    "out",
    [
        OUT,
        Effect("network", "known", "api.corp.example"),
        Effect("network", "service-write", "gh"),
        Effect("network", "web", "x.example"),
        Effect("message", "outside", "mail"),
        Effect("git-remote", "", "git push"),
    ],
)
def test_a_secret_that_was_read_and_data_that_leaves_are_critical_together(secret, out):
    assert worst([secret, out]) is Category.critical
    assert worst([out, secret]) is Category.critical
    assert worst([out], [secret]) is Category.critical


@pytest.mark.parametrize(
    "effect",
    [
        Effect("network", "loopback", "localhost"),
        Effect("network", "service", "gh pr view"),
        Effect("git-remote", "read", "git fetch"),
        Effect("read", "project", "/p/a"),
    ],
)
def test_nothing_leaves_through_these(effect):
    assert worst([SECRET, effect]) is Category.low


def test_reading_a_secret_after_data_left_is_no_flow():
    assert worst([SECRET], [OUT]) is Category.low
    assert worst([OUT]) is Category.low


@pytest.mark.invariant("what was downloaded and is then executed is critical")
def test_what_was_downloaded_and_is_then_executed_is_critical():
    download, run = Effect("download", "project", "/p/x.sh"), Effect("exec", "project", "/p/x.sh")
    assert worst([run], [download]) is Category.critical
    assert worst([download, run]) is Category.critical
    assert worst([Effect("exec", "project", "/p/y.sh")], [download]) is Category.low


def test_what_the_session_wrote_and_then_runs_is_named():
    found = flows([Effect("exec", "project", "/p/x.sh")], (Effect("write", "project", "/p/x.sh"),))
    assert [(finding.category, finding.effect.scope) for finding in found] == [(Category.medium, "written")]
    assert "/p/x.sh" in found[0].why


def test_a_download_beside_text_nobody_has_seen_is_critical():
    unseen = Effect("exec", "shell", "eval")
    assert worst([Effect("network", "loopback", "localhost"), unseen]) is Category.critical
    assert worst([Effect("network", "service", "gh"), unseen]) is Category.low
    assert worst([unseen]) is Category.low


def test_effects_without_a_name_never_match_each_other():
    assert worst([Effect("exec", "project", "")], [Effect("write", "project", "")]) is Category.low
