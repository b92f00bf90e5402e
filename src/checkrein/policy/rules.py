"""Rules people write: ascending priority, first match decides. `RuleSet` is the compiled, immutable form.

An error in a condition makes a deny or ask rule match and an allow rule not match.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Literal

import msgspec

from checkrein.call import ToolCall, Word, split_name
from checkrein.errors import RuleError
from checkrein.policy.conditions import Condition, Context, Resolve, conditions, holds
from checkrein.policy.patterns import Pattern, pattern

DEFAULT_PRIORITY = 100
ACTIONS: tuple[Word, ...] = ("allow", "ask", "deny")
KEYS = (
    "id",
    "priority",
    "server",
    "tool",
    "pattern",
    "action",
    "when",
    "expires_at",
    "uses",
    "reason",
    "origin",
)


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule as it is stored and shown; exactly one of `tool` and `pattern` is set."""

    id: str
    action: Word
    priority: int = DEFAULT_PRIORITY
    server: str | None = None
    tool: str | None = None
    pattern: str | None = None
    when: tuple[Condition, ...] = ()
    expires_at: float | None = None
    uses: int | None = None
    reason: str = ""
    origin: Literal["file", "store", "grant", "project"] = "store"

    @property
    def label(self) -> str:
        """What the rule names, as a person reads it."""
        target = self.tool if self.tool is not None else f"{self.pattern}"
        where = "" if self.server is None else f" on {self.server}"
        when = " and ".join(condition.label for condition in self.when)
        return f"{self.action} {target}{where}" + (f" when {when}" if when else "")


class Match(msgspec.Struct, frozen=True):
    """The rule that decided; `doubt` says what could not be tested when that is why it matched."""

    rule: Rule
    doubt: str = ""


def rule(raw: Mapping[str, Any], *, id: str, origin: Any = "store") -> Rule:  # noqa: A002 - the glossary's word
    """A Rule from what a person wrote, or RuleError saying what cannot be right."""
    for key in raw:
        if key not in KEYS:
            near = difflib.get_close_matches(str(key), KEYS, n=1)
            hint = f"Did you mean `{near[0]}`?" if near else f"Known: {', '.join(KEYS)}."
            raise RuleError(f"`{key}` is not part of a rule.", remedy=hint)
    tool, glob = _text(raw, "tool"), _text(raw, "pattern")
    if (tool is None) == (glob is None):
        said = "both `tool` and `pattern`" if tool is not None else "neither `tool` nor `pattern`"
        raise RuleError(
            f"The rule has {said}.", remedy="Give exactly one: tool is exact, pattern may hold `*`."
        )
    if glob == "":
        raise RuleError("The pattern is empty and could match no tool.", remedy='Use "*" to mean every tool.')
    if raw.get("action") not in ACTIONS:
        raise RuleError(f"`action` is {raw.get('action')!r}.", remedy="Use allow, ask or deny.")
    return Rule(
        id=_text(raw, "id") or id,
        action=raw["action"],
        priority=_whole(raw, "priority", DEFAULT_PRIORITY),
        server=_text(raw, "server"),
        tool=tool,
        pattern=glob,
        when=conditions(raw.get("when")),
        expires_at=_moment(raw.get("expires_at")),
        uses=None if raw.get("uses") is None else _whole(raw, "uses", 0),
        reason=_text(raw, "reason") or "",
        origin=origin,
    )


def _text(raw: Mapping[str, Any], key: str) -> str | None:
    value = raw.get(key)
    if value is not None and not isinstance(value, str):
        raise RuleError(f"`{key}` must be text, not {value!r}.", remedy="Put it in quotes.")
    return value


def _whole(raw: Mapping[str, Any], key: str, default: int) -> int:
    value = raw.get(key, default)
    value = default if value is None else value
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) >= 1 << 53:
        raise RuleError(f"`{key}` must be a whole number, not {value!r}.", remedy="Write it without quotes.")
    if key == "uses" and value < 0:
        raise RuleError("`uses` cannot be negative.", remedy="Leave it out for no limit.")
    return value


def _moment(value: Any) -> float | None:
    """Seconds since 1970 from a number, a TOML date-time or ISO 8601 text."""
    # NaN is refused: no moment is ever after it, so the rule would never expire.
    if value is None or (isinstance(value, int | float) and not isinstance(value, bool) and value == value):
        return value
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(value)
        return moment.astimezone().timestamp()
    except (TypeError, ValueError, OverflowError):
        raise RuleError(f"`expires_at` is {value!r}.", remedy="Write it like 2027-01-31T18:00:00Z.") from None


