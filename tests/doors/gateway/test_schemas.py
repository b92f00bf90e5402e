"""Arguments against schemas, both made by people who want us busy."""

import contextlib
import json
import socket
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkrein.doors.gateway import schemas as module
from checkrein.doors.gateway.schemas import MOST_FAULTS, compile_schema
from checkrein.errors import InputError

PATHS = {
    "type": "object",
    "properties": {"path": {"type": "string", "maxLength": 5}, "n": {"type": "integer"}},
    "required": ["path"],
    "additionalProperties": False,
}


def faults(schema, arguments):
    return compile_schema(schema).faults(arguments)


def doubling(count, reference):
    """Definitions that each use the one before twice: short to write, endless to follow."""
    found = {"d0": {"$anchor": "d0", "required": ["x"]}}
    for number in range(1, count):
        before = {"$ref": reference.format(number - 1)}
        found[f"d{number}"] = {"$anchor": f"d{number}", "anyOf": [before, {"allOf": [before]}]}
    return {"$defs": found, "$ref": reference.format(count - 1)}


def test_good_arguments_have_no_fault():
    assert faults(PATHS, {"path": "a"}) == [] and faults(PATHS, {"path": "a", "n": 3}) == []


def test_faults_are_sentences_with_their_place_and_without_the_values():
    found = faults(PATHS, {"path": "hunter2", "n": "hunter2", "hunter": 1})
    assert any(each.startswith("`path`: ") for each in found) and any("`n`: " in each for each in found)
    assert any("'hunter' was unexpected" in each for each in found)
    assert not any("hunter2" in each for each in found)
    assert faults(PATHS, {}) == ['"path" is a required property']


def test_at_most_a_few_faults_are_told():
    schema = {"properties": {f"p{number}": {"type": "string"} for number in range(50)}}
    assert len(faults(schema, {f"p{number}": 1 for number in range(50)})) == MOST_FAULTS


@pytest.mark.invariant("faults are collected only where there cannot be many")
def test_of_many_faults_only_the_first_is_collected():
    schema = {"properties": {"a": {"items": {"type": "string"}}}}
    assert len(faults(schema, {"a": [1] * 10})) == MOST_FAULTS
    assert len(faults(schema, {"a": [1] * 50_000})) == 1


def test_faults_are_safe_to_show():
    (found,) = faults({"additionalProperties": False}, {"\x1b[2J\u202e": 1})
    assert "\x1b" not in found and "\u202e" not in found


@pytest.mark.parametrize("arguments", [None, [], "x", 1, True])
def test_arguments_are_an_object(arguments):
    assert faults(None, arguments) == ["The arguments must be an object."]


def test_a_missing_schema_takes_any_object():
    assert faults(None, {"any": ["thing"]}) == [] and faults({}, {"any": ["thing"]}) == []


@pytest.mark.parametrize(
    "schema", [[], "x", True, 1, {"type": "objekt"}, {"properties": []}, {"required": 1}]
)
def test_a_schema_that_cannot_be_right_is_refused(schema):
    with pytest.raises(InputError, match="inputSchema"):
        compile_schema(schema)


@pytest.mark.parametrize(
    "draft", ["http://json-schema.org/draft-07/schema#", "https://json-schema.org/draft/2020-12/schema"]
)
def test_known_drafts_and_references_within(draft):
    schema = {"$schema": draft, "definitions": {"a b": {"type": "string"}}}
    schema["properties"] = {"x": {"$ref": "#/definitions/a%20b"}}
    assert faults(schema, {"x": "y"}) == [] and len(faults(schema, {"x": 1})) == 1


@pytest.fixture
def listener():
    with socket.create_server(("127.0.0.1", 0)) as made:
        made.setblocking(False)
        yield made


