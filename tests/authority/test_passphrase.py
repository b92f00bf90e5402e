import stat

import pytest

from checkrein.authority import passphrase
from checkrein.errors import InputError, PersonOnlyError
from checkrein.settings.sources import state_dir

RIGHT = "correct horse"


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """A minute that can be moved, and nobody's guesses from before."""
    now = [1_000.0]
    monkeypatch.setattr(passphrase.time, "monotonic", lambda: now[0])
    passphrase._tries.clear()
    yield now
    passphrase._tries.clear()


def test_nothing_is_asked_while_none_is_set(do):
    assert do("passphrase.state") == {"is_set": False}
    passphrase.check(None)
    passphrase.check("anything")


def test_it_is_set_checked_changed_and_removed(do):
    do("passphrase.set", new=RIGHT)
    assert do("passphrase.state") == {"is_set": True}
    passphrase.check(RIGHT)
    with pytest.raises(PersonOnlyError):
        do("passphrase.set", new="another horse")
    with pytest.raises(PersonOnlyError):
        do("passphrase.set", new="", old="wrong horse")
    do("passphrase.set", new="another horse", old=RIGHT)
    with pytest.raises(PersonOnlyError):
        passphrase.check(RIGHT)
    passphrase.check("another horse")
    do("passphrase.set", new="", old="another horse")
    assert do("passphrase.state") == {"is_set": False}


@pytest.mark.parametrize("new", ["short", None, 12345678, ["correct horse"], "\ud800" * 9])
def test_what_is_no_passphrase_is_refused_and_the_old_one_stays(do, new):
    do("passphrase.set", new=RIGHT)
    with pytest.raises(InputError):
        do("passphrase.set", new=new, old=RIGHT)
    passphrase.check(RIGHT)


@pytest.mark.parametrize("given", [None, "", "wrong horse", "Correct horse", 7, b"correct horse", ["x"]])
def test_anything_else_is_wrong(do, given):
    do("passphrase.set", new=RIGHT)
    with pytest.raises(PersonOnlyError):
        passphrase.check(given)


@pytest.mark.invariant("a wrong passphrase is counted before it is answered")
def test_guessing_is_slowed_down_for_a_minute(do, fresh):
    do("passphrase.set", new=RIGHT)
    for number in range(passphrase._MOST_TRIES):
        with pytest.raises(PersonOnlyError, match="needs"):
            passphrase.check(f"wrong {number}")
    with pytest.raises(PersonOnlyError, match="Too many"):
        passphrase.check(RIGHT)
    fresh[0] += passphrase._WINDOW
    passphrase.check(RIGHT)


def test_asking_without_one_is_no_guess(do):
    do("passphrase.set", new=RIGHT)
    for _ in range(passphrase._MOST_TRIES + 1):
        with pytest.raises(PersonOnlyError, match="needs"):
            passphrase.check(None)
    passphrase.check(RIGHT)


def test_the_file_is_the_users_alone_and_holds_no_passphrase(do, recorded):
    do("passphrase.set", new=RIGHT)
    path = passphrase.passphrase_file()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    whole = b"".join(each.read_bytes() for each in state_dir().rglob("*") if each.is_file())
    assert RIGHT.encode() not in whole
    assert recorded("passphrase_changed")[-1]["set"] is True
    first = path.read_text()
    do("passphrase.set", new=RIGHT, old=RIGHT)
    assert path.read_text() != first, "every passphrase has a salt of its own"


@pytest.mark.parametrize("text", ["", ":", "zz:zz", "00:", "é"])
def test_a_broken_file_lets_nobody_in(text):
    path = passphrase.passphrase_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    for given in (RIGHT, "", None):
        with pytest.raises((PersonOnlyError, ValueError)):
            passphrase.check(given)
