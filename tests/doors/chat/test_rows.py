"""Values and their rows: nothing is lost between them, and what no row can hold is said."""

import msgspec
import pytest

from checkrein.doors.chat import Invocation, Message, Part, Run, Session, Snapshot
from checkrein.doors.chat.rows import (
    DEEPEST,
    call_of,
    clean,
    columns,
    messages_of,
    packed,
    run_of,
    session_of,
    snapshot_of,
)
from checkrein.errors import InputError
from checkrein.store.conversation_runs import CALL, RUN
from checkrein.store.conversations import MESSAGE, SESSION, SNAPSHOT

CALLED = {"session": "s", "message": "m", "name": "a__b", "server": "a", "tool": "b"}
VALUES = [
    (Session(id="s", title="t", created_at=1.0, updated_at=2.0, tools_off=("a",)), SESSION, session_of),
    (Session(id="s", title="t", created_at=1.0, updated_at=2.0, auto_compress=False), SESSION, session_of),
    (Snapshot(id="x", text="t", cutoff="m", tokens=0, created_at=1.0, estimated=True), SNAPSHOT, snapshot_of),
    (Run(id="r", session="s", state="failed", ended_at=0.0), RUN, run_of),
    (Invocation(run="r", call_id="c", arguments={"a": []}, output=0, asked=True, **CALLED), CALL, call_of),
    (Invocation(run="r", call_id="c", arguments={}, edited={}, output=False, **CALLED), CALL, call_of),
    (Message("m", "tool", (Part(data=0),), 4, True, True), MESSAGE, lambda row: messages_of([row])[0]),
]


@pytest.mark.parametrize(("value", "names", "back"), VALUES)
def test_a_value_is_the_same_after_being_a_row(value, names, back):
    row = columns(value, names)
    assert list(row) == list(names) == [name for name in names if hasattr(value, name)]
    assert set(names) == set(value.__struct_fields__)
    found = back(tuple(row.values()))
    assert found == value
    assert msgspec.json.encode(found) == msgspec.json.encode(value)


def test_only_what_is_given_becomes_columns():
    assert columns({"status": "running", "edited": None}, CALL) == {"status": "running", "edited": None}


@pytest.mark.parametrize(
    ("given", "kept"), [("a", "a"), ("é\x00", "é\x00"), ("\ud83d\ude00", "😀"), ("\ud800x", "\ufffdx")]
)
def test_text_is_kept_as_it_can_be(given, kept):
    assert clean(given) == kept and clean(kept) == kept


@pytest.mark.parametrize("value", [object(), {"a": {1: object(), "\ud800": 1}}, [10**5000]])
def test_what_cannot_be_kept_is_said(value):
    with pytest.raises(InputError, match="cannot be kept"):
        packed(value)


def test_no_messages_are_no_trouble():
    assert messages_of([]) == []


def test_what_is_kept_can_be_read_again():
    """However deep in other work: reading JSON takes as many levels of the stack as the JSON has."""

    def nested(levels):
        return msgspec.json.decode("[" * levels + "]" * levels)

    def below(levels, do):
        return do() if levels == 0 else below(levels - 1, do)

    kept = packed((Part(kind="tool_result", data=nested(DEEPEST)),))
    assert below(700, lambda: msgspec.json.decode(kept))
    for deep in (nested(900), {"a": nested(900)}, (Part(data=nested(900)),)):
        with pytest.raises(InputError, match="cannot be kept: it is nested too deeply"):
            packed(deep)
