import pytest

from checkrein.errors import NotFoundError
from checkrein.store.gateway_clients import CLIENTS


def test_a_person_is_told_how_to_see_who_has_a_token(store):
    with pytest.raises(NotFoundError, match=r"no client 'laptop'.*`checkrein clients list`"):
        store.write(lambda tx: CLIENTS.revoke(tx, "laptop", "ada", 5.0))


def test_its_tokens_can_be_told_by_how_they_begin():
    assert CLIENTS.new()[1].startswith("ckrein_")
