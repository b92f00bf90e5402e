import pytest

from checkrein.console.visits import status_of
from checkrein.errors import InputError, LedgerError, NotFoundError, PersonOnlyError, StoreBusyError


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InputError, 400),
        (NotFoundError, 404),
        (PersonOnlyError, 403),
        (StoreBusyError, 503),
        (LedgerError, 400),
    ],
)
def test_every_error_has_its_status(error, status):
    assert status_of(error("x")) == status


def test_what_is_said_after_a_form_is_said_once(visitor):
    assert visitor.post("/health/verify").status == 303
    assert "Checking the whole record" in visitor.get("/health").text
    assert "Checking the whole record." not in visitor.get("/health").text


def test_a_form_of_another_type_has_no_token(visitor):
    answer = visitor.post("/health/verify", Content_Type="application/json")
    assert answer.status == 403


def test_the_badge_counts_what_waits(visitor, ask):
    ask("make a")
    ask("make b")
    ask("make b")
    assert "<span data-waiting-number>2</span>" in visitor.get("/calls").text


def test_what_a_page_fetches_by_itself_keeps_nobody_signed_in(visitor, console):
    signin = console.desk.signin
    [session] = signin._sessions.values()
    for ask, counts in ((visitor.piece, False), (visitor.get, True)):
        session.used_at = before = session.used_at - 100
        ask("/inbox/more?room=1")
        assert (session.used_at != before) is counts


def test_pieces_say_what_is_wrong_in_a_line(visitor):
    answer = visitor.piece("/inbox/card/none")
    assert answer.status == 404
    assert "<html" not in answer.text
