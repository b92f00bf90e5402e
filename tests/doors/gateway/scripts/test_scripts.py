"""Scripts cost nothing where nobody turned them on."""

import subprocess
import sys

from doors.gateway.scripts.bench import run


def test_without_the_section_there_are_no_tools_of_ours(bench, user_settings):
    user_settings("")

    async def work():
        guest = await bench.house.guest()
        names = {each["name"] for each in (await guest.ask("tools/list"))["tools"]}
        assert "srv__echo" in names and not names & {"eval", "search_tools", "get_tools", "resume_run"}
        assert (await guest.error("tools/call", {"name": "eval", "arguments": {"code": "1"}}))[
            "code"
        ] == -32602

    run(bench, work)


def test_no_sandbox_is_loaded_before_the_first_script():
    code = """
import sys
import checkrein.doors.gateway.hub
heavy = {"quickjs_rs", "wasmtime", "tree_sitter", "tree_sitter_typescript"}
print(sorted(heavy & set(sys.modules)))"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
