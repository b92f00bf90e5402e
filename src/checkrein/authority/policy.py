"""A project's own policy file: a person accepts its content, or takes that back."""

from __future__ import annotations

from pathlib import Path

import msgspec

from checkrein.authority import Asked, Params, verb
from checkrein.errors import ConfigError, InputError, NotFoundError
from checkrein.policies import Policies
from checkrein.policy.load import compile_policy
from checkrein.settings.check import apply
from checkrein.settings.reading import read
from checkrein.settings.sources import PROJECT_FILE, Loaded, content_hash, parse
from checkrein.store import policies


class _Accept(msgspec.Struct, forbid_unknown_fields=True):
    project: str
    sha256: str


class Proposed(msgspec.Struct, frozen=True):
    """A project's file as it is now, and the settings it would be laid over."""

    path: Path
    content: bytes
    loaded: Loaded

    @property
    def sha256(self) -> str:
        return content_hash(self.content)


def proposed(known: Policies, project: str) -> Proposed:
    """The file a person is asked to accept; one that would break everything cannot be accepted."""
    path = Path(project) / PROJECT_FILE
    content = read(path)
    if content is None:
        raise NotFoundError(f"There is no {path}.", remedy="A project without one uses your own settings.")
    loaded = known.loaded(project)
    if loaded.error:
        raise loaded.error
    fault = compile_policy(apply(loaded.settings, parse(content, str(path)), str(path))).fault
    if fault:
        raise ConfigError("rules", None, fault, "Fix the file first.")
    return Proposed(path, content, loaded)


@verb("policy.accept", person=True)
def accept(asked: Asked, params: Params) -> None:
    """{"project", "sha256"}: exactly the content with this hash may loosen."""
    wanted = msgspec.convert(params, _Accept)
    file = proposed(asked.pipeline.policies, wanted.project)
    # INVARIANT: what is accepted is what the person saw.
    if file.sha256 != wanted.sha256:
        raise InputError(f"{file.path} has changed in the meantime.", remedy="Look at it again.")
    path, now = str(file.path), asked.pipeline.clock()
    data = {"project": wanted.project, "path": path, "sha256": file.sha256, "actor": asked.actor}
    asked.pipeline.note("policy_accepted", data, lambda tx: policies.accept(tx, path, file.sha256, now))


@verb("policy.revoke", person=True)
def revoke(asked: Asked, params: Params) -> None:
    """{"project"}: the file may only tighten again, whatever version of it was accepted."""
    project = msgspec.convert(params["project"], str)
    path = str(Path(project) / PROJECT_FILE)
    data = {"project": project, "path": path, "actor": asked.actor}
    asked.pipeline.note("policy_revoked", data, lambda tx: policies.revoke(tx, path))
