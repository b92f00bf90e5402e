"""Markdown of a model: made of our own tags alone, and the same whether it came at once or bit by bit."""

import html.parser
import itertools
import sys

import pytest
from ground import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from markupsafe import Markup

from checkrein.console.markdown import LONGEST, Growing, blocks, is_harmless, readable, rendered

OURS = {
    "p strong em del s code pre span figure figcaption button a ul ol li blockquote hr br div table thead"
    " tbody tr th td h2"
}
TAGS = set(" ".join(OURS).split())
ATTRIBUTES = {
    "a": {"href", "title", "target", "rel"},
    "span": {"class"},
    "figure": {"class"},
    "button": {"type", "class", "data-copy-code"},
    "pre": {"tabindex", "role", "aria-label", "class"},
    "div": {"class"},
    "ol": {"start"},
    "h2": {"class"},
    "th": {"class"},
    "td": {"class"},
}


class Strict(html.parser.HTMLParser):
    """Refuses any tag or attribute that is not ours."""

    def handle_starttag(self, tag, attributes):
        assert tag in TAGS, tag
        for name, value in attributes:
            assert name in ATTRIBUTES.get(tag, ()), (tag, name)
            if name == "href":
                assert is_harmless(value), value

    def handle_comment(self, data):
        raise AssertionError(data)

    handle_decl = handle_pi = unknown_decl = handle_comment


def checked(text):
    found = rendered(text)
    reader = Strict(convert_charrefs=True)
    reader.feed(str(found))
    reader.close()
    return str(found)


HOSTILE = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "[a](javascript:alert(1))",
    "[a](JaVaScRiPt:alert(1))",
    "[a](&#106;avascript:alert(1))",
    "[a](java\tscript:alert(1))",
    "[a](vbscript:x) [b](data:text/html,<script>1</script>) [c](file:///etc/passwd)",
    "[a](/sign-out) [b](//evil.example/x) [c](../policy)",
    "![a](javascript:alert(1)) ![b](data:image/svg+xml;base64,AAAA)",
    '[a](https://x.example/"onmouseover="alert(1))',
    "[a](https://x.example 'title\" onclick=\"alert(1)')",
    '```"><script>alert(1)</script>\nx\n```',
    "```html\n<script>alert(1)</script>\n```",
    '<https://x.example/"onclick=alert(1)>',
    "https://x.example/<script>alert(1)</script>",
    "<!-- a --> <?php ?> <![CDATA[ x ]]>",
    "<a href='javascript:1'>x</a>\n\n<div onclick=alert(1)>\n",
    "| <b>a</b> |\n|---|\n| [x](javascript:1) |",
    "[a]: javascript:alert(1)\n\n[a]",
    "\x1b[31mred\x1b[0m \u202egnp.exe \u2066x\u2069 \x00",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_hostile_becomes_a_tag_of_its_own(text):
    found = checked(text)
    assert "javascript:" not in found.lower() or 'href="javascript' not in found.lower()
    assert not {"\x1b", "\u202e", "\x00", "\u2066"} & set(found)


PIECES = st.lists(
    st.one_of(
        st.sampled_from([*HOSTILE, "\n", "\n\n", "- ", "> ", "# ", "```", "`", "*", "|", "  "]),
        st.text(max_size=12),
    ),
    max_size=12,
).map("".join)


@given(PIECES)
def test_whatever_is_written_only_our_tags_come_of_it(text):
    checked(text)


@settings(max_examples=examples(150))
@given(PIECES, st.integers(1, 9))
def test_bit_by_bit_or_at_once_is_the_same(text, size):
    text = text.replace("\r", "")
    growing, shown = Growing(), []
    for at in range(0, len(text), size):
        growing.add(text[at : at + size])
        first, made = growing.step()
        assert first <= len(shown)
        shown[first:] = made
    assert Markup("").join(shown) == rendered(text)


