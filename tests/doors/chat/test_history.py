"""A conversation as models are sent it, and their answers as we keep them."""

import base64
import string

import msgspec
import pytest
from ground import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic_ai.messages import (
    BinaryContent,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
)

from checkrein.doors.chat import Message, Part
from checkrein.doors.chat.attachments import picture_kind
from checkrein.doors.chat.history import (
    Names,
    arguments_of,
    parts_of,
    raw_of,
    readable,
    result_content,
    to_model,
    with_own_ids,
)
from checkrein.doors.chat.tokens import LONGEST_RESULT

PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(20)
NONE = Names(())


def call(id, name="notes__put", **more):
    return Part(kind="tool_invocation", tool_call_id=id, tool_name=name, data={}, **more)


def result(id, text="ok", status="completed", **more):
    return Part(kind="tool_result", tool_call_id=id, tool_name="notes__put", text=text, status=status, **more)


def said(role, *parts, **more):
    return Message(f"m{len(parts)}{role}", role, parts, **more)


def checked(sent):
    """What every provider wants: no two requests in a row, each call answered once, right after it."""
    waiting = set()
    for at, message in enumerate(sent):
        assert message.parts
        if at and isinstance(message, ModelRequest):
            assert isinstance(sent[at - 1], ModelResponse)
        if isinstance(message, ModelResponse):
            assert not waiting
            ids = [part.tool_call_id for part in message.parts if isinstance(part, ToolCallPart)]
            waiting = set(ids)
        else:
            answered = [part.tool_call_id for part in message.parts if isinstance(part, ToolReturnPart)]
            assert len(answered) == len(set(answered))
            assert set(answered) == waiting
            kinds = [isinstance(part, ToolReturnPart) for part in message.parts]
            assert kinds == sorted(kinds, reverse=True), "results come first"
            waiting = set()
    assert not waiting


# -- every call with its result -------------------------------------------------------------------------


def test_a_conversation_with_tools_is_sent_in_turns():
    sent = to_model(
        [
            said("user", Part(text="go")),
            said("assistant", Part(text="I call"), call("c1"), call("c2")),
            said("tool", result("c1", "one"), result("c2", "", "denied", error="not that")),
            said("assistant", Part(text="done")),
            said("user", Part(text="thanks")),
        ],
        "be brief",
        NONE,
    )
    checked(sent)
    assert [part.part_kind for part in sent[0].parts] == ["system-prompt", "user-prompt"]
    one, two = sent[2].parts
    assert (one.content, one.outcome) == ("one", "success")
    assert (two.content, two.outcome) == ("not that", "denied")


_ROLES = st.sampled_from(["user", "assistant", "tool", "system"])
_IDS = st.sampled_from(["c1", "c2", "c3"])
_PARTS = {
    "user": st.builds(Part, text=st.text(max_size=5)) | st.builds(result, _IDS),
    "assistant": st.builds(Part, text=st.text(max_size=5)) | st.builds(call, _IDS),
    "tool": st.builds(
        result, _IDS, st.text(max_size=5), st.sampled_from(["completed", "denied", "error", ""])
    )
    | st.builds(call, _IDS),
    "system": st.builds(Part, text=st.text(max_size=5)),
}


def _unique(parts):
    seen, found = set(), []
    for each in parts:
        if not each.tool_call_id or each.tool_call_id not in seen:
            seen.add(each.tool_call_id)
            found.append(each)
    return tuple(found)


@settings(max_examples=examples(300))
@given(st.data())
def test_whatever_was_branched_stopped_or_cut_each_call_is_sent_with_one_result(data):
    roles = data.draw(st.lists(_ROLES, max_size=8))
    path = [
        Message(f"m{at}", role, _unique(data.draw(st.lists(_PARTS[role], max_size=4))), state="aborted")
        for at, role in enumerate(roles)
    ]
    checked(to_model(path, data.draw(st.sampled_from(["", "brief"])), NONE))


def test_a_result_whose_call_a_summary_stands_for_is_not_sent():
    sent = to_model([said("tool", result("gone")), said("user", Part(text="so"))], "", NONE)
    assert [part.part_kind for part in sent[0].parts] == ["user-prompt"]