@pytest.mark.parametrize("key", ["$ref", "$dynamicRef", "$schema"])
@pytest.mark.parametrize(
    "place", ["http://127.0.0.1:{}/s.json", "http://127.0.0.1:{}/s#/a", "file:///etc/hostname"]
)
@pytest.mark.invariant("no reference is ever fetched, from the network or from a file")
def test_nothing_is_ever_fetched(listener, key, place):
    url = place.format(listener.getsockname()[1])
    for schema in ({key: url}, {"properties": {"a": {key: url}}}, {"$id": url, "$ref": "other"}):
        with contextlib.suppress(InputError):
            compile_schema(schema)
    with pytest.raises(InputError):
        compile_schema({key: url})
    with pytest.raises(BlockingIOError):
        listener.accept()


@pytest.mark.parametrize(
    "schema", [{"$ref": "other.json"}, {"$ref": "#nowhere"}, {"$ref": "#/nowhere"}, {"$ref": ""}]
)
def test_references_that_lead_out_or_nowhere_are_refused(schema):
    with pytest.raises(InputError, match="another place"):
        compile_schema(schema)


def test_a_document_within_a_schema_is_refused():
    with pytest.raises(InputError, match="another document"):
        compile_schema({"$defs": {"a": {"$id": "https://x.example/a"}}})


@pytest.mark.parametrize("pattern", ["^(a+)+$", "^(a|aa)+$", "^(a|a?)+$", "(.*)*b"])
def test_patterns_take_linear_time(pattern):
    """A matcher that backtracks would never come to an end."""
    schema = {"properties": {"a": {"type": "string", "pattern": pattern}}}
    assert len(faults(schema, {"a": "a" * 100_000 + "!"})) == 1


@pytest.mark.parametrize("pattern", [r"^(a)\1$", "^(?=a)a$", "(?<!a)b", "((a{1000}){1000}){1000}", "("])
def test_patterns_that_cannot_take_linear_time_are_refused(pattern):
    with pytest.raises(InputError):
        compile_schema({"properties": {"a": {"pattern": pattern}}})


def test_a_schema_has_only_so_many_patterns():
    with pytest.raises(InputError, match="too involved"):
        compile_schema({"patternProperties": {f"^a{number}": {} for number in range(300)}})


@pytest.mark.parametrize("reference", ["#/$defs/d{}", "#d{}"])
def test_definitions_that_double_and_double_are_refused(reference):
    assert len(faults(doubling(6, reference), {})) == 1
    # Followed one by one, these would be 2 ** 60 definitions.
    with pytest.raises(InputError, match="too involved"):
        compile_schema(doubling(60, reference))


@pytest.mark.parametrize("reference", ["#/$defs/d{}", "#d{}"])
def test_a_long_chain_of_references_is_refused(reference):
    chain = {"d0": {"$anchor": "d0"}}
    for number in range(1, 4_000):
        chain[f"d{number}"] = {"$anchor": f"d{number}", "$ref": reference.format(number - 1)}
    with pytest.raises(InputError):
        compile_schema({"$defs": chain, "$ref": reference.format(3_999)})


def test_a_circle_that_doubles_at_every_level_ends_at_once():
    schema = {"properties": {"a": {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}}, "required": ["x"]}
    arguments = {}
    for _ in range(40):
        arguments = {"a": arguments}
    # Followed to its end, this would be 2 ** 40 comparisons.
    assert "too large or too deeply nested" in faults(schema, arguments)[0]


@pytest.mark.parametrize(
    "schema", [{"$ref": "#"}, {"anyOf": [{"$ref": "#"}, {"$ref": "#"}]}, {"$recursiveRef": "#"}]
)
def test_a_circle_without_an_exit_ends(schema):
    assert isinstance(faults(schema, {}), list)