class _Compiled(msgspec.Struct, frozen=True):
    """A rule ready to match: its place in the order, its names taken apart."""

    order: int
    rule: Rule
    server: str | None
    pattern: Pattern | None
    # Whether it allows a tool by its server's name and its own in one (`mcp__mail__read`).
    names_server: bool = False

    def fits(self, server: str | None) -> bool:
        """Whether a tool of this server may be meant."""
        # INVARIANT: no server has another one's tool allowed by giving its own tool that whole name.
        return self.server == server if self.server is not None else server is None or not self.names_server


class RuleSet:
    """Rules in order, indexed so that deciding does not grow with the rules a call cannot touch."""

    def __init__(self, rules: Iterable[Rule] = ()) -> None:
        self.rules = tuple(sorted(rules, key=lambda each: each.priority))
        self._exact: dict[str, list[_Compiled]] = {}
        self._prefixes: dict[int, dict[str, list[_Compiled]]] = {}
        self._inner: list[_Compiled] = []
        # A pattern spelled `mcp__...` also means the full name of a server's tool.
        self._full_names: list[_Compiled] = []
        for order, each in enumerate(self.rules):
            self._add(order, each)

    def _add(self, order: int, each: Rule) -> None:
        allows = each.action == "allow" and each.server is None
        if each.tool is not None:
            server, tool = (each.server, each.tool) if each.server is not None else split_name(each.tool)
            self._exact.setdefault(tool, []).append(_Compiled(order, each, server, None))
            if server is not None and each.server is None:
                # Also a tool that is literally called like that.
                self._exact.setdefault(each.tool, []).append(_Compiled(order, each, None, None, allows))
            return
        parsed = pattern(each.pattern or "")
        full = parsed.prefix.startswith("mcp__")
        compiled = _Compiled(order, each, each.server, parsed, allows and full)
        if each.server is None and full:
            self._full_names.append(compiled)
        if parsed.is_prefix:
            group = self._prefixes.setdefault(len(parsed.prefix), {})
            group.setdefault(parsed.prefix, []).append(compiled)
        else:
            self._inner.append(compiled)

    def __len__(self) -> int:
        return len(self.rules)

    def is_plain(self, call: ToolCall) -> bool:
        """Whether every call of this tool meets the same rule, whatever its arguments and the hour."""
        found = self._named(call.tool, call) + self._full_names
        return not any(c.rule.when or c.rule.expires_at is not None or c.rule.uses is not None for c in found)

    def match(self, call: ToolCall, now: float, resolve: Resolve | None = None) -> Match | None:
        """The first rule that matches, or None."""
        found = self._named(call.tool, call)
        if self._full_names and call.server is not None:
            found += [c for c in self._full_names if c.pattern and c.pattern.matches(call.name)]
        if len(found) > 1:
            found.sort(key=_by_order)
        for compiled in found:
            rule = compiled.rule
            if (rule.expires_at is not None and now >= rule.expires_at) or rule.uses == 0:
                continue
            if not rule.when:
                return Match(rule)
            matched = _conditions_match(rule, Context(call, resolve))
            if matched is not None:
                return matched
        return None

    def _named(self, name: str, call: ToolCall) -> list[_Compiled]:
        """Every rule whose server and name fit, in no order."""
        server = call.server
        found = [c for c in self._exact.get(name, ()) if c.fits(server)]
        for length, group in self._prefixes.items():
            if length <= len(name):
                found += [c for c in group.get(name[:length], ()) if c.fits(server)]
        for c in self._inner:
            if c.fits(server) and c.pattern and c.pattern.matches(name):
                found.append(c)
        return found


def _by_order(compiled: _Compiled) -> int:
    return compiled.order


def _conditions_match(rule: Rule, context: Context) -> Match | None:
    # INVARIANT: a condition that cannot be tested makes deny and ask rules match, allow rules not.
    allow = rule.action == "allow"
    doubt = ""
    for condition in rule.when:
        answer, why = holds(condition, context, every=allow)
        if answer == "no":
            return None
        if answer == "unknown":
            doubt = doubt or why
    if doubt and allow:
        return None
    return Match(rule, doubt)