# -- names ----------------------------------------------------------------------------------------------


@settings(max_examples=examples(200))
@given(st.lists(st.text(max_size=90) | st.text("ab._", max_size=70), unique=True, max_size=12))
def test_names_are_such_as_every_provider_takes_and_lead_back(names):
    known = Names(names)
    theirs = [known.theirs(each) for each in names]
    assert len(set(theirs)) == len(names)
    assert [known.ours(each) for each in theirs] == names
    allowed = set(string.ascii_letters + string.digits + "_-")
    assert all(1 <= len(each) <= 64 and set(each) <= allowed for each in theirs)


def test_many_tools_of_nearly_one_name_stay_apart_and_short():
    names = [f"{'x' * 64}{each}" for each in range(1_200)]
    known = Names(names)
    assert len({known.theirs(each) for each in names}) == len(names)
    assert max(len(known.theirs(each)) for each in names) == 64


def test_a_tool_nobody_offers_keeps_its_name_both_ways():
    known = Names(["a.b"])
    assert known.ours("other__tool") == "other__tool"
    assert known.theirs("gone.tool") == "gone_tool"


# -- answers --------------------------------------------------------------------------------------------


def test_an_answer_is_kept_in_parts_and_sent_again_as_it_came():
    response = ModelResponse(
        parts=[
            ThinkingPart("hm", signature="signed", provider_name="p"),
            TextPart("so"),
            ToolCallPart("notes__put", '{"a": 1}', "c1"),
        ],
        model_name="m",
    )
    parts = parts_of(response, Names(["notes__put"]))
    assert [(each.kind, each.text) for each in parts] == [
        ("reasoning", "hm"),
        ("text", "so"),
        ("tool_invocation", ""),
    ]
    assert parts[2].data == {"a": 1}
    message = Message("m", "assistant", parts, raw=raw_of(response))
    (sent, _) = to_model([message], "", NONE)
    assert sent.parts == response.parts
    (plain, _) = to_model([msgspec.structs.replace(message, raw="not json")], "", NONE)
    assert [each.part_kind for each in plain.parts] == ["text", "tool-call"]


@settings(max_examples=examples(100))
@given(
    st.lists(
        st.builds(TextPart, st.text(min_size=1, max_size=20))
        | st.builds(
            ToolCallPart,
            st.just("notes__put"),
            st.dictionaries(st.text(max_size=3), st.integers(-9, 9) | st.text(max_size=3), max_size=2),
            st.sampled_from(["c1", "c2", "", "x" * 300]),
        ),
        min_size=1,
        max_size=6,
    )
)
def test_a_trip_through_what_we_keep_loses_nothing(parts):
    response = with_own_ids(ModelResponse(parts=parts), {"c1"})
    kept = parts_of(response, Names(["notes__put"]))
    ids = [each.tool_call_id for each in kept if each.kind == "tool_invocation"]
    assert len(ids) == len(set(ids))
    assert "c1" not in ids
    assert all(ids)
    (sent, *_) = to_model([Message("m", "assistant", kept)], "", Names(["notes__put"]))
    assert [each.content for each in sent.parts if isinstance(each, TextPart)] == [
        each.content for each in parts if isinstance(each, TextPart)
    ]
    assert [each.args for each in sent.parts if isinstance(each, ToolCallPart)] == [
        each.args for each in parts if isinstance(each, ToolCallPart)
    ]
    (again, *_) = to_model([Message("m", "assistant", kept, raw=raw_of(response))], "", NONE)
    assert [each.tool_call_id for each in again.parts if isinstance(each, ToolCallPart)] == ids


