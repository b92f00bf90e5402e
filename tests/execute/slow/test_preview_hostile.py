"""Every hostile script comes to an end, with what it is known to come to."""

import pytest

from execute.previews import HOSTILE, check_hostile


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_scripts_come_to_an_end(name):
    check_hostile(name)
