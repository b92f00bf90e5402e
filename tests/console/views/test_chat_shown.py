import pytest
from hypothesis import given
from hypothesis import strategies as st

from checkrein.console.views import chat_shown
from checkrein.console.views.chat_shown import card, grouped, message, messages, picture, summary

HOSTILE = "<script>alert(1)</script>\u202e"
DOT = "iVBORw0KGgo="


def call(**more):
    return {
        "run": "r1",
        "call_id": "c1",
        "message": "m2",
        "name": "echo__write",
        "server": "echo",
        "tool": "write",
        "arguments": {"title": "a"},
        "status": "completed",
        "entry": "e1",
        **more,
    }


def said(role="assistant", *parts, **more):
    return {"id": "m2", "role": role, "parts": list(parts), "run": "r1", **more}


def text(words, kind="text"):
    return {"kind": kind, "text": words}


INVOKED = {
    "kind": "tool_invocation",
    "tool_call_id": "c1",
    "tool_name": "echo__write",
    "data": {"title": "a"},
}


@pytest.mark.parametrize(
    ("status", "word"),
    [
        ("pending", "is looked at"),
        ("running", "runs"),
        ("completed", "done"),
        ("error", "failed"),
        ("denied", "refused"),
        ("cancelled", "cancelled"),
    ],
)
def test_a_state_is_a_word(console, status, word):
    assert card(console.desk, call(status=status))["word"] == word


@pytest.mark.parametrize(
    ("verdict", "by", "told"),
    [
        ("allow", "", "allowed by the rules"),
        ("approved", "ada", "allowed by ada"),
        ("approved", "", "allowed by a person"),
        ("denied", "ada", "refused by ada"),
        ("deny", "", "refused by the rules"),
        ("", "", ""),
    ],
)
def test_by_whose_leave(console, verdict, by, told):
    assert card(console.desk, call(verdict=verdict, answered_by=by))["leave"] == told


def test_what_would_run_is_what_is_shown(console):
    """An edit that was tried, and that policy refused, is not what a plain yes lets run."""
    told = card(console.desk, call(status="pending", edited={"title": "tried"}))
    assert not told["edited"]
    shown = "".join(piece for block in told["takes"] for _, piece in block.spans)
    assert '"a"' in shown
    assert "tried" not in shown


def test_what_ran_is_what_is_shown(console):
    found = card(console.desk, call(edited={"title": "b"}, milliseconds=1500))
    assert "b" in str(found["takes"])
    assert found["edited"]
    assert found["took"] == "1.5 s"
    assert card(console.desk, call(milliseconds=3))["took"] == "3 ms"


@pytest.mark.parametrize(
    ("output", "kinds"),
    [
        (None, []),
        ("plain", ["text"]),
        ('{"a": 1}', ["json"]),
        ("[not json", ["text"]),
        ({"content": [{"type": "text", "text": "a"}, {"type": "odd"}]}, ["text", "json"]),
        ({"content": [], "structuredContent": {"a": 1}}, ["json"]),
        ({"content": "wrong"}, ["json"]),
        (0, ["json"]),
        (False, ["json"]),
    ],
)
def test_answers_of_every_shape(console, output, kinds):
    assert [each.kind for each in card(console.desk, call(output=output))["gives"]] == kinds


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda each: st.lists(each) | st.dictionaries(st.text(), each),
)


@given(JSON)
def test_no_answer_breaks_a_card(output):
    assert isinstance(chat_shown._output(output), list)
    assert chat_shown._pictures({"output": output}) == [] or output


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        ("image/svg+xml", DOT),
        ("text/html", DOT),
        ("image/png", '"><script>'),
        ("image/png", ""),
        ("image/png", None),
        ("image/png", "A" * 7_000_000),
        ("image/png\n", DOT),
    ],
)
def test_only_pictures_are_shown(kind, data):
    assert picture(kind, data) == ""
    assert picture("image/png", DOT) == f"data:image/png;base64,{DOT}"


