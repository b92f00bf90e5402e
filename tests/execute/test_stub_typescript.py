"""Tools as TypeScript."""

import pytest

from checkrein.execute.shapes import shape_of
from checkrein.execute.stub_text import LONGEST_SIGNATURE
from checkrein.execute.stub_typescript import document, signature, written


@pytest.mark.parametrize(
    ("schema", "text"),
    [
        ({"type": "integer"}, "number"),
        ({}, "unknown"),
        ({"enum": ["a", -1, True, None]}, '"a" | -1 | true | null'),
        ({"items": {"enum": ["a", "b"]}}, '("a" | "b")[]'),
        ({"items": {"type": ["string", "null"]}}, "(string | null)[]"),
        ({"items": {"items": {"type": "string"}}}, "string[][]"),
        ({"type": "object"}, "Record<string, unknown>"),
        ({"properties": {}}, "{}"),
        (
            {"properties": {"a-b": {"type": "string"}, "class": {}}, "required": ["class"]},
            '{ "a-b"?: string; class: unknown }',
        ),
        (
            {"properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "number"}},
            "{ a?: string; [key: string]: unknown }",
        ),
        ({"const": 'a"\\\n\u202e\U000e0041'}, '"a\\"\\\\\\x0a\\u202e\\u{e0041}"'),
    ],
)
def test_types(schema, text):
    assert written(shape_of(schema)) == text


def test_signatures():
    one = {"properties": {"path": {"type": "string"}}, "required": ["path"]}
    assert signature("a__b", one, None) == "a__b(args: { path: string }): Promise<any>;"
    assert signature("a__b", {"properties": one["properties"]}, one) == (
        "a__b(args?: { path?: string }): Promise<{ path: string }>;"
    )
    assert signature("a__b", {"properties": {}}, None) == "a__b(): Promise<any>;"
    assert signature("a__b", None, None) == "a__b(args?: Record<string, unknown>): Promise<any>;"
    assert document("  x(): Promise<any>;").startswith("declare const codemode: {\n  x()")


def test_what_would_be_very_long_is_said_shortly():
    wide = {"properties": {"p" * 50 + str(n): {"enum": ["v" * 70]} for n in range(100)}}
    assert signature("a__b", wide, None) == "a__b(args?: Record<string, unknown>): Promise<any>;"
    assert LONGEST_SIGNATURE < 10_000
