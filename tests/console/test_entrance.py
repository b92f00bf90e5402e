from urllib.parse import urlsplit


def test_signing_in_leads_on_without_a_redirect(stranger, console):
    answer = stranger.request("GET", urlsplit(console.link()).path)
    assert answer.status == 200
    assert 'http-equiv="refresh"' in answer.text


def test_any_other_address_says_how_to_sign_in(stranger):
    for path in ("/", "/inbox", "/calls?x=1", "/at/x"):
        answer = stranger.request("GET", path)
        assert answer.status in (401, 404)
    assert "checkrein open" in stranger.request("GET", "/inbox").text


def test_signing_out_is_final(visitor):
    assert "signed out" in visitor.post("/sign-out").text
    assert visitor.get("/feed").status == 401
