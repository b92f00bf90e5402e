"""Every page knows where it is, and has a test of its own beside this one."""

import re

import pytest


@pytest.mark.parametrize("name", ["chat", "calls", "trust", "policy", "sessions", "servers", "health"])
def test_the_page_one_is_on_is_marked(visitor, name):
    text = visitor.get(f"/{name}").text
    assert re.search(rf'href="{visitor.place}/{name}" aria-current="page"', text)
    assert text.count('aria-current="page"') == 1