def test_what_people_expect_of_markdown():
    found = checked("# Title\n\nSome *words* and `code`.\n\n1. one\n2. two\n\n> said\n\n~~gone~~")
    for piece in (
        '<h2 class="h1">Title</h2>',
        "<em>words</em>",
        "<code>code</code>",
        "<ol>",
        "<blockquote>",
        "<s>gone</s>",
    ):
        assert piece in found
    assert '<td class="to-right">2</td>' in checked("| a | b |\n|---|--:|\n| 1 | 2 |")


def test_code_is_coloured_and_can_be_copied():
    found = checked("```python\ndef f(): pass\n```")
    assert '<span class="t-keyword">def</span>' in found
    assert "data-copy-code" in found


def test_links_lead_outside_and_say_where():
    found = checked("[here](https://x.example/a) and https://y.example/b_c_d. Mail <mailto:a@b.example>")
    assert 'href="https://x.example/a" title="https://x.example/a" target="_blank"' in found
    assert found.count('rel="noopener noreferrer nofollow"') == 3
    assert ">https://y.example/b_c_d</a>." in found


def test_a_picture_is_a_link_and_loads_nothing():
    found = checked("![a cat](https://x.example/cat.png)")
    assert ">picture: a cat</a>" in found
    assert "<img" not in found


def test_signs_of_several_characters_stay_one():
    family = "⚠️ 👨\u200d💻 می\u200cخواهم"
    assert readable(family) == family
    assert "U+200D" in readable("pay\u200dpal")
    assert "U+FE0F" in readable("pay\ufe0fpal")


def test_lines_end_the_same_whoever_wrote_them():
    assert rendered("a\r\n\r\nb\rc") == rendered("a\n\nb\nc")


def counted(work):
    """What comes of it, and in how many steps of the interpreter."""
    steps = itertools.count()
    sys.setprofile(lambda *_event: next(steps))
    try:
        return work(), next(steps)
    finally:
        sys.setprofile(None)


def test_a_long_answer_takes_no_longer_bit_by_bit():
    text = (
        "Words with *emphasis*, `code` and https://x.example.\n\n- one\n- two\n\n```python\nprint(1)\n```\n\n"
        * 300
    )
    growing, shown = Growing(), []

    def bit_by_bit():
        for at in range(0, len(text), 200):
            growing.add(text[at : at + 200])
            first, made = growing.step()
            shown[first:] = made

    whole, at_once = counted(lambda: rendered(text))
    _, steps = counted(bit_by_bit)
    assert Markup("").join(shown) == whole
    # Whoever made all of it anew with every piece would need more than fifty times as many.
    assert steps < 10 * at_once


@pytest.mark.parametrize("text", ["[", "*a ", "> ", "- ", "![[", "<", "[a](", "`a``"])
def test_the_work_grows_with_the_length_only(text):
    checked(text)
    _, half = counted(lambda: rendered(text * 1_000))
    _, whole = counted(lambda: rendered(text * 2_000))
    assert whole < 2.1 * half
    checked(text * 5_000)


def test_all_the_code_of_a_text_is_coloured_only_for_a_while():
    # A lexer is busy with this for longer than one piece of code may take.
    hard = "```c++\nx" + "\n" * 2_000 + "y\n```\n"
    easy = "```python\ndef f(): pass\n```\n"
    html = rendered(easy + hard * 100 + easy)
    assert html.count("<figure") == 102
    # By the last one the time for the whole text is over.
    keyword = '<span class="t-keyword">'
    assert 0 < html.count(keyword) == rendered(easy).count(keyword)


def test_what_is_too_long_is_shown_plain():
    found = blocks("<b>*a*\n" * LONGEST)
    assert len(found) == 1
    assert found[0].startswith('<pre class="plain">&lt;b&gt;*a*')


def test_nothing_gives_nothing():
    assert rendered("") == ""
    assert Growing().step() == (0, [])
