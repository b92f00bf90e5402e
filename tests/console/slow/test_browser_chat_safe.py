"""Conversations with hostile words, on phones, in the dark, by keys alone, for all, without scripts."""

import pytest

import mcp_echo
from chat_page import answer, composer, say, settled, waiting
from console import browsing
from patience import until

pytestmark = browsing.MARKS
pipeline = browsing.pipeline
MARKDOWN = r"""
# <script>window.hacked=1</script>
[click](javascript:window.hacked=2) [data](data:text/html,<script>window.hacked=3</script>)
[in](/sign-out) ![pixel](https://tracker.invalid/x.png) <img src=x onerror=window.hacked=4>
<iframe srcdoc="<script>parent.hacked=5</script>"></iframe> <a onclick=window.hacked=6>x</a>
[ok](https://example.invalid/"onmouseover="window.hacked=7)
`<b>code</b>` &lt;script&gt; \u202egnp.exe \u001b[31mred
| <i>a</i> |
|---|
| <svg onload=window.hacked=8> |
"""
SAFE = """() => {
  const odd = ["script", "iframe", "svg[onload]", "img[src^=http]", "img[src=x]"];
  const named = (each) => [...each.attributes].some((one) => one.name.startsWith("on"));
  return {
    hacked: window.hacked ?? null,
    odd: document.querySelector("main").querySelectorAll(odd.join()).length,
    handlers: [...document.querySelectorAll("main *")].filter(named).length,
    links: [...document.querySelectorAll(".md a")].map((each) => each.protocol),
  };
}"""
# How much is to be scrolled sideways in a conversation.
SIDEWAYS = """() => {
  const scroll = document.querySelector("[data-scroll]");
  return scroll ? scroll.scrollWidth - scroll.clientWidth : 0;
}"""


@pytest.fixture
def sessions(chat):
    from checkrein.doors.chat import Part

    def add(own, role, text):
        chat()._sessions.add_message(own, role, [Part(text=text)])

    return add


def harmless(tab):
    found = tab.evaluate(SAFE)
    assert found["hacked"] is None
    assert found["odd"] == found["handlers"] == 0
    assert set(found["links"]) <= {"http:", "https:", "mailto:"}


def test_hostile_markdown_does_nothing(open_tab, path, sessions, talk):
    own = path.rpartition("/")[2]
    text = MARKDOWN.replace("\\u202e", "\u202e").replace("\\u001b", "\x1b")
    sessions(own, "user", text)
    sessions(own, "assistant", text)
    talk("chat.update", id=own, title="<img src=x onerror=window.hacked=9>")
    asked = []
    tab = open_tab(path=path)
    tab.on("request", lambda request: asked.append(request.url))
    tab.reload()
    tab.wait_for_selector("body[data-live]")
    harmless(tab)
    shown = tab.locator(".said.assistant").inner_text()
    assert "U+202E" in shown
    assert "\u202e" not in shown
    assert "<script>window.hacked=1</script>" in shown
    # The same words, written by the model bit by bit.
    say(tab, "/slow 5", *(f"/say {line}" for line in text.splitlines() if line.strip()))
    answer(tab, "hacked")
    harmless(tab)
    for link in tab.locator(".md a").all():
        assert link.get_attribute("rel") == "noopener noreferrer nofollow"
    tab.get_by_role("searchbox").fill("hacked")
    tab.locator("[data-hit]").first.wait_for()
    harmless(tab)
    assert not [url for url in asked if "127.0.0.1" not in url]
    assert tab.troubles == []


def test_a_hostile_tool_does_nothing(open_tab, path, talk):
    talk("rule.add", rule={"action": "allow", "server": "echo", "pattern": "*"})
    tab = open_tab(path=path)
    say(tab, f'/call echo__nasty {{"<b>": "{"z" * 3000}"}}', "/then", "/results")
    answer(tab)
    card = settled(tab, "nasty", "done")
    card.locator("summary").click()
    assert "<script>window.hacked=1</script>" in card.inner_text()
    assert "U+001B" in card.inner_text()
    # Of three pictures one is a picture.
    card.locator("img").evaluate("each => each.decode()")
    assert card.locator("img").evaluate_all(
        "each => each.map(one => [one.naturalWidth, one.src.slice(0, 15)])"
    ) == [[1, "data:image/png;"]]
    harmless(tab)
    over = tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert over <= 0
    tab.get_by_role("button", name="Tools").click()
    tab.get_by_role("dialog").get_by_text("nasty", exact=False).first.wait_for()
    harmless(tab)
    tab.keyboard.press("Escape")
    say(tab, "/say Still usable.")
    answer(tab, "Still usable.")
    assert tab.troubles == []


