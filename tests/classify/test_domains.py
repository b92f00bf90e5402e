"""From effects to a judgement: category, domains, complexity."""

from __future__ import annotations

import pytest

from checkrein.call import GLOBAL_DOMAIN, Category, Effect
from checkrein.classify import domains
from checkrein.classify.findings import Finding, Part


@pytest.mark.parametrize(
    ("kind", "scope", "category"),
    [
        ("read", "project", Category.low),
        ("read", "secret", Category.high),
        ("write", "project", Category.medium),
        ("write", "home", Category.high),
        ("write", "self", Category.critical),
        ("delete", "project", Category.high),
        ("delete", "everything", Category.critical),
        ("exec", "code", Category.medium),
        ("exec", "flow", Category.critical),
        ("network", "outside", Category.critical),
        ("network", "service", Category.low),
        ("network", "loopback", Category.medium),
        ("message", "outside", Category.critical),
        ("git", "read", Category.low),
        ("nobody-wrote-this-down", "x", Category.medium),
    ],
)
def test_each_effect_has_a_category(kind, scope, category):
    assert domains.category(kind, scope) is category


@pytest.mark.parametrize(
    ("effects", "expected"),
    [
        ([], ("file_read",)),
        ([("read", "project")], ("file_read",)),
        ([("read", "project"), ("write", "src")], ("file_write_src",)),
        ([("git", "read"), ("read", "project")], ("git_read",)),
        ([("git", "read"), ("git", "")], ("git_local",)),
        ([("write", "docs"), ("network", "web")], ("docs_write", "web_read")),
        ([("mcp", "mcp:mail")], ("mcp:mail",)),
        ([("nobody-wrote-this-down", "")], ("shell_exec",)),
    ],
)
def test_reading_is_implied_by_anything_stronger(effects, expected):
    assert domains.domains([Effect(kind, scope) for kind, scope in effects]) == expected


@pytest.mark.invariant("a test run that hides something else is not a test run")
def test_a_test_run_that_hides_something_else_is_not_a_test_run():
    assert domains.domains([Effect("test")]) == ("test_run",)
    assert domains.domains([Effect("test"), Effect("exec", "unknown")]) == ("shell_exec",)


def test_a_line_we_understand_never_gets_too_complex_to_be_low():
    assert domains.complexity(1, 0, 0, opaque=False) == 0.1
    assert domains.complexity(200, 20, 50, opaque=False) <= domains.PLAIN_CEILING


def test_an_opaque_line_is_always_too_complex_to_be_low():
    assert domains.complexity(1, 0, 0, opaque=True) >= 0.8
    assert domains.complexity(10_000, 100, 100, opaque=True) <= 1.0


def test_more_parts_levels_and_unknown_words_are_more_complex():
    base = domains.complexity(2, 1, 1, opaque=False)
    assert base < domains.complexity(3, 1, 1, opaque=False)
    assert base < domains.complexity(2, 2, 1, opaque=False)
    assert base < domains.complexity(2, 1, 2, opaque=False)


def test_the_worst_part_decides_and_a_low_one_never_hides_it():
    line, quiet, loud = Part("ls; rm x"), Part("ls"), Part("rm x")
    line.children += [loud, quiet]
    loud.findings.append(Finding(Effect("delete", "project", "x"), Category.high, "it deletes x"))
    quiet.findings.append(Finding(Effect("read", "list", "."), Category.low, "it looks at ."))
    assert domains.risk(line, complexity=0.1).category is Category.high
    extra = (Finding(Effect("network", "flow"), Category.critical, "it leaks"),)
    assert domains.risk(line, complexity=0.1, extra=extra).category is Category.critical


def test_notes_are_no_effects_and_effects_are_capped():
    part = Part("x")
    part.findings.append(Finding(Effect("note", "", "x"), Category.medium, "it is not known"))
    risk = domains.risk(part, complexity=0.5, fallback=GLOBAL_DOMAIN)
    assert (risk.effects, risk.domains, risk.category) == ((), (GLOBAL_DOMAIN,), Category.medium)
    part.findings += [
        Finding(Effect("read", "project", str(n)), Category.low, "it reads") for n in range(500)
    ]
    assert len(domains.risk(part, complexity=0.5).effects) == domains.MAX_EFFECTS
