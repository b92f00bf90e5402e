"""What every page of the console promises, once, in a real browser; the rest is in `slow`."""

import re

from chat_page import answer, composer, say, waiting
from checkrein.settings.servers import read_servers
from console import browsing
from console.browsing import ASKS, PAGES, READS, definition, offered, question
from patience import until

pytestmark = browsing.MARKS
pipeline, scripts = browsing.pipeline, browsing.scripts
HOSTILE = "<script>window.hacked=1</script><img src=x onerror=window.hacked=2>'\"`${hacked=3}\u202egnp.exe"


def test_a_question_appears_by_itself_is_approved_and_whoever_waits_wakes(open_tab, ask):
    tab = open_tab()
    tab.get_by_text("All quiet").wait_for()
    waiter = ask("make shown")
    question(tab, waiter).wait_for()
    assert "New question" in tab.locator("[data-said]").text_content()
    question(tab, waiter).get_by_role("button", name=re.compile("^Approve")).first.click()
    assert waiter.answer().state == "approved"
    tab.locator(f"[data-settled='{waiter.entry}']").wait_for()
    assert tab.title().startswith("Inbox")
    assert tab.troubles == []


def test_edited_in_the_page(open_tab, ask):
    waiter = ask("make wrong")
    tab = open_tab()
    tab.keyboard.press("j")
    tab.keyboard.press("e")
    field = question(tab, waiter).locator("textarea[name=edited]")
    field.fill(field.input_value().replace("wrong", "right"))
    question(tab, waiter).get_by_role("button", name="Approve as edited").click()
    assert waiter.answer().state == "approved"
    assert waiter.edited == {"command": "make right"}


def test_hostile_text_executes_nothing(open_tab, ask, work):
    work(tool=HOSTILE, arguments={HOSTILE: HOSTILE})
    tab = open_tab()
    waiter = ask(arguments={"command": f"echo {HOSTILE}", HOSTILE: HOSTILE}, session=HOSTILE)
    question(tab, waiter).wait_for()
    assert tab.evaluate("document.querySelectorAll('main script, main img[src=x]').length") == 0
    assert "<script>" in question(tab, waiter).inner_text()
    assert "U+202E" in question(tab, waiter).inner_text()
    question(tab, waiter).get_by_role("button", name=re.compile("^Deny")).first.click()
    waiter.answer()
    for path in (*PAGES, f"/calls/{waiter.entry}"):
        tab.goto(tab.base + path)
        tab.wait_for_selector("body[data-live]")
        assert tab.evaluate("window.hacked") is None, path
    assert tab.troubles == []


def test_without_scripts_questions_are_answered_too(browser, console, ask):
    waiter = ask("make x")
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(console.link())
    tab.wait_for_url("**/at/**")
    tab.locator(f"#q-{waiter.entry}").get_by_role("button", name=re.compile("^Approve")).first.click()
    assert waiter.answer().state == "approved"
    tab.get_by_text("Approved.").wait_for()
    context.close()


def test_a_conversation_from_the_first_message_to_the_streamed_answer(open_tab, talk):
    tab = open_tab(path="/chat")
    tab.get_by_text("No provider of models is set up").wait_for()
    composer(tab).fill("/slow 400\n/say One **two** three four five six seven eight nine ten.")
    composer(tab).press("Enter")
    tab.wait_for_url("**/chat/*")
    words = tab.locator(".said.assistant")
    # The page itself looks: the words come whether or not anybody else has the time.
    tab.wait_for_function("""() => {
        const words = document.querySelector(".said.assistant")?.innerText ?? "";
        const stop = document.querySelector("[data-stop]");
        return words.includes("One") && !words.includes("ten") && !stop.hidden;
    }""")
    answer(tab, "ten.")
    assert words.locator("strong").inner_text() == "two"
    assert words.count() == 1
    assert tab.locator("[data-list] a[aria-current]").inner_text().startswith("/slow 400")
    tab.locator("[data-gauge] [data-percent]").wait_for()
    assert tab.troubles == []


