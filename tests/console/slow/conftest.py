"""A console as the server starts it, in place of one at the listener all tests share."""

import pytest


@pytest.fixture
def console(own_console):
    return own_console
