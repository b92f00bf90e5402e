"""What is looked at closely is enough: where words stand is known exactly, in every script."""

import re
import sys
import tomllib
from pathlib import Path

import pytest
from ground import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from checkrein.ledger import hints
from checkrein.ledger.hints import Hints, fold, folds_apart
from checkrein.ledger.redact import Redactor, _command, _place
from checkrein.ledger.secrets import COMMAND, PLACES, PROGRAMS

HERE = Path(__file__).parent
ROWS = tomllib.loads((HERE / "secrets.toml").read_text(encoding="utf-8"))["row"]
TEXTS = [row["text"].replace("@@", "".join(row["parts"])) for row in ROWS if "text" in row]
TEXTS += [
    *("jdbc:thin:scott/tiger1@db", "db:5432:app:me:tiger1", "ConvertTo-SecureString 'tiger1' -Force"),
    *(
        "printf tiger1 | sudo -S ls",
        "nmcli wifi connect home password tiger1",
        "default login me password tiger1",
    ),
    *(f"{words} password 'tiger1'" for words in ("with", "encrypted", "login", "root", "role me", "user me")),
    *("user me identified by 'tiger1'", "gres://a:b@c", "ongodb://a:b@c", "mqp://a:b@c", "?key=tiger123"),
    *(f"{reader} <<< tiger1" for reader in ("chpasswd", "--password-stdin", "--passphrase-fd 0")),
    ":pserver:me:tiger1@host",
    *("GRANT ALL IDENTIFIED BY 'tiger1'", "PASSWORD ('tiger1')", "setx my.token tiger1"),
    *(f"{name} -x tiger1" for name in PROGRAMS),
]
# Every place, with what its matches begin with and what becomes of them.
SEARCHES = [
    *((pattern, _place, starts) for _, starts, pattern in PLACES),
    (COMMAND, _command, tuple(PROGRAMS)),
]
everything = Hints([word for _, _, starts in SEARCHES for word in starts])
LONG = "é" * 600


def test_folding_keeps_every_letter_in_its_place():
    letters = "".join(map(chr, range(sys.maxunicode + 1)))
    assert len(fold(letters)) == len(letters)
    assert fold("PassWord İı ſ") == "password ii s"
    apart = {letter for letter in letters if fold(letter) != letter.lower()}
    assert apart == {letter for letter in letters if folds_apart(letter)} == {*"İıſ"}


def test_what_a_pattern_takes_for_a_letter_is_that_letter_once_folded():
    letters = "".join(map(chr, range(128, sys.maxunicode + 1)))
    taken = re.findall("(?i)[a-z]", letters)
    assert len(taken) >= 4
    for letter in taken:
        assert re.match(f"(?i){fold(letter)}", letter) and fold(letter).isascii()


@pytest.mark.parametrize("around", ["", LONG, "x" * 600], ids=["short", "long", "long ascii"])
def test_the_words_a_text_holds_are_found(around):
    made = Hints(["$1$", "a.b", "schlüssel", "ss", "", "ss", "nowhere"])
    assert sorted(made.held(f"{around} sss $1$ \ud800 schlüssel{around}")) == ["$1$", "schlüssel", "ss"]
    assert made.held(f"{around} axb \0{around}") == []


@given(st.text("abc\0é\ud800", max_size=8), st.booleans())
def test_long_texts_hold_what_short_ones_hold(text, long):
    made = Hints(["a", "ab", "bca", "éa", "cc"])
    expected = {word for word in made.words if word in text}
    for said in (text + "\n" * 600, text) if long else (text,):
        assert {*made.held(said)} == expected


class Exhausted:
    """RE2 without memory: it finds nothing in any text."""

    def Match(self, text):  # noqa: N802 - as RE2 names it
        return None


@pytest.mark.invariant("RE2 that ran out of memory finds nothing, not even the end")
def test_where_re2_has_no_memory_left_each_word_is_tried(monkeypatch):
    monkeypatch.setattr(hints, "_all_at_once", lambda words: Exhausted())
    assert Hints(["token", "key"]).held(f"{LONG} token") == ["token"]


def test_any_number_of_words_can_be_looked_for():
    many = [f"word-number-{number}." for number in range(20_000)]
    assert sorted(Hints(many).held(f"{LONG} {many[7]} {many[-1]}")) == sorted([many[7], many[-1]])


def test_words_that_overlap_are_found_at_every_place():
    seen = Hints(["aa", "ab"]).look("AAAB x aab")
    assert seen.places(["ab", "aa"]) == [0, 1, 2, 7, 8]
    assert seen.places(["x"]) == []


def replaced(text):
    seen = everything.look(text)
    return [seen.replaced(pattern, becomes, starts) for pattern, becomes, starts in SEARCHES]


def substituted(text):
    return [re.sub(pattern, becomes, text) for pattern, becomes, _ in SEARCHES]


def test_every_place_begins_with_one_of_its_words():
    """All rows, also in other cases and with letters that only look like others: as `re.sub` has it."""
    begun: set[tuple[int, str]] = set()
    for text in TEXTS:
        for said in (
            text,
            text.upper(),
            text.lower(),
            text.replace("s", "ſ"),
            text.replace("i", "İ"),
            text * 3,
        ):
            assert replaced(said) == substituted(said)
            begun |= {
                (number, word)
                for number, (pattern, _, starts) in enumerate(SEARCHES)
                for found in re.finditer(pattern, said)
                for word in starts
                if fold(found[0]).startswith(word)
            }
    missing = {(number, word) for number, (_, _, starts) in enumerate(SEARCHES) for word in starts} - begun
    assert not missing, "no text here begins so"


PIECES = """
    :// ://a:b1c@ postgres://u:p4@ ?sig=abcd12345 &key= thin:a/b1@ :5432:5432:a:b:c bearer a1b2c3d4e5f6g7h8
    user x identified by 'p4' IDENTIFIED uſer --from-literal=a=b1 password 'p4' with role login root machine
    default wifi connect ${token:-a1} auth=('a','b1') ConvertTo-SecureString chpasswd <<< echo p4 | sudo -S
    printf set setx ENV a.token config name: token value: mysql -pa1 curl -u a:b1 docker http oc \" ' ; $( )
""".split()


@settings(max_examples=examples(200))
@given(
    st.lists(st.sampled_from([*PIECES, " ", " ", " ", "\n"]) | st.text(max_size=3), max_size=20).map("".join)
)
def test_reading_at_the_words_alone_misses_nothing(text):
    assert replaced(text) == substituted(text)


def test_a_letter_that_lower_case_makes_longer_moves_nothing():
    secret = "hunter2x"
    for before in ("İ", "İ" * 40, "İ" * 700):
        assert Redactor().text(f"{before} password={secret} İ") == f"{before} password=[masked] İ"
