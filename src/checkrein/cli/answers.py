"""`checkrein approve | deny`: a person's word on a question, from any terminal of theirs."""

from __future__ import annotations

from typing import Any

import click
import msgspec

from checkrein.cli.opening import ask, confirmed, json_option
from checkrein.cli.terminal import moment, plain, say, say_json
from checkrein.errors import InputError, NotFoundError
from checkrein.ledger.secrets import MASK

_OVERRULED = 1


@click.command()
@click.argument("question")
@click.option(
    "--edit",
    metavar="JSON",
    is_flag=False,
    flag_value="",
    help="Run it with other arguments, judged as well; without JSON your editor opens.",
)
@click.option("--for", "reach", default="once", show_default=True, help="once, session, 2h, 7d or always.")
@click.option("--uses", type=click.IntRange(1), help="For this many calls.")
@click.option(
    "--what",
    type=click.Choice(["exact", "family", "tool"]),
    default="exact",
    show_default=True,
    help="What is remembered: exactly this call, its family (shown in the inbox), or the server's tool.",
)
@click.option("--message", default="", help="A word for the record.")
@click.option("--yes", is_flag=True, help="Do not ask before remembering something for good.")
@json_option
def approve(
    question: str,
    edit: str | None,
    reach: str,
    uses: int | None,
    what: str,
    message: str,
    yes: bool,
    as_json: bool,
) -> None:
    """Say yes to a question; the beginning of its id is enough. See them with `checkrein inbox`."""
    remember = _remember(reach, uses, what)
    if remember and remember["for"] == "always":
        say(f"Always, from now on: {plain(_label(question, what))}.")
        confirmed("Remember this for good?", yes)
    edited = None if edit is None else _arguments(edit or _in_editor(question))
    came = answer(question, "approved", message=message, edited=edited, remember=remember)
    if as_json:
        say_json(came)
    else:
        say(told(came))
    if came["answer"] != "approved":
        raise SystemExit(_OVERRULED)


def _remember(reach: str, uses: int | None, what: str) -> dict[str, Any] | None:
    """How far the yes reaches, from the options."""
    if uses is not None:
        return {"what": what, "for": "uses", "uses": uses}
    if reach == "once":
        return None
    if reach in ("session", "always"):
        return {"what": what, "for": reach}
    return {"what": what, "for": "until", "until": moment(reach, ahead=True)}


def _asked(question: str) -> dict[str, Any]:
    found: list[dict[str, Any]] = [each for each in ask("question.list") if each["id"].startswith(question)]
    if len(found) != 1:
        raise NotFoundError(f"No single question {question!r} waits.", remedy="See `checkrein inbox`.")
    return found[0]


def _label(question: str, what: str) -> str:
    """What would be remembered, in the words the person is shown."""
    labels = {offer["what"]: offer["label"] for offer in _asked(question)["offers"]}
    if what not in labels:
        raise InputError(f"This call cannot be remembered as {what}.", remedy=f"Known: {', '.join(labels)}.")
    return str(labels[what])


def _in_editor(question: str) -> str:
    """The call's arguments as a person changed them; masked values cannot be put back."""
    text = msgspec.json.format(msgspec.json.encode(_asked(question)["input"]), indent=2).decode()
    if MASK in text:
        raise InputError("This call holds secrets we do not keep.", remedy="Give the arguments as JSON.")
    changed = click.edit(text, extension=".json")
    if changed is None:
        raise InputError("Nothing was changed; the question still waits.")
    return changed


@click.command()
@click.argument("question")
@click.option("--message", default="", help="What the agent is told.")
@click.option(
    "--answer", "result", metavar="TEXT", help="Answer for the tool: the agent gets this in its place."
)
@json_option
def deny(question: str, message: str, result: str | None, as_json: bool) -> None:
    """Say no to a question; the beginning of its id is enough."""
    if result is not None:
        came = answer(question, "answered", result=result)
    else:
        came = answer(question, "denied", message=message)
    if as_json:
        say_json(came)
    else:
        say(told(came))


def answer(question: str, word: str, **more: Any) -> dict[str, Any]:
    """What became of the question; a new deny of the policy outranks a yes."""
    came: dict[str, Any] = ask("question.answer", id=question, answer=word, **more)
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
