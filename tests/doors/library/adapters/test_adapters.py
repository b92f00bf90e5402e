"""What every adapter promises: nobody pays for an unused framework, nothing is earned elsewhere."""

import subprocess
import sys

import pytest

from checkrein.doors.library.adapters import HandedOn

FRAMEWORKS = {"pydantic_ai", "langchain", "langchain_core", "langgraph", "mcp", "mcp_types", "pydantic"}


def test_a_gate_pulls_in_no_framework():
    code = (
        "import sys, tempfile, checkrein, checkrein.doors.library.adapters\n"
        "with checkrein.Gate(tempfile.mkdtemp()): pass\n"
        "print(*{name.partition('.')[0] for name in sys.modules})"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert not FRAMEWORKS & set(loaded.split())


def test_what_is_handed_on_counts_as_unfinished(room, user_settings):
    user_settings('[[rules]]\naction = "allow"\ntool = "water"\n')
    gate = room.open()

    def elsewhere(_):
        raise HandedOn("later")

    with pytest.raises(HandedOn) as handed:
        gate.call("mcp__garden__water", {}, elsewhere)
    assert (handed.value.value, room.last().result) == ("later", "cancelled")
