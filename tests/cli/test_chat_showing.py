import click

from checkrein.cli.chat_showing import found_lines, gauge_lines, model_rows, tool_lines


def test_a_model_whose_limits_nobody_knows_says_so():
    rows = model_rows(
        [
            {"ref": "a/b", "kind": "openai", "input": 128_000, "default": True},
            {"ref": "c/d", "kind": "compatible", "input": None},
        ]
    )
    assert rows == [("a/b", "128,000", "openai", "default"), ("c/d", "unknown", "compatible", "")]


def test_tools_stand_under_their_server_with_what_rules_say():
    tool = {"tool": "read", "description": "Reads.\x1b[1m\nMore.", "on": False, "policy": "ask"}
    lines = tool_lines([{"server": "notes", "state": "running", "on": True, "tools": [tool]}])
    assert [click.unstyle(each) for each in lines] == ["notes running", "  ASK   read off Reads.\\x1b[1m"]
    assert "servers add" in tool_lines([])[0]


def test_a_full_context_says_what_helps():
    gauge = {
        "percent": 90.0,
        "limit": 1000,
        "model": "m",
        "breakdown": {"system": 100, "messages": 800},
        "estimated": True,
        "needs_compression": True,
        "note": "unknown model",
    }
    text = "\n".join(gauge_lines(gauge))
    for part in ("90 % of 1,000", "system", "800", "estimate", "/compress", "unknown model"):
        assert part in text


def test_what_was_found_stands_on_one_line():
    hits = [
        {"session": "s", "title": "T", "message": "", "snippet": [[True, "T"]]},
        {"session": "s", "title": "T", "message": "m", "snippet": [[False, "a\n"], [True, "b\x1b"]]},
    ]
    assert found_lines(hits) == ["s  T", "s  T: a b\\x1b"]
