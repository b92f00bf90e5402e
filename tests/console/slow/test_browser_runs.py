"""Runs in a real browser, over a real gateway, a real server's process and real sandboxes."""

import threading

import pytest

from console import browsing
from console.browsing import READS
from patience import PATIENCE

pytestmark = browsing.MARKS
pipeline, ask = browsing.pipeline, browsing.scripts
HOSTILE = "<script>window.hacked=1</script><img src=x onerror=window.hacked=2>`${1}\u202egnp.exe"


def test_answering_by_the_link_of_the_page(open_tab, ask):
    found = ask("run.start", source=READS, profile="careful", wait=20)
    tab = open_tab(path=f"/runs/{found['run_id']}")
    tab.get_by_role("link", name="Answer").click()
    tab.locator(f"#q-{found['waiting'][0]['question']}").wait_for()
    tab.get_by_role("button", name="Approve").first.click()
    tab.goto(tab.base + f"/runs/{found['run_id']}")
    tab.locator("[data-end='done']").wait_for()
    assert tab.troubles == []


def test_a_run_is_followed_while_it_runs_and_ended_by_a_click(open_tab, ask):
    source = "await codemode.notes__delete_note({});\nawait new Promise((done) => setTimeout(done, 25000));"
    ask("rule.add", rule={"action": "allow", "server": "notes", "pattern": "*"})
    going = threading.Thread(target=lambda: ask("run.start", source=source, wait=30))
    going.start()
    try:
        tab = open_tab(path="/runs")
        tab.locator("[data-run] a").first.click()
        tab.locator("[data-step='1'].done").wait_for()
        summary = tab.locator("#step-1 summary")
        summary.click()
        summary.focus()
        tab.get_by_role("button", name="End this run").click()
        tab.get_by_text("The run is ended.").wait_for()
        tab.locator("[data-end='cancelled']").wait_for()
        assert tab.troubles == []
    finally:
        going.join(PATIENCE)


def test_hostile_words_of_a_script_do_nothing(open_tab, ask):
    source = f"// {HOSTILE}\nconsole.log({HOSTILE!r});\nthrow new Error({HOSTILE!r});"
    found = ask("run.start", source=source, wait=20)
    assert found["status"] == "failed"
    tab = open_tab()
    for path in ("/runs", f"/runs/{found['run_id']}"):
        tab.goto(tab.base + path)
        tab.wait_for_selector("body[data-live]")
        assert tab.evaluate("document.querySelectorAll('main script, main img[src=x]').length") == 0
        assert tab.evaluate("window.hacked") is None, path
        assert "\u202e" not in tab.locator("main").inner_text()
    assert "window.hacked=1" in tab.locator(".script").inner_text()
    assert tab.troubles == []


@pytest.fixture
def paths(ask):
    """A run that waits, one that is done and one that failed, with long words in them."""
    long = "x" * 400
    ask("rule.add", rule={"action": "allow", "server": "notes", "tool": "delete_note"})
    sources = (
        f"// {'long ' * 80}\nawait codemode.notes__read_note({{title: '{long}'}});",
        f"for (const n of [1, 2]) await codemode.notes__delete_note({{n}});\n"
        f"console.log('{long}'); return ['{long}'];",
        f"throw new Error('{long}');",
    )
    started = [ask("run.start", source=each, profile="careful", wait=20) for each in sources]
    assert [each["status"] for each in started] == ["paused", "done", "failed"]
    return ["/runs", *(f"/runs/{each['run_id']}" for each in started)]


@pytest.mark.parametrize("width", [1280, 390, 320])
def test_nothing_is_wider_than_the_screen(open_tab, paths, width):
    tab = open_tab(viewport={"width": width, "height": 844})
    for path in paths:
        tab.goto(tab.base + path)
        tab.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        over = tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert over <= 0, (path, over)


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_page_shuts_anyone_out(open_tab, paths, theme):
    from axe_playwright_python.sync_playwright import Axe

    tab = open_tab(color_scheme=theme, bypass_csp=True)
    for path in paths:
        tab.goto(tab.base + path)
        tab.evaluate("for (const each of document.querySelectorAll('details')) each.open = true")
        found = Axe().run(tab).response["violations"]
        troubles = [
            (each["id"], node["target"], node.get("failureSummary"))
            for each in found
            for node in each["nodes"]
        ]
        assert troubles == [], path


def test_without_scripts_the_page_says_the_same(open_tab, ask):
    found = ask("run.start", source=READS, profile="careful", wait=20)
    tab = open_tab()
    context = tab.context.browser.new_context(
        java_script_enabled=False, storage_state=tab.context.storage_state()
    )
    try:
        plain = context.new_page()
        plain.goto(tab.base + f"/runs/{found['run_id']}")
        plain.get_by_text("It waits for your answer about").wait_for()
        plain.get_by_role("button", name="End this run").click()
        plain.get_by_text("The run is ended.").wait_for()
    finally:
        context.close()
