"""Conversations in a real browser, over a real chat, a real gateway and a real server's process."""

import re

import pytest

from chat_page import answer, composer, say, settled, waiting
from console import browsing

pytestmark = browsing.MARKS
pipeline = browsing.pipeline
# How much of the conversation lies below what is seen.
BELOW = """() => {
  const scroll = document.querySelector("[data-scroll]");
  return scroll.scrollHeight - scroll.scrollTop - scroll.clientHeight;
}"""
ALLOWED = {"action": "allow", "server": "echo", "pattern": "*"}


@pytest.fixture
def tab(open_tab, talk):
    """A conversation with nothing in it."""
    made = talk("chat.create", title="Trial")
    tab = open_tab(path=f"/chat/{made['id']}")
    tab.session = made["id"]
    return tab


def test_the_next_message_is_written_with_enter_and_shift(tab):
    field = composer(tab)
    field.press_sequentially("/say one")
    field.press("Shift+Enter")
    field.press_sequentially("/say two")
    field.press("Enter")
    answer(tab, "two")
    assert tab.locator(".said.user .asis").inner_text() == "/say one\n/say two"
    assert field.input_value() == ""


def test_reasoning_is_folded_away(tab):
    say(tab, "/think I wonder about plums", "/say Plums.")
    answer(tab, "Plums.")
    box = tab.locator("details.reasoning")
    assert not box.get_by_text("wonder").is_visible()
    box.get_by_text("Reasoning").click()
    assert box.get_by_text("I wonder about plums").is_visible()


def test_what_a_rule_allows_is_not_asked(tab, talk):
    talk("rule.add", rule=ALLOWED)
    say(tab, '/call echo__write_note {"title": "plum"}', "/then", "/results")
    answer(tab, "write_note got")
    card = settled(tab, "write_note", "done")
    assert card.locator("[data-leave]").inner_text() == "allowed by the rules"
    assert tab.locator("[data-state=waiting]").count() == 0
    card.get_by_text("Arguments and answer").click()
    assert '"plum"' in card.inner_text()
    card.get_by_role("link", name="record").click()
    tab.wait_for_url("**/calls/*")
    tab.get_by_text("write_note").first.wait_for()
    assert tab.troubles == []


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_two_approvals_at_once_in_either_order(tab, order):
    tools = ("read_note", "write_note")
    say(tab, *(f'/call echo__{each} {{"title": "{each}"}}' for each in tools), "/then", "/results")
    for each in tools:
        waiting(tab, each).wait_for()
    assert tab.get_by_text("2 calls wait for you.").is_visible()
    for at in order:
        waiting(tab, tools[at]).get_by_role("button", name="Allow", exact=False).first.click()
        settled(tab, tools[at], "done")
    answer(tab, "read_note got")
    assert "write_note got" in tab.locator(".said.assistant").last.inner_text()
    assert tab.troubles == []


def test_all_that_waits_is_allowed_or_refused_at_once(tab):
    say(
        tab,
        '/call echo__read_note {"title": "a"}',
        '/call echo__write_note {"title": "b"}',
        "/then",
        "/say Over.",
    )
    tab.get_by_role("button", name="Allow all").click()
    answer(tab, "Over.")
    assert tab.locator("[data-card][data-state=completed]").count() == 2
    say(
        tab,
        '/call echo__read_note {"title": "c"}',
        '/call echo__write_note {"title": "d"}',
        "/then",
        "/say Again.",
    )
    tab.get_by_role("button", name="Refuse all").click()
    answer(tab, "Again.")
    assert tab.locator("[data-card][data-state=denied]").count() == 2


def test_an_approval_after_an_approval(tab):
    say(
        tab,
        '/call echo__read_note {"title": "a"}',
        "/then",
        '/call echo__write_note {"title": "b"}',
        "/then",
        "/results",
    )
    waiting(tab, "read_note").locator("[data-key=a]").click()
    waiting(tab, "write_note").locator("[data-key=a]").click()
    answer(tab, "write_note got")
    by = tab.locator("[data-leave]").all_inner_texts()
    assert all(each.startswith("allowed by ") and "person" not in each for each in by), by


