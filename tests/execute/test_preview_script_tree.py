import pytest

from checkrein.execute.preview_scopes import Overrun, Unreadable, Work
from checkrein.execute.preview_script_tree import around, decoded, nodes_of, unwrapped


def nodes(text):
    return nodes_of(text.encode(), Work(100_000, 10.0))


def test_comments_and_types_are_left_out():
    kinds = [node.type for node in nodes("/* a */ let x: typeof y = z as any; // b\ninterface I { a: 1 }")]
    assert kinds == [
        "program",
        "lexical_declaration",
        "let",
        "variable_declarator",
        "identifier",
        "as_expression",
        "identifier",
    ]


def test_nodes_come_before_what_is_in_them_and_know_what_they_are_in():
    seen = set()
    for node in nodes("f(a, [b, , c], `d${e}`)"):
        assert node.up is None or (id(node.up) in seen and node in node.up.children)
        seen.add(id(node))


def test_wrappers_are_taken_off_and_put_on():
    work = Work(1000, 10.0)
    every = nodes("((0, (a as any)!))")
    name = every[-1]
    assert unwrapped(every[1].children[0], work) is name
    assert [node.type for node in around(name, work)] == [
        "identifier", "as_expression", "parenthesized_expression", "non_null_expression",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("a", "a"),
        (r"\x61\u0062\u{63}", "abc"),
        (r"\n\q\\", "\nq\\"),
        (r"\141", "a"),
        ("a\\\nb", "ab"),
        (r"\u{110000}", "\ufffd"),
    ],
)
def test_escapes(text, plain):
    assert decoded(text) == plain


def test_what_is_no_script_is_refused():
    with pytest.raises(Unreadable):
        nodes("const = 1")


@pytest.mark.invariant("parsing is bounded")
def test_parsing_is_bounded():
    with pytest.raises(Overrun):
        nodes('"' * 65_000)


def test_characters_of_several_bytes_survive_being_read_in_pieces():
    text = "x = '" + "é🙂" * 300 + "'; y"
    assert nodes(text)[-1].end == len(text.encode())
