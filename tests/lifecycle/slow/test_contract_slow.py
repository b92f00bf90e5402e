"""The approval lifecycle, case by case, at the doors that take longer to open."""

import pytest

from lifecycle.cases import CASES
from lifecycle.contract import at, play


@pytest.mark.parametrize(("door", "name"), at("eval", "api"))
def test_a_case_ends_as_it_should(stage, door, name):
    play(stage(door), CASES[name])
