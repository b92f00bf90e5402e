"""What holds in one conversation, set in a real browser: by mouse, by keys, on a phone, without scripts."""

import json

import pytest

from chat_page import answer, composer, say
from checkrein.console.views.chat_attached import LIMITS
from console import browsing

pytestmark = browsing.MARKS
pipeline = browsing.pipeline
PERCENT, TOKENS = "when this much of the context is used", "tokens of the newest messages"


@pytest.fixture
def session(talk, path):
    return lambda: talk("chat.session", id=path.rpartition("/")[2])["session"]


def opened(tab):
    tab.get_by_role("link", name="Settings", exact=True).click()
    dialog = tab.get_by_role("dialog")
    dialog.get_by_role("heading", name="Settings of this conversation").wait_for()
    return dialog


def test_set_in_a_dialog_and_wrong_ones_said_where_they_stand(open_tab, path, session, tmp_path):
    tab = open_tab(path=path)
    composer(tab).fill("half a thought")
    dialog = opened(tab)
    dialog.get_by_label("Instructions").fill("Say a d j k.")
    dialog.get_by_label("Project").fill("plums")
    dialog.get_by_label(PERCENT).fill("50")
    dialog.get_by_role("button", name="Save").click()
    dialog.get_by_text("From 70 to 100 percent").wait_for()
    assert dialog.get_by_text("A folder is written from / on").is_visible()
    assert tab.evaluate("document.activeElement.name") == "project"
    assert dialog.get_by_label("Instructions").input_value() == "Say a d j k."
    dialog.get_by_label("Project").fill(str(tmp_path))
    dialog.get_by_label(PERCENT).fill("85")
    dialog.get_by_label(TOKENS).fill("500")
    dialog.get_by_label("by itself").select_option("no, only when I say so")
    dialog.get_by_role("button", name="Save").click()
    dialog.wait_for(state="hidden")
    found = session()
    assert (found["system"], found["project"]) == ("Say a d j k.", str(tmp_path))
    assert (found["threshold"], found["retention_tokens"], found["auto_compress"]) == (0.85, 500, False)
    assert composer(tab).input_value() == "half a thought"
    dialog = opened(tab)
    assert dialog.get_by_label(PERCENT).input_value() == "85"
    dialog.get_by_label(PERCENT).fill("")
    dialog.get_by_label("by itself").select_option(index=0)
    dialog.get_by_role("button", name="Save").click()
    dialog.wait_for(state="hidden")
    assert (session()["threshold"], session()["auto_compress"]) == (None, None)
    # A refused form is a 400, which a browser's console notes.
    assert [each for each in tab.troubles if "400" not in each] == []


def test_with_keys_alone(open_tab, path, session):
    tab = open_tab(path=path)
    link = tab.get_by_role("link", name="Settings", exact=True)
    link.focus()
    tab.keyboard.press("Enter")
    tab.get_by_role("dialog").wait_for()
    assert tab.evaluate("document.activeElement.name") == "system"
    tab.keyboard.type("c / a d s ?")
    for _ in range(3):
        tab.keyboard.press("Tab")
    tab.keyboard.type("90")
    tab.keyboard.press("Enter")
    tab.get_by_role("dialog").wait_for(state="hidden")
    assert (session()["system"], session()["threshold"]) == ("c / a d s ?", 0.9)
    assert tab.evaluate("document.activeElement.dataset.open") == "settings"
    tab.keyboard.press("Enter")
    tab.get_by_role("dialog").wait_for()
    tab.keyboard.press("Escape")
    tab.get_by_role("dialog").wait_for(state="hidden")
    assert tab.troubles == []


@pytest.mark.parametrize("width", [1280, 390, 320])
def test_nothing_is_wider_than_the_screen(open_tab, path, talk, width):
    talk("chat.update", id=path.rpartition("/")[2], title="w" * 180, project="/" + "x" * 200)
    tab = open_tab(path=path, viewport={"width": width, "height": 700}, has_touch=width < 600)
    dialog = opened(tab)
    dialog.get_by_label(PERCENT).fill("1")
    dialog.get_by_role("button", name="Save").click()
    dialog.get_by_text("From 70 to 100 percent").wait_for()
    assert dialog.evaluate("each => each.scrollWidth - each.clientWidth") <= 0
    dialog.get_by_role("button", name="Close").click()
    tab.goto(tab.base + path + "/settings")
    over = tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert over <= 0


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_it_shuts_nobody_out(open_tab, path, theme):
    from axe_playwright_python.sync_playwright import Axe

    tab = open_tab(path=path, color_scheme=theme, bypass_csp=True)
    dialog = opened(tab)
    assert violations(Axe().run(tab)) == []
    dialog.get_by_label(TOKENS).fill("many")
    dialog.get_by_role("button", name="Save").click()
    dialog.get_by_text("A whole number").wait_for()
    assert violations(Axe().run(tab)) == []
    tab.goto(tab.base + path + "/settings")
    tab.wait_for_selector("body[data-live]")
    assert violations(Axe().run(tab)) == []


