import sqlite3

from checkrein.console.checking import Check
from checkrein.settings.sources import state_dir
from checkrein.store.sqlite import FILE
from patience import PATIENCE


def checked(pipeline):
    check = Check(pipeline)
    assert check.start()
    check.join(PATIENCE)
    assert not check.is_running
    return check


def test_a_good_record_verifies(pipeline, work):
    work(5)
    check = checked(pipeline)
    assert check.report.ok
    assert check.report.records > 5
    assert check.trouble == ""
    assert check.finished_at == pipeline.clock()


def test_a_record_found_broken_is_not_written_on(pipeline, work):
    work(3)
    with sqlite3.connect(state_dir() / FILE) as line:
        line.execute("DROP TRIGGER record_no_update")
        line.execute("UPDATE record SET body = replace(body, 'Read', 'Reed') WHERE kind = 'decided'")
    line.close()
    check = checked(pipeline)
    assert check.trouble
    assert pipeline.ledger.broken == check.trouble