def test_results_stand_in_the_card_of_their_call(console):
    result = {
        "kind": "tool_result",
        "tool_call_id": "c1",
        "text": "came",
        "status": "completed",
        "data": None,
    }
    found = {
        "messages": [
            said("user", text("do it"), id="m1"),
            said("assistant", text("I do."), INVOKED),
            said("tool", result, id="m3"),
            said("assistant", text("Done."), id="m4"),
        ]
    }
    shown = messages(console.desk, found)
    assert [each["id"] for each in shown] == ["m1", "m2", "m4"]
    assert [each["last"] for each in shown] == ["m1", "m3", "m4"]
    made = shown[1]["parts"][1]["card"]
    assert (made["server"], made["tool"], made["word"]) == ("echo", "write", "done")
    assert "came" in str(made["gives"])


def test_instructions_among_the_messages_are_shown(console):
    """An imported conversation may hold some; a model is sent them."""
    found = {"messages": [said("system", text("# Obey"), id="m1"), said("user", text("hi"), id="m2")]}
    shown = messages(console.desk, found)
    assert [each["role"] for each in shown] == ["system", "user"]
    assert "# Obey" in str(shown[0]["parts"][0]["blocks"][0])


def test_a_mark_changes_with_what_is_shown(console):
    before = message(console.desk, said("assistant", text("a"), INVOKED), {"r1/c1": call(status="running")})
    after = message(console.desk, said("assistant", text("a"), INVOKED), {"r1/c1": call()})
    assert before["mark"] != after["mark"]
    assert message(console.desk, said("assistant", text("ab")), {})["mark"] != before["mark"]


def test_what_a_person_wrote_is_shown_as_they_wrote_it(console):
    [part] = message(console.desk, said("user", text(f"# *not* {HOSTILE}\n  x")), {})["parts"]
    assert str(part["blocks"][0]).startswith('<p class="asis"># *not* &lt;script&gt;')
    assert "\u202e" not in str(part["blocks"][0])


def test_branches_are_counted(console):
    def branch(own, siblings):
        return message(console.desk, said("user", text("a"), id=own), {}, siblings)["branch"]

    assert branch("b", ("a", "b", "c")) == {"number": 2, "of": 3, "before": "a", "after": "c"}
    assert branch("a", ("a", "b"))["before"] == ""
    assert branch("b", ("a", "b"))["after"] == ""
    assert branch("a", ("a",)) is None
    assert branch("z", ("a", "b")) is None


def test_attachments_say_what_they_are(console):
    given = {"kind": "attachment", "text": "", "mime_type": "image/png", "size_bytes": 4200}
    [part] = message(console.desk, said("user", given | {"data": {"name": "a.png", "base64": DOT}}), {})[
        "parts"
    ]
    assert (part["name"], part["about"]) == ("a.png", "image/png 4 KB")
    assert part["picture"].startswith("data:image/png")
    [part] = message(console.desk, said("user", given | {"data": None}), {})["parts"]
    assert (part["name"], part["picture"]) == ("a file", "")


@pytest.mark.parametrize(
    ("state", "words"), [("aborted", "Stopped"), ("interrupted", "server"), ("failed", "broke")]
)
def test_what_was_not_finished_says_so(console, state, words):
    assert words in message(console.desk, said("assistant", text("a"), state=state), {})["ended"]


def test_a_summary_says_whether_its_place_is_here():
    snapshot = {"text": f"- *a* {HOSTILE}", "cutoff": "m1", "tokens": 5, "estimated": False}
    here = summary({"snapshot": snapshot, "messages": [{"id": "m1"}]})
    assert here["shown"]
    assert "<em>a</em> &lt;script&gt;" in here["html"]
    assert not summary({"snapshot": snapshot, "messages": [{"id": "m9"}]})["shown"]
    assert summary({"snapshot": None, "messages": []}) is None


def test_models_say_what_is_known_of_them():
    known = {"ref": "a/b", "provider": "a", "model": "b", "input": 128_000, "known": True}
    found = grouped([known, known | {"known": False}])
    assert [each["about"] for each in found["a"]] == ["128k", "limits not known, 128k taken"]
