"""YAML is text in and JSON out; nothing in it grows, runs or surprises."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkrein.execute.yaml_text import YamlError, parse, stringify

WORDS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=20)
DATA = st.recursive(
    WORDS, lambda each: st.lists(each, max_size=3) | st.dictionaries(st.text(max_size=8), each, max_size=3)
)


def test_plain_words_are_read_as_in_yaml_1_2():
    text = (
        "a: no\nb: 2020-01-01\nc: 1:30\n"
        "d: 0o17\ne: 0x1F\nf: ~\ng: true\nh: 1e3\ni: on\nj: 012\n<<: {k: 1}\n1: x"
    )
    expected = {
        "a": "no",
        "b": "2020-01-01",
        "c": "1:30",
        "d": 15,
        "e": 31,
        "f": None,
        "g": True,
        "h": 1000.0,
    }
    assert parse(text) == expected | {"i": "on", "j": 12, "<<": {"k": 1}, "1": "x"}
    assert parse("") is None


LAUGHS = "a: &a [x,x,x,x]\n" + "".join(
    f"{b}: &{b} [*{a},*{a},*{a}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.invariant(
    "aliases, tags and depth are refused from the token stream, before anything is composed"
)
@pytest.mark.parametrize(
    "text",
    [
        LAUGHS,
        "a: &a [*a]",
        "!!python/object/apply:os.system ['true']",
        "!!python/name:os.system",
        "!!binary aGk=",
        "a: 1\na: 2",
        "a: 1\n---\nb: 2",
        "[" * 100_000,
        "".join(" " * level + "a:\n" for level in range(300)),
        "9" * 5000,
        "? [a]\n: 1",
        "- a: 1\n" * 37_000,
        "x" * 300_000,
        "a: [1",
        "\x00",
    ],
    ids=range(15),
)
def test_what_is_not_read_is_refused_quickly(text):
    with pytest.raises(YamlError):
        parse(text)


@pytest.mark.parametrize(
    "word", ["1e3", "0o17", "no", "2020-01-01", "~", "", "1:30", "null", ".inf", "<<", "- a", "a: b", "'"]
)
def test_text_stays_text(word):
    assert parse(stringify({"a": word, word: 1})) == {"a": word, word: 1}


@given(DATA)
def test_what_is_written_reads_back(value):
    try:
        written = stringify(value)
    except UnicodeEncodeError:
        return
    assert parse(written) == value


def test_it_is_written_in_blocks_without_aliases():
    twice = [1]
    assert stringify({"b": twice, "a": twice}) == "b:\n- 1\na:\n- 1\n"
    assert stringify("x") == "x\n"