def violations(found):
    return [
        (each["id"], node["target"], node.get("failureSummary"))
        for each in found.response["violations"]
        for node in each["nodes"]
    ]


def test_without_scripts(open_tab, path, session):
    tab = open_tab()
    context = tab.context.browser.new_context(
        java_script_enabled=False, storage_state=tab.context.storage_state()
    )
    try:
        plain = context.new_page()
        plain.goto(tab.base + path)
        plain.get_by_role("link", name="Settings", exact=True).click()
        plain.get_by_label("Instructions").fill("Be brief.")
        plain.get_by_label(PERCENT).fill("101")
        plain.get_by_role("button", name="Save").click()
        plain.get_by_text("From 70 to 100 percent").wait_for()
        assert plain.get_by_label("Instructions").input_value() == "Be brief."
        plain.get_by_label(PERCENT).fill("75")
        plain.get_by_role("button", name="Save").click()
        plain.get_by_text("The settings of this conversation are saved.").wait_for()
        assert plain.url.endswith(path)
        assert (session()["system"], session()["threshold"]) == ("Be brief.", 0.75)
    finally:
        context.close()


# -- how much goes along ------------------------------------------------------------------------------------


def attach(tab, name, size):
    """What could be a picture of that size, as if it had been picked."""
    tab.evaluate(
        """([name, size]) => {
          const held = new DataTransfer();
          const bytes = new Uint8Array(size).fill(255);
          bytes.set([137, 80, 78, 71, 13, 10, 26, 10]);
          held.items.add(new File([bytes], name, { type: "image/png" }));
          const field = document.querySelector("[data-files]");
          field.files = held.files;
          field.dispatchEvent(new Event("change"));
        }""",
        [name, size],
    )


def test_files_go_along_up_to_what_the_page_says(open_tab, path, talk):
    tab = open_tab(path=path)
    attach(tab, "huge.png", LIMITS["largest"] + 1)
    tab.get_by_text("huge.png is larger than 8 MB.").wait_for()
    attach(tab, "one.png", LIMITS["largest"])
    tab.locator(".chip", has_text="one.png").wait_for()
    attach(tab, "over.png", LIMITS["together"] - LIMITS["largest"] + 1)
    tab.get_by_text("over.png does not fit: 11 MB of files go with one message.").wait_for()
    attach(tab, "two.png", LIMITS["together"] - LIMITS["largest"])
    tab.locator(".chip", has_text="two.png").wait_for()
    assert tab.locator(".chip").count() == 2
    # Words that are three letters each on their way do not fit beside them.
    composer(tab).evaluate("each => { each.value = 'é'.repeat(900000); }")
    tab.get_by_role("button", name="Send").click()
    tab.get_by_text("This is too much for one message.").wait_for()
    say(tab, "/say Seen.")
    answer(tab, "Seen.")
    parts = talk("chat.session", id=path.rpartition("/")[2])["messages"][0]["parts"]
    assert sum(each.get("size_bytes") or 0 for each in parts) == LIMITS["together"]
    assert tab.locator(".said.user .attached").count() == 2
    assert tab.troubles == []


def test_a_conversation_comes_back_up_to_what_the_page_says(open_tab, path, talk, tmp_path):
    tab = open_tab(path=path)
    told = talk("chat.export", id=path.rpartition("/")[2], form="json")["text"]
    session = json.loads(told) | {"messages": []}
    text = json.dumps(session)
    tab.get_by_text("Import", exact=True).first.click()
    field = tab.locator("[data-import-file]")
    large = tmp_path / "large.json"
    large.write_text(text + " " * (LIMITS["imported"] + 1 - len(text)))
    field.set_input_files(large)
    tab.get_by_role("button", name="Import").click()
    tab.get_by_text("large.json is larger than 11 MB, the most that can be imported.").wait_for()
    large.write_text(text + " " * (LIMITS["imported"] - len(text)))
    field.set_input_files(large)
    tab.get_by_role("button", name="Import").click()
    tab.get_by_text("“Trial” is here.").wait_for()
    assert tab.url != tab.base + path
