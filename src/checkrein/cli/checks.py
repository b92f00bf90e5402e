"""What doctor looks at, one function each: what was found, whether that is good, and what to do if not."""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec

from checkrein import __version__, knocking, runtime
from checkrein.cli.opening import reading
from checkrein.cli.probe import command_line, probe
from checkrein.doors.chat.providers import Providers
from checkrein.doors.hooks.dialects import AGENTS, dialect
from checkrein.doors.hooks.presence import codex_unseen, present
from checkrein.errors import CheckreinError
from checkrein.hookclient import client_path, client_words
from checkrein.ledger.checkpoints import KEY, Signer
from checkrein.ledger.verify import verify
from checkrein.overview import PROBES
from checkrein.policies import Policies
from checkrein.settings.sources import state_dir
from checkrein.store import records
from checkrein.store.agents import newest_sessions
from checkrein.store.installations import installations

_DAY = 86_400.0
_UP = "Run `checkrein restart`; `checkrein logs` says more."


class Finding(msgspec.Struct, frozen=True):
    """One line of the report."""

    name: str
    ok: bool
    text: str
    remedy: str = ""


def one(name: str, ok: bool, text: str, remedy: str = "") -> Iterator[Finding]:
    return iter((Finding(name, ok, text, remedy),))


def findings(project: str, agent: str | None) -> Iterator[Finding]:
    """Everything, from the ground up; each finding when it is known."""
    for name, check in (
        ("client", client),
        ("server", server),
        ("door file", door),
        ("folders", folders),
        ("settings", lambda: settings({project, *_folders()})),
        ("installations", lambda: registered(agent)),
        ("judged calls", unjudged),
        ("agents", strangers),
        ("reports", spooled),
        ("models", models),
        ("record", ledger),
    ):
        try:
            yield from check()
        except CheckreinError as error:
            yield Finding(name, False, error.message, error.remedy)


def registered(agent: str | None) -> Iterator[Finding]:
    """Every place we were installed to, of one agent or of all."""
    with reading() as reader:
        places = [each for each in installations(reader) if agent in (None, each[0])]
    if not places:
        whose = f" of {dialect(agent).title}" if agent else ""
        text = f"no hooks{whose} are registered, so no call is judged"
        yield Finding("installations", False, text, f"Run `checkrein install {agent or AGENTS[0]}`.")
    for each, folder in places:
        yield from installation(each, folder)


def client() -> Iterator[Finding]:
    """The program hooks run."""
    words = client_words()
    lacking = [word for word in words if word.startswith("/") and not Path(word).is_file()]
    if lacking or not os.access(words[0], os.X_OK):
        return one("client", False, f"{' '.join(lacking or words)} cannot be run", "Install Checkrein again.")
    kind = "" if client_path() else " (the Python one; no compiled one is here)"
    return one("client", True, f"{words[-1]}{kind}")


def server() -> Iterator[Finding]:
    """It starts, answers, and is the version that asks."""
    try:
        about = knocking.ask(knocking.start(), "server.about", {})
    except CheckreinError as error:
        return one("server", False, error.message, error.remedy or _UP)
    text = f"version {about['version']}, process {about['pid']}"
    if about["version"] != __version__:
        return one("server", False, f"{text}, but this is {__version__}", "Run `checkrein restart`.")
    for part in ("ledger", "mirror"):
        if about[part] != "ok":
            return one("server", False, f"{text}; {part}: {about[part]}", "Run `checkrein audit verify`.")
    return one("server", True, text)


def door() -> Iterator[Finding]:
    """The file that tells hooks where to knock."""
    path = runtime.door_file()
    try:
        found = runtime.read_door()
    except CheckreinError as error:
        return one("door file", False, error.message, error.remedy)
    if path.stat().st_mode & 0o077:
        return one("door file", False, f"{path} can be read by others", f"Run `chmod 600 {path}`.")
    if not os.access(found.python, os.X_OK):
        text = f"{path} names {found.python}, which cannot be run"
        return one("door file", False, text, "Run `checkrein restart`.")
    return one("door file", True, str(path))


def folders() -> Iterator[Finding]:
    """Nobody else gets at the socket or the state."""
    socket = Path(runtime.read_door().socket)
    for name, path, kind in (
        ("state folder", state_dir(), stat.S_ISDIR),
        ("runtime folder", socket.parent, stat.S_ISDIR),
        ("socket", socket, stat.S_ISSOCK),
    ):
        try:
            status = path.lstat()
        except OSError as error:
            yield Finding(name, False, f"{path}: {error.strerror}", _UP)
            continue
        if not kind(status.st_mode) or status.st_uid != os.geteuid():
            yield Finding(name, False, f"{path} is not ours", "Remove it, then run `checkrein restart`.")
        elif status.st_mode & 0o077:
            yield Finding(name, False, f"{path} is open to others", f"Run `chmod go-rwx {path}`.")
        else:
            yield Finding(name, True, str(path))


