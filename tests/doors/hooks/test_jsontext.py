"""Edits of other programs' settings: every byte a person wrote survives; what cannot be read is refused."""

import json
import re

import pytest
from ground import examples
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from checkrein.doors.hooks import jsontext
from checkrein.errors import ConfigError

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | words
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=8,
)
comments = st.sampled_from(["/* a */", "// b\n", "/* , ] } \n */", '// "x": [\n'])


class Writer:
    """Writes a value as a person might: any spacing, comments, trailing commas, duplicate keys."""

    def __init__(self, draw, newline, step, loose):
        self.draw, self.newline, self.step, self.loose = draw, newline, step, loose

    def gap(self):
        if not self.loose or self.draw(st.integers(0, 5)):
            return ""
        return self.draw(comments).replace("\n", self.newline)

    def write(self, value, indent=""):
        if not isinstance(value, list | dict):
            return json.dumps(value, ensure_ascii=self.draw(st.booleans()))
        return self.container(value, indent)

    def container(self, value, indent):
        opening, closing = ("{", "}") if isinstance(value, dict) else ("[", "]")
        inner, sep, end = self.spacing(indent)
        if not value:
            empty = (
                self.draw(st.sampled_from(["", " ", self.newline + indent])) if self.step is not None else ""
            )
            return opening + empty + self.gap() + closing
        pairs = list(value.items()) if isinstance(value, dict) else [(None, item) for item in value]
        if isinstance(value, dict) and self.loose and self.draw(st.booleans()):
            pairs = [(pairs[-1][0], 0), *pairs]
        colon = ":" if self.step is None else ": "
        texts = [
            self.gap()
            + ("" if key is None else json.dumps(key) + colon)
            + self.write(item, inner)
            + self.gap()
            for key, item in pairs
        ]
        trailing = "," + self.gap() if self.loose and self.draw(st.booleans()) else ""
        return opening + end[0] + sep.join(texts) + trailing + end[1] + closing

    def spacing(self, indent):
        if self.step is None:
            return indent, ",", ("", "")
        if self.loose and not self.draw(st.integers(0, 2)):
            return indent, ", ", ("", "")
        inner = indent + self.step
        return inner, "," + self.newline + inner, (self.newline + inner, self.newline + indent)


@st.composite
def documents(draw, loose=True, contents=st.dictionaries(words, values, max_size=4)):  # noqa: B008
    """A text and what it means."""
    value = draw(contents)
    newline = draw(st.sampled_from(["\n", "\r\n"]))
    step = draw(st.sampled_from([None, "", "  ", "    ", "\t"]))
    writer = Writer(draw, newline, step, loose)
    before, after = (
        draw(st.sampled_from(["", "\ufeff", "\n", "\ufeff\n"])),
        draw(st.sampled_from(["", newline])),
    )
    return before + writer.write(value) + after, value


def lists_in(value, path=()):
    if isinstance(value, list):
        yield path
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in pairs:
        yield from lists_in(inner, (*path, key))


