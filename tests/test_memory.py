"""Remembered risks are what classify says now, or they are not used."""

import os

import pytest

from checkrein import memory as memory_module
from checkrein.call import Effect, tool_call
from checkrein.classify import Tables, classify
from checkrein.memory import KEPT, LONGEST, Memory


@pytest.fixture
def counted(monkeypatch):
    """How often the classifier was really asked."""
    asked = []

    def counting(call, **more):
        asked.append(call)
        return classify(call, **more)

    monkeypatch.setattr(memory_module, "classify", counting)
    return asked


def bash(command, **more):
    return tool_call(
        {"tool": "Bash", "arguments": {"command": command}, "project": "/p", "cwd": "/p", **more}
    )


def test_the_same_call_is_classified_once(counted):
    memory, tables = Memory(), Tables.load()
    first = memory.risk(bash("cat a.py"), tables, ())
    assert memory.risk(bash("cat a.py", session="other"), tables, ()) == first
    assert len(counted) == 1


@pytest.mark.parametrize(
    "other",
    [
        {"cwd": "/q"},
        {"project": "/q"},
        {"server": "s"},
        {"annotations": {"readOnlyHint": True}},
        {"history": [Effect("read", "secret", "/p/.env")]},
    ],
    ids=str,
)
def test_whatever_classify_looks_at_makes_another_call(counted, other):
    memory, tables = Memory(), Tables.load()
    memory.risk(bash("cat a.py"), tables, ())
    memory.risk(bash("cat a.py", **other), tables, ())
    assert len(counted) == 2


def test_other_tables_and_other_own_folders_are_asked_again(counted):
    memory = Memory()
    memory.risk(bash("cat a.py"), Tables.load(), ())
    memory.risk(bash("cat a.py"), Tables.load({"cat": {"args": "read*", "risk": "high"}}), ())
    memory.risk(bash("cat a.py"), Tables.load(), ("/p/a.py",))
    assert len(counted) == 3


@pytest.mark.invariant("a remembered risk is used only where classify would see exactly the same")
def test_a_remembered_risk_is_used_only_where_classify_would_see_exactly_the_same(tmp_path, counted):
    """A link that leads elsewhere since is another risk."""
    memory, tables = Memory(), Tables.load()
    (tmp_path / "notes.txt").write_text("x")
    (tmp_path / "link").symlink_to(tmp_path / "notes.txt")
    call = tool_call(
        {"tool": "Read", "arguments": {"file_path": str(tmp_path / "link")}, "project": str(tmp_path)}
    )
    assert memory.risk(call, tables, ()).category.name == "low"
    os.unlink(tmp_path / "link")
    (tmp_path / "link").symlink_to("/etc/shadow")
    assert memory.risk(call, tables, ()).category.name == "high"
    assert len(counted) == 2


@pytest.mark.invariant("arguments are left out only where classify looks past them")
def test_arguments_are_left_out_only_where_classify_looks_past_them(counted):
    memory, tables = Memory(), Tables.load()

    def call(**arguments):
        return tool_call({"tool": "find", "server": "notes", "arguments": arguments, "project": "/p"})

    first = memory.risk(call(text="hello"), tables, ())
    assert memory.risk(call(text="something else"), tables, ()) == first and len(counted) == 1
    assert memory.risk(call(path="/etc/shadow"), tables, ()).category > first.category


def test_long_calls_are_not_kept_and_old_ones_go(counted):
    memory, tables = Memory(), Tables.load()
    memory.risk(bash("echo " + "x" * LONGEST), tables, ())
    assert not memory._known
    for number in range(KEPT + 10):
        memory.risk(tool_call({"tool": "Read", "arguments": {"file_path": f"/p/{number}"}}), tables, ())
    assert len(memory._known) == KEPT
