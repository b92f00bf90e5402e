"""A place on loopback where notices really arrive."""

import pytest

from receiver import Receiver


@pytest.fixture
def receiver():
    made = Receiver()
    yield made
    made.stop()
