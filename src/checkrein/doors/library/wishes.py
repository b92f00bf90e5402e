"""What a program says about its own tools: rules with names, patterns, servers and condition functions.

Turned into a wish for one call. The authority decides; a wish only ever asks for more, or speaks where
nobody else did.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any

import msgspec

from checkrein.authority.wish import Wish
from checkrein.call import Category
from checkrein.errors import RuleError
from checkrein.policy.patterns import Pattern, pattern

Condition = Callable[[dict[str, Any]], Any]
Needs = bool | Condition | None
_KEYS = {
    "toolName": "tool",
    "tool_name": "tool",
    "tool": "tool",
    "pattern": "pattern",
    "serverId": "server",
    "server_id": "server",
    "server": "server",
    "autoApprove": "auto_approve",
    "auto_approve": "auto_approve",
    "condition": "condition",
}


class ToolRule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule of a program; what it leaves out fits everything."""

    auto_approve: bool
    name: Pattern | None = None
    server: str | None = None
    condition: Condition | None = None

    def names(self, server: str | None, tool: str) -> bool:
        if self.server is not None and self.server != server:
            return False
        return self.name is None or self.name.matches(tool)

    @property
    def reach(self) -> Category:
        """INVARIANT: a rule that names no tool never lets high risk run."""
        named = self.name is not None and bool(self.name.prefix or self.name.suffix or self.name.pieces)
        return Category.high if named else Category.medium


def tool_rules(raw: Iterable[Mapping[str, Any] | ToolRule]) -> tuple[ToolRule, ...]:
    return tuple(each if isinstance(each, ToolRule) else _rule(each) for each in raw)


def _rule(raw: Mapping[str, Any]) -> ToolRule:
    given: dict[str, Any] = {}
    for key, value in raw.items():
        if key not in _KEYS:
            raise RuleError(f"`{key}` is not part of a tool rule.", remedy=f"Known: {', '.join(_KEYS)}.")
        given[_KEYS[key]] = value
    if not isinstance(given.get("auto_approve"), bool):
        raise RuleError("A tool rule needs `autoApprove`: True or False.")
    names = [given[key] for key in ("tool", "pattern") if given.get(key) is not None]
    if len(names) > 1 or not all(isinstance(each, str) and each for each in names):
        raise RuleError("A tool rule has at most one of `toolName` and `pattern`, and it is text.")
    server, condition = given.get("server"), given.get("condition")
    if server is not None and not isinstance(server, str):
        raise RuleError(f"`serverId` is {server!r}.", remedy="It is a server's name.")
    if condition is not None and not callable(condition):
        raise RuleError("`condition` is a function of the input.")
    name = pattern(names[0]) if names else None
    return ToolRule(auto_approve=given["auto_approve"], name=name, server=server, condition=condition)


class Wishes(msgspec.Struct, frozen=True):
    """Everything a program says about one tool."""

    needs: tuple[Needs, ...] = ()
    rules: tuple[ToolRule, ...] = ()
    default_auto_approve: bool | None = None

    @property
    def looks(self) -> bool:
        """Whether a function of the program gets its hands on the arguments."""
        return any(map(callable, self.needs)) or any(each.condition for each in self.rules)

    def of(
        self, server: str | None, tool: str, given: dict[str, Any], *, may_wait: bool
    ) -> Wish | Awaitable[Wish]:
        """The wish for one call; to be awaited where one of its functions is asynchronous."""
        if not self.needs and not self.rules:
            return _default(self.default_auto_approve, named=False)
        return _Thinking(self, server, tool, given, may_wait).wish()


class _Thinking:
    """One call's wish on the way: conditions that are asynchronous are looked at last, together."""

    def __init__(
        self, wishes: Wishes, server: str | None, tool: str, given: dict[str, Any], may_wait: bool
    ) -> None:
        self.wishes, self.server, self.tool, self.given = wishes, server, tool, given
        self.may_wait = may_wait

    def wish(self) -> Wish | Awaitable[Wish]:
        answers = [self._ask(need) for need in self.wishes.needs]
        fitting = [each for each in self.wishes.rules if each.names(self.server, self.tool)]
        holds = [self._ask(each.condition) if each.condition else True for each in fitting]
        if any(inspect.isawaitable(each) for each in (*answers, *holds)):
            return self._later(answers, fitting, holds)
        return _concluded(answers, fitting, holds, self.wishes.default_auto_approve)

    def _ask(self, need: Needs) -> Any:
        """True, False, nothing said, an awaitable, or the error (which decides against running)."""
        if not callable(need):
            return need
        try:
            said = need(self.given)
            if not inspect.isawaitable(said):
                return bool(said)
            if self.may_wait:
                return said
            if inspect.iscoroutine(said):
                said.close()
            return TypeError("an asynchronous function cannot speak for a tool that is not")
        except Exception as error:  # noqa: BLE001 - INVARIANT: a function that fails asks a person
            return error

    async def _later(self, answers: list[Any], fitting: list[ToolRule], holds: list[Any]) -> Wish:
        async def known(each: Any) -> Any:
            if not inspect.isawaitable(each):
                return each
            try:
                return bool(await each)
            except Exception as error:  # noqa: BLE001 - a function that fails asks a person
                return error

        answers = [await known(each) for each in answers]
        holds = [await known(each) for each in holds]
        return _concluded(answers, fitting, holds, self.wishes.default_auto_approve)


def _concluded(answers: list[Any], fitting: list[ToolRule], holds: list[Any], default: bool | None) -> Wish:
    for each in answers:
        if isinstance(each, Exception):
            return Wish(hold=f"Whether this call needs approval could not be found out: {each!r}")
        if each:
            return Wish(hold="The program asks for a person's approval of this tool.")
    for rule, held in zip(fitting, holds, strict=True):
        # INVARIANT: a condition that fails makes an asking rule match and a letting rule not.
        if isinstance(held, Exception) and not rule.auto_approve:
            return Wish(hold=f"A rule of the program could not be checked: {held!r}")
        if held is True and not rule.auto_approve:
            return Wish(hold="A rule of the program asks for approval of this tool.")
        if held is True:
            return Wish(let="A rule of the program lets this tool run.", upto=rule.reach)
    if False in answers and not fitting:
        return Wish(let="The program says this call needs no approval.")
    return _default(default, named=bool(fitting))


def _default(default: bool | None, *, named: bool) -> Wish:
    # A rule that names the tool and does not fit its input speaks against the default.
    if named:
        return Wish(hold="No rule of the program fits this input.")
    if default is None:
        return _NOTHING
    return _LET if default else _HOLD


_NOTHING = Wish()
_LET = Wish(let="No rule names this tool, and the program lets low and medium risk run.")
_HOLD = Wish(hold="No rule of the program names this tool.", mild=True)
