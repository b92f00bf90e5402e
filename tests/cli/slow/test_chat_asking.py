import pytest

from checkrein.cli.chat_asking import ask_chat, session_named, sessions
from checkrein.errors import InputError, NotFoundError

pytestmark = pytest.mark.usefixtures("server")


def test_a_session_is_named_by_its_beginning():
    made = [ask_chat("create", title=str(number))["id"] for number in range(2)]
    ask_chat("update", id=made[1], archived=True)
    assert [session_named(each) for each in made] == made
    assert session_named(made[0][:-1]) == made[0]
    assert session_named(made[1][:-1]) == made[1]
    with pytest.raises(InputError, match="More than one"):
        session_named(made[0][:3])
    with pytest.raises(NotFoundError):
        session_named("nobody")
    with pytest.raises(InputError):
        session_named("")


def test_all_sessions_come_however_many(monkeypatch):
    monkeypatch.setattr("checkrein.cli.chat_asking._MOST", 2)
    made = {ask_chat("create")["id"] for _ in range(5)}
    assert {each["id"] for each in sessions()} == made
    assert sessions(archived=True) == []
