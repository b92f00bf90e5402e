"""`checkrein approve | deny`: a person's word on a question, from any terminal of theirs."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from checkrein.cli.opening import ask, json_option
from checkrein.cli.terminal import plain, say, say_json
from checkrein.errors import InputError

_OVERRULED = 1


@click.command()
@click.argument("question")
@click.option("--edit", metavar="JSON", help="Run it with these arguments instead; they are judged as well.")
@click.option(
    "--for",
    "reach",
    type=click.Choice(["once", "session"]),
    default="once",
    show_default=True,
    help="This call only, or the same call again until its session ends.",
)
@click.option("--message", default="", help="A word for the record.")
@json_option
def approve(question: str, edit: str | None, reach: str, message: str, as_json: bool) -> None:
    """Say yes to a question; the beginning of its id is enough. See them with `checkrein inbox`."""
    edited = None if edit is None else _arguments(edit)
    came = answer(question, "approved", message=message, edited=edited, for_session=reach == "session")
    if as_json:
        say_json(came)
    else:
        say(told(came))
    if came["answer"] != "approved":
        raise SystemExit(_OVERRULED)


@click.command()
@click.argument("question")
@click.option("--message", default="", help="What the agent is told.")
@json_option
def deny(question: str, message: str, as_json: bool) -> None:
    """Say no to a question; the beginning of its id is enough."""
    came = answer(question, "denied", message=message)
    if as_json:
        say_json(came)
    else:
        say(told(came))


def answer(question: str, word: str, **more: Any) -> dict[str, Any]:
    """What became of the question; a new deny of the policy outranks a yes."""
    came: dict[str, Any] = ask("question.answer", id=question, answer=word, channel="terminal", **more)
    return {**came, "asked_for": word}


def told(came: dict[str, Any]) -> str:
    if came["answer"] == came["asked_for"]:
        late = (
            "" if came["awaited"] else " The agent does not wait for it here any more; it is on the record."
        )
        return f"{came['answer'].capitalize()}: {came['id']}.{late}"
    return f"Your yes does not count for {came['id']}. {plain(came['message'])}"


def _arguments(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except (msgspec.MsgspecError, UnicodeEncodeError) as error:
        raise InputError(
            f"--edit is no JSON object: {error}.", remedy='Example: --edit \'{"command": "ls"}\''
        ) from None
