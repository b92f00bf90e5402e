"""The spelling of words: the same for the index and the query, and safe to ask with."""

import re
import sqlite3

import pytest
from ground import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from checkrein.doors.chat import Part
from checkrein.doors.chat.words import LONGEST, MOST_TEXT, asked, fold, snippet, spelled, text_of


def finds(text, query):
    """Whether a real index of the text answers the query."""
    database = sqlite3.connect(":memory:")
    database.execute("CREATE VIRTUAL TABLE w USING fts5 (words, tokenize = 'ascii', prefix = '1 2 3')")
    database.execute("INSERT INTO w VALUES (?)", (spelled(text),))
    wanted = asked(query)
    try:
        return bool(wanted and database.execute("SELECT 1 FROM w WHERE w MATCH ?", (wanted,)).fetchall())
    finally:
        database.close()


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("Café", "cafe"),
        ("CAFE\u0301", "cafe"),
        ("Straße", "strasse"),
        ("Łódź Øre", "lodz ore"),
        ("ＡＢＣ１", "abc1"),
        ("ﾃｽﾄ", "テスト"),
        ("がぎ", "がぎ"),
        ("한국", "한국"),
        ("İstanbul", "istanbul"),
        ("Ёлка", "елка"),
    ],
)
def test_case_accents_and_widths_do_not_count(text, folded):
    assert fold(text) == folded


def test_scripts_without_spaces_are_spelled_in_pairs():
    assert spelled("東京都 abc") == "東京 京都 都 abc"
    assert spelled("v2を使う") == "v2 を使 使う う"
    assert spelled("files__read-x") == "files read x"


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("東京都", "都"),
        ("東京都", "東京都"),
        ("東京2020大会", "京2020"),
        ("東京2020大会", "東京2020大"),
        ("データベース", "ベース"),
        ("パイソン3.11", "パイ 3.11"),
        ("학교에서", "학교"),
        ("สวัสดีครับ", "สวัส"),
        ("नमस्ते दुनिया", "नमस्ते"),
        ("Привет, мир", "мир прив"),
        ("/home/ada/x.py", "ada/x.py"),
        ("don't", "don't"),
        ("naïve", "NAIV"),
        ("全角　空白", "空白 全角"),
    ],
)
def test_what_is_there_is_found(text, query):
    assert finds(text, query)
    assert any(match for match, _ in snippet(text, query))


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("東京と京都", "東京都"),
        ("かき", "がき"),
        ("category", "at"),
        ("cat dog", "category"),
        ("one two", "two-one"),
        ("catalogue x", "cat x y"),
        ("cats x", "cat x"),
    ],
)
def test_what_is_not_there_is_not(text, query):
    assert not finds(text, query)


@settings(max_examples=examples(300), deadline=None)
@given(st.text(max_size=60))
def test_any_text_finds_itself_or_has_no_words(text):
    assert finds(text, text) or not asked(text)


@settings(max_examples=examples(300), deadline=None)
@given(st.text(max_size=60), st.text(max_size=20))
def test_a_snippet_is_a_piece_of_the_text(text, query):
    pieces = snippet(text, query)
    assert "".join(piece for _, piece in pieces).strip("…") in re.sub(r"\s+", " ", text)
    assert all(piece for _, piece in pieces)


@settings(max_examples=examples(200), deadline=None)
@given(st.text(alphabet='ab"*-:^(){}+ANDORNOTEﾊﾞ東京', max_size=30))
def test_a_query_is_words_in_quotes_and_nothing_else(text):
    assert re.fullmatch(r'("[\w ]+"( \*)?( AND "[\w ]+"( \*)?)*)?', asked(text))


def test_a_snippet_is_around_the_match_and_short():
    text = f"{'before ' * 100}needle{' after' * 100}"
    pieces = snippet(text, "needle")
    assert (True, "needle") in pieces and pieces[0] == (False, "…") and pieces[-1] == (False, "…")
    assert sum(len(piece) for _, piece in pieces) < 250


def test_only_whole_words_are_marked_but_the_last():
    assert snippet("cat category dogs", "cat dog") == (
        (True, "cat"),
        (False, " category "),
        (True, "dog"),
        (False, "s"),
    )


def test_long_words_and_long_texts_are_cut_alike():
    word = "x" * 5000
    assert len(spelled(word)) == LONGEST and finds(word, word)
    assert not finds(f"{'y ' * MOST_TEXT}needle", "needle")


def test_long_queries_are_cut():
    assert asked("word " * 10_000).count("AND") < 20


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("plain", "plain"),
        (
            {"content": [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]},
            "text\none\ntext\ntwo",
        ),
        ({"blob": "AAAA", "x": [1, None, "y"]}, "1\ny"),
        (None, ""),
    ],
)
def test_the_text_of_a_result(data, text):
    assert text_of([Part(kind="tool_result", data=data)]) == text


def test_the_text_of_a_message():
    parts = [
        Part(text="said"),
        Part(kind="reasoning", text="thought"),
        Part(kind="attachment", data={"name": "plan.pdf", "bytes": "AAAA"}),
        Part(kind="tool_result", tool_name="s__t", text="gave", data={"text": "twice"}, error="but"),
    ]
    assert text_of(parts) == "said\nplan.pdf\ns__t\ngave\nbut"


def test_a_result_that_is_deep_is_no_trouble():
    deep = "bottom"
    for _ in range(100_000):
        deep = [deep]
    assert text_of([Part(kind="tool_result", data=deep)]) == "bottom"