def test_hostile_arguments_wait_harmlessly(open_tab, path):
    tab = open_tab(path=path)
    import json

    say(tab, f"/call echo__write_note {json.dumps({'title': mcp_echo.HOSTILE})}", "/then", "/say Over.")
    waiting(tab).wait_for()
    assert "<script>" in waiting(tab).inner_text()
    harmless(tab)
    waiting(tab).locator("[data-unfold=edit] > summary").click()
    harmless(tab)
    waiting(tab).locator("[data-key=d]").click()
    answer(tab, "Over.")
    harmless(tab)
    assert tab.troubles == []


def test_a_huge_line_leaves_the_page_usable(open_tab, path, sessions):
    own = path.rpartition("/")[2]
    sessions(own, "user", "hello")
    sessions(own, "assistant", "x" * 300_000)
    sessions(own, "user", "and now")
    sessions(own, "assistant", "```python\n" + "y = 1 " * 40_000 + "\n```")
    tab = open_tab(path=path)
    over = tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    assert over <= 0
    composer(tab).fill("words")
    tab.get_by_role("searchbox").fill("hello")
    tab.locator("[data-hit]").first.wait_for()
    assert tab.troubles == []


def test_by_keys_alone(open_tab, path):
    tab = open_tab(path=path)
    tab.keyboard.press("c")
    assert tab.evaluate("document.activeElement.dataset.text") == ""
    tab.keyboard.type('/call echo__read_note {"title": "a"}')
    tab.keyboard.press("Shift+Enter")
    tab.keyboard.type('/call echo__write_note {"title": "b"}')
    tab.keyboard.press("Shift+Enter")
    tab.keyboard.type("/then")
    tab.keyboard.press("Shift+Enter")
    tab.keyboard.type("/results")
    tab.keyboard.press("Enter")
    waiting(tab, "read_note").wait_for()
    waiting(tab, "write_note").wait_for()
    tab.keyboard.press("Escape")
    first = tab.evaluate("document.activeElement.dataset.card")
    assert first
    tab.keyboard.press("j")
    assert tab.evaluate("document.activeElement.dataset.card") != first
    tab.keyboard.press("k")
    tab.keyboard.press("m")
    tab.keyboard.type("not this: j k a d")
    tab.keyboard.press("Control+Enter")
    tab.locator("[data-card][data-state=denied]").wait_for()
    tab.wait_for_function("() => document.activeElement.dataset.state === 'waiting'")
    # A key held or pressed twice does not allow what was not seen: it is pressed until it counts.
    until(lambda: tab.keyboard.press("a") or not waiting(tab).count())
    answer(tab, "not this: j k a d")
    tab.keyboard.press("?")
    tab.get_by_role("dialog").wait_for()
    tab.keyboard.press("Escape")
    tab.keyboard.press("/")
    assert tab.evaluate("document.activeElement.type") == "search"
    assert tab.troubles == []


def test_what_is_dangerous_takes_two_keys(open_tab, path):
    tab = open_tab(path=path)
    say(tab, "/call echo__delete_note {}", "/then", "/say Over.")
    card = waiting(tab, "delete_note")
    # No tool of a server that is asked about is as dangerous as that today.
    card.evaluate("each => { each.dataset.level = 'red'; each.focus(); }")
    tab.keyboard.press("a")
    card.get_by_text("Press a again to allow").wait_for()
    browsing.drawn(tab)
    assert card.is_visible()
    tab.keyboard.press("a")
    settled(tab, "delete_note", "done")