def same(left, right):
    """Equal, and true is not one."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


def is_subsequence(part, whole):
    rest = iter(whole)
    return all(letter in rest for letter in part)


@given(documents())
@settings(max_examples=examples(100))
def test_a_document_means_what_was_written(document):
    text, value = document
    assert jsontext.parse(text) == value


@given(
    st.text('[]{}",:/*\\ \n01e.-+truefalsn\u00e9', max_size=40) | documents(loose=False).map(lambda d: d[0])
)
def test_strict_reading_agrees_with_the_standard_parser(text):
    assume(not text.startswith("\ufeff"))
    try:
        expected = json.loads(text)
    except ValueError:
        with pytest.raises(ConfigError):
            jsontext.parse(text, comments=False, commas=False)
    else:
        assert same(jsontext.parse(text, comments=False, commas=False), expected)


@given(documents(contents=st.dictionaries(words, values | st.lists(values), max_size=4)), st.data(), values)
@settings(max_examples=examples(300))
def test_an_inserted_element_is_last_and_removing_it_gives_the_text_back(document, data, new):
    text, value = document
    paths = list(lists_in(value))
    assume(paths)
    path = data.draw(st.sampled_from(paths))
    container = value
    for step in path:
        container = container[step]
    container.append(new)
    after = jsontext.insert_item(text, path, new)
    assert same(jsontext.parse(after), value)
    assert is_subsequence(text, after)
    assert jsontext.remove_item(after, (*path, len(container) - 1)) == text


@given(documents(), words, values)
@settings(max_examples=examples(300))
def test_a_new_member_is_last_and_removing_it_gives_the_text_back(document, key, new):
    text, value = document
    assume(key not in value)
    after = jsontext.set_member(text, (key,), new)
    assert same(jsontext.parse(after), {**value, key: new})
    assert is_subsequence(text, after)
    assert jsontext.remove_item(after, (key,)) == text


@given(documents(), words, words, values)
@settings(max_examples=examples(100))
def test_what_is_missing_on_the_way_is_made(document, first, second, new):
    text, value = document
    assume(first not in value)
    after = jsontext.insert_item(text, (first, second), new)
    assert same(jsontext.parse(after), {**value, first: {second: [new]}})
    assert jsontext.remove_item(after, (first,)) == text


@given(documents(), st.data(), values)
@settings(max_examples=examples(100))
def test_a_replaced_value_leaves_the_rest_alone(document, data, new):
    text, value = document
    assume(value)
    key = data.draw(st.sampled_from(list(value)))
    after = jsontext.set_member(text, (key,), new)
    assert same(jsontext.parse(after), {**value, key: new})
    assert same(jsontext.parse(jsontext.set_member(after, (key,), value[key])), value)


@given(documents(), st.data())
@settings(max_examples=examples(100))
def test_removing_any_item_removes_only_that(document, data):
    text, value = document
    assume(value)
    key = data.draw(st.sampled_from(list(value)))
    after = jsontext.remove_item(text, (key,))
    left = jsontext.parse(after)
    assert {k: v for k, v in left.items() if k != key} == {k: v for k, v in value.items() if k != key}
    assert is_subsequence(after, text)


BEFORE = """\
{
    // mine
    "a": 1, /* kept */
    "hooks": {
        "Stop": [
            {"command": "x"} // last
        ]
    },
}
"""
AFTER = """\
{
    // mine
    "a": 1, /* kept */
    "hooks": {
        "Stop": [
            {"command": "x"}, // last
            {
                "b": []
            }
        ]
    },
}
"""


def test_an_insertion_looks_like_its_surroundings():
    assert jsontext.insert_item(BEFORE, ("hooks", "Stop"), {"b": []}) == AFTER


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("{}", '{\n  "k": [\n    1\n  ]\n}'),
        ('{"a":1}', '{"a":1,"k":[1]}'),
        ('{"a": 1}', '{"a": 1, "k": [1]}'),
        ('{\n\t"a": 1\n}', '{\n\t"a": 1,\n\t"k": [\n\t\t1\n\t]\n}'),
        ('{\r\n "a": {}\r\n}\r\n', '{\r\n "a": {},\r\n "k": [\r\n  1\r\n ]\r\n}\r\n'),
        ("", '{\n  "k": [\n    1\n  ]\n}\n'),
        ('\ufeff{"é": "ü"}', '\ufeff{"é": "ü", "k": [1]}'),
    ],
)
def test_the_style_of_the_file_is_kept(text, after):
    assert jsontext.insert_item(text, ("k",), 1) == after


def test_the_last_of_equal_keys_counts():
    text = '{"a": [1], "a": [2]}'
    assert jsontext.parse(text) == {"a": [2]}
    assert jsontext.insert_item(text, ("a",), 3) == '{"a": [1], "a": [2, 3]}'


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        ('{\n "a": }', 2, "value is expected"),
        ('{"a": 1', 1, "closing bracket"),
        ("[1 2]", 1, "closing bracket"),
        ('{"a" 1}', 1, '":"'),
        ("{a: 1}", 1, "double quotes"),
        ("{} {}", 1, "follows the end"),
        ("{ /* open", 1, "comment does not end"),
        ("{ // a\r}", 1, "comment does not end"),
        ('["\t"]', 1, "double quotes"),
        ("[NaN]", 1, "value is expected"),
        ("[" * 300 + "]" * 300, 1, "deeper than 200"),
        ("", 1, "value is expected"),
    ],
)
def test_what_cannot_be_read_is_named_with_file_and_line(text, line, what):
    with pytest.raises(ConfigError) as caught:
        jsontext.parse(text, source="settings.json")
    message = str(caught.value)
    assert message.startswith(f"settings.json: `line {line}, ")
    assert what in message
    assert "Nothing was changed" in message


@pytest.mark.parametrize("text", ["{ /* a */ }", "{} // a", '{"a": 1,}', "[1,]"])
def test_strict_readers_get_no_comments_or_trailing_commas(text):
    jsontext.parse(text, comments="/" in text, commas="," in text)
    with pytest.raises(ConfigError):
        jsontext.parse(text, comments=False, commas=False)


@pytest.mark.parametrize(
    ("text", "path"),
    [('{"a": {}}', ("a",)), ('{"a": 1}', ("a", "b")), ("[]", ("a",)), ('{"a": "x"}', ("a",)), ("1", ("a",))],
)
def test_an_element_goes_only_into_a_list(text, path):
    with pytest.raises(ConfigError, match="Nothing was changed"):
        jsontext.insert_item(text, path, 1)


@pytest.mark.parametrize("path", [("b",), ("a", 1), ("a", -1), ("a", "x"), ("b", "c")])
def test_only_what_is_there_is_removed(path):
    with pytest.raises(ConfigError, match="is not there"):
        jsontext.remove_item('{"a": [1]}', path)


@pytest.mark.parametrize(
    "text",
    [
        "[" + "1," * 200_000 + "1]",
        '["' + "\\n" * 400_000 + '"]',
        "[" + "/**/" * 200_000 + "]",
        "{" + ",".join(f'"{n}":{{"a":[]}}' for n in range(60_000)) + "}",
        "[" + " " * 800_000 + "]",
        "[" + "9" * 800_000 + "]",
        "/*" * 400_000,
    ],
    ids=["items", "escapes", "comments", "members", "space", "digits", "unclosed"],
)
def test_time_grows_with_the_length_only(text):
    """A reader that begins again at every character would not end within the limit of a test."""
    try:
        jsontext.parse(text)
    except ConfigError:
        assert text.startswith("/*")


def test_no_line_end_is_mixed_in():
    text = '{\r\n  "a": [\r\n    1\r\n  ]\r\n}\r\n'
    after = jsontext.insert_item(text, ("a",), {"b": {"c": 1}})
    assert not re.search(r"(?<!\r)\n", after)
