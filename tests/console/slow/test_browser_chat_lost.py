"""What a page forgets, misses or loses: a reload, a second tab, a server that ends in the middle."""

import pytest

from chat_page import answer, composer, say, waiting
from checkrein.console.serving import Console
from checkrein.doors.chat.chat import Chat
from console import browsing
from console.browsing import ASKS

pytestmark = browsing.MARKS
pipeline = browsing.pipeline
SLOW = "/slow 250\n/say " + " ".join(f"word{number}" for number in range(30)) + " end."
# As when a question runs out: the page looks anew.
EXPIRED = "each => each.dispatchEvent(new Event('expired', { bubbles: true }))"


@pytest.fixture
def restart(console, pipeline, agents, gateway, chat):
    """Chat and console end; others take their place, at the same address and for the same browsers."""
    made = []

    def again():
        console.stop()
        chat().close()
        fresh = Chat(pipeline, lambda: gateway().guest("chat"))
        fresh.open()
        other = Console(pipeline, agents, None, gateway, lambda: fresh)
        other.desk.signin = console.desk.signin
        made.extend((other, fresh))
        assert other.start(console.port) == console.port

    yield again
    if made:
        made[0].stop()
        made[1].close()


def said(tab):
    return tab.locator(".said.assistant").last.inner_text()


def in_the_middle(tab):
    say(tab, SLOW)
    tab.locator(".said.assistant").get_by_text("word3").wait_for()


def whole(tab):
    tab.locator(".said.assistant.completed", has_text="end.").wait_for()
    words = [each for each in said(tab).split() if each.startswith("word")]
    assert words == [f"word{number}" for number in range(30)]
    assert tab.locator(".said.assistant").count() == 1


def test_reloaded_while_it_writes(open_tab, path):
    tab = open_tab(path=path)
    in_the_middle(tab)
    tab.reload()
    assert "word3" in said(tab)
    assert tab.get_by_role("button", name="Stop").is_visible()
    whole(tab)
    assert tab.troubles == []


def test_a_look_that_comes_late_does_not_take_the_end_of_the_answer_back(open_tab, path, talk):
    tab, other, looks = open_tab(path=path), open_tab(path=path), []
    in_the_middle(tab)
    tab.route(
        "**/conversation?*",
        lambda route: route.continue_() if looks else looks.append((route, route.fetch())),
    )
    # A card ran out: the page looks, and what it sees is held up until all is over and told.
    tab.locator("[data-conversation]").evaluate(EXPIRED)
    while not looks or talk("chat.session", id=path.rpartition("/")[2])["run"]:
        tab.wait_for_timeout(20)
    # Open pages are told the end before this one sees what it looked for.
    whole(other)
    route, seen = looks[0]
    assert "data-writing" in seen.text()
    route.fulfill(response=seen)
    whole(tab)
    tab.get_by_role("button", name="Send").wait_for()
    assert tab.troubles == []


def test_a_look_nobody_answers_does_not_hold_up_what_is_told_for_ever(open_tab, path):
    tab, other, held = open_tab(path=path), open_tab(path=path), []
    tab.clock.install()
    tab.route("**/conversation?*", lambda route: held.append(route))  # noqa: PLW0108 - it marks it
    tab.locator("[data-conversation]").evaluate(EXPIRED)
    tab.clock.run_for(1_000)
    while not held:
        tab.wait_for_timeout(10)
    composer(tab).fill("/say Meanwhile.")
    composer(tab).press("Enter")
    answer(other, "Meanwhile.")
    assert not tab.locator(".said").count()
    tab.clock.run_for(20_000)
    answer(tab, "Meanwhile.")


def test_reloaded_while_it_waits(open_tab, path):
    tab = open_tab(path=path)
    say(tab, ASKS)
    waiting(tab).wait_for()
    tab.reload()
    waiting(tab).locator("[data-key=a]").click()
    tab.locator(".said.assistant", has_text="write_note got").last.wait_for()
    assert tab.troubles == []


