import threading

import pytest

from checkrein.cli.servers_asking import ask_server, pairs, progress
from checkrein.errors import InputError, NotFoundError
from patience import PATIENCE


def test_a_line_of_progress_appears_once_it_takes_a_while(monkeypatch, capsys):
    monkeypatch.setattr("checkrein.cli.servers_asking._QUIET_SECONDS", 0.01)
    said = threading.Event()
    monkeypatch.setattr("checkrein.cli.servers_asking.click.echo", lambda text, err: said.set())
    with progress("Starting notes"):
        assert said.wait(PATIENCE)


def test_what_is_quick_says_nothing(capsys):
    with progress("Starting notes"):
        pass
    with progress(""):
        pass
    assert capsys.readouterr() == ("", "")


def test_the_servers_errors_arrive_as_they_were(run, server):
    with pytest.raises(NotFoundError, match="ghost"):
        ask_server("upstream.remove", name="ghost")


def test_pairs_are_a_name_and_a_value():
    assert pairs(("A=b=c", " D = e "), "=", "--env") == {"A": "b=c", "D": "e"}


@pytest.mark.parametrize("text", ["s3cret", "=s3cret"])
def test_what_stands_in_the_wrong_place_is_not_repeated(text):
    with pytest.raises(InputError) as found:
        pairs((text,), "=", "--env")
    assert "s3cret" not in str(found.value)
