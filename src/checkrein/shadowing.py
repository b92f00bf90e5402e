"""Tries a rule set on recorded calls: what would be decided otherwise. Reads only; nothing is recorded.

Both sides are judged here, under the rules of now and under the tried ones, by what the record says of each
call (risk, domains, complexity, trust) and by the phase of now. So every difference comes from the rules.
"""

from __future__ import annotations

import functools
import os
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from checkrein import earning
from checkrein.call import NOT_JUDGED, Category, Risk, ToolCall, Verdict, Word
from checkrein.errors import InputError, LedgerError, RuleError
from checkrein.halfseen import Candidates, HalfSeen, bare
from checkrein.ledger.entries import body_of_row, moment
from checkrein.ledger.terms import term
from checkrein.policies import InForce, Policies
from checkrein.policy import Policy, decide
from checkrein.policy.load import NO_RULES, file_rules
from checkrein.policy.rules import Rule, RuleSet, rule
from checkrein.policy.trust import Scores
from checkrein.store import Reader, Row, lookup, records
from checkrein.store.phases import phase_for

MOST_CALLS = 100_000
LISTED = 500
_PAGE = 500
# Questions that were answered by a refusal, because the same had been asked or too many waited.
_NEEDLESS = ("repeat", "flood")
_BEFORE_RULES = ("settings", "floor", "phase")
_UNTOLD = "It depends on a value that is masked or cut in the record."
Replacing = Literal["all", "stored"]
Progress = Callable[[int, int], None]


class _Data(msgspec.Struct):
    """What a recorded decision says, as far as judging it again needs it."""

    project: str
    session: str
    door: str
    tool: str
    name: str
    server: str | None
    cwd: str
    input: Any
    argument_hash: str
    risk: str
    complexity: float
    domains: tuple[str, ...]
    trust: dict[str, float]
    verdict: Word
    stage: str


class _Recorded(msgspec.Struct):
    entry: str
    at: float
    data: _Data


_decode = msgspec.json.Decoder(_Recorded).decode
_BODY = records.COLUMNS.split(", ").index("body")


class _Said(msgspec.Struct, frozen=True):
    word: Word
    rule: str | None


class _Side(msgspec.Struct):
    """One of the two rule sets in a project: as a whole, and taken apart for calls that are seen in part."""

    policy: Policy
    candidates: Candidates
    own: Candidates
    alone: dict[tuple[int, int], Policy] = {}
    narrow: dict[tuple[str | None, str], Policy] = {}

    @classmethod
    def of(cls, policy: Policy) -> _Side:
        return cls(policy, Candidates(policy.rules), Candidates(policy.project_rules), {}, {})

    def for_tool(self, call: ToolCall) -> Policy:
        """The policy with only the rules that can touch this tool: the same verdict, sooner."""
        key = (call.server, call.tool)
        if key not in self.narrow:
            self.narrow[key] = msgspec.structs.replace(
                self.policy,
                rules=self.candidates.rules_for(call),
                project_rules=self.own.rules_for(call),
            )
        return self.narrow[key]

    def only(self, rule: Rule | None, own: Rule | None) -> Policy:
        """The policy if these are the rules that match."""
        # By what they are, not by name: a tried rule may be called like another.
        key = (id(rule), id(own))
        if key not in self.alone:
            self.alone[key] = msgspec.structs.replace(
                self.policy,
                rules=RuleSet([bare(rule)]) if rule else NO_RULES,
                project_rules=RuleSet([bare(own)]) if own else NO_RULES,
            )
        return self.alone[key]


