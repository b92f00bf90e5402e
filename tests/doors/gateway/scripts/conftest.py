"""What the tests of scripts stand on: a gateway with scripts turned on, and clients that run them."""

import pytest

from doors.gateway.scripts.bench import Bench


@pytest.fixture
def bench(house, user_settings):
    return Bench(house, user_settings)
