"""Values are found as they are written, and their names by reading only where one may stand."""

import pytest
from ground import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from checkrein.ledger.assignments import HEAD, last_gap, rest_of_word, value_span
from checkrein.ledger.redact import MASK, Masking, Redactor
from checkrein.ledger.secrets import LOOK, NOUN, PERHAPS, words_of

redactor = Redactor()


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


@pytest.mark.invariant(
    "what is read and then left alone is bounded, or repeated names would cost quadratic time"
)
def test_whether_a_word_is_a_value_is_told_by_its_beginning():
    near, far = ("a" * (LOOK + more) + "9b" for more in (-2, 2))
    assert redactor.text(f"token == {near}") == f"token == {MASK}"
    assert redactor.text(f"token == {far}") == f"token == {far}"


@pytest.mark.parametrize(
    "text,named",
    [
        ("my_key = 1", True),
        ('"key": 1', True),
        ("key[0]: 1", True),
        ("key thing: 1", True),
        ("--my-key x", True),
        ("my-key x", False),
        ("key, then", False),
        ("key", False),
        ("key://", False),
    ],
)
def test_a_word_may_be_a_name_only_if_its_value_can_follow(text, named):
    place = text.index("key")
    assert rest_of_word(text, 0, place) == (place + 3, named)


def test_a_flag_that_began_before_is_none():
    assert rest_of_word("--my-key x", 1, 5) == (8, False)


@pytest.mark.parametrize(
    "text,rest",
    [
        ("a = b; the key", " the key"),
        ('{"a": 1, "key', "key"),
        ("a\n  an api key", "  an api key"),
        ("x=y&key", "y&key"),
        ("a: list[b, key", "a: list[b, key"),
        ("a: &key", "a: &key"),
        ("é key", " key"),
    ],
)
def test_reading_begins_where_no_name_reaches_over(text, rest):
    assert text[last_gap(text, 0, text.index("key")) :] == rest
    assert last_gap(text, len(text) - 3, len(text) - 3) == len(text) - 3


# --- names, read only where one may stand ---------------------------------------------------------------

OWN = Redactor(Masking(keys=("badgeNumber", "is", "42", "ключ", "masked")))
WORDS = """token Token key apiKey password --secret -t --token auth api secret value data str is session 42
    a.b x-key pass1 bearer code pw x 0 - badge_number ключ İ""".split()
TYPES = """Token str &Token list[Token] Dict[str,_Token] Map<str,token> a.Token Key_|_None str_|_Token
    O<token] M<a>_|_Token O[[a]_token] O<a|token] [0]""".split()
some = st.sampled_from
name = some(WORDS) | st.builds("{} {}".format, some(["access", "api", "Secret", "AUTH", "x"]), some(WORDS))
head = st.tuples(
    name,
    some(["", "", "", '"', "'", '\\"', "]", "[0]", '"]']),
    some(["", "", " ", "\t", " is", " is "]),
    some(["", ""]) | st.builds(": {} ".format, some([each.replace("_", " ") for each in TYPES])),
    some(["= ", "= ", "=", ":", "=>", "==", ":=", ",", ">", "::", " ", "\\\n", '", "']),
    some(["", "", " ", " |\n  ", " >-\n  ", "|-\n\t", "|-"]),
    some(['"abc123x"', "'s3cr3t9'", "hunter2x", "key=abc123", "$(key=abc12 x)", "[masked]", "a</b>", "\n"]),
    some(
        ["", " ", "\n", "\n  ", ", ", "&", "|", "<", ">", "[", "]", "(", ";", "\t", '"', "-", "é", "\ud800"]
    ),
).map("".join)


def read_from_every_place(made, text):
    pieces, kept, at = [], 0, 0
    while found := HEAD.search(text, at):
        at = found.end()
        if after := made._masked_after(found):
            pieces += [text[kept : after[0]], after[2]]
            kept = at = after[1]
    return "".join([*pieces, text[kept:]])


@settings(max_examples=examples(1500))
@given(st.lists(head | st.text(max_size=6), min_size=1, max_size=5).map("".join))
def test_no_name_is_missed_or_made_up_by_reading_only_where_one_may_stand(text):
    for made in (redactor, OWN):
        assert made._assignments(made._words.look(text)) == read_from_every_place(made, text)


@pytest.mark.parametrize(
    "text",
    [
        *(f'x: {each.replace("_", " ")} = "abc123x"' for each in TYPES),
        'x: str = "a"; y: list[a, token] = "abc123x"',
        "secret value: abc123x",
        "api key = 'abc123x'",
        "an auth is: abc123x",
        "run --token \\\n  abc123x",
        "key: |-\n  token=abc123x",
    ],
)
@pytest.mark.parametrize("before", ["", "say ", "(", "a=", "key ", '"', "\n  "])
def test_what_one_name_takes_up_hides_the_names_in_it(before, text):
    text = before + text
    assert redactor._assignments(redactor._words.look(text)) == read_from_every_place(redactor, text)


def test_a_type_is_not_the_name_of_what_follows_it():
    for kind in ("Token", "&Token", "list[a, Token]", "str | Token"):
        assert redactor.text(f'page: {kind} = "abc123x"') == f'page: {kind} = "abc123x"'
    assert redactor.text('Token = "abc123x"') == f'Token = "{MASK}"'


@settings(max_examples=examples(500))
@given(st.from_regex(NOUN) | st.from_regex(PERHAPS) | st.lists(some([*WORDS, "_", "-", "."])).map("".join))
def test_the_name_of_a_secret_holds_a_hint(words):
    for made in (redactor, OWN):
        if made._weighed(words)[1]:
            assert any(hint in words.lower() for hint in made._hints)
