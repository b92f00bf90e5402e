"""What telling costs, counted or estimated."""

import sys
from types import SimpleNamespace

from checkrein.execute.stub_costs import costs, definitions
from checkrein.execute.stubs import Described, estimated_tokens

TOOLS = [
    Described(
        f"s__tool_{number}",
        "Do a thing with care. Then explain at length what was done, and to whom it was done.",
        {
            "type": "object",
            "properties": {"path": {"type": "string", "description": "Where the thing is"}},
            "required": ["path"],
            "additionalProperties": False,
        },
    )
    for number in range(100)
]


def test_saying_less_costs_less(monkeypatch):
    monkeypatch.setitem(sys.modules, "splintr", None)
    for language in ("typescript", "python"):
        found = costs(TOOLS, language)
        assert not found.exact
        assert found.definitions == estimated_tokens(definitions(TOOLS))
        assert (
            found.definitions
            > found.whole
            > found.sentence
            > found.signatures
            > found.names
            > found.search
            > 0
        )


def test_what_searching_needs_is_counted_too():
    bare, own = costs(TOOLS, "python", counter=len), costs(TOOLS, "python", own="x" * 50, counter=len)
    assert own.search == bare.search + 50
    assert own.definitions == bare.definitions
    assert bare.exact


def test_an_installed_tokenizer_counts_and_never_obeys(monkeypatch):
    tokenizer = SimpleNamespace(encode_ordinary=lambda text: text.split())
    package = SimpleNamespace(Tokenizer=SimpleNamespace(from_pretrained=lambda name: tokenizer))
    monkeypatch.setitem(sys.modules, "splintr", package)
    found = costs(TOOLS[:1], "typescript")
    assert found.exact
    assert found.search == len(
        "// 1 tool: find them with search_tools(query), read them with get_tools(names).".split()
    )
