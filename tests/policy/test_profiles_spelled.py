"""Names in profiles as scripts spell them: they refuse and ask, and never allow."""

import pytest

from checkrein.execute.names import plain_name
from policy.test_profiles import word


@pytest.mark.invariant("a name as scripts spell it refuses and asks too, and allows nothing")
@pytest.mark.parametrize(
    ("lists", "expected"),
    [
        ({"deny": ["swf_gitlab__get_sum"]}, "deny"),
        ({"deny": ["swf-gitlab__get-sum"]}, "deny"),
        ({"deny": ["swf_gitlab__*"]}, "deny"),
        ({"ask": ["swf_gitlab__get_*"]}, "ask"),
        ({"deny": ["swf_gitlab__get"]}, None),
        ({"allow": ["swf_gitlab__get_sum"]}, "deny"),
        ({"allow": ["swf-gitlab__get-sum"]}, "allow"),
        ({"allow": ["swf-gitlab__get-sum"], "ask": ["swf_gitlab__*"]}, "ask"),
    ],
)
def test_a_list_may_spell_a_tool_as_scripts_do(lists, expected):
    assert word({"p": lists}, "get-sum", "swf-gitlab") == expected


@pytest.mark.parametrize(("server", "tool"), [("a-b", "c.d"), ("9a", "b"), ("a", "über/x"), ("a", "b c")])
def test_it_is_the_spelling_scripts_use(server, tool):
    assert word({"p": {"deny": [plain_name(server, tool)]}}, tool, server) == "deny"


def test_a_tool_of_no_server_has_one_name():
    assert word({"p": {"deny": ["get_sum"]}}, "get-sum") is None
