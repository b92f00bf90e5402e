"""Findings kept per part of a line, and the sentences made of them."""

from __future__ import annotations

from checkrein.call import Category, Effect
from checkrein.classify.findings import Finding, Part


def part(text, *findings):
    made = Part(text)
    made.findings += [Finding(Effect("x"), category, why) for category, why in findings]
    return made


def test_a_part_is_as_bad_as_its_worst_child():
    line = part("line", (Category.low, "looks"))
    line.children += [part("a", (Category.critical, "talks")), part("b", (Category.medium, "writes"))]
    assert line.category is Category.critical
    assert [finding.why for finding in line.all()] == ["looks", "talks", "writes"]


def test_a_part_without_findings_is_low_and_says_so():
    quiet = part("ls")
    assert quiet.category is Category.low
    assert quiet.reason().text == "`ls` only shows or computes something (low)"


def test_one_finding_is_one_sentence():
    reason = part("rm x", (Category.high, "it deletes x")).reason()
    assert reason.text == "`rm x`: it deletes x (high)"
    assert reason.children == ()


def test_several_findings_stand_below_worst_first_and_once():
    reason = part(
        "x", (Category.low, "looks"), (Category.high, "deletes"), (Category.high, "deletes")
    ).reason()
    assert reason.text == "`x` is high"
    assert [child.text for child in reason.children] == ["deletes (high)", "looks (low)"]


def test_leaves_count_commands_not_groups():
    line = part("line")
    group = part("group")
    group.children += [part("a"), part("b")]
    line.children += [group, part("c")]
    assert line.leaves() == 3
    assert part("alone").leaves() == 1


def test_reasons_of_a_deep_line_end_somewhere():
    deep = top = part("0", (Category.high, "deletes"))
    for level in range(50):
        child = part(str(level), (Category.high, "deletes"))
        deep.children.append(child)
        deep = child
    reason, levels = top.reason(), 0
    while reason.children:
        reason, levels = reason.children[-1], levels + 1
    assert levels < 12
    assert top.category is Category.high


def test_a_part_does_only_one_thing_when_every_command_in_it_does():
    root, one, other = Part("a; b"), Part("a"), Part("b")
    root.children = [one, other]
    one.findings.append(Finding(Effect("note", "state", ""), Category.low, "x"))
    assert not root.only("note", "state")
    other.findings.append(Finding(Effect("note", "state", ""), Category.low, "x"))
    assert root.only("note", "state")
    assert not Part("").only("note", "state")
