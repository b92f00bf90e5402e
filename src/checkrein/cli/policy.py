"""`checkrein policy`: a project's own file may only tighten until a person accepts its content."""

from __future__ import annotations

from pathlib import Path

import click

from checkrein.authority.policy import proposed
from checkrein.cli.opening import ask, confirmed, json_option, project_option, project_path, reading
from checkrein.cli.terminal import plain, say, say_json
from checkrein.errors import NotFoundError
from checkrein.policies import Policies
from checkrein.settings.reading import read
from checkrein.settings.sources import PROJECT_FILE, content_hash
from checkrein.store.policies import is_accepted


@click.group()
def policy() -> None:
    """See and accept a project's own policy file."""


@policy.command()
@project_option
@json_option
def show(project: str | None, as_json: bool) -> None:
    """Show whether the project's file is accepted, and what of it is ignored until then."""
    path, content = _file(project)
    with reading() as reader:
        accepted = is_accepted(reader, str(path), content_hash(content))
        loaded = Policies(reader).loaded(str(path.parent))
    if as_json:
        say_json(
            {
                "path": str(path),
                "sha256": content_hash(content),
                "accepted": accepted,
                "ignored": list(loaded.notices),
                "fault": loaded.fault or None,
            }
        )
        return
    say(f"{path}\nsha256 {content_hash(content)}")
    say("accepted" if accepted else "not accepted: it may only tighten")
    for notice in (loaded.fault, *loaded.notices):
        if notice:
            say(f"- {notice}")


@policy.command()
@project_option
@click.option("--yes", is_flag=True, help="Do not ask.")
def accept(project: str | None, yes: bool) -> None:
    """Let the project's file, exactly as it is now, loosen as well as tighten."""
    folder = project_path(project)
    with reading() as reader:
        file = proposed(Policies(reader), folder)
    say(plain(file.content.decode()))
    for notice in file.loaded.notices:
        say(f"- {notice}")
    confirmed(f"Accept {file.path} as it is shown here?", yes)
    ask("policy.accept", project=folder, sha256=file.sha256)
    say("Accepted. Any change to the file needs a new yes.")


@policy.command()
@project_option
def revoke(project: str | None) -> None:
    """Take the yes back: the file may only tighten again."""
    folder = project_path(project)
    ask("policy.revoke", project=folder)
    say(f"{Path(folder) / PROJECT_FILE} may only tighten now.")


def _file(project: str | None) -> tuple[Path, bytes]:
    path = Path(project_path(project)) / PROJECT_FILE
    content = read(path)
    if content is None:
        raise NotFoundError(f"There is no {path}.", remedy="A project without one uses your own settings.")
    return path, content
