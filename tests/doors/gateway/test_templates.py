"""Resource templates: the standard's own examples, what is missing, and values that stay in their place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkrein.doors.gateway.templates import LONGEST, MOST_PARAMETERS, Parameter, filled, parameters
from checkrein.errors import InputError

# From RFC 6570, levels 1 to 3 and the prefixes of level 4.
VALUES = {
    "var": "value",
    "hello": "Hello World!",
    "path": "/foo/bar",
    "x": "1024",
    "y": "768",
    "half": "50%",
    "who": "fred",
    "base": "http://example.com/home/",
    "v": "6",
}


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("{var}", "value"),
        ("{hello}", "Hello%20World%21"),
        ("{half}", "50%25"),
        ("{+var}", "value"),
        ("{+hello}", "Hello%20World!"),
        ("{+half}", "50%25"),
        ("{+path}/here", "/foo/bar/here"),
        ("here?ref={+path}", "here?ref=/foo/bar"),
        ("{base}index", "http%3A%2F%2Fexample.com%2Fhome%2Findex"),
        ("{+base}index", "http://example.com/home/index"),
        ("X{#var}", "X#value"),
        ("X{#hello}", "X#Hello%20World!"),
        ("map?{x,y}", "map?1024,768"),
        ("{x,hello,y}", "1024,Hello%20World%21,768"),
        ("{+path,x}/here", "/foo/bar,1024/here"),
        ("{#path,x}/here", "#/foo/bar,1024/here"),
        ("X{.var}", "X.value"),
        ("X{.x,y}", "X.1024.768"),
        ("{/var}", "/value"),
        ("{/var,x}/here", "/value/1024/here"),
        ("{;x,y}", ";x=1024;y=768"),
        ("{?x,y}", "?x=1024&y=768"),
        ("?fixed=yes{&x}", "?fixed=yes&x=1024"),
        ("{var:3}", "val"),
        ("{var:30}", "value"),
        ("{+path:6}/here", "/foo/b/here"),
        ("{/var:1,var}", "/v/value"),
        ("{?var:3}", "?var=val"),
        ("{who*}", "fred"),
        ("note://{who}/{v}", "note://fred/6"),
        ("note://plain", "note://plain"),
    ],
)
def test_what_the_standard_says(template, uri):
    asked = {each.name: VALUES[each.name] for each in parameters(template)}
    assert filled(template, asked) == uri


def test_what_may_be_left_out():
    template = "log://{day}{/part}{?level,since}{;mark}"
    assert parameters(template) == [
        Parameter("day", True),
        Parameter("part", False),
        Parameter("level", False),
        Parameter("since", False),
        Parameter("mark", False),
    ]
    assert filled(template, {"day": "monday"}) == "log://monday"
    assert filled(template, {"day": "monday", "since": "9", "part": ""}) == "log://monday?since=9"
    assert parameters("{?a}{a}") == [Parameter("a", True)]


@pytest.mark.parametrize(
    ("template", "values", "words"),
    [
        ("note://{who}", {}, "needs a value for who"),
        ("note://{who}", {"who": ""}, "needs a value for who"),
        ("note://{who}", {"who": "a", "whom": "b"}, "no parameter 'whom'"),
        ("note://{who}", {"who": 5}, "is a text"),
        ("note://{who", {"who": "a"}, "no template we can read"),
        ("note://}", {}, "no template we can read"),
        ("{{a}}", {"a": "x"}, "no template we can read"),
        ("note://{}", {}, "no template we can read"),
        ("note://{!who}", {"who": "a"}, "no template we can read"),
        ("note://{who:0}", {"who": "a"}, "no template we can read"),
        ("x" * (LONGEST + 1), {}, "at most"),
        ("{a}", {"a": "x" * (LONGEST + 1)}, "longer than"),
        ("".join(f"{{a{n}}}" for n in range(MOST_PARAMETERS + 1)), {}, "at most"),
    ],
)
def test_what_cannot_be_filled_in_says_why(template, values, words):
    with pytest.raises(InputError) as caught:
        filled(template, values)
    assert words in str(caught.value)


@given(st.text(min_size=1, max_size=50))
def test_a_value_stays_in_its_place(value):
    uri = filled("note://{who}/end", {"who": value})
    middle = uri.removeprefix("note://").removesuffix("/end")
    assert uri.isascii() and not set(middle) & set("/?#[]@:&=+{} ")


@given(st.text(max_size=60))
def test_whatever_a_server_offers_is_a_template_or_is_none(template):
    try:
        asked = parameters(template)
    except InputError:
        return
    assert isinstance(filled(template, {each.name: "v" for each in asked}), str)