@pytest.fixture
def full(open_tab, path, talk, sessions):
    """A conversation with something of everything; the pages that show it."""
    own = path.rpartition("/")[2]
    sessions(own, "user", "Tell me about " + "x" * 400)
    sessions(
        own,
        "assistant",
        "## Plums\n\n- one\n- two\n\n| a | b |\n|---|---|\n| 1 | "
        + "y" * 200
        + " |\n\n```python\nprint('"
        + "z" * 300
        + "')\n```\n\n> said\n\nhttps://example.invalid/"
        + "q" * 300,
    )
    talk("chat.update", id=own, pinned=True, color="blue")
    talk("chat.create", title="Another " + "w" * 150)
    talk(
        "chat.send",
        session=own,
        text='/think hm\n/call echo__write_note {"title": "b"}\n/call echo__delete_note {}',
    )
    until(
        lambda: sum(1 for each in talk("chat.session", id=own)["calls"].values() if each.get("question")) == 2
    )
    return [path, "/chat", "/chat/models", "/chat?q=plums", "/chat?archived=1"]


@pytest.mark.parametrize("width", [1280, 760, 390, 320])
def test_nothing_is_wider_than_the_screen(open_tab, full, width):
    tab = open_tab(viewport={"width": width, "height": 780})
    for path in full:
        tab.goto(tab.base + path)
        tab.wait_for_selector("body[data-live]")
        tab.evaluate(
            "for (const each of document.querySelectorAll('.said details, .tool details')) each.open = true"
        )
        over = tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert over <= 0, (path, over)
        assert tab.evaluate(SIDEWAYS) <= 0, path


def test_on_a_phone_the_list_is_a_drawer(open_tab, full):
    tab = open_tab(path=full[0], viewport={"width": 390, "height": 780}, has_touch=True)
    drawer = tab.locator("[data-drawer]")
    assert not drawer.is_visible()
    tab.get_by_role("button", name="Conversations").click()
    drawer.get_by_text("Trial").first.wait_for()
    tab.keyboard.press("Escape")
    drawer.wait_for(state="hidden")
    assert composer(tab).is_visible()
    waiting(tab, "write_note").locator("[data-key=d]").click()
    settled(tab, "write_note", "refused")
    assert tab.troubles == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_page_shuts_anyone_out(open_tab, full, theme):
    from axe_playwright_python.sync_playwright import Axe

    tab = open_tab(color_scheme=theme, bypass_csp=True)
    for path in full:
        tab.goto(tab.base + path)
        tab.wait_for_selector("body[data-live]")
        if path == full[0]:
            tab.locator("[data-gauge] details").wait_for()
        tab.evaluate(
            "for (const each of document.querySelectorAll('.said details, .gauge, .more')) each.open = true"
        )
        assert violations(Axe().run(tab)) == [], path
    tab.goto(tab.base + full[0])
    for name in ("Tools", "Compress", "From a server"):
        tab.get_by_role("button", name=name).click()
        tab.get_by_role("dialog").wait_for()
        assert violations(Axe().run(tab)) == [], name
        tab.keyboard.press("Escape")


def violations(found):
    return [
        (each["id"], node["target"], node.get("failureSummary"))
        for each in found.response["violations"]
        for node in each["nodes"]
    ]


def reloaded_until(tab, shown):
    def there():
        tab.reload()
        return tab.locator(shown).count()

    until(there)


def test_without_scripts_a_person_talks_and_answers_too(open_tab, path):
    tab = open_tab()
    context = tab.context.browser.new_context(
        java_script_enabled=False, storage_state=tab.context.storage_state()
    )
    try:
        plain = context.new_page()
        plain.goto(tab.base + path)
        plain.locator("textarea[name=text]").last.fill(
            '/call echo__write_note {"title": "a"}\n/then\n/say Over.'
        )
        # A page on its way to another cannot be loaded anew.
        with plain.expect_navigation():
            plain.get_by_role("button", name="Send").click()
        reloaded_until(plain, "[data-state=waiting]")
        with plain.expect_navigation():
            plain.get_by_role("button", name="Allow").first.click()
        reloaded_until(plain, ".said.assistant:has-text('Over.')")
        assert plain.locator("[data-state=completed]").count() == 1
    finally:
        context.close()
