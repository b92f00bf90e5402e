import pytest

from checkrein.ledger.assignments import HEAD, value_span
from checkrein.ledger.secrets import words_of


def value(text):
    """What stands behind the first name in the text, or None where it is no value."""
    head = HEAD.search(text)
    found = value_span(head, words_of(head["flag"] or head["name"]), 2)
    return text[slice(*found)] if found else None


@pytest.mark.parametrize(
    "text,expected",
    [
        ("PASSWORD=hunter2 cmd", "hunter2"),
        ("PASSWORD='a b' cmd", "a b"),
        ('password: "a b"', "a b"),
        ("password: hunter2\nnext: 1", "hunter2"),
        ("--password hunter2 x", "hunter2"),
        ("password=hunter2&user=bob", "hunter2"),
    ],
)
def test_a_value_is_found_as_it_is_written(text, expected):
    assert value(text) == expected


@pytest.mark.parametrize("text", ["token = get_token()", "password == other", "password=", "token is None"])
def test_code_types_and_comparisons_are_no_values(text):
    head = HEAD.search(text)
    assert head is None or value(text) in (None, "")
