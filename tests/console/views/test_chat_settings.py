import re
from html import unescape

import pytest
from ground import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkrein.console.views.chat_settings import FIELDS
from checkrein.settings.project import project_of

EMPTY = dict.fromkeys(FIELDS, "")
UNSET = {"system": "", "project": "", "threshold": None, "retention_tokens": None, "auto_compress": None}


@pytest.fixture
def ask(console):
    return console.desk.ask


@pytest.fixture
def own(ask):
    return ask("chat.create", title="Plums")["id"]


@pytest.fixture
def kept(ask, own):
    def look():
        session = ask("chat.session", id=own)["session"]
        return {name: session[name] for name in FIELDS}

    return look


def typed(page):
    """What stands in the fields."""
    found = dict(re.findall(r'<input[^>]* name="(\w+)" value="([^"]*)"', page))
    found["system"] = re.search(r'name="system"[^>]*>\n?([^<]*)</textarea>', page)[1]
    chosen = re.search(r'<option value="(\w*)" selected', page.partition('name="auto_compress"')[2])
    found["auto_compress"] = chosen[1]
    return {name: unescape(found[name]) for name in FIELDS}


def test_set_shown_and_given_back(visitor, own, kept, tmp_path):
    wrote = {
        "system": "Be <b>brief</b>.\nAnd kind.",
        "project": str(tmp_path),
        "threshold": "82.5",
        "retention_tokens": "0",
        "auto_compress": "0",
    }
    answer = visitor.post(f"/chat/{own}/settings/keep", wrote)
    assert answer.status == 303
    assert answer.headers["location"].endswith(f"/chat/{own}")
    assert "are saved" in visitor.get(f"/chat/{own}").text
    assert kept() == {
        "system": "Be <b>brief</b>.\nAnd kind.",
        "project": project_of(tmp_path),
        "threshold": 0.825,
        "retention_tokens": 0,
        "auto_compress": False,
    }
    for page in (visitor.get(f"/chat/{own}/settings").text, visitor.piece(f"/chat/{own}/settings").text):
        assert typed(page) == {**wrote, "project": project_of(tmp_path)}
        assert "<b>brief" not in page
    assert visitor.piece(f"/chat/{own}/settings/keep", EMPTY).status == 200
    assert kept() == UNSET


@pytest.mark.parametrize(
    ("text", "share"), [("70", 0.7), ("100", 1.0), ("83,3", 0.833), ("95 %", 0.95), ("", None)]
)
def test_a_share_as_people_write_it(visitor, own, kept, text, share):
    assert visitor.piece(f"/chat/{own}/settings/keep", {**EMPTY, "threshold": text}).status == 200
    assert kept()["threshold"] == share


@pytest.mark.parametrize(
    ("field", "text", "words"),
    [
        ("threshold", "69.9", "From 70 to 100 percent"),
        ("threshold", "100.1", "From 70 to 100 percent"),
        ("threshold", "0.9", "From 70 to 100 percent"),
        ("threshold", "nan", "From 70 to 100 percent"),
        ("threshold", "1e2", "From 70 to 100 percent"),
        ("retention_tokens", "-1", "A whole number"),
        ("retention_tokens", "8,000", "without commas"),
        ("retention_tokens", "999999999", "100,000,000"),
        ("auto_compress", "perhaps", "Yes, no"),
        ("project", "plums", "from / on"),
        ("project", "/nowhere/at/all", "no such folder"),
        ("project", "~nobody-of-that-name/x", "cannot be a folder"),
        ("project", "/" + "x" * 300, "cannot be a folder"),
    ],
)
def test_what_cannot_be_is_said_at_its_field_and_nothing_is_lost(visitor, own, kept, field, text, words):
    wrote = {**EMPTY, "system": "Be brief.", field: text}
    for answer in (
        visitor.post(f"/chat/{own}/settings/keep", wrote),
        visitor.piece(f"/chat/{own}/settings/keep", wrote),
    ):
        assert answer.status == 400
        fault = re.search(rf'id="fault-{field}" role="alert">([^<]*)<', answer.text)[1]
        assert words in unescape(fault)
        assert answer.text.count('aria-invalid="true"') == 1
        assert answer.text.count("fault-") == 2
        if field != "auto_compress":
            assert typed(answer.text)[field] == text
        assert "Be brief." in answer.text
    assert kept() == UNSET


def test_a_folder_that_is_gone_may_stay(visitor, own, kept, ask):
    ask("chat.update", id=own, project="/gone/since")
    wrote = {**EMPTY, "project": "/gone/since", "system": "Go on."}
    assert visitor.piece(f"/chat/{own}/settings/keep", wrote).status == 200
    assert kept()["project"] == "/gone/since"


def test_what_the_authority_refuses_is_said_too(visitor, own, kept):
    answer = visitor.post(f"/chat/{own}/settings/keep", {**EMPTY, "system": "x" * 200_001})
    assert answer.status == 400
    assert 'id="fault-all"' in answer.text
    assert kept() == UNSET


def test_what_holds_where_nothing_is_written_is_said(visitor, own, user_settings):
    user_settings(
        '[chat]\nsystem = "Be <kind>."\nthreshold = 0.8\nauto_compress = false\nretention_tokens = 3000'
    )
    page = visitor.get(f"/chat/{own}/settings").text
    for words in ("Be &lt;kind&gt;.", "else 80 as the settings say", "(no)", "3,000 as the settings say"):
        assert words in page


def test_of_nobody(visitor):
    assert visitor.get("/chat/nobodys/settings").status == 404
    assert visitor.post("/chat/nobodys/settings/keep", EMPTY).status == 404


@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(wrote=st.fixed_dictionaries({}, optional={name: st.text(max_size=40) for name in FIELDS}))
def test_whatever_is_sent_is_kept_or_refused_in_words(visitor, own, wrote):
    sent = {name: text.encode("utf-8", "replace") for name, text in wrote.items()}
    assert visitor.piece(f"/chat/{own}/settings/keep", sent).status in (200, 400)
