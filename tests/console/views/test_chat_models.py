import pytest

KEY = "sk-very-secret-key-0123456789"


@pytest.fixture
def added(visitor, home, monkeypatch):
    monkeypatch.setenv("MY_KEY", KEY)

    def add(**more):
        sent = {"name": "local", "kind": "compatible", "base_url": "http://127.0.0.1:9/v1", "models": "a, b"}
        return visitor.post("/chat/models/keep", sent | more)

    return add


def test_the_built_in_model_is_always_there(visitor):
    page = visitor.get("/chat/models").text
    assert 'data-provider="demo"' in page
    assert "built in, works offline" in page
    assert "Remove it" not in page


def test_added_changed_switched_off_and_removed(visitor, added, console):
    assert added().status == 303
    page = visitor.get("/chat/models").text
    assert 'data-provider="local"' in page
    assert "2 models: a, b" in page
    visitor.post("/chat/models/keep", {"name": "local", "models": "c", "base_url": "http://127.0.0.1:9/v1"})
    assert "1 model: c" in visitor.get("/chat/models").text
    visitor.post("/chat/models/of/local/off")
    assert "not used" in visitor.get("/chat/models").text
    visitor.post("/chat/models/of/local/on")
    visitor.post("/chat/models/default", {"model": "local/c"})
    assert console.desk.ask("chat.status")["model"] == "c"
    visitor.post("/chat/models/of/local/remove")
    assert 'data-provider="local"' not in visitor.get("/chat/models").text


def test_a_provider_nobody_reaches_says_so_in_plain_words(visitor, added):
    added()
    for what in ("test", "refresh"):
        assert visitor.post(f"/chat/models/of/local/{what}").status == 303
        page = visitor.get("/chat/models").text
        assert '<p class="told bad"' in page
        assert "Traceback" not in page


@pytest.mark.parametrize("sent", [{"name": ""}, {"kind": "nonsense"}, {"base_url": "ftp://x"}])
def test_what_cannot_be_right_is_refused(added, sent):
    assert added(**sent).status == 400


def test_what_cannot_be_done_is_said(visitor, added):
    added()
    visitor.post("/chat/models/of/local/explode")
    assert "cannot be done" in visitor.get("/chat/models").text
    visitor.post("/chat/models/of/nobody/test")
    assert "told bad" in visitor.get("/chat/models").text


def test_no_key_ever_comes_back(visitor, added):
    answer = added(key=KEY)
    for path in ("/chat/models", "/chat", "/calls", "/health"):
        assert KEY not in visitor.get(path).text, path
    assert KEY not in answer.text
