import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkrein.approval.channels.wording import (
    LONGEST_BODY,
    LONGEST_TITLE,
    Subject,
    gathered,
    notice,
    quoted,
    visible,
)

GOOD = Subject(
    event="asked",
    id="1mcc5rm0045jxex7",
    tool="Bash",
    input={"command": "rm -rf build"},
    risk="high",
    agent="claude-code",
    session="s1",
    project="/home/dev/app",
    summary="claude-code wants to use Bash: it deletes build.",
    reasons=("`shell_exec` asks until trust is above 0.8.",),
    expires_at="2027-01-15T08:00:00.000Z",
)
# Texts an agent might write to make a notice say or do something else.
HOSTILE = st.one_of(
    st.text(max_size=4000),
    st.text(alphabet="\r\n\x00\x1b\u2028\u202e\u200b@<!|`[](\\ aY:", max_size=4000),
    st.sampled_from(
        ["\r\nBcc: a@b", "x\nYes: checkrein approve other", "@everyone", "<!channel>", "\ud800", "A" * 99999]
    ),
)
CONTROL = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
# Every line we write ourselves.
OURS = re.compile(
    r"\| |Yes: |No: |Console: |By |Why: |Counts as no at |See: |Answer: |… |…$|S: |1mcc5rm0045jxex7 "
)


def test_a_question_says_everything_a_person_needs():
    made = notice(GOOD, "http://127.0.0.1:7331/")
    assert made.title == "An agent asks: Bash (high risk)"
    assert made.body.splitlines() == [
        "claude-code wants to use Bash: it deletes build.",
        "| rm -rf build",
        "By claude-code in /home/dev/app",
        "Why: `shell_exec` asks until trust is above 0.8.",
        "Yes: checkrein approve 1mcc5rm0045jxex7",
        "No: checkrein deny 1mcc5rm0045jxex7",
        "Console: http://127.0.0.1:7331/",
        "Counts as no at 2027-01-15T08:00:00.000Z",
    ]
    assert made.facts["console"] == "http://127.0.0.1:7331/"
    assert made.facts["input"] == "rm -rf build"
    assert "console" not in notice(GOOD).facts


def test_a_blocked_call_waits_for_nothing():
    made = notice(Subject(**{**fields(GOOD), "event": "blocked", "risk": "critical", "expires_at": ""}))
    assert made.title == "A critical call was blocked: Bash (critical risk)"
    assert "approve" not in made.body
    assert made.body.splitlines()[-1] == "See: checkrein audit show 1mcc5rm0045jxex7"


def test_arguments_without_a_command_are_shown_as_json():
    assert quoted({"to": "a@b.example", "n": 1}) == '| {"n":1,"to":"a@b.example"}'
    assert quoted("cut off [cut: 9 bytes]") == "| cut off [cut: 9 bytes]"
    assert quoted({"command": ["a", "\ud800"]}).startswith("| {")


def test_many_are_told_as_one():
    made = gathered([GOOD] * 20, "http://127.0.0.1:7331/")
    assert made.title == "20 questions wait"
    assert made.body.count("rm -rf build") == 8
    assert "… and 12 more" in made.body
    assert made.body.splitlines()[-2:] == ["Answer: checkrein inbox", "Console: http://127.0.0.1:7331/"]
    assert made.facts["count"] == 20
    assert len(made.facts["many"]) == 8
    assert gathered([GOOD]).body == notice(GOOD).body
    blocked = Subject(**{**fields(GOOD), "event": "blocked"})
    assert gathered([blocked, blocked]).title == "2 critical calls were blocked"


def test_what_cannot_be_seen_is_spelled_out():
    assert visible("a\x1b[2Jb\u202ec\u200b\r\n\td", 99) == "a\\x1b[2Jb\\u{202e}c\\u{200b}\\r\\n d"
    assert visible("rm\u00a0-rf\u3000\u2800\u3164", 99) == "rm\\xa0-rf\\u{3000}\\u{2800}\\u{3164}"
    assert visible("grün ✓ 語", 99) == "grün ✓ 語"
    assert visible("x" * 50, 10) == "xxxxxxxxxx… [50 characters]"


@pytest.mark.parametrize(
    "text", ["@everyone", "<@123>", "<!channel>", "@HERE now", "[yes](https://evil.example)"]
)
def test_nobody_is_called_and_nothing_linked(text):
    shown = visible(text, 99)
    assert text not in shown
    assert shown.replace(" ", "") == text.replace(" ", "")


@given(HOSTILE, HOSTILE, HOSTILE, st.sampled_from(["asked", "expiring", "blocked"]))
def test_no_text_leaves_its_line_or_has_no_end(command, name, reason, event):
    hostile = Subject(
        event=event,
        id="1mcc5rm0045jxex7",
        tool=name,
        input={"command": command},
        risk="high",
        agent=name,
        session=name,
        project=name,
        summary=f"S: {name}",
        reasons=(reason,),
        expires_at="" if event == "blocked" else "2027",
    )
    for made in (notice(hostile, "http://127.0.0.1:1/"), gathered([hostile] * 12)):
        assert len(made.title) <= LONGEST_TITLE
        assert len(made.body) <= LONGEST_BODY
        # INVARIANT: nothing of an agent's reaches a header or drives what shows it.
        assert not any(unicodedata.category(char) in CONTROL for char in made.title)
        assert not any(unicodedata.category(char) in CONTROL for char in made.body.replace("\n", ""))
        for line in made.body.split("\n"):
            assert OURS.match(line), line
        said = re.findall(r"^Yes: checkrein approve (.*)$", made.body, re.MULTILINE)
        assert set(said) <= {"1mcc5rm0045jxex7"}
    single = notice(hostile, "http://127.0.0.1:1/").body
    # How to answer is never what is cut.
    assert ("Yes: checkrein approve 1mcc5rm0045jxex7" in single) is (event != "blocked")


def fields(subject):
    return {name: getattr(subject, name) for name in subject.__struct_fields__}