class Trial:
    """One rule set, on its way through the record."""

    def __init__(
        self, reader: Reader, raw: Sequence[Mapping[str, Any]], replacing: Replacing = "all"
    ) -> None:
        self._reader, self._replacing = reader, replacing
        self._policies, self._books = Policies(reader), earning.Books(reader)
        self._tried = _compiled(raw)
        self._sides: dict[tuple[str, str, str | None], tuple[InForce, _Side, _Side]] = {}
        self._phases: dict[tuple[str, str], str | None] = {}
        self._resolve = functools.lru_cache(4096)(os.path.realpath)
        self._now = time.time()
        self._user_rules = len(self._policies.of("").settings.rules)

    def run(self, last: int, project: str = "", progress: Progress | None = None) -> dict[str, Any]:
        """The newest calls, judged under both; what differs, newest first."""
        if not 1 <= last <= MOST_CALLS:
            raise InputError(f"`last` is {last}.", remedy=f"Use 1 to {MOST_CALLS}.")
        ids = _ids(self._reader, project, last)
        counts: Counter[str] = Counter()
        changes: list[dict[str, Any]] = []
        untold: list[dict[str, Any]] = []
        for done, each in enumerate(_recorded(self._reader, ids), start=1):
            before, after = self._judged(each)
            if before is None or after is None:
                counts["cannot tell"] += 1
                untold.append(_about(each) | {"why": _UNTOLD})
            elif before.word == after.word:
                counts["unchanged"] += 1
            else:
                counts[f"{before.word} to {after.word}"] += 1
                words = {"before": before.word, "after": after.word, "rule": after.rule, "was": before.rule}
                changes.append(_about(each) | words)
            if progress and (done % _PAGE == 0 or done == len(ids)):
                progress(done, len(ids))
        return {
            "calls": len(ids),
            "sentence": sentence(len(ids), counts),
            "counts": dict(counts),
            "changes": changes[:LISTED],
            "cannot_tell": untold[:LISTED],
            "left_out": max(0, len(changes) - LISTED) + max(0, len(untold) - LISTED),
        }

    def _judged(self, each: _Recorded) -> tuple[_Said | None, _Said | None]:
        data = each.data
        if data.risk == NOT_JUDGED:
            # Refused before any rule was looked at: it would be again.
            refused = _Said(data.verdict, None)
            return refused, refused
        force, now, then = self._side(data)
        risk = Risk(
            category=Category[data.risk], domains=data.domains or ("_global",), complexity=data.complexity
        )
        arguments = data.input if isinstance(data.input, dict) else {}
        call = ToolCall(
            tool=data.tool,
            arguments=arguments,
            server=data.server,
            door=data.door,
            session=data.session,
            project=data.project,
            cwd=data.cwd,
        )
        seen = HalfSeen(data.input, data.argument_hash)
        scores = self._scores(data, force)
        before, after = (self._said(side, call, risk, scores, seen, data.stage) for side in (now, then))
        return before, after

    def _said(
        self, side: _Side, call: ToolCall, risk: Risk, scores: Scores, seen: HalfSeen, stage: str
    ) -> _Said | None:
        """The word under one side's rules; None where it depends on what cannot be seen."""
        if seen.is_whole:
            return self._word(side.for_tool(call), call, risk, scores, stage)
        # Where no rule is heard, what it looks at does not matter.
        unheard = decide(call, risk, side.only(None, None), scores, now=self._now)
        if unheard.stage in _BEFORE_RULES and stage != "release":
            return _Said(unheard.word, None)
        rules = side.candidates.of(call, seen, self._now, self._resolve)
        own = side.own.of(call, seen, self._now, self._resolve)
        said = {
            self._word(side.only(mine, theirs), call, risk, scores, stage)
            for mine in _one_of_each(rules)
            for theirs in _one_of_each(own)
        }
        words = {each.word for each in said}
        if len(words) > 1:
            return None
        return _Said(words.pop(), said.pop().rule if len(rules) == len(own) == 1 else None)

    def _word(self, policy: Policy, call: ToolCall, risk: Risk, scores: Scores, stage: str) -> _Said:
        def judged(**more: bool) -> Verdict:
            return decide(call, risk, policy, scores, now=self._now, resolve=self._resolve, **more)

        found = judged()
        # What a person said about the call, and what else held it then, stands on both sides.
        if found.word == "ask" and stage == "grant":
            found = judged(approved=True)
        elif found.stage == "floor" and stage == "release":
            found = judged(released=True)
        word = found.word
        if word == "ask" and stage in _NEEDLESS:
            word = "deny"
        return _Said("ask" if word == "allow" and stage == "hold" else word, found.rule)

    def _scores(self, data: _Data, force: InForce) -> Scores:
        if data.trust:
            return Scores(data.trust, force.settings.trust.initial_score)
        # A refusal that needed no judging was recorded without trust.
        book = self._books.of(data.project, force.settings, data.domains)
        return book.scores(earning.model_for(force.settings), self._now)

    def _side(self, data: _Data) -> tuple[InForce, _Side, _Side]:
        """What is in force for the call now, as it is and with the tried rules."""
        key = (data.project, data.door, self._phase(data))
        if key not in self._sides:
            force = self._policies.of(*key)
            then = msgspec.structs.replace(force.policy, rules=RuleSet(self._ordered(force)))
            self._sides[key] = force, _Side.of(force.policy), _Side.of(then)
        return self._sides[key]

    def _ordered(self, force: InForce) -> list[Rule]:
        """The tried rules in their place: before an accepted project's, or after what your file says."""
        if force.policy.fault:
            return []
        written = file_rules(force.settings.rules, "file")
        if self._replacing == "stored":
            return [*written, *self._tried]
        return [*self._tried, *written[self._user_rules :]]

    def _phase(self, data: _Data) -> str | None:
        if data.door != "hooks":
            return "building"
        key = (data.project, data.session)
        if key not in self._phases:
            self._phases[key] = phase_for(self._reader, *key)
        return self._phases[key]