@pytest.mark.parametrize(
    ("given", "found", "wrong"),
    [
        (None, {}, ""),
        ("", {}, ""),
        ('{"a": 1}', {"a": 1}, ""),
        ({"a": 1}, {"a": 1}, ""),
        ("{broken", {}, "no JSON"),
        ("[1]", {}, "no JSON object"),
        ("3", {}, "no JSON object"),
        ('{"a": NaN}', {}, "no JSON"),
        ('{"a": "\ud800"}', {}, "no JSON"),
        ({"a": "\ud800"}, {}, "no JSON"),
        ({"a": {1, 2}.__class__}, {}, "no JSON"),
        ("[" * 100_000, {}, "no JSON"),
        ('{"a": ' * 900 + "1" + "}" * 900, {}, "nested too deeply"),
    ],
)
def test_arguments_are_read_or_said_to_be_wrong(given, found, wrong):
    arguments, error = arguments_of(given)
    assert arguments == found
    assert (wrong in error) if wrong else error == ""
    assert len(error) < 1_000
    error.encode()


# -- results --------------------------------------------------------------------------------------------


def test_a_huge_result_is_cut_with_a_word():
    content = result_content(result("c", "x" * (LONGEST_RESULT + 1234)))
    assert content.endswith("[The rest is left out: 1,234 more characters.]")
    assert len(content) < LONGEST_RESULT + 100
    whole = "x" * LONGEST_RESULT
    assert result_content(result("c", whole)) == whole
    failed = result_content(result("c", "", "error", error="y" * (LONGEST_RESULT + 5)))
    assert "5 more" in failed


def test_pictures_are_sent_as_what_they_are():
    item = {"type": "image", "data": base64.b64encode(PICTURE).decode(), "mimeType": "text/html"}
    text, picture = result_content(result("c", "look", data={"content": [item]}))
    assert text == "look"
    assert isinstance(picture, BinaryContent)
    assert picture.media_type == "image/png"
    assert result_content(result("c", "", data={"content": [{**item, "data": "!!"}]})) == "[text/html]"
    assert result_content(result("c", "", data={"content": []})) == "(The tool returned nothing.)"


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (PICTURE, "image/png"),
        (b"\xff\xd8\xff\xe0rest", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        (b"RIFF\0\0\0\0WAVE", ""),
        (b"<svg/>", ""),
        (b"", ""),
        (PICTURE + bytes(9 << 20), ""),
    ],
)
def test_a_picture_is_known_by_its_first_bytes(data, kind):
    assert picture_kind(data) == kind


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "a\nb"),
        ({"content": [], "structuredContent": {"n": 1}}, '{"n": 1}'),
        ({"content": [{"type": "image", "data": ""}]}, "[image]"),
        ({"content": [{"type": "audio", "mimeType": "audio/wav"}]}, "[audio/wav]"),
        ({"content": [{"type": "resource", "resource": {"uri": "u", "text": "t"}}]}, "t"),
        ({"content": [{"type": "resource", "resource": {"uri": "u", "mimeType": "x/y"}}]}, "[x/y: u]"),
        ({"content": [{"type": "resource_link", "uri": "u", "name": "n"}]}, "[n: u]"),
        ({"content": "no list"}, ""),
        ({"content": 5}, ""),
        ({"content": [1, None, {}]}, "[something]"),
        ("plain", "plain"),
        ([1], "[1]"),
    ],
)
def test_results_are_told_in_words(content, text):
    assert readable(content) == text


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["content", "type", "text", "data", "resource", "mimeType"]), inner)
    ),
    max_leaves=12,
)


@settings(max_examples=examples(200))
@given(_JSON)
def test_whatever_a_server_returns_can_be_told(content):
    assert isinstance(readable(content), str)
    assert result_content(result("c", readable(content), data=content)) is not None


# -- a person's messages --------------------------------------------------------------------------------


def test_what_is_attached_goes_along_with_its_name():
    picture = Part(
        kind="attachment",
        mime_type="image/png",
        data={"name": "p.png", "base64": base64.b64encode(PICTURE).decode()},
    )
    note = Part(kind="attachment", mime_type="text/plain", text="inside", data={"name": "n.txt"})
    (sent,) = to_model([said("user", Part(text="look"), picture, note)], "", NONE)
    words, name, data, text = sent.parts[0].content
    assert (words, name, text) == ("look", "Attached: p.png", "Attached: n.txt\n\ninside")
    assert data.data == PICTURE
