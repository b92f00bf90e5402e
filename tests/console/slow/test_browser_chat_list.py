"""The list of conversations and what stands beside one: search, compression, attachments, tools, models."""

import http.server
import re
import threading

import pytest

from chat_page import answer, composer, say
from console import browsing

pytestmark = browsing.MARKS
pipeline = browsing.pipeline


@pytest.fixture
def made(talk):
    def make(title):
        return talk("chat.create", title=title)["id"]

    return make


def titles(tab):
    return tab.locator("[data-session] .name").all_inner_texts()


def row(tab, title):
    return tab.locator("[data-session]").filter(has=tab.locator(".name", has_text=title))


def menu(tab, title):
    row(tab, title).locator("details.menu > summary").click()
    return row(tab, title).locator("details.menu")


def test_renamed_in_its_place(open_tab, made):
    tab = open_tab(path=f"/chat/{made('Old name')}")
    menu(tab, "Old name").get_by_role("button", name="Rename").click()
    field = row(tab, "Old name").get_by_role("textbox")
    field.fill("thrown away")
    field.press("Escape")
    assert titles(tab) == ["Old name"]
    row(tab, "Old name").get_by_role("link").first.press("F2")
    field.fill("New <b>name</b>")
    field.press("Enter")
    row(tab, "New <b>name</b>").wait_for()
    tab.locator("[data-title]", has_text="New <b>name</b>").wait_for()
    assert tab.troubles == []


def test_pinned_archived_coloured_deleted(open_tab, made, talk):
    ids = {name: made(name) for name in ("one", "two", "three")}
    tab = open_tab(path="/chat")
    assert titles(tab) == ["three", "two", "one"]
    menu(tab, "one").get_by_role("button", name="Pin").click()
    tab.locator("[data-session]").first.get_by_text("one").wait_for()
    menu(tab, "two").get_by_role("button", name="blue").click()
    tab.locator("[data-session].c-blue").wait_for()
    menu(tab, "three").get_by_role("button", name="Archive").click()
    row(tab, "three").wait_for(state="detached")
    tab.get_by_role("link", name="Archive").click()
    menu(tab, "three").get_by_role("button", name="Take out of the archive").click()
    tab.get_by_text("Nothing is archived.").wait_for()
    tab.get_by_role("link", name="Back from the archive").click()
    row(tab, "three").wait_for()
    opened = menu(tab, "three")
    opened.get_by_text("Delete", exact=True).click()
    opened.get_by_role("button", name="Delete it").click()
    tab.get_by_text("The conversation is deleted.").wait_for()
    assert {each["id"] for each in talk("chat.sessions")["sessions"]} == {ids["one"], ids["two"]}


def test_a_menu_stays_open_while_the_list_changes(open_tab, made, talk):
    own = made("Plums")
    tab = open_tab(path=f"/chat/{own}")
    held, later = [], []

    def hold(route):
        (later if held else held).append(route)
        if later:
            route.continue_()

    tab.route("**/chat/list?*", hold)
    # The list is asked for again, and its answer is on its way when the menu is opened.
    talk("chat.update", id=own, title="Pears")
    tab.locator("[data-title]", has_text="Pears").wait_for()
    while not held:
        tab.wait_for_timeout(10)
    opened = menu(tab, "Plums")
    with tab.expect_response("**/chat/list?*") as answered:
        held[0].continue_()
    answered.value.finished()
    browsing.drawn(tab)
    assert opened.get_by_role("link", name="Export as JSON").is_visible()
    # What is new is shown once the menu is closed.
    opened.get_by_role("link", name="Export as JSON").press("Escape")
    row(tab, "Pears").wait_for()
    assert titles(tab) == ["Pears"] and tab.troubles == []