def test_a_call_answered_in_two_tabs_runs_once(open_tab, path, talk):
    one, other = open_tab(path=path), open_tab(path=path)
    say(one, ASKS)
    for tab in (one, other):
        waiting(tab).wait_for()
    # The other hears nothing, as when its line is slow.
    other.evaluate("document.querySelector('[data-card]').dataset.card += 'x'")
    waiting(one).locator("[data-key=a]").click()
    one.locator(".said.assistant", has_text="write_note got").last.wait_for()
    other.locator("[data-card]").first.locator("[data-key=a]").click()
    other.get_by_text("waits for no answer").wait_for()


def test_a_run_from_the_list_to_the_answer_to_the_end_without_a_reload(open_tab, scripts):
    tab = open_tab(path="/runs")
    tab.get_by_text("No script has run yet.").wait_for()
    found = scripts("run.start", source=READS, profile="careful", wait=20)
    row = tab.locator(f"[data-run='{found['run_id']}']")
    row.get_by_text("waits for you").wait_for()
    row.get_by_role("link").click()
    tab.get_by_text("It waits for your answer about").wait_for()
    assert tab.locator("[data-line='1'].asked").is_visible()
    tab.evaluate("window.same = 1")
    scripts("question.answer", id=found["waiting"][0]["question"], answer="approved")
    tab.locator("[data-end='done']").get_by_text("done and read").wait_for()
    assert tab.locator("[data-line='1'].done").is_visible()
    assert tab.locator("[data-step='1']").get_by_text("approved by a person").is_visible()
    assert tab.evaluate("window.same") == 1
    assert tab.troubles == []


def test_a_server_from_adding_it_to_removing_it(open_tab, notes, gateway, user_settings):
    user_settings("[gateway]\nhttp_port = 0\n")
    tab = open_tab(path="/servers")
    tab.get_by_text("No servers yet.").wait_for()
    tab.get_by_label("Name", exact=True).fill("notes")
    tab.get_by_label("Command").fill(notes.line)
    tab.get_by_label("Variables, one a line").fill("API_KEY=correct horse")
    tab.get_by_role("button", name="Add and start").click()
    tab.get_by_text("Kept as secrets: notes.API_KEY.").wait_for()
    assert "no client sees it" in tab.locator("main").inner_text()
    definition(tab, "read_note").get_by_text("Reads one note.").wait_for()
    assert offered(gateway) == set()
    definition(tab, "read_note").get_by_role("button", name="Accept read_note").click()
    tab.get_by_text("Accepted 1 of 1 definition(s).").wait_for()
    assert offered(gateway) == {"read_note"}
    definition(tab, "drop_note").get_by_role("button", name="Refuse drop_note").click()
    tab.get_by_text("Refused 1 of 1 definition(s).").wait_for()
    assert offered(gateway) == {"read_note"}
    tab.locator("summary", has_text="read_note").click()
    assert tab.get_by_text('"required"').is_visible()
    tab.get_by_role("button", name="Stop").click()
    tab.get_by_text("notes is stopped.").wait_for()
    assert offered(gateway) == set()
    tab.get_by_role("button", name="Start").click()
    tab.get_by_text("notes is started.").wait_for()
    until(lambda: offered(gateway) == {"read_note"})
    tab.get_by_role("button", name="Test").click()
    tab.get_by_role("heading", name="It answers").wait_for()
    # The page may renew itself between the tick and the click; then nothing is removed without another tick.
    removed = tab.get_by_text("Removed notes. Forgot: notes.API_KEY.")
    anew = tab.get_by_role("checkbox", name="I mean it", checked=False)
    while not removed.count():
        tab.get_by_label("I mean it").check()
        tab.get_by_role("button", name="Remove notes").click()
        removed.or_(anew).first.wait_for()
    assert read_servers().servers == {}
    assert tab.troubles == []
