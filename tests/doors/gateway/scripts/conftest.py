"""What the tests of scripts stand on: a gateway with scripts turned on, and clients that run them."""

import pytest

from doors.gateway.scripts.bench import Bench
from javascript_ground import ready_made


@pytest.fixture
def bench(house, user_settings):
    ready_made()
    return Bench(house, user_settings)
