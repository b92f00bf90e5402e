import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkrein.console import shown
from checkrein.errors import InputError


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("a\u202eb", "a⟨U+202E⟩b"),
        ("\x1b[31m", "⟨U+001B⟩[31m"),
        ("zero\u200bwidth", "zero⟨U+200B⟩width"),
        ("\r", "⟨U+000D⟩"),
        ("\U000e0041", "⟨U+E0041⟩"),
        ("\ud800", "⟨U+D800⟩"),
        ("grüße 猫 🐎", "grüße 猫 🐎"),
    ],
)
def test_what_misleads_is_spelled_out(text, seen):
    assert shown.visible(text) == seen


@given(st.recursive(st.text() | st.integers() | st.none(), lambda each: st.dictionaries(st.text(), each)))
def test_pretty_json_can_be_edited_and_sent_back(value):
    text = shown.pretty(value)
    assert json.loads(text) == value
    assert shown.visible(text) == text


def kinds(tool, value):
    return [(block.kind, block.title) for block in shown.blocks(tool, value)]


@pytest.mark.parametrize(
    ("tool", "value", "found"),
    [
        ("Bash", {"command": "ls"}, [("shell", "command")]),
        ("Bash", {"command": "ls", "timeout": 3}, [("shell", "command"), ("json", "other arguments")]),
        ("shell", {"command": ["bash", "-lc", "ls | wc"]}, [("shell", "command")]),
        ("Edit", {"file_path": "a.py", "old_string": "a", "new_string": "b"}, [("diff", "a.py")]),
        (
            "MultiEdit",
            {"file_path": "a.py", "edits": [{"old_string": "a", "new_string": "b"}] * 2},
            [("diff", "a.py"), ("diff", "a.py")],
        ),
        ("Write", {"file_path": "a.py", "content": "x\ny"}, [("diff", "a.py (whole)")]),
        ("apply_patch", {"input": "*** Begin Patch\n+x\n"}, [("diff", "patch")]),
        ("apply_patch", {"command": "*** Begin Patch\n+x\n"}, [("diff", "patch")]),
        ("send", {"to": "ada"}, [("json", "")]),
        ("send", {}, [("json", "")]),
        ("send", "words", [("text", "")]),
        ("send", None, [("json", "")]),
        ("send", {"content": "no file"}, [("json", "")]),
    ],
)
def test_arguments_are_shown_as_what_they_are(tool, value, found):
    assert kinds(tool, value) == found


@given(
    st.dictionaries(
        st.sampled_from(["command", "file_path", "content", "old_string", "edits", "input"]),
        st.text() | st.lists(st.text()) | st.none() | st.integers(),
    )
)
def test_any_arguments_can_be_shown(value):
    assert shown.blocks("Bash", value)


def test_nothing_of_a_command_is_left_out():
    [block] = shown.blocks("Bash", {"command": "echo \"$HOME\" | tee >(cat) && rm -rf '/' # bye"})
    assert "".join(text for _, text in block.spans) == "echo \"$HOME\" | tee >(cat) && rm -rf '/' # bye"


def whole(value):
    """All that a person reads of the arguments."""
    blocks = shown.blocks("run", value)
    pieces = [text for block in blocks for _, text in (*block.spans, *block.lines)]
    return "\n".join([*(block.title for block in blocks), *pieces])


EDIT = {"old_string": "a", "new_string": "b"}


@pytest.mark.parametrize(
    "value",
    [
        {"command": ["bash", "-c", "EVIL", "ls"]},
        {"command": ["EVIL", "-c", "ls"]},
        {"command": "ls", "cmd": "EVIL"},
        {"file_path": "a.txt", "path": "EVIL", "content": "x"},
        {"file_path": "a.txt", "notebook_path": "EVIL", **EDIT},
        {"path": ["EVIL"], "content": "x"},
        {"file_path": "a.txt", "edits": [EDIT, {"oldText": "a", "newText": "EVIL"}]},
        {"file_path": "a.txt", "edits": [{**EDIT, "file_path": "EVIL"}]},
        {"file_path": "a.txt", "edits": [EDIT], "old_string": "a", "new_string": "EVIL"},
        {"file_path": "a.txt", "edits": [EDIT], "old_string": "EVIL"},
        {"file_path": "EVIL", "patch": "--- a\n+++ b\n+x\n"},
        {"file_path": "a", "old_string": "x" * 50_000 + "\n1", "new_string": "x" * 50_000 + "\nEVIL"},
    ],
)
def test_no_argument_is_hidden_behind_another(value):
    """What is allowed is what is read: a model may add arguments that look like what we know."""
    assert "EVIL" in whole(value)