@pytest.mark.parametrize("form", ["JSON", "Markdown"])
def test_out_and_in_again(open_tab, made, tmp_path, form):
    tab = open_tab(path=f"/chat/{made('Plums')}")
    say(tab, "/say Plums are *blue*.")
    answer(tab, "Plums are blue.")
    with tab.expect_download() as waited:
        menu(tab, "Plums").get_by_role("link", name=f"Export as {form}").click()
    target = tmp_path / waited.value.suggested_filename
    waited.value.save_as(target)
    tab.goto(tab.base + "/chat")
    tab.wait_for_selector("body[data-live]")
    tab.locator("summary", has_text="Import").click()
    tab.get_by_label(re.compile("An exported conversation")).set_input_files(target)
    tab.get_by_role("button", name="Import").click()
    tab.wait_for_url("**/chat/*")
    answer(tab, "Plums are blue.")
    assert tab.locator(".said").count() == 2
    assert len(titles(tab)) == 2
    assert tab.troubles == []


def test_found_by_its_words_and_opened_there(open_tab, made, talk):
    first, other = made("Fruit"), made("Other")
    tab = open_tab(path=f"/chat/{first}")
    say(tab, "/say The quince is yellow <b>and</b> hard.")
    answer(tab, "The quince")
    for number in range(3):
        say(tab, f"/long {400 + number}")
        answer(tab, "")
    tab.goto(tab.base + f"/chat/{other}")
    tab.wait_for_selector("body[data-live]")
    field = tab.get_by_role("searchbox")
    field.press_sequentially("quince")
    tab.locator("[data-hit] mark", has_text="quince").first.wait_for()
    assert tab.locator("[data-hit] b", has_text="Fruit").count() >= 1
    field.press("Enter")
    tab.wait_for_url(f"**/chat/{first}?at=*")
    sought = tab.locator(".said.sought")
    sought.wait_for()
    assert "quince" in sought.inner_text()
    assert sought.evaluate(
        "each => { const r = each.getBoundingClientRect(); return r.top >= 0 && r.top < innerHeight; }"
    )
    field.fill("nowhere to be found")
    tab.get_by_text("Nothing says").wait_for()
    tab.get_by_role("link", name="Close").click()
    row(tab, "Fruit").wait_for()
    assert tab.troubles == []


def test_a_message_on_another_branch_or_far_back_is_found(open_tab, made, talk, chat):
    own = made("Long")
    sessions = chat()._sessions
    for number in range(150):
        sessions.add_message(own, "user" if number % 2 == 0 else "assistant", [text(f"number {number} here")])
    tab = open_tab(path=f"/chat/{own}")
    assert tab.locator(".said").count() == 60
    tab.get_by_role("link", name="Earlier messages").click()
    tab.wait_for_function("() => document.querySelectorAll('.said').length === 120")
    tab.get_by_role("link", name="Earlier messages").click()
    tab.wait_for_function("() => document.querySelectorAll('.said').length === 150")
    assert tab.locator(".said").first.inner_text().count("number 0 here") == 1
    field = tab.get_by_role("searchbox")
    field.fill('"number 7 here"')
    field.press("Enter")
    tab.locator(".said.sought", has_text="number 7 here").wait_for()
    tab.get_by_role("link", name="To the newest messages").click()
    tab.locator(".said", has_text="number 149 here").wait_for()


def text(words):
    from checkrein.doors.chat import Part

    return Part(text=words)


def test_compressed_by_hand(open_tab, made):
    tab = open_tab(path=f"/chat/{made('Long')}")
    say(tab, "The secret fruit is quince.")
    answer(tab, "built-in model")
    for _ in range(3):
        say(tab, "/long 300")
        answer(tab, "")
    tab.get_by_role("button", name="Compress").click()
    dialog = tab.get_by_role("dialog")
    dialog.get_by_label(re.compile("Tokens of the newest")).fill("0")
    dialog.get_by_role("button", name="Preview").click()
    dialog.get_by_text(re.compile(r"messages become")).wait_for()
    assert "about" in dialog.locator("[data-numbers]").inner_text()
    dialog.get_by_role("button", name="Compress").click()
    tab.locator("[data-compressed]").wait_for()
    assert not dialog.is_visible()
    marker = tab.locator("[data-compressed]")
    marker.locator("summary").click()
    # It stays open when the page looks anew.
    with tab.expect_response("**/conversation?*") as answered:
        tab.locator("[data-conversation]").evaluate(
            "each => each.dispatchEvent(new Event('expired', { bubbles: true }))"
        )
    answered.value.finished()
    browsing.drawn(tab)
    assert marker.get_by_text("quince").is_visible()
    say(tab, "/recall quince")
    answer(tab, "I know quince.")
    tab.reload()
    tab.locator("[data-compressed]").wait_for()
    assert tab.troubles == []


