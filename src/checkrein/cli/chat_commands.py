"""What a line that begins with a slash does in `checkrein chat`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from checkrein.cli.chat_asking import ask_chat, session_named, sessions
from checkrein.cli.chat_showing import found_lines, gauge_lines, model_rows, tool_lines
from checkrein.cli.chat_talk import Talk, read
from checkrein.cli.terminal import dim, plain, table
from checkrein.errors import InputError

Facts = dict[str, Any]
# INVARIANT: what the person did not mean for the model is not sent to it: two slashes say that it is.
_SEND = "//"
_MOST = 20


def obey(talk: Talk, line: str) -> bool:
    """Do what was typed; False to leave."""
    word, _, rest = line[1:].strip().partition(" ")
    known = COMMANDS.get(word)
    if line.startswith(_SEND):
        talk.told(*talk.say(line[1:]))
    elif word in ("quit", "exit", "q"):
        return False
    elif known is not None:
        known[2](talk, rest.strip())
    elif talk.is_scripted:
        talk.told(*talk.say(line))
    else:
        talk.screen.say(f"There is no /{plain(word)}. /help says what there is; // sends a line as it is.")
    return True


def _help(talk: Talk, _rest: str) -> None:
    width = max(len(f"/{name} {takes}") for name, (takes, _, _) in COMMANDS.items())
    for name, (takes, text, _) in COMMANDS.items():
        talk.screen.say(f"{f'/{name} {takes}':<{width}}  {dim(text)}")
    talk.screen.say(f"{'/quit':<{width}}  {dim('Leave; so does Ctrl-D.')}")
    talk.screen.say(
        dim("A backslash at the end of a line goes on in the next. // sends a line with a slash.")
    )


def _model(talk: Talk, rest: str) -> None:
    if not rest:
        table(("MODEL", "CONTEXT", "KIND", ""), model_rows(ask_chat("models")))
        return
    changed = talk.picked(rest)
    talk.screen.say(dim(plain(f"From now on: {changed['provider']}/{changed['model']}.")))


def _tools(talk: Talk, rest: str) -> None:
    """`/tools NAME off`: a server or a tool is not offered to the model any more."""
    session = talk.begin()
    name, _, word = rest.partition(" ")
    if name:
        if word not in ("on", "off"):
            raise InputError("Say on or off.", remedy="For example: /tools notes off")
        off = set(ask_chat("session", id=session, limit=1)["session"]["tools_off"])
        off = off | {name} if word == "off" else off - {name}
        ask_chat("update", id=session, tools_off=sorted(off))
    for line in tool_lines(ask_chat("tools", doing="Asking the servers", session=session)):
        talk.screen.say(line)


def _compress(talk: Talk, _rest: str) -> None:
    session = talk.begin()
    plan = ask_chat("preview", session=session)
    if not plan["compressed"]:
        talk.screen.say(plain(plan["reason"] or "There is nothing to put into a summary yet."))
        return
    talk.screen.say(
        f"{plan['tokens_before']:,} tokens become about {plan['tokens_after']:,}"
        f" ({plan['saved_percent']:.0f} % less)."
    )
    if read("Compress? [y/N] > ").strip().lower() not in ("y", "yes"):
        return
    came = ask_chat("compress", doing="Writing the summary", session=session)
    if came["compressed"]:
        talk.screen.say(f"Compressed: {came['original_tokens']:,} tokens are now {came['new_tokens']:,}.")
    else:
        talk.screen.say(plain(f"Nothing was changed. {came['reason']}"))


def _tokens(talk: Talk, _rest: str) -> None:
    for line in gauge_lines(ask_chat("tokens", session=talk.begin())):
        talk.screen.say(line)


def _title(talk: Talk, rest: str) -> None:
    if rest:
        ask_chat("update", id=talk.begin(), title=rest)
    elif talk.session:
        talk.screen.say(plain(ask_chat("session", id=talk.session, limit=1)["session"]["title"]))


def _new(talk: Talk, rest: str) -> None:
    talk.leave(rest)
    talk.screen.say(dim("A new conversation."))


def _open(talk: Talk, rest: str) -> None:
    if not rest:
        for each in sessions()[:_MOST]:
            talk.screen.say(f"{each['id']}  {plain(each['title'])}")
        return
    talk.open(session_named(rest))
    talk.take_up()


def _search(talk: Talk, rest: str) -> None:
    lines = found_lines(ask_chat("search", query=rest, limit=_MOST)) if rest else []
    for line in lines or [dim("Nothing was found.")]:
        talk.screen.say(line)


def _export(talk: Talk, rest: str) -> None:
    """`/export FILE`: as its ending says, JSON or Markdown."""
    form = "json" if rest.endswith(".json") else "markdown"
    made = ask_chat("export", id=talk.begin(), form=form)
    path = Path(rest or made["name"]).expanduser()
    try:
        with path.open("x", encoding="utf-8", errors="replace") as file:
            file.write(made["text"])
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}.", remedy="Take another name.") from None
    talk.screen.say(plain(f"Written to {path}."))


def _again(talk: Talk, _rest: str) -> None:
    talk.told(*talk.again())


COMMANDS: dict[str, tuple[str, str, Callable[[Talk, str], None]]] = {
    "help": ("", "This list.", _help),
    "model": ("[MODEL]", "The models there are, or another one from now on.", _model),
    "tools": ("[NAME on|off]", "The tools, and what the rules say about them.", _tools),
    "tokens": ("", "How full the model's context is.", _tokens),
    "compress": ("", "Put a summary in the place of older messages.", _compress),
    "again": ("", "Another answer to what you said last.", _again),
    "title": ("[TEXT]", "Call this conversation something else.", _title),
    "new": ("[MODEL]", "Begin another conversation.", _new),
    "open": ("[ID]", "The newest conversations, or go on with one.", _open),
    "search": ("WORDS", "Find words in all conversations.", _search),
    "export": ("[FILE]", "Write this conversation to a file, .md or .json.", _export),
}
