import base64
import json
import re

import pytest

from checkrein.doors.chat import Part
from patience import until

HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'{{7*7}}\u202egnp.exe\x1b[31m"


@pytest.fixture
def ask(console):
    return console.desk.ask


@pytest.fixture
def own(ask):
    return ask("chat.create", title="Plums")["id"]


@pytest.fixture
def add(chat):
    def put(own, role, text, **more):
        return chat()._sessions.add_message(own, role, [Part(text=text)], **more)

    return put


def ready(visitor, path, words):
    def page():
        text = visitor.get(path).text
        return text if words in text else ""

    return until(page, failing=lambda: visitor.get(path).text)


def test_an_empty_list_says_how_to_begin(visitor):
    page = visitor.get("/chat").text
    assert "No conversation yet." in page
    assert "No provider of models is set up" in page
    assert 'aria-current="page">Chat' in page


def test_begun_with_the_first_message(visitor):
    answer = visitor.post("/chat/new", {"text": "/say Hello **you**."})
    assert answer.status == 303
    path = answer.headers["location"].removeprefix(visitor.place)
    page = ready(visitor, path, "<strong>you</strong>")
    assert "/say Hello **you**." in page
    assert visitor.post("/chat/new", {"attachments": "nonsense"}).status == 400


def test_a_page_says_where_its_line_begins(visitor, own, ask):
    page = visitor.get(f"/chat/{own}").text
    last = ask("chat.session", id=own)["last"]
    assert re.search(rf'data-line="/at/[\w-]+/chat/{own}/live\?after=\d+_{last}"', page)
    assert "Nothing was said yet." in page
    assert visitor.get("/chat/nobodys").status == 404


def test_no_page_makes_hostile_text_a_tag(visitor, ask, add):
    own = ask("chat.create", title=HOSTILE)["id"]
    add(own, "user", HOSTILE)
    add(own, "assistant", HOSTILE)
    for path in ("/chat", f"/chat/{own}", f"/chat/{own}/conversation", "/chat/list", "/chat?q=alert"):
        text = visitor.get(path).text
        assert "<script>alert" not in text, path
        assert "<img src=x" not in text, path
        assert "49" not in re.sub(r'data-\w+="[^"]*"|\d{3,}', "", text).split("gnp")[0][-20:], path
        assert not {"\u202e", "\x1b"} & set(text), path


@pytest.mark.parametrize(
    ("sent", "field", "value"),
    [
        ({"title": "Pears"}, "title", "Pears"),
        ({"color": "blue"}, "color", "blue"),
        ({"system": "Be brief."}, "system", "Be brief."),
        ({"model": "demo/demo"}, "model", "demo"),
    ],
)
def test_changed(visitor, ask, own, sent, field, value):
    assert visitor.post(f"/chat/{own}/change", sent).status == 303
    assert ask("chat.session", id=own)["session"][field] == value


def test_pinned_and_archived_and_back(visitor, ask, own):
    for field, at in (("pinned", "pinned_at"), ("archived", "archived_at")):
        for word in ("1", "0"):
            visitor.piece(f"/chat/{own}/change", {field: word})
            assert bool(ask("chat.session", id=own)["session"][at]) == (word == "1")


@pytest.mark.parametrize("sent", [{"title": " "}, {"color": "#nonsense"}, {"model": "nobody/none"}])
def test_what_cannot_be_is_refused(visitor, own, sent):
    assert visitor.piece(f"/chat/{own}/change", sent).status in (400, 404)


def test_back_to_the_conversation_that_is_open(visitor, own, ask):
    other = ask("chat.create", title="Other")["id"]
    answer = visitor.post(f"/chat/{other}/change", {"pinned": "1", "here": own})
    assert answer.headers["location"].endswith(f"/chat/{own}")
    answer = visitor.post(f"/chat/{other}/change", {"pinned": "1", "here": "//evil.example"})
    assert answer.headers["location"].endswith("/chat")


def test_deleted(visitor, own):
    assert visitor.post(f"/chat/{own}/delete").status == 303
    assert visitor.get(f"/chat/{own}").status == 404
    assert "the record of its calls stays" in visitor.get("/chat").text.lower()


def test_nothing_changes_without_the_token(visitor, own, ask):
    visitor.csrf = "made-up"
    for path in ("change", "delete", "send", "answer"):
        assert visitor.post(f"/chat/{own}/{path}", {"title": "x"}).status == 403
    assert ask("chat.session", id=own)["session"]["title"] == "Plums"


