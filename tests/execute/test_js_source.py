"""Where in a script something happened."""

import pytest

from checkrein.execute.js_source import Script, shim_prefix, wrapped

ALIAS = "const f = codemode.a;\nf(1)"


def frame(line, column, name="<eval>"):
    return f"    at {name} (eval_script:{line}:{column})\n"


@pytest.mark.parametrize(
    ("source", "stack", "tool", "place"),
    [
        ("await codemode.a({})", frame(1, 17), "a", (1, 6)),
        ("await codemode.abc({})", frame(1, 16), "abc", (1, 6)),
        ("x\ncodemode.a({\n  b: y })", frame(3, 6), "a", (2, 0)),
        ("codemode.b(); codemode.a()", frame(1, 24), "a", (1, 14)),
        ("codemode.b({}); f()", frame(1, 17), "a", (1, 16)),
        (ALIAS, frame(2, 2), "a", (2, 1)),
        ("a\n  b.c", frame(2, 4), "", (2, 3)),
        ("a", frame(999999, 4) + frame(1, 1), "", (1, 0)),
        ("a", "    at x (native)\n    at <eval> (<input>:7:7)\n", "", (0, 0)),
        ("a", "", "a", (0, 0)),
        ("a", frame(50, 50), "", (1, 1)),
    ],
)
def test_places(source, stack, tool, place):
    assert Script(source, source).place(stack, tool) == place


def test_what_we_put_around_a_body_does_not_count():
    script = Script("codemode.a()\ncodemode.b()", wrapped("codemode.a()\ncodemode.b()"), "body")
    assert script.place(frame(1, 14 + 11), "a") == (1, 0)
    assert script.place(frame(2, 11), "b") == (2, 0)


def test_types_that_are_gone_move_nothing():
    script = Script("type A = 1\n\nf( codemode.a() )", "f(codemode.a());\n")
    assert script.place(frame(1, 13), "a") == (3, 3)
    assert script.place(frame(1, 1)) == (0, 0)
    unsure = Script("// codemode\nf( codemode.a() )", "f(codemode.a());\n")
    assert unsure.place(frame(1, 13), "a") == (0, 0)


def test_a_script_survives_as_json():
    script = Script("a", wrapped("a"), "body")
    assert Script.of_json(script.as_json()) == script


def test_no_script_is_as_long_as_what_comes_before_the_shim():
    assert len(shim_prefix()) > 64 << 10
