import pytest
from jinja2 import TemplateAssertionError

from checkrein.console.rendering import FOLDER, _pages, page, render


def test_everything_put_into_a_page_is_visible_and_escaped():
    text = render("_error.html", message="<b>\u202e&", remedy='"')
    assert "&lt;b&gt;⟨U+202E⟩&amp;" in text
    assert "<b>" not in text


def test_no_template_can_switch_escaping_off():
    with pytest.raises(TemplateAssertionError):
        _pages.from_string("{{ '<b>' | safe }}")
    for path in (FOLDER / "pages").glob("*.html"):
        text = path.read_text(encoding="utf-8")
        assert "autoescape" not in text, path
        assert "Markup" not in text, path
        assert " style=" not in text, path
        assert " onclick" not in text, path


def test_no_script_makes_markup_from_text():
    for path in (FOLDER / "static").glob("*.js"):
        text = path.read_text(encoding="utf-8")
        for word in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "eval(",
            "http:",
            "https:",
        ):
            assert word not in text, (path, word)


def test_what_cannot_be_encoded_is_sent_all_the_same():
    assert page("plain.html", 404, title="\ud800", text="x").status_code == 404
