"""Servers' words, made harmless."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkrein.execute.stub_text import (
    LONGEST,
    LONGEST_SENTENCE,
    block_comment,
    first_sentence,
    line_comment,
    quoted,
    shortened,
    whole,
)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("Read a file. Then more.", "Read a file."),
        ("Manage a resource (e.g. a pod) now. More", "Manage a resource (e.g. a pod) now."),
        ("Version 1.5 is out", "Version 1.5 is out"),
        ("Wrapped at\nthe margin. More", "Wrapped at the margin."),
        ("Notion | Retrieve\nError Responses:\n400", "Notion | Retrieve"),
        ("One\n\ntwo", "One"),
        ("\n  Padded!  \n", "Padded!"),
        ("", ""),
        (None, ""),
        (7, ""),
    ],
)
def test_the_first_sentence(text, sentence):
    assert first_sentence(text) == sentence


def test_long_words_are_cut():
    assert len(first_sentence("word " * 1000)) <= LONGEST_SENTENCE
    assert len(whole("x" * 1_000_000)) == LONGEST
    assert shortened("one two three", 9) == "one two…"


@pytest.mark.invariant(
    "no line break, control, invisible or direction-changing character, nor half a character"
)
@given(st.text())
def test_a_description_is_one_printable_line(text):
    assert whole(text).isprintable()
    assert "```" not in whole(text)
    whole(text).encode()


@pytest.mark.invariant("a comment ends where we end it")
@given(st.text(st.sampled_from("*/ \\x\n\u2028`")))
def test_a_block_comment_ends_where_we_end_it(text):
    assert "*/" not in block_comment(whole(text))


@pytest.mark.parametrize(
    "order", ["type: ignore", "# Type : ignore", "-*- coding: utf-7 -*-", "noqa:E1", "coding=x"]
)
def test_no_comment_gives_orders_to_python_tools(order):
    said = line_comment(whole(order))
    assert ":" not in said
    assert "=" not in said


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_a_quoted_text_means_itself(text):
    literal = quoted(text, "\\U{:08x}")
    assert literal.isprintable()
    assert ast.literal_eval(literal) == text
