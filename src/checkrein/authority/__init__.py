"""What can be asked of the one authority besides verdicts: verbs by name, and which only a person may use.

The server performs them for the command line; where no server runs the command line performs them itself,
under the same lock and the same rules. Each noun's verbs live in the module of its name.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from checkrein import errors
from checkrein.agents import Agents, user_name
from checkrein.errors import CheckreinError, InputError, PersonOnlyError
from checkrein.peers import Peer
from checkrein.pipeline import Pipeline

if TYPE_CHECKING:
    from checkrein.authority.chat import Chat
    from checkrein.authority.console import Console
    from checkrein.authority.gateway import Gateway

Params = dict[str, Any]
_NOUNS = tuple(
    (
        "chat client console grant installation ledger library notify passphrase phase policy question"
        " release rule run server shadow token trust upstream"
    ).split()
)


class Asked(msgspec.Struct, frozen=True):
    """A request on its way to its verb: whom it is asked of, and by whom."""

    pipeline: Pipeline
    agents: Agents
    peer: Peer
    stop: Callable[[], None] | None = None
    # The console of the server, made when it is first asked for.
    console: Callable[[], Console] | None = None
    # A browser that signed in through a link only a person can get; its user is the actor.
    signed_in: bool = False
    # The gateway of the server, made when it is first asked for.
    gateway: Callable[[], Gateway] | None = None
    # The chat of the server, made when it is first asked for.
    chat: Callable[[], Chat] | None = None
    # Where the console and the HTTP API are; they open when it is asked for.
    address: Callable[[], str] | None = None
    # The name of the token a program showed that asks over HTTP.
    token: str = ""

    @property
    def actor(self) -> str:
        """The user the kernel says is asking, and through which program's token."""
        return user_name(self.peer.uid) + (f" (token {self.token})" if self.token else "")

    @property
    def channel(self) -> str:
        """Where an answer comes from, as the record has it."""
        return "console" if self.signed_in else "api" if self.token else "terminal"


class Verb(msgspec.Struct, frozen=True):
    """`checks`: it checks its parameters itself, so that what breaks in it is a fault of ours."""

    run: Callable[[Asked, Params], Any]
    person: bool
    checks: bool = False


_VERBS: dict[str, Verb] = {}


def verb(
    name: str, *, person: bool, checks: bool = False
) -> Callable[[Callable[[Asked, Params], Any]], Callable[..., Any]]:
    """Register a function as the verb `noun.action`; `person` when no agent may ever use it."""

    def register(run: Callable[[Asked, Params], Any]) -> Callable[[Asked, Params], Any]:
        _VERBS[name] = Verb(run, person, checks)
        return run

    return register


def perform(asked: Asked, name: str, params: Params) -> Any:
    """Do what is asked, or say why not. What only a person may do is refused and recorded otherwise."""
    noun = name.partition(".")[0]
    if noun in _NOUNS:
        importlib.import_module(f"checkrein.authority.{noun}")
    found = _VERBS.get(name)
    if found is None:
        raise InputError(f"There is no request {name!r}.")
    if found.person:
        # INVARIANT: only a person answers, grants, writes rules, switches phases or stops the server.
        why = "" if asked.signed_in else asked.agents.not_a_person(asked.peer)
        if why:
            asked.agents.refused(name, why)
            raise PersonOnlyError(
                f"Only a person may do this ({name}), and {why}.",
                remedy="Do it in a terminal of your own.",
            )
    try:
        return found.run(asked, params)
    except (KeyError, TypeError, ValueError, msgspec.MsgspecError) as error:
        # INVARIANT: nobody is told that they asked wrongly where it is us who failed.
        if found.checks:
            raise
        raise not_understood(name, error) from error


def not_understood(name: str, error: Exception) -> InputError:
    return InputError(f"The request {name} cannot be understood: {error!r}")


def myself() -> Peer:
    """This process, where no server stands between."""
    return Peer(os.getpid(), os.getuid())


def as_answer(work: Callable[[], Any], say: Callable[[str], None] = lambda _text: None) -> bytes:
    """What a verb came to, as it goes over the socket; a fault of ours is said in the log too."""
    try:
        return msgspec.json.encode({"value": work()})
    except CheckreinError as error:
        # The nearest kind both sides know: one of a door's own arrives as what it is a kind of.
        kind = next(each.__name__ for each in type(error).__mro__ if each.__module__ == errors.__name__)
        return msgspec.json.encode({"error": kind, "message": error.message, "remedy": error.remedy})
    except Exception as error:  # noqa: BLE001 - whoever asks hears of it, and nobody else suffers
        text = f"The request failed: {type(error).__name__}: {error}"
        # INVARIANT: what somebody sent, a key perhaps, is not in the log.
        say(f"The request failed: {type(error).__name__}{_place(error)}")
        return msgspec.json.encode(
            {"error": "CheckreinError", "message": text, "remedy": "Please report it."}
        )


def _place(error: Exception) -> str:
    import traceback

    where = traceback.extract_tb(error.__traceback__)[-1:]
    return "".join(f" ({Path(each.filename).name}:{each.lineno})" for each in where)
