"""Other programs' words for what we have: what is taken over, and that the rest is said."""

from importing import one


def test_what_we_have_no_place_for_in_a_sign_in_is_said():
    item = one({"url": "https://x.test/mcp", "oauth": {"clientId": "mine", "tokenUrl": "https://y.test"}})
    assert (item.state, item.entry["oauth"]) == ("new", {"clientId": "mine"})
    assert "Not taken over: oauth.tokenUrl." in item.notes
    assert "oauth" not in one({"url": "https://x.test/mcp", "oauth": {"enabled": False}}).entry


def test_other_words_for_the_same():
    item = one(
        {"command": ["npx", "-y"], "args": ["p"], "type": "local", "timeout": 60000, "alwaysAllow": ["x"]}
    )
    assert item.entry == {"command": "npx", "args": ["-y", "p"], "timeout": 60.0}
    assert item.notes == ("Not taken over: alwaysAllow.",)
    assert one({"serverUrl": "https://x.test", "disabled": True}).entry == {
        "url": "https://x.test",
        "enabled": False,
    }


def test_nobody_vouches_for_a_server_by_way_of_an_import():
    assert "trusted" not in one({"command": "x", "trusted": True}).entry