def test_compressed_by_itself(open_tab, made, talk):
    own = made("Long")
    tab = open_tab(path=f"/chat/{own}")
    say(tab, "The secret fruit is quince.")
    answer(tab, "built-in model")
    for _ in range(4):
        if tab.locator("[data-compressed]").count():
            break
        say(tab, "/long 9000")
        answer(tab, "")
    say(tab, "/recall quince")
    answer(tab, "I know quince.")
    tab.locator("[data-compressed]").first.wait_for()


def test_of_two_dialogs_the_one_asked_for_last_is_shown(open_tab, made):
    tab, held = open_tab(path=f"/chat/{made('One')}"), []
    tab.route("**/tools", lambda route: held.append((route, route.fetch())))
    tab.get_by_role("button", name="Tools").click()
    while not held:
        tab.wait_for_timeout(10)
    tab.get_by_role("link", name="Settings", exact=True).click()
    dialog = tab.get_by_role("dialog")
    dialog.get_by_role("heading", name="Settings of this conversation").wait_for()
    route, tools = held[0]
    with tab.expect_response("**/tools") as answered:
        route.fulfill(response=tools)
    answered.value.finished()
    browsing.drawn(tab)
    assert dialog.get_by_role("heading", name="Settings of this conversation").is_visible()
    assert tab.troubles == []


def test_the_gauge_counts_what_is_written(open_tab, made):
    tab = open_tab(path=f"/chat/{made('One')}")
    gauge = tab.locator("[data-gauge] details")
    gauge.wait_for()
    before = float(gauge.get_attribute("data-percent"))
    assert gauge.get_attribute("data-band") == "green"
    composer(tab).fill("many words " * 12_000)
    tab.wait_for_function(
        "was => Number(document.querySelector('[data-percent]').dataset.percent) > was + 30", arg=before
    )
    assert gauge.get_attribute("data-band") != "green"
    gauge.locator("summary").click()
    for word in ("instructions", "messages", "tools", "what you write"):
        assert gauge.get_by_text(word, exact=True).is_visible()


def test_files_resources_and_prompts_are_attached(open_tab, made):
    tab = open_tab(path=f"/chat/{made('One')}")
    tab.locator("[data-files]").set_input_files(
        files=[{"name": "apples.txt", "mimeType": "text/plain", "buffer": b"apples are green"}]
    )
    tab.locator(".chip", has_text="apples.txt").wait_for()
    tab.get_by_role("button", name="From a server").click()
    tab.get_by_role("button", name=re.compile("plum")).click()
    tab.locator(".chip", has_text="plum").wait_for()
    tab.get_by_role("button", name="From a server").click()
    fruit = tab.get_by_role("dialog").locator("form", has_text="fruit")
    fruit.get_by_label("kind").fill("plum/blue")
    fruit.get_by_role("button", name="Attach").click()
    tab.locator(".chip", has_text="fruit").wait_for()
    tab.get_by_role("button", name="From a server").click()
    about = tab.get_by_role("dialog").locator("form", has_text="about")
    about.get_by_label("topic").fill("cherries")
    about.get_by_role("button", name="Attach").click()
    tab.locator(".chip", has_text="about").wait_for()
    tab.locator(".chip", has_text="about").get_by_role("button").click()
    assert tab.locator(".chip").count() == 3
    say(tab, "/say Seen.")
    answer(tab, "Seen.")
    assert tab.locator(".attached").count() == 3
    assert tab.locator(".attached summary", has_text="echo: fruit://plum%2Fblue").count() == 1
    assert tab.locator(".chip").count() == 0
    tab.locator(".attached summary", has_text="apples.txt").click()
    assert tab.get_by_text("apples are green").is_visible()
    say(tab, "/recall plums")
    answer(tab, "I know plums.")
    assert tab.troubles == []


