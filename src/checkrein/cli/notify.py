"""`checkrein notify`: try whether you can be told."""

from __future__ import annotations

import click

from checkrein.cli.opening import ask, json_option
from checkrein.cli.terminal import plain, say, say_json
from checkrein.errors import NotFoundError
from checkrein.settings.sources import user_file


@click.group()
def notify() -> None:
    """Be told of questions where you are: on the desktop, in a chat, by mail, or by a webhook of yours."""


@notify.command()
@json_option
def test(as_json: bool) -> None:
    """Send a trial notice through every channel in your settings; exits 1 if one did not take it."""
    came = ask("notify.test")
    if as_json:
        say_json(came)
    elif not came:
        raise NotFoundError(
            "No channel is set.", remedy=f"Add `urls` or `webhook_urls` under [notify] in {user_file()}."
        )
    else:
        for each in came:
            word = "sent  " if each["ok"] else "FAILED"
            say(f"{word}  {plain(each['channel'])}  {plain(each['trouble'])}".rstrip())
    if not all(each["ok"] for each in came):
        raise SystemExit(1)
