import json

import pytest
from ground import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkrein.authority.phase import switch
from checkrein.call import ToolCall, tool_call
from checkrein.doors.hooks import statusline


def shown(pipeline, body):
    reply = statusline.render(pipeline, body if isinstance(body, bytes) else json.dumps(body).encode())
    assert (reply.stderr, reply.exit_code) == (b"", 0)
    text = reply.stdout.decode()
    assert text.count("\n") == 1
    assert text.endswith("\n")
    return text[:-1]


def run(pipeline, project, command, times=1, **more):
    raw = {"tool": "Bash", "arguments": {"command": command}, "project": project, **more}
    for _ in range(times):
        pipeline.finish(pipeline.decide(tool_call(raw)).entry, "success")


def test_without_a_phase_it_says_the_strictest(pipeline, project):
    assert shown(pipeline, {"cwd": project}) == "checkrein auditing"


def test_the_phase_of_the_session_and_the_trust_of_the_busiest(pipeline, project):
    switch(pipeline, "building", "ada", "test", project=project)
    switch(pipeline, "planning", "ada", "test", session="s-2")
    run(pipeline, project, "ls", 3)
    run(pipeline, project, "pytest", 1)
    place = {"workspace": {"project_dir": project, "current_dir": "/"}, "session_id": "s-1"}
    line = shown(pipeline, place)
    assert line.startswith("checkrein building · file_read 0.")
    assert " · test_run 0." in line
    assert shown(pipeline, place | {"session_id": "s-2"}).startswith("checkrein planning")


def test_it_says_how_many_questions_wait(pipeline, project):
    for number in range(2):
        call = ToolCall(tool="Bash", arguments={"command": f"make x{number}"}, project=project, session="s")
        assert pipeline.decide(call, asking=True).verdict.word == "ask"
        words = ("1 question waits", "2 questions wait")[number]
        assert f"{words}: checkrein inbox" in shown(pipeline, {"cwd": project})


def test_it_says_when_the_record_does_not_verify(pipeline, project):
    pipeline.ledger.broken = "record 3 was changed"
    assert shown(pipeline, {"cwd": project}).endswith("the record does not verify")


def test_a_domain_with_a_hostile_name_breaks_nothing(pipeline, project):
    call = ToolCall(tool="x", server="\x1b[31m\nfine · trust 1.00\u202e", project=project)
    entry = pipeline.decide(call).entry
    pipeline.finish(entry, "success")
    line = shown(pipeline, {"cwd": project})
    assert all(each.isprintable() for each in line)


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"null",
        b"[]",
        b"\xff\x00",
        b"{" * 5_000,
        b"[" * 100_000,
        {"cwd": 5},
        {"workspace": None},
        {"cwd": "relative"},
        {"cwd": "/a\x00b"},
        {"cwd": "/" + "x" * 10_000},
        {"cwd": "/" + "x/" * 10_000},
        {"session_id": ["s"]},
        {"session_id": "' OR 1=1 --"},
    ],
    ids=lambda body: repr(body)[:30],
)
def test_whatever_the_agent_says_there_is_one_line(pipeline, body):
    assert shown(pipeline, body).startswith("checkrein auditing")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["cwd", "workspace", "project_dir", "session_id", "x"]), inner, max_size=3
        )
    ),
    max_leaves=6,
)


@settings(max_examples=examples(60), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(JSON.map(lambda value: json.dumps(value).encode()) | st.binary(max_size=60))
def test_no_bytes_do_more_than_be_answered(pipeline, body):
    assert shown(pipeline, body).startswith("checkrein ")