def test_a_picture_is_pasted_and_shown(open_tab, made):
    import mcp_echo

    tab = open_tab(path=f"/chat/{made('One')}")
    tab.evaluate(
        """data => {
          const bytes = Uint8Array.from(atob(data), each => each.charCodeAt(0));
          const held = new DataTransfer();
          held.items.add(new File([bytes], "dot.png", { type: "image/png" }));
          const event = new ClipboardEvent("paste", { clipboardData: held, bubbles: true, cancelable: true });
          document.querySelector("[data-text]").dispatchEvent(event);
        }""",
        mcp_echo.DOT,
    )
    tab.locator(".chip", has_text="dot.png").wait_for()
    say(tab, "/say A dot.")
    answer(tab, "A dot.")
    tab.wait_for_function("() => document.querySelector('.attached img').naturalWidth === 1")
    assert tab.troubles == []


def test_a_tool_that_is_off_is_not_offered(open_tab, made):
    tab = open_tab(path=f"/chat/{made('One')}")
    tab.get_by_role("button", name="Tools").click()
    dialog = tab.get_by_role("dialog")
    dialog.get_by_role("checkbox", name=re.compile("write_note")).uncheck()
    assert dialog.get_by_text("asks").count() > 0
    dialog.get_by_role("button", name="Save").click()
    dialog.wait_for(state="hidden")
    say(tab, '/call echo__write_note {"title": "a"}', "/then", "/say Over.")
    answer(tab, "Over.")
    tab.locator("[data-card][data-state=error]", has_text="turned off").wait_for()
    tab.get_by_role("button", name="Tools").click()
    assert not dialog.get_by_role("checkbox", name=re.compile("write_note")).is_checked()


class Endpoint(http.server.BaseHTTPRequestHandler):
    """As much of a provider as a list of models."""

    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.wfile.write(b'{"object": "list", "data": [{"id": "tiny", "object": "model"}]}')

    def log_message(self, *_):
        pass


@pytest.fixture
def endpoint():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Endpoint)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()
    server.server_close()


def test_a_provider_is_added_tested_and_picked(open_tab, made, endpoint, unused_port, monkeypatch):
    monkeypatch.setenv("CHECKREIN_KEYRING", "none")
    tab = open_tab(path="/chat/models")
    tab.get_by_label("Name", exact=True).fill("local")
    tab.get_by_label("Kind").select_option("compatible")
    tab.locator("section").last.get_by_label(re.compile("^Address")).fill(endpoint)
    tab.get_by_role("button", name="Add", exact=True).click()
    provider = tab.locator("[data-provider=local]")
    provider.wait_for()
    provider.get_by_role("button", name="Refresh the models").click()
    tab.get_by_text("local has 1 model.").wait_for()
    provider.get_by_role("button", name="Test the connection").click()
    tab.get_by_text("local answers").wait_for()
    tab.locator("select[name=model]").select_option("local/tiny")
    tab.get_by_role("button", name="Use it").first.click()
    tab.get_by_text("New conversations begin with local/tiny.").wait_for()
    tab.goto(tab.base + f"/chat/{made('One')}")
    with tab.expect_response("**/change"):
        tab.locator("[data-model]").select_option("demo/demo")
    tab.reload()
    assert tab.locator("[data-model]").input_value() == "demo/demo"
    tab.goto(tab.base + "/chat/models")
    provider.locator("details.sure summary").click()
    provider.get_by_role("button", name="Remove it and its key").click()
    provider.wait_for(state="detached")
    assert tab.troubles == []
