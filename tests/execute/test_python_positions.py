"""Places in a script, and calls that want their value at once."""

import pytest

from checkrein.execute.python_positions import LONGEST_READ, Script


def is_plain(source, call="tool(1)"):
    start = source.encode().index(call.encode())
    return Script(source).is_plain(start, start + len(call.encode()))


@pytest.mark.parametrize(
    "source",
    [
        "tool(1)",
        "x = tool(1)\nprint(x)",
        "return tool(1)",
        "tool(1)['a']",
        "print(tool(1))",
        "if tool(1):\n    pass",
        "for x in tool(1):\n    pass",
        "x: dict = tool(1)\nx['a']",
        "f'{tool(1)}'",
        "é = 'ü'; é += tool(1)",
        "json.dumps(tool(1))",
        "a, b = tool(1)",
        "x = tool(1)\n[x, 2]",
        "x = tool(1)\nif x:\n    return x",
        "if y:\n    return tool(1)",
        "def f():\n    x = tool(1)\n    return x['a']",
        "fs__move(path=tool(1))",
        "codemode.fs__move({'path': [tool(1)]})",
        "call_tool('fs__move', {'path': tool(1)})",
        "x = tool(1)\nfs__move(path=x)",
        "x = tool(1)\nfs__move(path=[x])",
        "json.dumps([tool(1), tool(2)])",
        "x = tool(1)\njson.dumps([x])",
    ],
)
def test_a_value_used_at_once(source):
    assert is_plain(source)


@pytest.mark.parametrize(
    "source",
    [
        "await tool(1)",
        "t = tool(1)\nawait t",
        "a = tool(1)\nawait asyncio.gather(a, b)",
        "await asyncio.gather(tool(1), tool(2))",
        "all_of = [tool(1) for i in y]",
        "tasks.append(tool(1))",
        "tasks = [tool(1)]",
        "t = tool(1)\ntasks.append(t)",
        "def f():\n    return tool(1)",
        "f = lambda: tool(1)",
        "await asyncio.gather(*[tool(1), tool(2)])",
        "x = tool(1)\nfs__move(path='a')\nawait asyncio.gather(x)",
        "x = tool(1)\nboth = [x]\nfs__move(n=len(both))",
        "later(path=tool(1))",
    ],
)
def test_a_call_somebody_waits_for_later(source):
    assert not is_plain(source)


@pytest.mark.parametrize(
    "source", ["def f(:", "(" * 6000, "x" + ".a" * 8000, "-" * 16000 + "1", "tool(1)\n" * 2500, "\0"]
)
def test_what_cannot_be_read_has_no_plain_calls(source):
    assert not Script(source).is_plain(0, 7)
    assert len("tool(1)\n" * 2500) > LONGEST_READ


def test_places_are_lines_from_one_and_columns_in_characters():
    script = Script("a\r\né = f()\rü()\n")
    raw = "a\r\né = f()\rü()\n".encode()
    assert script.place(0) == (1, 0)
    assert script.place(raw.index(b"f()")) == (2, 4)
    assert script.place(raw.index("ü".encode())) == (3, 0)
