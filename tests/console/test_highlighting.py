"""Colours for code: they say the kind of a thing and change nothing of what is read."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkrein.console.highlighting import _LANGUAGES, SECONDS, _lexer, code_spans
from checkrein.console.spans import LONGEST


def text(spans):
    return "".join(piece for _, piece in spans)


def test_words_strings_and_comments_are_told_apart():
    found = code_spans('def f(x):  # why\n    return "a" + 1\n', "python")
    assert {("keyword", "def"), ("key", "f"), ("string", '"a"'), ("number", "1")} <= set(found)
    assert any(kind == "comment" and "why" in piece for kind, piece in found)


@pytest.mark.parametrize("language", ["", "klingon", "text", "../../etc", "Python "])
def test_an_unknown_language_is_plain(language):
    assert code_spans("def f(): pass", language) == (("", "def f(): pass"),)


@pytest.mark.parametrize("language", sorted(_LANGUAGES))
def test_every_language_we_name_is_there(language):
    assert _lexer(language) is not None


def test_what_is_too_long_is_plain():
    long = "x = 1\n" * LONGEST
    assert code_spans(long, "python") == (("", long),)


@given(st.text(), st.sampled_from(sorted(_LANGUAGES)))
def test_nothing_is_added_or_lost(code, language):
    assert text(code_spans(code, language)) == code


@pytest.mark.parametrize(
    ("code", "language"), [("\n" * LONGEST, "c++"), ("/" * LONGEST, "cpp"), ("a" * LONGEST, "terraform")]
)
def test_code_made_to_take_long_comes_to_an_end(code, language):
    assert text(code_spans(code, language)) == code


def test_code_that_takes_too_long_stays_plain():
    code, looks = "int a;\n" * 100, itertools.count()
    assert len(code_spans(code, "c")) > 100
    assert code_spans(code, "c", clock=lambda: next(looks) * SECONDS) == (("", code),)
    assert next(looks) == 3, "it was given up at the second word"
    assert code_spans(code, "c", 0.0) == (("", code),)
