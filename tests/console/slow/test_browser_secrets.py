"""A question's secrets in a real browser: masked, shown by one key or one click, and masked again."""

from console import browsing
from console.browsing import question

pytestmark = browsing.MARKS
SECRET = "hunter2secret"


def test_secrets_are_folded_behind_one_key_and_one_click(open_tab, ask):
    waiter = ask(f"docker login -u me -p {SECRET} r.example.com")
    tab = open_tab()
    card = question(tab, waiter)
    card.wait_for()
    assert SECRET not in tab.content()
    tab.keyboard.press("j")
    tab.keyboard.press("v")
    card.get_by_text(SECRET).first.wait_for()
    tab.keyboard.press("v")
    card.get_by_text(SECRET).first.wait_for(state="detached")
    card.get_by_role("link", name="Show secrets").click()
    card.get_by_text(SECRET).first.wait_for()
    assert tab.troubles == []


def test_without_scripts_secrets_are_a_page_of_their_own(browser, console, ask):
    waiter = ask(f"docker login -u me -p {SECRET} r.example.com")
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(console.link())
    tab.wait_for_url("**/at/**")
    tab.locator(f"#q-{waiter.entry}").get_by_role("link", name="Show secrets").click()
    tab.get_by_text(SECRET).first.wait_for()
    context.close()
