"""A person at the chat page: says something, waits for the answer, finds the card of a call."""


def composer(tab):
    return tab.get_by_role("textbox", name="Message", exact=True)


def say(tab, *lines):
    """Write it and send it; returns once it stands there."""
    before = tab.locator(".said.user").count()
    composer(tab).fill("\n".join(lines))
    composer(tab).press("Enter")
    tab.locator(".said.user").nth(before).wait_for()


def answer(tab, text=""):
    """The answer to what was said last, once it is complete."""
    last = tab.locator("[data-conversation] > article:last-of-type.assistant.completed")
    last.filter(has_text=text).wait_for()
    tab.locator("[data-send]:visible:enabled").wait_for()
    return last


def waiting(tab, tool=""):
    found = tab.locator("[data-card][data-state=waiting]")
    return found.filter(has=tab.locator(".tool-name", has_text=tool)) if tool else found


def settled(tab, tool, word):
    found = tab.locator("[data-card]").filter(has=tab.locator(".tool-name", has_text=tool)).last
    found.locator("[data-word]", has_text=word).wait_for()
    return found
