import pytest

from checkrein.call import Category, tool_call
from checkrein.classify import classify


def risk(command):
    return classify(tool_call({"tool": "Bash", "arguments": {"command": command}}))


@pytest.mark.parametrize(
    "command,category,domain",
    [
        ("ls -la", "low", "file_read"),
        ("git status", "low", "git_read"),
        ("pytest", "low", "test_run"),
        ("rm -rf build", "high", "file_write"),
        ("git push origin main", "high", "git_remote"),
        ("git commit", "medium", "git_local"),
        ("curl https://api.example.com/pay", "critical", "network"),
        ("checkrein rules add allow", "critical", "network"),
        ("custom-build-tool --flag", "medium", "shell_exec"),
    ],
)
def test_a_plain_command_is_known_by_its_name(command, category, domain):
    found = risk(command)
    assert (found.category, found.domains) == (Category[category], (domain,))


@pytest.mark.parametrize(
    "command",
    ["ls; rm -rf /", "ls && x", "ls $(x)", "ls `x`", "cat <(x)", "ls\nrm x", "ls > x", "ls | sh", "'ls'", ""],
)
def test_whatever_is_more_than_a_plain_command_is_opaque(command):
    found = risk(command)
    assert (found.category, found.complexity, found.domains) == (Category.medium, 1.0, ("shell_exec",))


@pytest.mark.parametrize("command", [None, 5, ["ls"], {"a": 1}])
def test_a_command_that_is_no_text_is_opaque(command):
    assert risk(command).complexity == 1.0


@pytest.mark.parametrize(
    "tool,arguments,category,domain",
    [
        ("Read", {"file_path": "a"}, "low", "file_read"),
        ("Write", {"file_path": "docs/a.md"}, "medium", "docs_write"),
        ("Write", {"file_path": "docs/../src/a.py"}, "medium", "file_write_src"),
        ("Edit", {"file_path": "/p/src/a.py"}, "medium", "file_write_src"),
        ("Write", {"file_path": "/etc/cron.d/docs/x"}, "medium", "file_write"),
        ("Write", {}, "medium", "file_write"),
        ("WebFetch", {"url": "https://x"}, "medium", "web_read"),
        ("mcp__mail__send", {}, "medium", "mcp:mail"),
        ("Mystery", {}, "medium", "_global"),
    ],
)
def test_a_tool_is_known_by_its_name_and_path(tool, arguments, category, domain):
    found = classify(tool_call({"tool": tool, "arguments": arguments, "project": "/p"}))
    assert (found.category, found.domains) == (Category[category], (domain,))
