import pytest

from checkrein.doors.gateway.signed_in import (
    SignedIn,
    forget_sign_in,
    is_signed_in,
    keep_sign_in,
    read_sign_in,
    sign_in_file,
)

URL = "https://a.example/mcp"
KEPT = SignedIn(url=URL, tokens={"access_token": "t"}, expires_at=5.0, client={"client_id": "c"})


def test_what_is_kept_can_be_read_by_us_alone():
    keep_sign_in("mail", KEPT)
    keep_sign_in("mail", KEPT)
    path = sign_in_file("mail")
    assert path.stat().st_mode & 0o777 == 0o600 and path.parent.stat().st_mode & 0o777 == 0o700
    assert read_sign_in("mail", URL) == KEPT
    assert [each.name for each in path.parent.iterdir()] == ["mail.json"]


@pytest.mark.invariant(
    "a token is sent to no other address than the one it was made for, and for no other client"
)
def test_a_token_is_good_for_one_address():
    keep_sign_in("mail", KEPT)
    for other in ("https://b.example/mcp", f"{URL}/", ""):
        assert read_sign_in("mail", other) == SignedIn(url=other)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"url": 1}', b'{"url": "x", "tokens": "t"}'])
def test_what_cannot_be_read_is_nothing(content):
    keep_sign_in("mail", KEPT)
    sign_in_file("mail").write_bytes(content)
    assert read_sign_in("mail", URL) == SignedIn(url=URL)


def test_it_can_be_forgotten():
    keep_sign_in("mail", KEPT)
    assert forget_sign_in("mail") and not forget_sign_in("mail")
    assert read_sign_in("mail", URL) == SignedIn(url=URL)


def test_only_tokens_make_a_sign_in(home):
    assert not is_signed_in("mail")
    keep_sign_in("mail", SignedIn(url=URL, client={"client_id": "c"}))
    assert not is_signed_in("mail")
    keep_sign_in("mail", KEPT)
    assert is_signed_in("mail")
    sign_in_file("mail").write_bytes(b"{")
    assert not is_signed_in("mail")