def test_a_tree_of_conditions_as_real_tools_have_it_goes_deep():
    tree = {"$ref": "#/$defs/tree"}
    schema = {
        "$defs": {
            "tree": {
                "anyOf": [
                    {"properties": {"and": {"type": "array", "items": tree}}, "required": ["and"]},
                    {"properties": {"or": {"type": "array", "items": tree}}, "required": ["or"]},
                    {"properties": {"not": tree}, "required": ["not"]},
                    {"properties": {"field": {"type": "string"}}, "required": ["field"]},
                ]
            }
        },
        "properties": {"filter": tree},
    }
    good = {"field": "x"}
    for _ in range(20):
        good = {"and": [good, {"not": {"field": "y"}}]}
    assert faults(schema, {"filter": good}) == []
    assert len(faults(schema, {"filter": {"and": [{"nonsense": 1}]}})) == 1


@pytest.mark.invariant("no schema and no arguments, however they were made for it, keep the gateway busy")
def test_arguments_have_a_depth_and_a_size():
    deep = {}
    for _ in range(100_000):
        deep = {"a": deep}
    assert "too deeply nested" in faults(None, deep)[0]
    wide = {"properties": {f"p{number}": {"type": "string"} for number in range(1_000)}}
    assert "too large" in faults(wide, {"a": ["x"] * 100_000})[0]


def test_what_cannot_be_checked_is_a_fault():
    assert faults({"properties": {"a": {"type": "string"}}}, {"a": object()}) != []


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)
KEYS = [
    "type",
    "properties",
    "items",
    "anyOf",
    "not",
    "$ref",
    "$id",
    "$anchor",
    "pattern",
    "enum",
    "required",
    "if",
]
schemas = st.recursive(
    json_values | st.sampled_from(["#", "#/properties", "object", "^a+$"]),
    lambda inner: st.dictionaries(st.sampled_from(KEYS), inner, max_size=4) | st.lists(inner, max_size=3),
    max_leaves=20,
)


@given(schemas, json_values)
def test_any_schema_compiles_or_says_why_and_any_arguments_are_judged(schema, arguments):
    try:
        made = compile_schema(schema)
    except InputError as error:
        assert "inputSchema" in error.message
        return
    assert all(isinstance(each, str) for each in made.faults(arguments))


@pytest.mark.parametrize(
    ("items", "value"),
    [
        ({"required": [f"k{number}" for number in range(2_000)]}, {}),
        ({"enum": [[number] for number in range(20_000)]}, [19_999]),
        ({"dependentRequired": {"x": [f"k{number}" for number in range(2_000)]}}, {"x": 1}),
        (False, 1),
        ({"type": "string"}, 1),
    ],
    ids=["names", "values", "dependents", "never", "type"],
)
def test_no_schema_and_arguments_made_for_each_other_take_much_time_or_memory(items, value):
    """In a process of its own: what runs out of memory there is not raised but ends the process."""
    code = (
        "import json, resource, sys\n"
        "from checkrein.doors.gateway.schemas import compile_schema\n"
        "schema, value = json.loads(sys.stdin.read())\n"
        "made = compile_schema(schema)\n"
        "for count in (1_000, 30_000, 1_000_000):\n"
        "    arguments = {'a': [value] * count}\n"
        "    resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))\n"
        "    resource.setrlimit(resource.RLIMIT_CPU, (20, 20))\n"
        "    found = made.faults(arguments)\n"
        "    assert len(found) <= 5 and all(len(each) < 400 for each in found), found\n"
        "print('done')\n"
    )
    schema = {"type": "object", "properties": {"a": {"type": "array", "items": items}}}
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=json.dumps([schema, value]),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr[-500:]


_PLAIN = st.one_of(st.text(max_size=300), st.integers(), st.booleans(), st.none(), st.floats())


@given(
    st.dictionaries(st.text(max_size=200), st.one_of(_PLAIN, st.lists(_PLAIN, max_size=2)), max_size=5),
    st.integers(1, 50),
    st.integers(1, 5),
)
def test_plain_arguments_are_as_much_work_as_they_are_counted_the_long_way(arguments, places, branches):
    made = module.Validator(None, places, branches)
    quick = made._steps(arguments)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_plain_size", lambda _arguments: None)
        slow = made._steps(arguments)
    assert quick == slow or min(quick, slow) > module.MOST_STEPS