def test_a_second_tab_sees_it_written(open_tab, path):
    one = open_tab(path=path)
    in_the_middle(one)
    other = open_tab(path=path)
    other.locator(".said.user").wait_for()
    whole(one)
    whole(other)
    say(other, "/say From the other side.")
    one.locator(".said.assistant.completed", has_text="From the other side.").wait_for()
    assert [tab.locator(".said").count() for tab in (one, other)] == [4, 4]
    assert one.troubles == other.troubles == []


def test_what_one_tab_answers_the_other_is_told(open_tab, path):
    one, other = open_tab(path=path), open_tab(path=path)
    say(one, ASKS)
    waiting(one).wait_for()
    waiting(other).locator("[data-key=a]").click()
    one.locator("[data-card][data-state=completed]").wait_for()
    one.locator(".said.assistant", has_text="write_note got").last.wait_for()
    assert one.troubles == other.troubles == []


def test_what_the_inbox_answers_the_conversation_is_told(open_tab, path):
    tab, inbox = open_tab(path=path), open_tab()
    say(tab, ASKS)
    waiting(tab).wait_for()
    inbox.get_by_role("button", name="Deny").first.click()
    tab.locator("[data-card][data-state=denied]").wait_for()


def test_a_branch_chosen_in_one_tab_is_shown_in_the_other(open_tab, path):
    one = open_tab(path=path)
    say(one, "/say First.")
    one.locator(".said.assistant.completed").wait_for()
    one.get_by_role("button", name="Retry").click()
    one.locator("[data-branch]", has_text="2/2").wait_for()
    one.locator("[data-send]:visible:enabled").wait_for()
    other = open_tab(path=path)
    one.get_by_role("button", name="The one before").click()
    other.locator("[data-branch]", has_text="1/2").wait_for()


def test_the_server_ends_while_it_writes(open_tab, path, restart):
    tab = open_tab(path=path)
    in_the_middle(tab)
    restart()
    tab.wait_for_selector("body[data-live]")
    tab.locator("[data-lost]").wait_for(state="hidden")
    tab.locator("[data-send]:visible:enabled").wait_for()
    assert "word3" in said(tab)
    say(tab, "/say Back again.")
    tab.locator(".said.assistant.completed", has_text="Back again.").wait_for()


def test_the_server_ends_while_it_waits(open_tab, path, restart):
    tab = open_tab(path=path)
    say(tab, ASKS)
    waiting(tab).wait_for()
    restart()
    tab.wait_for_selector("body[data-live]")
    tab.locator("[data-lost]").wait_for(state="hidden")
    waiting(tab).locator("[data-key=a]").click()
    tab.locator(".said.assistant", has_text="write_note got").last.wait_for()


def test_what_is_typed_into_a_card_survives_all_of_it(open_tab, path, restart):
    tab = open_tab(path=path)
    say(tab, ASKS)
    waiting(tab).locator("[data-unfold=message] > summary").click()
    field = waiting(tab).get_by_label("What the model is told")
    field.press_sequentially("not this")
    with tab.expect_response("**/conversation?*") as looked:
        restart()
    looked.value.finished()
    tab.locator("[data-lost]").wait_for(state="hidden")
    tab.wait_for_selector("body[data-live]")
    browsing.drawn(tab)
    field.press_sequentially(" one")
    assert field.input_value() == "not this one"
    waiting(tab).get_by_role("button", name="Refuse with this reason").click()
    tab.locator(".said.assistant", has_text="not this one").last.wait_for()


def on_its_way(tab, words):
    """Send it over a line on which it stays until it is let through."""
    held = []
    tab.route("**/send", lambda route: held.append(route))  # noqa: PLW0108 - it marks what it gets
    composer(tab).fill(words)
    composer(tab).press("Enter")
    while not held:
        tab.wait_for_timeout(10)
    return held[0]


