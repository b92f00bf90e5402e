import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkrein.console.spans import json_spans, shell_spans


@given(st.text() | st.text("ab -\\'\"$|;&(){}`<>#=\n\t0"))
def test_highlighting_leaves_nothing_out(text):
    assert "".join(piece for _, piece in shell_spans(text)) == text
    assert "".join(piece for _, piece in json_spans(text)) == text


def test_what_is_long_is_shown_plain():
    text = "rm -rf x; " * 2000
    assert shell_spans(text) == (("", text),)
    assert json_spans(text) == (("", text),)


@pytest.mark.parametrize(
    ("text", "kind", "piece"),
    [
        ("rm -rf x", "command", "rm"),
        ("rm -rf x", "flag", "-rf"),
        ("a && rm x", "command", "rm"),
        ("sudo rm x", "command", "rm"),
        ("A=1 rm x", "command", "rm"),
        ("a | b", "operator", "|"),
        ("echo 'it is'", "string", "'it is'"),
        ('echo "$x', "string", '"$x'),
        ("echo $HOME", "variable", "$HOME"),
        ("ls # note", "comment", "# note"),
        ("a\nrm x", "command", "rm"),
    ],
)
def test_the_parts_of_a_shell_line(text, kind, piece):
    assert (kind, piece) in shell_spans(text)


def test_the_parts_of_json():
    found = json_spans('{"a": "b", "n": -1.5, "t": true}')
    assert {("key", '"a"'), ("string", '"b"'), ("number", "-1.5"), ("word", "true")} <= set(found)
