"""What clients read of a script."""

import pytest

from checkrein.doors.gateway.scripts import results
from checkrein.execute.sandbox import Ended, Failed


def shown(value, output=""):
    return results.shown(results.done("run-1", Ended(value, output), []))


@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("words", [{"type": "text", "text": "words"}]),
        ({"b": 1, "a": [None]}, [{"type": "text", "text": '{"a":[null],"b":1}'}]),
        (None, [{"type": "text", "text": "null"}]),
        ([], [{"type": "text", "text": "[]"}]),
        ({"type": "text", "text": "hi"}, [{"type": "text", "text": "hi"}]),
        ({"type": "text", "text": 7}, [{"type": "text", "text": "7"}]),
        ({"type": "json", "value": {"x": 1}}, [{"type": "text", "text": '{"x":1}'}]),
        (
            {"type": "image", "data": "AAAA", "mimeType": "image/gif"},
            [{"type": "image", "data": "AAAA", "mimeType": "image/gif"}],
        ),
        (
            [{"type": "text", "text": "a"}, {"type": "image", "data": "AAAA"}],
            [{"type": "text", "text": "a"}, {"type": "image", "data": "AAAA", "mimeType": "image/png"}],
        ),
        ({"type": "other", "text": "a"}, [{"type": "text", "text": '{"text":"a","type":"other"}'}]),
        ({"type": "image"}, [{"type": "text", "text": '{"type":"image"}'}]),
        ({"type": ["text"], "text": "a"}, [{"type": "text", "text": '{"text":"a","type":["text"]}'}]),
    ],
)
def test_a_result_is_text_json_or_images(value, content):
    result = shown(value)
    assert result["content"] == content and "isError" not in result
    assert result["structuredContent"]["result"] == value
    assert result["structuredContent"]["status"] == "done"


def test_what_was_printed_comes_with_the_result():
    result = shown(1, "one\ntwo")
    assert result["content"][1]["text"] == "Console:\none\ntwo"
    assert result["structuredContent"]["output"] == "one\ntwo"


def test_a_failure_says_what_and_where():
    kept = results.failed("run-1", Failed("error", "no such name", 3, "printed"), [])
    result = results.shown(kept)
    assert result["isError"] and "(error) on line 3: no such name" in result["content"][0]["text"]
    assert result["structuredContent"]["error"] == {"kind": "error", "message": "no such name", "line": 3}
    assert results.shown(results.cancelled("run-1", "enough", "", []))["isError"]
    assert results.failed("r", Failed("error", "x"), [], "calls")["error"]["kind"] == "calls"


def test_who_must_wait_hears_what_for():
    waiting = [{"tool": "srv__echo", "question": "q1"}]
    paused = results.paused("run-1", waiting)
    assert paused["structuredContent"] == {"run_id": "run-1", "status": "paused", "waiting": waiting}
    assert "resume_run" in paused["content"][0]["text"] and "srv__echo" in paused["content"][0]["text"]
    assert results.paused("run-1", [])["structuredContent"]["status"] == "running"
