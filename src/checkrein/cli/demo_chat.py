"""The demo's conversation: a call that waits while its server is stopped, a summary that forgets nothing."""

from __future__ import annotations

import time
from typing import Any

import click

from checkrein import knocking
from checkrein.cli.demo_hooks import running
from checkrein.cli.terminal import dim, plain, say, word
from checkrein.errors import StoreError

_WAIT = 30.0

Facts = dict[str, Any]


def scene() -> None:
    """Tell the built-in model something, have it call a tool, compress, and see what it still knows."""
    with running():
        talk = Talk()
        talk.say("Our code word is teapot.")
        call = talk.say('/call docs__add_page {"title": "Refnuds"}\n/then\n/results')
    say(dim("      the question waits; the server is stopped, and another one started:"))
    with running():
        talk.answer(call, {"title": "Refunds"})
        talk.say("/long 40")
        found = _ask("chat.compress", session=talk.id, retention=0)
        say(dim(f"      {found['reason']}"))
        talk.say("/recall teapot")


class Talk:
    """One conversation, followed as a page follows it."""

    def __init__(self) -> None:
        self.id: str = _ask("chat.create", title="Refunds", model="demo/demo")["id"]
        self._last: str = _ask("chat.session", id=self.id)["last"]
        self._answered = ""

    def say(self, text: str) -> Facts:
        """Say something and hear the answer; the call that waits for a person, if one does."""
        say(f"{click.style('you', bold=True):<5}   {plain(text.splitlines()[0])}")
        _ask("chat.send", session=self.id, text=text)
        return self._heard()

    def answer(self, call: Facts, edited: Facts) -> None:
        """Approve a call with other arguments; its conversation goes on, whichever server it is on now."""
        deadline = time.monotonic() + _WAIT
        while not (live := _ask("chat.session", id=self.id))["run"]:
            if time.monotonic() > deadline:
                raise StoreError("The demo's conversation did not go on.", remedy="Run it again.")
            time.sleep(0.02)
        self._last = live["last"]
        self._answered = call["call_id"]
        _ask("chat.approve", run=call["run"], call=self._answered, edited=edited)
        say(f"{'':<6}{click.style('you', bold=True)} approved it, as {plain(str(edited['title']))}")
        self._heard()

    def _heard(self) -> Facts:
        deadline = time.monotonic() + _WAIT
        while time.monotonic() < deadline:
            found = _ask("chat.events", session=self.id, after=self._last, wait=5.0)
            self._last = found["last"]
            for each in found["events"]:
                if each["kind"] == "message" and each["data"]["message"]["role"] == "assistant":
                    _shown(each["data"]["message"]["parts"])
                if each["kind"] == "error":
                    raise StoreError(each["data"]["text"], remedy="Run the demo again.")
                call: Facts = each["data"].get("call", {})
                if each["kind"] == "approval_required" and call["call_id"] != self._answered:
                    say(f"{word('ask', 5)} {plain(call['name'])} {plain(str(call['arguments']['title']))}")
                    return call
                if each["kind"] == "end":
                    return {}
        raise StoreError("The demo's conversation did not end.", remedy="Run it again.")


def _shown(parts: list[Facts]) -> None:
    text = " ".join(each["text"] for each in parts if each["kind"] == "text")
    if text:
        line = " ".join(text.split())
        say(f"{click.style('demo', bold=True)}  {plain(line[:90])}{'…' if len(line) > 90 else ''}")


def _ask(verb: str, **params: Any) -> Any:
    return knocking.ask(knocking.start(), verb, params)
