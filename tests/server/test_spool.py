import os

import pytest

from checkrein.errors import InputError, LedgerError, StoreError, StoreFullError
from checkrein.runtime import spool_dir
from checkrein.server import spool
from checkrein.wire import encode_request


@pytest.fixture
def folder(home):
    spool_dir().mkdir(parents=True)
    return spool_dir()


def put(folder, name, body=b"{}"):
    (folder / name).write_bytes(encode_request("0.1", ("hook", "codex", "tell", "5"), body))


def names(folder):
    return sorted(each.name for each in folder.iterdir())


def test_reports_are_taken_in_order_and_removed(folder):
    for name in ("2.000000001-7", "1.000000000-9", "2.000000000-8"):
        put(folder, name, name.encode())
    taken = []
    assert spool.replay(folder, lambda request: taken.append(request.body)) == 3
    assert taken == [b"1.000000000-9", b"2.000000000-8", b"2.000000001-7"]
    assert names(folder) == []


def test_no_folder_is_no_report(folder):
    assert spool.waiting(folder / "none") == []
    assert spool.replay(folder / "none", lambda _: None) == 0


def test_a_part_is_left_alone_and_what_nobody_can_read_is_set_aside(folder):
    put(folder, "3.0-1.part")
    (folder / "1.0-1").write_bytes(b"garbage")
    put(folder, "2.0-1")

    def deliver(request):
        assert request.words[0] == "hook"

    assert spool.replay(folder, deliver) == 1
    assert names(folder) == ["1.0-1.unreadable", "3.0-1.part"]
    assert spool.waiting(folder) == []


@pytest.mark.parametrize("error", [InputError("what?"), ZeroDivisionError(), OSError(5, "x")])
def test_a_report_that_breaks_something_holds_up_no_other(folder, error):
    put(folder, "1.0-1", b"bad")
    put(folder, "2.0-1", b"good")
    taken = []

    def deliver(request):
        if request.body == b"bad":
            raise error
        taken.append(request.body)

    assert spool.replay(folder, deliver) == 1
    assert (taken, names(folder)) == ([b"good"], ["1.0-1.unreadable"])


@pytest.mark.parametrize("error", [StoreFullError("full"), StoreError("closed"), LedgerError("broken")])
def test_a_store_or_record_that_cannot_be_written_loses_no_report(folder, error):
    for number in range(3):
        put(folder, f"{number}.0-1")
    taken = []

    def deliver(request):
        if taken:
            raise error
        taken.append(request)

    with pytest.raises(StoreError):
        spool.replay(folder, deliver)
    assert names(folder) == ["1.0-1", "2.0-1"]


def test_a_pipe_a_link_and_a_folder_are_no_reports_and_are_not_waited_for(folder, home):
    os.mkfifo(folder / "1.0-1")
    (home / "elsewhere").write_bytes(encode_request("0.1", ("hook", "codex", "tell", "5"), b"{}"))
    (folder / "2.0-1").symlink_to(home / "elsewhere")
    (folder / "3.0-1").mkdir()
    (folder / "4.0-1").symlink_to("/dev/zero")
    put(folder, "5.0-1", b"ours")
    taken = []
    assert spool.replay(folder, lambda request: taken.append(request.body)) == 1
    assert taken == [b"ours"]
    assert names(folder) == [f"{number}.0-1.unreadable" for number in range(1, 5)]


def test_a_report_larger_than_any_of_ours_is_set_aside_unread(folder):
    put(folder, "1.0-1")
    os.truncate(folder / "1.0-1", spool._LARGEST + 1)
    assert spool.replay(folder, lambda _: None) == 0
    assert names(folder) == ["1.0-1.unreadable"]
