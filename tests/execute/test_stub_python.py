"""Tools as Python functions, and what the real type check makes of them."""

import pytest

from checkrein.execute.sandbox import Failed, Limits, Tool
from checkrein.execute.stub_python import Records, checked, function, unknown
from checkrein.execute.stubs import Described, python_check, python_with
from scripts import with_engine

EDIT = {
    "type": "object",
    "properties": {"old": {"type": "string"}, "new": {"type": "string"}},
    "required": ["old"],
}
TAKES = {
    "properties": {
        "path": {"type": "string"},
        "edits": {"type": "array", "items": EDIT},
        "mode": {"enum": ["fast", "slow"]},
        "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
        "depth": {"type": ["integer", "null"]},
        "ratio": {"type": "number"},
        "options": EDIT,
    },
    "required": ["path"],
}
ODD = {"properties": {"user-id": {"type": "integer"}, "class": {}}, "required": ["user-id"]}
TOOLS = [
    Described("fs__edit", takes=TAKES, gives={"properties": {"text": {"type": "string"}, "more": EDIT}}),
    Described("crm__odd", takes=ODD),
    Described("any__thing"),
    Described("no__thing", takes={"properties": {}}),
]


def test_functions():
    records = Records()
    assert function("a__b", EDIT, EDIT, records) == (
        '_BResult = TypedDict("_BResult", {"old": str, "new": NotRequired[str]})\n',
        "async def a__b(*, old: str, new: str = ...) -> _BResult: ...",
    )
    assert function("a__c", {"properties": {"x": EDIT}}, None, records) == (
        "",
        "async def a__c(*, x: _BResult = ...) -> Any: ...",
    )
    declared, line = function("a__odd", ODD, None, records)
    assert (
        declared
        == '_OddArguments = TypedDict("_OddArguments", {"user-id": int, "class": NotRequired[Any]})\n'
    )
    assert line == "async def a__odd(arguments: _OddArguments, /) -> Any: ..."


def test_names_of_records_are_told_apart():
    records = Records()
    assert records.name("x", "{1}") == ("_X", '_X = TypedDict("_X", {1})\n')
    assert records.name("x", "{2}")[0] == "_X_2"
    assert records.name("y", "{1}") == ("_X", "")
    assert records.name("—", "{3}")[0] == "_Record"
    records.forget(but=1)
    assert records.name("x", "{2}")[0] == "_X_2"


def test_what_would_be_very_long_is_said_shortly_and_leaves_no_name_behind():
    records = Records()
    wide = {"properties": {"p" * 50 + str(n): {"enum": ["v" * 70]} for n in range(100)}}
    assert function("a__b", {"properties": {"x": wide}}, None, records) == ("", unknown("a__b"))
    assert checked("a__b", {}, wide, records) == ("", unknown("a__b"))
    assert len(records) == 0


def test_more_arguments_have_a_free_name():
    takes = {"properties": {"more": {"type": "string"}}, "additionalProperties": True}
    assert "**more_: Any" in function("a__b", takes, None, Records())[1]


def complaints(stubs, source):
    """What the check says before anything runs."""
    tools = [Tool(each.name) for each in TOOLS]
    failed = with_engine(lambda engine: begun(engine, tools, stubs, source))
    return failed.message if isinstance(failed, Failed) and failed.kind == "types" else ""


async def begun(engine, tools, stubs, source):
    session = await engine.open(tools, Limits(), stubs=stubs)
    return await session.start(source)


RIGHT = [
    "await fs__edit(path='a')",
    "await fs__edit(path='a', edits=[{'old': 'x'}], mode='fast', depth=None, ratio=1)",
    "edits = [{'old': 'x'}]\nawait fs__edit(path='a', edits=edits)",
    "edits = []\nedits.append({'old': 'x', 'new': 'y'})\nawait fs__edit(path='a', edits=edits)",
    "options = {'old': 'x'}\nawait fs__edit(path='a', options=options)",
    "tags = ['a']\nawait fs__edit(path='a', tags=tags)",
    "for mode in ['fast', 'slow']:\n    await fs__edit(path='a', mode=mode)",
    "found = await fs__edit(path='a')\nawait fs__edit(path=found['text'], options=found['more'])",
    "await crm__odd({'user-id': 5})",
    "await crm__odd(**{'user-id': 5})",
    "await any__thing(a=1, b='c')",
    "await no__thing()",
]
WRONG = [
    ("await fs__edit()", "path"),
    ("await fs__edit(path=1)", "Expected `str`"),
    ("await fs__edit(path='a', mode='medium')", "Literal"),
    ("await fs__edit(path='a', modes='fast')", "modes"),
    ("await fs__edit(path='a', depth='deep')", "depth|int"),
    ("await fs__edit(path='a', edits='x')", "list"),
    ("found = await fs__edit(path='a')\nfound['txt']", "txt"),
    ("await no__thing(x=1)", "x"),
    ("await fs__delete(path='a')", "fs__delete"),
]


@pytest.mark.parametrize("source", RIGHT)
def test_right_calls_pass_the_type_check(source):
    assert complaints(python_check(TOOLS), source) == ""


@pytest.mark.parametrize(("source", "word"), WRONG)
def test_wrong_calls_are_found_before_anything_runs(source, word):
    said = complaints(python_check(TOOLS), source)
    assert any(each in said for each in word.split("|"))


@pytest.mark.parametrize("source", [RIGHT[0], RIGHT[1], RIGHT[-1]])
def test_what_the_model_reads_serves_the_type_check_too(source):
    assert complaints(python_with(TOOLS, "whole"), source) == ""
    assert "str" in complaints(python_with(TOOLS, "none"), "await fs__edit(path=1)")