def test_what_is_written_while_a_message_is_on_its_way_is_the_next_one(open_tab, path):
    tab = open_tab(path=path)
    route = on_its_way(tab, "/say first.")
    composer(tab).press_sequentially("/say second.")
    route.continue_()
    answer(tab, "first.")
    assert composer(tab).input_value() == "/say second."
    tab.unroute("**/send")
    composer(tab).press("Enter")
    answer(tab, "second.")
    assert composer(tab).input_value() == "" and tab.locator(".said.user").count() == 2


def test_a_message_that_did_not_get_through_is_there_to_be_sent_again(open_tab, path):
    tab = open_tab(path=path)
    tab.locator("[data-files]").set_input_files(
        {"name": "a.txt", "mimeType": "text/plain", "buffer": b"plums"}
    )
    tab.locator(".chip", has_text="a.txt").wait_for()
    route = on_its_way(tab, "/say first.")
    composer(tab).press_sequentially("/say second.")
    route.abort()
    tab.get_by_text("Not sent: the connection is lost.").wait_for()
    assert composer(tab).input_value() == "/say first.\n/say second."
    assert tab.locator(".chip").count() == 1 and tab.locator(".said.user").count() == 0
    tab.unroute("**/send")
    composer(tab).press("Enter")
    answer(tab, "second.")
    tab.locator(".said.user", has_text="a.txt").wait_for()
    assert tab.locator(".chip").count() == 0


def test_a_conversation_deleted_elsewhere_is_left(open_tab, path, talk):
    tab = open_tab(path=path)
    talk("chat.delete", id=path.rpartition("/")[2])
    tab.wait_for_url("**/chat")


def test_an_answer_made_anew_in_one_tab_leaves_the_other_at_once(open_tab, path):
    one = open_tab(path=path)
    say(one, "/slow 300", "/say First and then some more words.")
    one.locator(".said.assistant.completed").wait_for()
    one.locator("[data-send]:visible:enabled").wait_for()
    other = open_tab(path=path)
    before = other.locator(".said.assistant").get_attribute("id")
    # What it is told suffices: it need not look anew.
    other.route("**/conversation*", lambda route: route.abort())
    one.get_by_role("button", name="Retry").click()
    other.locator(".said.assistant.streaming").wait_for()
    assert other.locator(".said").count() == 2
    other.locator(".said.assistant.completed", has_text="more words.").wait_for()
    assert other.locator(".said.assistant").count() == 1
    assert other.locator(".said.assistant").get_attribute("id") != before
    other.unroute("**/conversation*")
    one.locator("[data-branch]", has_text="2/2").wait_for()
    one.locator("[data-send]:visible:enabled").wait_for()
    one.get_by_role("button", name="Retry").click()
    other.locator("[data-branch]", has_text="3/3").wait_for()
    assert one.troubles == []


def test_words_nobody_vouched_for_are_an_alert_at_once(open_tab, path, talk):
    talk("rule.add", rule={"action": "allow", "server": "echo", "pattern": "*"})
    tab = open_tab(path=path)
    assert tab.locator("[data-alert=tainted]").count() == 0
    say(tab, '/call echo__read_note {"title": "a"}', "/then", "/slow 300", "/long 12")
    tab.locator("[data-alert=tainted]", has_text="has read words of echo").wait_for()
    assert tab.get_by_role("button", name="Stop").is_visible()
    assert tab.troubles == []


def test_a_provider_that_cannot_be_used_is_an_alert_at_once(open_tab, path, talk):
    tabs = open_tab(path=path), open_tab(path="/chat")
    for tab in tabs:
        tab.locator("[data-alert=unset]").wait_for()
    talk("chat.provider_set", name="far", kind="openai", key="${env:NOBODY_SET_THIS}", models=["m"])
    for tab in tabs:
        tab.locator("[data-alert=fault]", has_text="NOBODY_SET_THIS").wait_for()
        assert tab.locator("[data-alert=unset]").count() == 0
    talk("chat.provider_remove", name="far")
    for tab in tabs:
        tab.locator("[data-alert=unset]").wait_for()
        assert tab.troubles == []