def test_an_edit_everywhere_says_so_and_a_long_one_is_cut_after_it_is_compared():
    assert "a.txt (every place)" in whole({"file_path": "a.txt", "edits": [{**EDIT, "replace_all": True}]})
    long = {"file_path": "a", "old_string": "x" * 50_000 + "1", "new_string": "x" * 50_000 + "2"}
    assert "nothing changes" not in whole(long)
    assert "more characters" in whole(long)
    many = {"file_path": "a", "old_string": "", "new_string": ("x" * 9_000 + "\n") * 50}
    assert "more lines" in whole(many)
    assert len(whole(many)) < 200_000


def test_what_is_very_long_is_cut_and_says_so():
    [block] = shown.blocks("Bash", {"command": "x" * 100_000})
    assert "60000 more characters" in "".join(text for _, text in block.spans)


@pytest.mark.parametrize(
    ("danger", "risk", "level"),
    [
        (["deletes"], "low", "red"),
        (["pays"], "medium", "red"),
        (["sends", "secrets"], "medium", "red"),
        (["outside"], "high", "red"),
        ([], "critical", "red"),
        (["secrets"], "low", "amber"),
        ([], "high", "amber"),
        ([], "medium", "calm"),
    ],
)
def test_what_cannot_be_taken_back_is_red(danger, risk, level):
    assert shown.level(danger, risk) == level


def test_a_call_on_one_line():
    assert shown.one_line({"command": "a\n  b"}) == "a b"
    assert shown.one_line({"file_path": "/p/x/y.py"}, "/p/x") == "y.py"
    assert shown.one_line({"other": 1}) == '{"other": 1}'
    assert shown.one_line("x" * 200, longest=10) == "x" * 9 + "…"


def test_what_is_quoted_is_told_apart():
    assert shown.quoted("`rm` is high") == [("code", "rm"), ("", " is high")]
    assert shown.quoted("one ` alone") == [("", "one ` alone")]


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (-1, "just now"),
        (3, "just now"),
        (59, "59 s ago"),
        (61, "1 min ago"),
        (7300, "2 h ago"),
        (2e5, "2 d ago"),
    ],
)
def test_ages(seconds, text):
    assert shown.ago(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "expired"), (59.9, "0:59"), (245, "4:05"), (7800, "2 h 10 min"), (90_000, "1 d 1 h")],
)
def test_countdowns(seconds, text):
    assert shown.left(seconds) == text


def test_times_people_write():
    assert shown.moment("", 100) is None
    assert shown.moment("2h", 10_000) == 2_800
    assert shown.moment("2h", 10_000, ahead=True) == 17_200
    assert shown.moment("999999999w", 10_000) == 0
    assert shown.moment("2026-11-15T00:00:00+00:00", 0) == shown.epoch("2026-11-15T00:00:00Z")
    assert shown.clock("2026-11-15T00:00:00Z") == "2026-11-15 00:00:00"
    assert shown.epoch("never") == 0.0
    for text in ("yesterday", "0001-01-01", "9" * 40):
        try:
            shown.moment(text, 0)
        except InputError:
            continue
        assert text == "0001-01-01"


def test_secrets_left_masked_are_put_back():
    real = {"command": "curl -H 'Token: abc'", "list": ["abc", 1], "same": 1}
    masked = {"command": "curl -H 'Token: [masked]'", "list": ["[masked]", 1], "same": 1}
    assert shown.restored(masked, masked, real) == real
    edited = {"command": "ls", "list": ["[masked]", 2], "new": "[masked]"}
    assert shown.restored(edited, masked, real) == {"command": "ls", "list": ["abc", 2], "new": "[masked]"}
    assert shown.restored({"list": ["[masked]"]}, masked, real) == {"list": ["[masked]"]}