def _one_of_each(rules: Sequence[Rule | None]) -> list[Rule | None]:
    """Rules of the same action come to the same word; one of them tells it."""
    return list({each and each.action: each for each in rules}.values())


def _compiled(raw: Sequence[Mapping[str, Any]]) -> list[Rule]:
    made = []
    for number, each in enumerate(raw, start=1):
        try:
            made.append(rule(each, id=f"tried#{number}"))
        except RuleError as error:
            raise RuleError(f"Rule {number}: {error.message}", remedy=error.remedy) from None
    if len({each.id for each in made}) < len(made):
        raise RuleError("Two rules have the same id.", remedy="Give each its own, or none.")
    return made


def _ids(reader: Reader, project: str, last: int) -> list[str]:
    """The newest calls, of a project or of all; newest first."""
    if not project:
        return lookup.find(reader, (), "", "", last)
    recent = records.after(reader, lookup.filed(reader), ("decided",))
    unfiled = {row[3] for row in recent if body_of_row(row)["data"].get("project") == project}
    filed = lookup.find(reader, [term("project", project)], "", "", last)
    return sorted(unfiled.union(filed), reverse=True)[:last]


def _recorded(reader: Reader, ids: Sequence[str]) -> Iterator[_Recorded]:
    for at in range(0, len(ids), _PAGE):
        rows = records.of_entries(reader, ids[at : at + _PAGE])
        for row in reversed(rows):
            if row[2] == "decided":
                yield _read(row)


def _read(row: Row) -> _Recorded:
    try:
        return _decode(row[_BODY])
    except msgspec.MsgspecError:
        raise LedgerError(
            f"Record {row[0]} cannot be read.", remedy="Run `checkrein audit verify`."
        ) from None


def _about(each: _Recorded) -> dict[str, Any]:
    data = each.data
    return {
        "entry": each.entry,
        "at": moment(each.at),
        "tool": data.name,
        "project": data.project,
        "input": _short(data.input),
        "recorded": data.verdict,
    }


def _short(value: Any) -> str:
    """What the call was about, on one line."""
    command = value.get("command") if isinstance(value, dict) else value
    text = command if isinstance(command, str) else msgspec.json.encode(value).decode()
    return " ".join(text[:400].split())[:160]


_SENTENCES = {
    "ask to allow": "would no longer ask",
    "allow to ask": "would ask",
    "allow to deny": "would be refused",
    "ask to deny": "would be refused",
    "deny to allow": "would no longer be refused",
    "deny to ask": "would ask instead of being refused",
}


def sentence(calls: int, counts: Mapping[str, int]) -> str:
    """`12 calls would no longer ask, 1 would be refused.`"""
    told: Counter[str] = Counter()
    for name, text in _SENTENCES.items():
        if counts.get(name):
            told[text] += counts[name]
    parts = [f"{count} {text}" for text, count in told.items()]
    if parts:
        count, _, rest = parts[0].partition(" ")
        parts[0] = f"{count} call{'' if count == '1' else 's'} {rest}"
    else:
        parts = [f"None of {calls} calls would be decided otherwise"]
    if untold := counts.get("cannot tell"):
        parts.append(f"{untold} cannot be told because what matters is masked or cut")
    return f"{', '.join(parts)}."
