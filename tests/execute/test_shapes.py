"""Schemas become shapes; what is hostile becomes anything."""

import pytest

from checkrein.execute.shapes import (
    ANY_LIST,
    ANY_OBJECT,
    ANYTHING,
    NULL,
    Choice,
    Field,
    ListOf,
    Literals,
    MapOf,
    Plain,
    Record,
    arguments_of,
    shape_of,
)

STRING, INTEGER = Plain("string"), Plain("integer")


def record(**fields):
    return Record(tuple(Field(name, shape, True) for name, shape in fields.items()))


def needing(*names):
    return {"properties": {name: {"type": "string"} for name in names}, "required": list(names)}


@pytest.mark.parametrize(
    ("schema", "shape"),
    [
        ({"type": "string"}, STRING),
        ({"type": ["string", "null"]}, Choice((STRING, NULL))),
        ({"type": "string", "nullable": True}, Choice((STRING, NULL))),
        ({"enum": ["a", 1, True, None]}, Literals(("a", 1, True, None))),
        ({"enum": [1, True]}, Literals((1, True))),
        ({"const": "x"}, Literals(("x",))),
        ({"type": "string", "enum": [1.5, 2.5]}, Plain("number")),
        ({"enum": [{"a": 1}, [1]]}, Choice((ANY_OBJECT, ANY_LIST))),
        ({"enum": [str(n) for n in range(1000)]}, STRING),
        ({"enum": ["x" * 500]}, STRING),
        ({"enum": [10**400]}, INTEGER),
        ({"enum": []}, ANYTHING),
        ({"type": "array"}, ANY_LIST),
        ({"items": {"type": "integer"}}, ListOf(INTEGER)),
        ({"prefixItems": [{"type": "integer"}, {"type": "string"}]}, ListOf(Choice((INTEGER, STRING)))),
        ({"type": "object"}, ANY_OBJECT),
        ({"additionalProperties": {"type": "integer"}}, MapOf(INTEGER)),
        ({"type": "object", "patternProperties": {"^x": {"type": "integer"}}}, MapOf(INTEGER)),
        (needing("a"), record(a=STRING)),
        ({**needing("a"), "additionalProperties": True}, Record(record(a=STRING).fields, ANYTHING)),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, Choice((STRING, INTEGER))),
        ({"oneOf": [{"const": "a"}, {"const": "b"}]}, Literals(("a", "b"))),
        ({"anyOf": [{"const": 1}, {"const": True}]}, Literals((1, True))),
        ({"allOf": [needing("a"), needing("b")]}, record(a=STRING, b=STRING)),
        ({"type": "object", "allOf": [needing("a")]}, record(a=STRING)),
        ({**needing("a"), "anyOf": [{"required": ["b"]}, {"required": ["c"]}]}, record(a=STRING)),
        ({"$ref": "#/$defs/x~1y", "$defs": {"x/y": {"type": "string"}}}, STRING),
        ({"$ref": "#/definitions/a%20b", "definitions": {"a b": {"type": "string"}}}, STRING),
        ({"$ref": "#/anyOf/1", "anyOf": [True, {"type": "string"}]}, STRING),
        ({"$ref": "https://example.com/schema"}, ANYTHING),
        ({"$ref": "#/nowhere/0"}, ANYTHING),
        ({"type": "file"}, ANYTHING),
        ({"type": 5, "properties": [1]}, ANYTHING),
        (True, ANYTHING),
        (None, ANYTHING),
    ],
)
def test_what_schemas_say(schema, shape):
    found = shape_of(schema)
    assert (found, repr(found)) == (shape, repr(shape))


@pytest.mark.invariant(
    "nothing outside the schema is ever looked up, and no reference is followed into itself"
)
def test_a_circle_ends_in_anything():
    tree = {"type": "object", "properties": {"next": {"$ref": "#/$defs/tree"}}, "required": ["next"]}
    schema = {"$ref": "#/$defs/tree", "$defs": {"tree": tree}}
    assert shape_of(schema) == record(next=ANYTHING)
    assert shape_of({"allOf": [{"$ref": "#/allOf/0"}]}) == ANYTHING


def test_named_arguments():
    assert arguments_of(None) == Record((), ANYTHING)
    assert arguments_of({"type": "object"}) == Record((), ANYTHING)
    assert arguments_of({"type": "object", "properties": {}}) == Record(())
    either = arguments_of({"oneOf": [needing("a", "b"), needing("a", "c")]})
    assert [(field.name, field.required) for field in either.fields] == [
        ("a", True),
        ("b", False),
        ("c", False),
    ]
    assert arguments_of({"type": "string"}) == Record((), ANYTHING)


def itself():
    schema = {"type": "object"}
    schema["properties"] = {"again": schema}
    return schema


def deep():
    schema = {"type": "string"}
    for _ in range(100_000):
        schema = {"type": "array", "items": schema}
    return schema


def multiplying():
    """Each level sixteen times the one below, if it were written out."""
    schema = {"type": "string"}
    for _ in range(12):
        schema = {"properties": {"a": schema}, "anyOf": [{"properties": {"b": {}}}] * 16}
    return schema


def doubling():
    names = [f"d{number}" for number in range(60)]
    defs = {
        name: {"properties": {"a": {"$ref": f"#/$defs/{below}"}, "b": {"$ref": f"#/$defs/{below}"}}}
        for name, below in zip(names, [*names[1:], "end"], strict=True)
    }
    return {"$ref": "#/$defs/d0", "$defs": defs}


def spreading():
    names = [f"d{number}" for number in range(60)]
    defs = {
        name: {"items": [{"$ref": f"#/$defs/{below}", "minItems": number} for number in range(16)]}
        for name, below in zip(names, [*names[1:], "end"], strict=True)
    }
    return {"$ref": "#/$defs/d0", "$defs": defs}


HOSTILE = {
    "spreading": spreading(),
    "itself": itself(),
    "deep": deep(),
    "multiplying": multiplying(),
    "doubling": doubling(),
    "wide": {"properties": {f"p{number}": {"type": "string"} for number in range(50_000)}},
    "many choices": {"anyOf": [{"type": "string"}] * 50_000},
    "many needed": {"properties": {"a": {}}, "required": [[], {}, 5, "a"] * 50_000},
    "odd keys": {"properties": {"\ud800": {}, "": {}, "x" * 100_000: {}, 5: {}, None: {}}},
    "odd types": {"type": [[], {}, None, "object"], "properties": 5, "items": 7, "required": "a"},
    "odd references": {"$ref": "#/%ff/%/\ud800%41", "allOf": {"$ref": "#"}},
    "long reference": {"$ref": "#/" + "a/" * 100_000},
    "huge index": {"$ref": "#/anyOf/" + "9" * 150, "anyOf": [{}]},
    "not numbers": {"enum": [float("nan"), float("inf"), -0.0]},
    "text": {"description": "x" * 1_000_000, "properties": {"a": {"description": 5}}},
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_schemas_are_bounded(name):
    shape = shape_of(HOSTILE[name])
    arguments_of(HOSTILE[name])
    assert len(repr(shape)) < 200_000


def test_what_cannot_be_said_leaves_the_object_open():
    shape = shape_of({"properties": {"a": {"type": "string"}, "\ud800": {}}})
    assert shape == Record((Field("a", STRING, False),), ANYTHING)