def settings(projects: set[str]) -> Iterator[Finding]:
    """The files people wrote can be used; if not, every call there is refused."""
    for project in sorted(projects):
        with reading() as reader:
            force = Policies(reader).of(project)
        if force.policy.fault:
            yield Finding("settings", False, force.policy.fault, "Until then every call is refused.")
        else:
            text = "; ".join((f"good for {project}", *force.notices))
            yield Finding("settings", True, text)


def _folders() -> list[str]:
    """The projects we are installed in."""
    with reading() as reader:
        return [folder for _, folder in installations(reader) if folder]


def installation(agent: str, folder: str) -> Iterator[Finding]:
    """Our registrations are whole, and the gate closes."""
    scope, name = "project" if folder else "user", f"{agent} ({folder or 'user'})"
    again = f"Run `checkrein install {agent}{'' if folder else ' --user'}`" + (
        f" in {folder}." if folder else "."
    )
    found = present(agent, scope, Path(folder) if folder else None)
    wrong = [f"{event}: {why}" for event, why in found.altered.items()]
    wrong += [f"{event} is missing" for event in found.missing]
    if wrong:
        yield Finding(name, False, f"{found.file}: {'; '.join(wrong)}", again)
    else:
        yield Finding(name, True, f"{len(found.complete)} hooks in {found.file}")
    for reason in found.reasons:
        yield Finding(
            f"{name} active", False, reason, "" if "run `" in reason else "Change that, then try again."
        )
    if agent == "codex" and (gap := codex_unseen(Path(folder) if folder else None)):
        yield Finding(f"{name} typing", False, gap)
    yield _gate(agent, found.file, name, folder or str(Path.home()), again)


def _gate(agent: str, file: Path, name: str, cwd: str, again: str) -> Finding:
    try:
        line = command_line(agent, file)
    except CheckreinError as error:
        return Finding(f"{name} gate", False, error.message, again)
    if line is None:
        return Finding(f"{name} gate", False, f"{file} has no gate of ours", again)
    why = probe(agent, line, cwd)
    text = why or "a call that must be refused was refused and recorded"
    return Finding(f"{name} gate", not why, text, again if why else "")


def unjudged() -> Iterator[Finding]:
    """Calls agents reported that were never asked about."""
    since = time.time() - _DAY
    with reading() as reader:
        count = sum(row[1] >= since for row in records.after(reader, 0, ("unjudged",)))
    if count:
        remedy = "An agent ran without its gate: see that its hooks are trusted and switched on."
        return one("judged calls", False, f"{count} call(s) ran without a verdict in the last day", remedy)
    return one("judged calls", True, "no call ran without a verdict in the last day")


def strangers() -> Iterator[Finding]:
    """Agents whose process we could not make out: what they start is not told from what you start."""
    since = time.time() - _DAY
    with reading() as reader:
        met = [each for each in newest_sessions(reader, limit=200) if each.started_at >= since]
    unknown = [each for each in met if not each.process_started and each.id != PROBES]
    if unknown:
        who = ", ".join(sorted({each.agent for each in unknown}))
        text = f"{len(unknown)} session(s) of {who} came from a process we do not know as that agent's"
        return one("agents", True, f"{text}; its commands could answer for you")
    return one("agents", True, "every agent of the last day is known by its process")


def spooled() -> Iterator[Finding]:
    """Reports that wait, or that nobody could read."""
    folder = runtime.spool_dir()
    bad = sorted(folder.glob("*.unreadable"))
    if bad:
        text = f"{len(bad)} report(s) of hooks could not be read, e.g. {bad[0]}"
        return one("reports", False, text, "Look at them, then remove them.")
    return one("reports", True, "every report of a hook was read")


def models() -> Iterator[Finding]:
    """Providers of models for conversations; nothing is said where none was ever set up."""
    providers = Providers()
    if providers.fault:
        yield Finding("models", False, providers.fault)
        return
    for each in providers.listed():
        if each["enabled"] and each["fault"]:
            again = f"Run `checkrein chat providers add {each['name']} --kind {each['kind']}` again."
            yield Finding("models", False, f"{each['name']}: {each['fault']}", again)


def ledger() -> Iterator[Finding]:
    """Every record, from the first on."""
    state = state_dir()
    with reading() as reader:
        public = Signer(state).public if (state / KEY).exists() else ""
        report = verify(reader, state, public)
    if report.broken:
        remedy = "Records before it are good. Keep the store as evidence."
        return one("record", False, f"it does not verify: {report.broken.reason}", remedy)
    if report.findings:
        text = f"{report.records} record(s) verify, but {report.trouble}"
        return one("record", False, text, "See `checkrein audit verify`.")
    return one("record", True, f"{report.records} record(s) verify")