def test_a_refusal_says_its_reason_to_the_model(tab):
    say(tab, '/call echo__write_note {"title": "a"}', "/then", "/results")
    card = waiting(tab, "write_note")
    card.locator("[data-unfold=message] > summary").click()
    card.get_by_label("What the model is told").fill("Use the <b>other</b> note")
    card.get_by_role("button", name="Refuse with this reason").click()
    answer(tab, "Use the <b>other</b> note")
    assert "refused by" in settled(tab, "write_note", "refused").inner_text()


def test_arguments_are_edited_and_those_run(tab):
    say(tab, '/call echo__write_note {"title": "wrong"}', "/then", "/results")
    card = waiting(tab, "write_note")
    card.locator("[data-unfold=edit] > summary").click()
    field = card.get_by_label("Arguments, as JSON")
    field.fill("{not json")
    card.get_by_role("button", name="Allow as edited").click()
    card.get_by_text("is not JSON").wait_for()
    field.fill('{"other": 1}')
    card.get_by_role("button", name="Allow as edited").click()
    card.get_by_text("do not fit the tool").wait_for()
    field.fill('{"title": "right"}')
    card.get_by_role("button", name="Allow as edited").click()
    answer(tab, '"right"')
    card = settled(tab, "write_note", "done")
    assert card.get_by_text("edited by a person").is_visible()


def test_remembered_and_not_asked_again(tab):
    for number in range(2):
        say(tab, '/call echo__write_note {"title": "same"}', "/then", "/say Over.")
        if number == 0:
            card = waiting(tab, "write_note")
            card.locator("[data-unfold=remember] > summary").click()
            card.get_by_label("exactly this call").check()
            card.get_by_role("button", name="Allow and remember").click()
        answer(tab, "Over.")
    tab.wait_for_function("() => document.querySelectorAll('[data-card][data-state=completed]').length === 2")


def test_stopped_while_it_waits(tab, talk):
    say(tab, '/call echo__write_note {"title": "a"}', "/then", "/say Never.")
    waiting(tab, "write_note").wait_for()
    tab.get_by_role("button", name="Stop").click()
    settled(tab, "write_note", "cancelled")
    tab.locator("[data-send]:visible:enabled").wait_for()
    assert talk("chat.session", id=tab.session)["run"] is None
    say(tab, "/say Still here.")
    answer(tab, "Still here.")


def test_stopped_while_it_writes_keeps_what_there_is(tab):
    say(tab, "/slow 500", "/say One two three four five six seven eight nine ten eleven twelve.")
    tab.locator(".said.assistant").get_by_text("two").wait_for()
    tab.get_by_role("button", name="Stop").click()
    tab.get_by_text("Stopped. This is what had come until then.").wait_for()
    tab.reload()
    tab.get_by_text("Stopped. This is what had come until then.").wait_for()
    said = tab.locator(".said.assistant").inner_text()
    assert "One two" in said
    assert "twelve" not in said


def test_what_fails_is_said_and_tried_again(tab, user_settings):
    say(tab, "/say Some words first.", "/fail cut")
    tab.locator(".said.assistant [data-error]").wait_for()
    assert "Some words first." in tab.locator(".said.assistant").inner_text()
    tab.locator("[data-send]:visible:enabled").wait_for()
    assert tab.locator("[data-notice=bad]").count() == 0
    tab.get_by_role("button", name="Retry").last.click()
    tab.locator("[data-branch]", has_text="2/2").wait_for()
    assert tab.troubles == []


def test_what_fails_before_its_first_word_is_said_too(tab):
    say(tab, "/fail 500")
    tab.get_by_text("Trying again").wait_for()
    tab.locator("[data-notice=bad]").wait_for()
    tab.reload()
    tab.get_by_text("No answer came.").wait_for()
    tab.get_by_role("button", name="Retry").click()
    tab.get_by_text("Trying again").wait_for()
    tab.get_by_role("button", name="Stop").click()
    tab.locator("[data-send]:visible:enabled").wait_for()
    assert tab.troubles == []


