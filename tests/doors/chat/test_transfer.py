"""Files of conversations: what was exported comes back, what is hostile is refused with nothing written."""

import json

import pytest
from ground import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkrein.doors.chat import Invocation, Part, Run, Snapshot
from checkrein.doors.chat.sessions import Sessions
from checkrein.doors.chat.transfer import (
    LARGEST,
    export_json,
    export_markdown,
    import_json,
    import_markdown,
)
from checkrein.errors import InputError, NotFoundError
from checkrein.store.sqlite import SqliteStore

TABLES = "chat_session chat_message chat_snapshot chat_run chat_call chat_words chat_title_words".split()


@pytest.fixture
def sessions(tmp_path):
    store = SqliteStore.open(tmp_path / "store")
    yield Sessions(store, lambda: 1_700_000_000.0)
    store.close()


@pytest.fixture
def told(sessions):
    """A conversation with all there is: branches, calls, a summary, an attachment."""
    made = sessions.create("Trip to 東京", model="gpt-4o", system="Be short.", metadata={"k": [0, None]})
    picture = Part(
        kind="attachment", data={"name": "a.png", "data": "AAAA"}, mime_type="image/png", size_bytes=3
    )
    first = sessions.add_message(made.id, "user", [Part(text="Look"), picture])
    sessions.add_run(Run(id="r1", session=made.id, user_message=first.id))
    call = Part(kind="tool_invocation", tool_call_id="c1", tool_name="s__t", data={"a": 0}, status="pending")
    asked = sessions.add_message(
        made.id, "assistant", [Part(kind="reasoning", text="hm"), call], run="r1", raw="{}"
    )
    given_to = {"session": made.id, "message": asked.id, "name": "s__t", "server": "s", "tool": "t"}
    sessions.put_call(Invocation(run="r1", call_id="c1", arguments={"a": 0}, **given_to))
    sessions.change_call("r1", "c1", expect=("pending",), status="completed", output=False, answered_by="ada")
    sessions.add_message(made.id, "tool", [Part(kind="tool_result", tool_call_id="c1", data=False)], run="r1")
    sessions.change_run("r1", expect=("running",), state="done", ended_at=5.0)
    sessions.add_message(made.id, "assistant", [Part(text="Other branch")], parent=first.id)
    sessions.add_message(made.id, "user", [Part(text="And\n\n```\ncode")])
    sessions.add_snapshot(made.id, Snapshot(id="x", text="sum", cutoff=first.id, tokens=2, created_at=3.0))
    return sessions.update(made.id, color="red", pinned=True, tools_off=["web"], threshold=0.9)


def counts(sessions):
    return [sessions.store.query(f"SELECT count(*) FROM {table}")[0][0] for table in TABLES]


def without_ids(text):
    """An export, with every id told by the order in which it came."""
    file = json.loads(text)
    ids = [
        file["session"]["id"],
        *(each["id"] for key in ("messages", "runs", "snapshots") for each in file[key]),
    ]
    for number, each in enumerate(ids):
        text = text.replace(json.dumps(each), f'"id{number}"')
    return json.loads(text)


def test_json_loses_nothing(sessions, told):
    text = export_json(sessions, told.id)
    made = import_json(sessions, text)
    first, second = without_ids(text), without_ids(export_json(sessions, made.id))
    for name in ("messages", "runs", "calls", "snapshots"):
        assert first[name] == second[name] and first[name]
    differs = {key for key in first["session"] if first["session"][key] != second["session"][key]}
    assert differs <= {"metadata", "tainted_by", "updated_at", "project"}
    assert second["session"]["metadata"]["k"] == [0, None]
    assert sessions.calls_of_session(made.id)[0].output is False


def test_an_export_says_what_it_is_and_holds_nothing_unseen(sessions, told):
    file = json.loads(export_json(sessions, told.id))
    assert (file["format"], file["version"]) == ("checkrein.chat", 1)
    assert all("raw" not in each for each in file["messages"])
    with pytest.raises(NotFoundError):
        export_json(sessions, "nowhere")


