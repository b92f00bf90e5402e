"""One script while it is alive here: whose it is, how far it got, who waits for it. Values only."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec

from checkrein.call import ToolCall, Verdict
from checkrein.doors.gateway.clients import Client, Exchange
from checkrein.doors.gateway.mail import Letter
from checkrein.execute.preview import Language
from checkrein.execute.sandbox import Limits, Session, Wanted
from checkrein.policy.patterns import Pattern, pattern
from checkrein.settings import Evaluation
from checkrein.store.runs import ENDED, CallRow, RunRow

DOOR = "eval"
MOST_PATTERNS, _LONGEST_PATTERN = 100, 200


class Narrow(msgspec.Struct, frozen=True):
    """What whoever started the script wants stricter than the policy; it can loosen nothing."""

    deny: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    fatal: bool = False

    def denies(self, name: str) -> bool:
        return any(each.matches(name) for each in _patterns(self.deny))

    def asks(self, name: str) -> bool:
        return any(each.matches(name) for each in _patterns(self.ask))


def _patterns(texts: tuple[str, ...]) -> list[Pattern]:
    return [pattern(text) for text in texts]


class Script(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for, as it is kept: the text, and which tool each of its names means."""

    source: str
    language: Language
    names: dict[str, tuple[str, str]]
    narrow: Narrow = Narrow()

    def denies(self, server: str, tool: str) -> bool:
        return any(self.narrow.denies(name) for name in self._names_of(server, tool))

    def asks(self, server: str, tool: str) -> bool:
        return any(self.narrow.asks(name) for name in self._names_of(server, tool))

    def _names_of(self, server: str, tool: str) -> list[str]:
        """The tool's own name and the script's for it: whoever wants it stricter may know either."""
        if not self.narrow.deny and not self.narrow.ask:
            return []
        spelled = [name for name, pair in self.names.items() if pair == (server, tool)]
        return [f"{server}__{tool}", *spelled]


class Answered(msgspec.Struct, frozen=True):
    """What a call came to, as the journal keeps it; `verdict` says by whose leave."""

    value: Any = None
    error: str = ""
    denied: str = ""
    # What a person said with a no.
    said: str = ""
    verdict: str = ""
    # Whose words these are, where nobody vouches for the server.
    tainted_by: str = ""


class Question(msgspec.Struct):
    """A call that waits for a person."""

    wanted: Wanted
    call: ToolCall
    verdict: Verdict
    entry: str
    # The client said that it can ask its person, and then could not.
    unheard: bool = False


class Run:
    """A script that runs or waits on this server."""

    def __init__(self, row: RunRow, script: Script) -> None:
        self.row, self.script = row, script
        self.session: Session | None = None
        self.task: asyncio.Task[Any] | None = None
        # Who waits for it, or did last; nobody after a restart.
        self.client: Client | None = None
        self.exchange: Exchange | None = None
        self.journal: dict[int, CallRow] = {}
        self.known: dict[int, Answered] = {}
        self.working: dict[int, asyncio.Task[Answered]] = {}
        # What calls came to and is not sealed yet; then rows on their way to the record. Both in order.
        self.unsealed: list[tuple[CallRow, Answered]] = []
        self.unsealable: Exception | None = None
        self.writing: list[Letter[None]] = []
        self.questions: dict[int, Question] = {}
        self.changed = asyncio.Event()
        self.output = ""
        # The limits as they were read last, and until when that will do.
        self.settings: tuple[float, Evaluation] | None = None

    @property
    def id(self) -> str:
        return self.row.id

    @property
    def over(self) -> bool:
        return self.row.state in ENDED

    def set(self, **changes: Any) -> None:
        self.row = msgspec.structs.replace(self.row, **changes)

    def tell(self) -> None:
        """Whoever waits for news looks again."""
        self.changed.set()
        self.changed = asyncio.Event()

    @property
    def trail(self) -> list[dict[str, Any]]:
        """Every call so far and what was said to it."""
        return [
            {
                "tool": row.tool,
                "line": row.line,
                "verdict": self.known[number].verdict if number in self.known else "",
                "state": row.state,
            }
            for number, row in sorted(self.journal.items())
        ]


def limits_of(settings: Evaluation) -> Limits:
    return Limits(
        seconds=settings.seconds,
        memory=settings.memory_mb << 20,
        calls=settings.calls,
        output=settings.output_kb << 10,
        result=settings.result_kb << 10,
    )


def narrowed(arguments: dict[str, Any]) -> Narrow | str:
    """The caller's own restrictions, or what is wrong with them."""
    lists: dict[str, tuple[str, ...]] = {}
    for key in ("deny", "ask"):
        given = arguments.get(key, [])
        if not isinstance(given, list) or not all(isinstance(each, str) and each for each in given):
            return f"`{key}` is a list of tool names or patterns."
        if len(given) > MOST_PATTERNS or any(len(each) > _LONGEST_PATTERN for each in given):
            return f"`{key}` holds at most {MOST_PATTERNS} names."
        lists[key] = tuple(given)
    fatal = arguments.get("fatal", False)
    if not isinstance(fatal, bool):
        return "`fatal` is true or false."
    return Narrow(deny=lists["deny"], ask=lists["ask"], fatal=fatal)
