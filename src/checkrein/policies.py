"""The policy in force for a project: its files and the stored rules, compiled again when they change."""

from __future__ import annotations

import os
import sysconfig
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import msgspec

from checkrein.classify import Tables
from checkrein.errors import ConfigError
from checkrein.hookclient import client_path
from checkrein.ledger.mirror import folder_for
from checkrein.ledger.redact import Masking, Redactor
from checkrein.policy import Policy
from checkrein.policy.load import compile_policy
from checkrein.policy.rules import Rule, rule
from checkrein.runtime import socket_path
from checkrein.settings import Approval, MaskingSettings, Settings
from checkrein.settings.sources import PROJECT_FILE, Loaded, config_dir, load, state_dir, user_file
from checkrein.store import Reader
from checkrein.store.changes import change_numbers
from checkrein.store.policies import is_accepted
from checkrein.store.rules import StoredRule, all_rules

Stamp = tuple[object, ...]
# Compiled policies kept at once; whoever names folder after folder gets no more of our memory.
KEPT = 256


class InForce(msgspec.Struct, frozen=True):
    """Everything people wrote that applies to a door of a project."""

    policy: Policy
    redactor: Redactor
    tables: Tables
    notices: tuple[str, ...] = ()
    counted: frozenset[str] = frozenset()

    @property
    def settings(self) -> Settings:
        return self.policy.settings

    def patience(self, door: str) -> Approval:
        """How questions of a door wait: a script or a conversation that is put away can wait for days."""
        limits = self.settings.approval
        kept = {
            "eval": self.settings.evaluation.keep_days * 86_400,
            "chat": self.settings.chat.answer_hours * 3600,
        }
        if door not in kept:
            return limits
        seconds = int(kept[door])
        return msgspec.structs.replace(limits, timeout_seconds=max(limits.timeout_seconds, seconds))

    def own_folders(self, project: str) -> tuple[str, ...]:
        """Folders that are ours wherever they lie: a project's audit lines are no file of the agent's."""
        log_dir = self.settings.audit.log_dir
        ours = own_places()
        return (*ours, str(folder_for(project, log_dir, Path()))) if log_dir else ours


@cache
def own_places() -> tuple[str, ...]:
    """What runs us and what we keep, wherever this installation put it: both as named and as resolved."""
    client = client_path()
    package = Path(__file__).parent
    places = [state_dir(), config_dir(), socket_path().parent, package, *([client] if client else ())]
    # The folders of an installation may be shared with others; only our own part of them is ours.
    script = Path(sysconfig.get_path("scripts")) / "checkrein"
    spelled = dict.fromkeys(str(path) for place in (*places, script) for path in (place, place.resolve()))
    return tuple(spelled)


class Policies:
    """A cache that is dropped on every change: an edited file, a stored rule, an accepted policy."""

    def __init__(self, reader: Reader, overrides: Sequence[str] = ()) -> None:
        self._reader, self._overrides = reader, overrides
        self._user_file = str(user_file())
        self._cache: dict[tuple[str, str, str | None, str], tuple[Stamp, InForce]] = {}
        self._numbers: tuple[int | None, dict[str, int]] = (None, {})

    def of(
        self, project: str, door: str = "hooks", phase: str | None = "building", profile: str = ""
    ) -> InForce:
        """What holds for a door; under a profile of the caller's own where one is named."""
        # INVARIANT: a change takes effect on the next call, also one made by another process.
        stamp = self._stamp(project)
        key = (project, door, phase, profile)
        cached = self._cache.get(key)
        if cached is None or cached[0] != stamp:
            if len(self._cache) >= KEPT:
                self._cache.clear()
            cached = stamp, self._compile(project, door, phase, profile)
            self._cache[key] = cached
        return cached[1]

    def _stamp(self, project: str) -> Stamp:
        numbers = self._changes()
        # A project that is no folder (`default`) has no file.
        own = project.startswith("/")
        files = (self._user_file, f"{project}/{PROJECT_FILE}") if own else (self._user_file,)
        return (numbers.get("rules"), numbers.get("policies"), *(_file_stamp(path) for path in files))

    def _changes(self) -> dict[str, int]:
        """The counters of stored changes; read again only after somebody wrote them."""
        writes = self._reader.writes_to("change")
        known, numbers = self._numbers
        if writes is None or writes != known:
            numbers = change_numbers(self._reader)
            self._numbers = writes, numbers
        return numbers

    def _compile(self, project: str, door: str, phase: str | None, profile: str) -> InForce:
        loaded = self.loaded(project)
        redactor, fault = _redactor(loaded.settings.masking)
        tables, unusable = _tables(loaded)
        policy = compile_policy(
            loaded.settings,
            stored=[as_rule(each) for each in all_rules(self._reader)],
            project_rules=loaded.project_rules,
            door=door,
            phase=phase,
            fault=loaded.fault or fault or unusable,
            named=profile,
        )
        counted = frozenset(each.id for each in policy.rules.rules if each.uses is not None)
        return InForce(policy, redactor, tables, loaded.notices + tables.ignored, counted)

    def loaded(self, project: str) -> Loaded:
        """The settings files as they are now."""
        return load(
            project,
            overrides=self._overrides,
            accepted=lambda path, sha256: is_accepted(self._reader, path, sha256),
        )


def _redactor(masking: MaskingSettings) -> tuple[Redactor, str]:
    """The user's masking; a pattern that cannot be used is a fault like any other setting."""
    try:
        return Redactor(Masking(masking.keys, masking.patterns)), ""
    except ConfigError as error:
        return Redactor(), str(error)


def _tables(loaded: Loaded) -> tuple[Tables, str]:
    """What we know of commands, with the user's entries and an unaccepted project's stricter ones."""
    try:
        own = Tables.load(loaded.settings.commands, known_hosts=loaded.settings.network.known_hosts)
        return Tables.load(loaded.project_commands, tighten_only=True, base=own), ""
    except ConfigError as error:
        return Tables.load(), str(error)


def as_rule(stored: StoredRule) -> Rule:
    """A stored rule, compiled; what was accepted when written is accepted when read."""
    return rule({**stored.body, "uses": stored.uses}, id=stored.id)


def _file_stamp(path: str) -> tuple[int, ...]:
    try:
        status = os.stat(path)  # noqa: PTH116 - asked for every call; a Path costs more than the answer
    except (OSError, ValueError) as error:
        return (getattr(error, "errno", None) or -1,)
    return (status.st_mtime_ns, status.st_size, status.st_ino, status.st_ctime_ns)