def test_an_import_can_be_gone_on_with(sessions, told):
    made = import_json(sessions, export_json(sessions, told.id))
    added = sessions.add_message(made.id, "assistant", [Part(text="more")])
    assert added.sequence == 6 and sessions.get(made.id).message_count == 6
    assert sessions.path(made.id)[-1].id == added.id


def edited(text, change):
    file = json.loads(text)
    change(file)
    return json.dumps(file)


HOSTILE = {
    "another format": lambda file: file.update(format="other"),
    "no format": lambda file: file.pop("format"),
    "a later version": lambda file: file.update(version=2),
    "version of text": lambda file: file.update(version="1"),
    "an unknown part": lambda file: file.update(secrets=[]),
    "no messages": lambda file: file.pop("messages"),
    "messages of text": lambda file: file.update(messages="x"),
    "parts of numbers": lambda file: file["messages"][0].update(parts=[1]),
    "odd role": lambda file: file["messages"][0].update(role="boss"),
    "odd status": lambda file: file["calls"][0].update(status="free"),
    "text for a time": lambda file: file["session"].update(created_at="now"),
    "cycle": lambda file: file["messages"][0].update(parent=file["messages"][1]["id"]),
    "same ids": lambda file: file["messages"][1].update(id=file["messages"][0]["id"]),
    "huge number": lambda file: file["messages"][0].update(sequence=10**30),
    "head of nothing": lambda file: file["session"].update(head="x"),
}


@pytest.mark.parametrize("change", HOSTILE.values(), ids=HOSTILE)
def test_hostile_json_is_refused_with_nothing_written(sessions, told, change):
    text, before = edited(export_json(sessions, told.id), change), counts(sessions)
    with pytest.raises(InputError):
        import_json(sessions, text)
    assert counts(sessions) == before


@pytest.mark.parametrize(
    "text",
    ["", "null", "[]", "{", "\ud800", '"\\ud800"', "[" * 200_000, '{"a":' * 200_000, "# Title", "1e999"],
    ids=range(10),
)
def test_what_is_no_export_is_refused(sessions, text):
    for read in (import_json, import_markdown):
        with pytest.raises(InputError):
            read(sessions, text)
    assert set(counts(sessions)) == {0}


def test_deep_values_inside_are_refused(sessions, told):
    text = export_json(sessions, told.id).replace('"AAAA"', "[" * 100_000 + "]" * 100_000)
    before = counts(sessions)
    with pytest.raises(InputError):
        import_json(sessions, text)
    assert counts(sessions) == before


def test_too_large_a_file_is_refused_unread(sessions):
    text = "## User\n\nx" + " " * LARGEST
    for read in (import_json, import_markdown):
        with pytest.raises(InputError, match="too large"):
            read(sessions, text)


@settings(
    max_examples=examples(80), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(st.data())
def test_a_file_with_anything_changed_is_kept_or_refused(sessions, told, data):
    file = json.loads(export_json(sessions, told.id))
    name = data.draw(st.sampled_from(["messages", "runs", "calls", "snapshots", "session"]))
    target = file[name] if name == "session" else data.draw(st.sampled_from(file[name]))
    key = data.draw(st.sampled_from(sorted(target)))
    odd = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5)
    target[key] = data.draw(
        odd | st.lists(odd, max_size=2) | st.dictionaries(st.text(max_size=3), odd, max_size=2)
    )
    before = counts(sessions)
    try:
        made = import_json(sessions, json.dumps(file))
    except InputError:
        assert counts(sessions) == before
        return
    sessions.path(made.id)
    sessions.build_context(made.id)
    export_json(sessions, made.id)
    export_markdown(sessions, made.id)
    sessions.delete(made.id)
    assert counts(sessions) == before


def test_markdown_shows_the_branch_and_comes_back_as_what_was_said(sessions, told):
    text = export_markdown(sessions, told.id)
    assert text.startswith("# Trip to 東京\n") and "s\\_\\_t" not in text
    made = import_markdown(sessions, text)
    assert made.title == "Trip to 東京" and made.tainted_by == "import"
    said = [(each.role, each.parts[0].text) for each in sessions.path(made.id)]
    assert said == [
        ("user", "Look\n\n### Attachment: a.png"),
        ("assistant", "Other branch"),
        ("user", "And\n\n```\ncode"),
    ]
    assert sessions.search("other branch")