def test_a_look_at_the_conversation_that_fails_is_taken_again(tab):
    say(tab, "/say First.")
    answer(tab, "First.")
    missed = []

    def lost(route):
        if len(missed) < 2:
            missed.append(route.request.url)
            route.abort()
        else:
            route.continue_()

    tab.route("**/conversation?*", lost)
    tab.get_by_role("button", name="Retry").click()
    tab.locator(".said.assistant [data-branch]", has_text="2/2").wait_for()
    assert len(missed) == 2


def test_another_answer_and_an_edited_question_are_branches(tab):
    say(tab, "/say First.")
    answer(tab, "First.")
    tab.get_by_role("button", name="Retry").click()
    tab.locator(".said.assistant [data-branch]", has_text="2/2").wait_for()
    answer(tab, "First.")
    tab.locator(".said.user").get_by_role("button", name="Edit").click()
    field = tab.get_by_label("Say this instead")
    assert field.input_value() == "/say First."
    field.fill("/say Second.")
    field.press("Enter")
    answer(tab, "Second.")
    assert tab.locator(".said.user [data-branch]").inner_text() == "2/2"
    assert "First." not in tab.locator("[data-conversation]").inner_text()
    tab.locator(".said.user").get_by_role("button", name="The one before").click()
    tab.locator(".said.assistant [data-branch]", has_text="2/2").wait_for()
    answer(tab, "First.")
    tab.locator(".said.assistant").get_by_role("button", name="The one before").click()
    tab.locator(".said.assistant [data-branch]", has_text="1/2").wait_for()
    assert tab.troubles == []


# What the page's own line tells arrives late, and in order.
LATE = """
window.onTheirWay = 0;
const soon = EventSource.prototype.addEventListener;
EventSource.prototype.addEventListener = function (kind, heard) {
  soon.call(this, kind, (event) => {
    window.onTheirWay += 1;
    setTimeout(() => { window.onTheirWay -= 1; heard(event); }, 600);
  });
};
"""


def test_which_branch_it_is_stays_known_when_news_come_late(tab):
    say(tab, "/say First.")
    answer(tab, "First.")
    tab.context.add_init_script(LATE)
    tab.reload()
    tab.locator(".said.user").get_by_role("button", name="Edit").click()
    tab.get_by_label("Say this instead").fill("/slow 100\n/long 20")
    tab.get_by_label("Say this instead").press("Enter")
    answer(tab, "word20")
    tab.wait_for_function("window.onTheirWay === 0")
    browsing.drawn(tab)
    assert tab.locator(".said.user [data-branch]").inner_text() == "2/2"
    assert tab.troubles == []


def test_copied_as_it_was_written(tab):
    tab.context.grant_permissions(["clipboard-read", "clipboard-write"])
    say(tab, "/say Some **bold** words.")
    answer(tab, "Some bold words.")
    tab.locator(".said.assistant").get_by_role("button", name="Copy").click()
    tab.get_by_role("button", name="Copied").wait_for()
    assert tab.evaluate("navigator.clipboard.readText()") == "Some **bold** words."


def test_a_long_answer_is_followed_unless_somebody_reads_further_up(tab):
    say(tab, "/long 3000")
    answer(tab, "")
    assert tab.evaluate(BELOW) < 5
    say(tab, "/slow 20", "/long 200")
    tab.locator(".said.streaming").wait_for()
    tab.evaluate("document.querySelector('[data-scroll]').scrollTop = 0")
    answer(tab, "")
    assert tab.evaluate("document.querySelector('[data-scroll]').scrollTop") < 50


def test_first_words_come_at_once(tab):
    say(tab, "/say Warm.")
    answer(tab, "Warm.")
    # The second word is a minute away.
    say(tab, "/slow 60000", "/say Quick and then nothing for long.")
    tab.locator(".said.assistant").get_by_text("Quick").wait_for()
    tab.get_by_role("button", name="Stop").click()
    tab.get_by_text(re.compile("Stopped. This is")).wait_for()


def test_what_is_written_but_not_sent_survives_a_reload(tab):
    composer(tab).press_sequentially("half a thought")
    tab.reload()
    assert composer(tab).input_value() == "half a thought"
