"""Counting tokens: the same as the reference tokeniser offline, and estimates that say so."""

import json
import subprocess
import sys

import pytest
from ground import VECTORS

from checkrein.doors.chat import Message, Part
from checkrein.doors.chat import tokens as subject
from checkrein.doors.chat.tokens import (
    ATTACHED,
    LONGEST,
    Breakdown,
    Count,
    breakdown,
    count,
    count_conversation,
    count_message,
    counted,
    estimate,
    estimated_response_tokens,
    written,
)
from checkrein.errors import InputError

# The texts hold line separators of every kind; only a newline ends a row.
ROWS = [json.loads(line) for line in (VECTORS / "tokens.jsonl").read_text("utf-8").split("\n") if line]
TEXTS = [row for row in ROWS if row.get("type") == "text"]


def said(text, role="user", **more):
    return Message("m", role, (Part(text=text),), **more)


@pytest.fixture
def without_tokeniser(monkeypatch):
    subject._tokeniser.cache_clear()
    monkeypatch.setitem(sys.modules, "splintr", None)
    yield
    subject._tokeniser.cache_clear()


@pytest.mark.parametrize("encoding", ["cl100k_base", "o200k_base"])
@pytest.mark.parametrize("row", TEXTS, ids=lambda row: row["id"])
def test_texts(row, encoding):
    assert count(row["text"], encoding) == row[encoding]
    assert counted(row["text"], encoding.removesuffix("_base")) == Count(row[encoding], estimated=False)


def test_there_are_texts_to_count():
    assert len(TEXTS) > 50


def test_an_encoding_nobody_knows_is_refused():
    with pytest.raises(InputError, match="o200k or cl100k"):
        count("a", "p50k_base")


def test_a_spelled_out_control_token_is_text():
    for encoding in ("cl100k", "o200k"):
        assert count("<|im_start|>", encoding) > 1
        assert count("<|endoftext|>", encoding) > 1


def test_half_a_surrogate_pair_is_counted():
    assert count("a\ud800b") == count("a?b")
    assert estimate("a\ud800b") == estimate("a?b")


def test_a_message_is_its_text_and_five_tokens():
    assert count_message(Message("m", "assistant")) == Count(5)
    assert count_message(said("Hello world")).tokens == count("Hello world") + 5
    two = Message("m", "user", (Part(text="Hello"), Part(text=" world")))
    assert count_message(two).tokens == count("Hello") + count(" world") + 5


def test_tool_calls_and_their_results_are_counted_as_they_are_sent():
    call = Part(kind="tool_invocation", tool_call_id="c1", tool_name="search", data={"q": "tea"})
    assert count_message(Message("m", "assistant", (call,))).tokens == count('search\n{"q":"tea"}') + 5
    for output, text in (("plain", "plain"), (0, "0"), (False, "false"), ({"a": [1]}, '{"a":[1]}')):
        part = Part(kind="tool_result", tool_call_id="c1", data=output)
        assert count_message(Message("m", "tool", (part,))).tokens == count(text) + 5
    failed = Part(kind="tool_result", tool_call_id="c1", error="no such file")
    assert count_message(Message("m", "tool", (failed,))).tokens == count("no such file") + 5


def test_hostile_values_are_written_down_all_the_same():
    deep = []
    for _ in range(100_000):
        deep = [deep]
    assert written({"a": "\ud800"}) == '{"a": "\\ud800"}'
    assert written(deep) == "(nested too deeply to be shown)"
    assert written(10**40) == "1" + "0" * 40
    for data in (deep, {"a": "\ud800"}, float("nan"), b"x", {(1, 2): object}):
        assert count_message(Message("m", "tool", (Part(kind="tool_result", data=data),))).tokens > 5


def test_what_is_only_kept_for_the_record_costs_nothing():
    part = Part(kind="metadata", text="x " * 500, data={"usage": 3})
    assert count_message(Message("m", "assistant", (part,))) == Count(5)


def test_a_picture_is_estimated_and_a_text_file_is_counted():
    picture = Part(kind="attachment", mime_type="image/png", size_bytes=12345)
    assert count_message(Message("m", "user", (picture,))) == Count(5 + ATTACHED, estimated=True)
    file = Part(kind="attachment", mime_type="text/plain", text="a line of text")
    assert count_message(Message("m", "user", (file,))) == Count(5 + count("a line of text"))


def test_a_conversation_and_its_likely_answer():
    messages = [said("word " * 100), said("word " * 200, "assistant")]
    total = count("word " * 100) + count("word " * 200) + 10
    found = count_conversation(messages, output_limit=16384)
    assert (found.total_tokens, found.estimated_response_tokens) == (total, total // 10)
    assert count_conversation(messages, output_limit=7).estimated_response_tokens == 7
    assert not found.estimated
    assert count_conversation(messages, output_limit=7, approximate=True).estimated
    assert count_conversation([], output_limit=7).total_tokens == 0


@pytest.mark.parametrize(
    ("total", "limit", "expected"), [(0, 100, 0), (99, 100, 9), (1000, 100, 100), (5000, 100, 100)]
)
def test_the_answer_is_a_tenth_at_most_the_output_limit(total, limit, expected):
    assert estimated_response_tokens(total, limit) == expected


def test_a_breakdown_adds_up_to_what_is_sent():
    tools = [{"name": "read", "inputSchema": {"type": "object"}}]
    context = [
        said("the summary", "system", summary=True),
        said("be kind", "system"),
        said("hi"),
        said("ho", "assistant"),
    ]
    found = breakdown(context, instructions="You help.", tools=tools)
    assert found == Breakdown(
        system=count("You help.") + 5 + count("be kind") + 5,
        summary=count("the summary") + 5,
        messages=count("hi") + count("ho") + 10,
        tools=count('[{"name":"read","inputSchema":{"type":"object"}}]'),
    )
    assert found.total == found.system + found.summary + found.messages + found.tools
    assert breakdown([]) == Breakdown()
    assert breakdown([], approximate=True).estimated


def test_without_the_tokeniser_counts_are_estimates_that_say_so(without_tokeniser):
    assert not subject.exact()
    found = counted("The quick brown fox jumps over the lazy dog.")
    assert found.estimated
    assert 8 <= found.tokens <= 16
    assert counted("") == Count(0, estimated=False)
    assert count_message(said("hello")).estimated
    assert breakdown([said("hello")]).estimated
    assert count_conversation([said("hello")], output_limit=9).estimated


def test_a_text_longer_than_any_model_takes_is_estimated_at_once():
    assert counted("a" * LONGEST + "a") == Count(LONGEST // 4 + 1, estimated=True)


def test_estimates_of_ordinary_text_are_near_and_rather_high():
    english = "Reads the file, checks what changed since yesterday and tells whoever asked about it. " * 20
    code = "def check(value: int) -> bool:\n    return value > 0 and value not in seen\n" * 20
    japanese = "サーバーの起動に失敗しました。設定を確認してください。" * 20
    for text in (english, code, japanese):
        assert 0.9 * count(text) <= estimate(text) <= 2.2 * count(text)


def test_nothing_is_loaded_before_something_is_counted():
    code = "import sys, checkrein.doors.chat.compression; print(*sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"splintr", "asyncio", "sqlite3"} & set(ran.stdout.split())