@pytest.mark.parametrize(("ending", "form"), [("json", "json"), ("md", "markdown")])
def test_out_and_in_again(visitor, own, add, ending, form):
    add(own, "user", "What are plums?")
    add(own, "assistant", "Plums are *blue*.")
    answer = visitor.get(f"/chat/{own}/export.{ending}")
    assert answer.headers["content-disposition"] == f'attachment; filename="Plums.{ending}"'
    file = base64.urlsafe_b64encode(answer.body).decode()
    made = visitor.post("/chat/import", {"file": file, "form": form})
    assert made.status == 303, made.text
    assert "<em>blue</em>" in visitor.request("GET", made.headers["location"]).text
    assert visitor.post("/chat/import", {"text": answer.text, "form": form}).status == 303


@pytest.mark.parametrize("sent", [{"file": "%%%"}, {"file": "gIA="}, {"text": "nonsense"}, {"text": ""}])
def test_what_was_never_exported_is_refused(visitor, sent):
    assert visitor.post("/chat/import", sent).status == 400
    assert visitor.get("/chat/x/export.exe").status in (400, 404)


def test_found_with_its_words_marked(visitor, own, add):
    said = add(own, "user", "The quince is yellow")
    page = visitor.get("/chat?q=quince").text
    assert "<mark>quince</mark>" in page
    assert f"at={said.id}#m-{said.id}" in page
    assert "Nothing says" in visitor.piece("/chat/list?q=nowhere").text


def test_a_long_conversation_comes_in_pages(visitor, own, add):
    said = [add(own, ("user", "assistant")[number % 2], f"number {number} here") for number in range(130)]
    page = visitor.get(f"/chat/{own}").text
    assert page.count('class="said ') == 60
    assert "number 129 here" in page
    earlier = re.search(r'data-earlier="([^"]+)"', page)[1]
    assert earlier == said[70].id
    more = visitor.piece(f"/chat/{own}/conversation?before={earlier}").text
    assert "number 69 here" in more
    assert "number 70 here" not in more
    around = visitor.get(f"/chat/{own}?at={said[5].id}").text
    assert f'id="m-{said[5].id}"' in around
    assert "To the newest messages" in around
    assert visitor.piece(f"/chat/{own}/conversation?count=130").text.count('class="said ') == 130
    assert visitor.get(f"/chat/{own}?count=nonsense").status == 400


def test_a_message_of_another_branch_is_shown_with_its_branch(visitor, own, add, ask):
    first = add(own, "user", "one way")
    add(own, "assistant", "answered so")
    other = add(own, "user", "another way", parent="")
    assert "answered so" not in visitor.get(f"/chat/{own}").text
    page = visitor.get(f"/chat/{own}?at={first.id}").text
    assert "answered so" in page
    assert "1/2" in page
    assert "another way" in visitor.get(f"/chat/{own}?at={other.id}").text


def test_a_summary_is_told_where_it_begins(visitor, own, add, chat):
    from checkrein.doors.chat import Snapshot

    add(own, "user", "long ago")
    cut = add(own, "assistant", "answered then")
    add(own, "user", "now")
    snapshot = Snapshot(
        id="n1", text=f"- {HOSTILE}", cutoff=cut.id, tokens=12, created_at=1.0, estimated=True
    )
    chat()._sessions.add_snapshot(own, snapshot)
    page = visitor.get(f"/chat/{own}").text
    assert "Earlier messages are a summary for the model (12 tokens, estimated)" in page
    assert page.index("answered then") < page.index("data-compressed") < page.index('class="asis">now')
    assert "<script>alert" not in page


def test_a_model_that_is_gone_says_so(visitor, own, chat):
    chat()._sessions.update(own, provider="gone", model="old")
    assert "gone/old (not there now)" in visitor.get(f"/chat/{own}").text


def test_a_provider_with_a_fault_is_an_alert(visitor, home):
    path = home / "config" / "checkrein" / "providers.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"providers": {"a": {"kind": "openai", "models": ["m"]}}}))
    path.chmod(0o600)
    page = visitor.get("/chat").text
    assert "No provider of models is set up" not in page


def test_what_is_wrong_now_is_told_to_an_open_page(visitor, own, chat, ask):
    assert "No provider of models" in visitor.piece("/chat/alerts").text
    assert "nobody vouched" not in visitor.piece(f"/chat/alerts?open={own}").text
    chat()._sessions.update(own, tainted_by="<web>")
    assert "<b>&lt;web&gt;</b> nobody vouched for" in visitor.piece(f"/chat/alerts?open={own}").text
    assert "nobody vouched" not in visitor.piece("/chat/alerts").text
    chat()._sessions.update(own, tainted_by="import")
    assert "came from a file" in visitor.get(f"/chat/{own}").text
    assert visitor.piece("/chat/alerts?open=nobodys").status == 404


def test_who_is_not_signed_in_sees_nothing(stranger, visitor, own):
    assert stranger.request("GET", f"{visitor.place}/chat/{own}").status == 401
    assert "Plums" not in stranger.request("GET", f"{visitor.place}/chat").text
