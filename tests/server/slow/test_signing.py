"""A real server's record: signed while it runs, in doubt after a kill, and told so by the next server."""

from checkrein.ledger.checkpoints import Signer
from checkrein.ledger.signing import CLOSED, RESUMED
from checkrein.ledger.verify import verify
from checkrein.settings.sources import state_dir
from checkrein.store.sqlite import SqliteStore
from patience import until


def report():
    store = SqliteStore.open(state_dir(), read_only=True)
    try:
        return verify(store, state_dir(), Signer(state_dir()).public)
    finally:
        store.close()


def test_the_first_records_of_a_server_are_signed_while_it_runs(serving, pre):
    """It comes by every two seconds, and what it signs first waits for that."""
    serving.hook(pre("ls"))
    until(lambda: report().checkpoints > 0 and report().unsigned == 0, failing="nothing was signed")
    assert report().ok
    serving.kill(15)
    assert serving.records()[-1]["kind"] == CLOSED
    assert report().ok


def test_a_kill_is_reported_until_the_next_server_has_signed_what_was_left(building, pre):
    for _ in range(5):
        building.hook(pre("ls"))
    building.kill()
    found = report()
    assert found.broken is None
    assert [each.kind for each in found.findings] == ["unsigned"]
    building.start()
    until(lambda: building.records(RESUMED), failing="the next server said nothing")
    (said,) = building.records(RESUMED)
    assert said["data"]["unsigned"] == found.unsigned
    assert report().ok
