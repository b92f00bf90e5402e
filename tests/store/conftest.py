"""The store under test: the same behaviour is asked of every backend. A new one joins with a line here."""

import pytest

from checkrein.settings.sources import state_dir
from checkrein.store.sqlite import SqliteStore

BACKENDS = {"sqlite": lambda: SqliteStore.open(state_dir())}


@pytest.fixture(params=BACKENDS)
def store(request):
    made = BACKENDS[request.param]()
    yield made
    made.close()
