import pytest

import checkrein
from checkrein.call import tool_call
from checkrein.errors import CheckreinError, ConfigError


def test_the_public_names_are_the_ones_in_their_modules():
    assert checkrein.tool_call is tool_call
    assert checkrein.CheckreinError is CheckreinError
    assert checkrein.__version__


def test_explain_is_the_function_a_script_needs():
    assert checkrein.explain({"tool": "Read", "arguments": {"file_path": "a"}})["verdict"] == "allow"
    with pytest.raises(ConfigError):
        checkrein.explain({"tool": "Read"}, {"settings": {"trust": {"initial_score": 0.9}}})


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="nothing_here"):
        checkrein.nothing_here  # noqa: B018
