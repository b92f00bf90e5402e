"""Outcomes on their way to the record."""

import logging
import threading

from checkrein.doors.library import reports
from checkrein.doors.library.reports import Reports
from checkrein.errors import StoreError
from checkrein.finishing import Outcome
from patience import until


def outcome(n):
    return Outcome(str(n), "success")


def test_they_are_recorded_together_a_moment_later():
    groups = []
    made = Reports(lambda given: groups.append(len(given)))
    for n in range(5):
        made.add(outcome(n))
    until(lambda: sum(groups) == 5)
    made.add(outcome(6))
    until(lambda: sum(groups) == 6)
    made.close()
    assert len(groups) <= 3


def test_whoever_flushes_finds_everything_recorded():
    groups = []
    made = Reports(groups.extend)
    made.add(outcome(1))
    made.flush()
    assert groups == [outcome(1)]
    made.flush()
    made.close()
    made.close()
    assert groups == [outcome(1)]


def test_many_are_not_kept_waiting(monkeypatch):
    monkeypatch.setattr(reports, "SECONDS", 60.0)
    groups = []
    made = Reports(lambda given: groups.append(len(given)))
    for n in range(reports.MOST):
        made.add(outcome(n))
    assert groups == [reports.MOST]
    made.close()


def test_what_cannot_be_recorded_is_said_and_holds_up_nobody(caplog):
    def full(_given):
        raise StoreError("The disk is full.")

    made = Reports(full)
    with caplog.at_level(logging.WARNING):
        made.add(outcome(1))
        made.close()
    assert "1 outcome(s) could not be recorded: The disk is full." in caplog.text


def test_none_is_lost_when_many_threads_report():
    lock, seen = threading.Lock(), []

    def record(given):
        with lock:
            seen.extend(each.entry for each in given)

    made = Reports(record)
    threads = [
        threading.Thread(target=lambda k=k: [made.add(outcome(1000 * k + n)) for n in range(500)])
        for k in range(4)
    ]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    made.close()
    assert len(seen) == len(set(seen)) == 2000
