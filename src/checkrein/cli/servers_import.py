"""`checkrein servers import`: servers of other programs, shown first, brought in as one change."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from checkrein.cli.opening import confirmed, json_option
from checkrein.cli.servers_asking import ask_server
from checkrein.cli.terminal import dim, plain, say, say_json
from checkrein.errors import InputError, NotFoundError
from checkrein.newcomers import document_of, looks_secret
from checkrein.settings.import_profiles import profiles_in
from checkrein.settings.import_sources import SOURCES, Found, found_in, places
from checkrein.settings.server_imports import Item, plan
from checkrein.settings.servers import read_servers
from checkrein.settings.sources import user_file

WORDS = {
    "new": "to import",
    "same": "there already",
    "ours": "left out",
    "clash": "name taken",
    "broken": "cannot be used",
}


@click.command("import")
@click.option(
    "--from",
    "source",
    required=True,
    metavar="FILE|PROGRAM",
    help=f"A file with servers, or one of: {', '.join(SOURCES)}.",
)
@click.option("--rename", is_flag=True, help="Give servers whose name is taken another one.")
@click.option("--only", multiple=True, metavar="NAME", help="Just this server; may be repeated.")
@click.option("--dry-run", is_flag=True, help="Show what would be imported; change nothing.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def import_(
    source: str, rename: bool, only: tuple[str, ...], dry_run: bool, yes: bool, as_json: bool
) -> None:
    """Bring in servers from another program's settings. That program's file is not changed.

    Values that look like secrets are moved into the secret store; our file only refers to them.
    """
    found, profiles, files = _read(source)
    known = read_servers()
    if known.fault:
        raise InputError(known.fault)
    wanted = [each for each in found if not only or each.name in only]
    items = plan(wanted, known.servers, home=str(Path.home()), is_secret=looks_secret, rename=rename)
    new = [each for each in items if each.state == "new"]
    if not as_json:
        _show(items, files)
    if new and not dry_run:
        _bring_in(items, new, source, yes, as_json)
    if as_json:
        say_json(
            {
                "files": [str(each) for each in files],
                "servers": [each.shown() for each in items],
                "imported": [] if dry_run else [each.name for each in new],
                "profiles": profiles,
            }
        )
        return
    if profiles:
        _show_profiles(profiles)
    if new and not dry_run:
        _tell_next(new)


def _read(source: str) -> tuple[list[Found], str, list[Path]]:
    """Everything the named file, or the program's files, hold."""
    paths = places(source, Path.home(), Path.cwd()) if source in SOURCES else [Path(source).absolute()]
    documents = [(path, document_of(path)) for path in paths]
    there = [(path, document) for path, document in documents if document is not None]
    if not there:
        looked = ", ".join(map(str, paths))
        known = f"Name a file, or one of: {', '.join(SOURCES)}."
        raise NotFoundError(f"There is no {looked}.", remedy=known)
    found = [each for path, document in there for each in found_in(document, path)]
    profiles = "".join(profiles_in(document, str(path)) for path, document in there)
    return found, profiles, [path for path, _ in there]


def _show(items: list[Item], files: list[Path]) -> None:
    for path in files:
        say(dim(f"Read {plain(str(path))}"))
    if not items:
        say("There are no servers in it.")
        return
    width = max(len(each.was) for each in items)
    for each in items:
        say(f"{plain(each.was):<{width}}  {WORDS[each.state]:<14}  {dim(plain(each.where))}")
        _show_item(each)


def _show_item(item: Item) -> None:
    """Exactly what would run or be reached, and what a person must know of it."""
    if item.state in ("ours", "same"):
        return
    if item.entry:
        words = [item.entry.get("command", ""), *item.entry.get("args", ())]
        say(f"    {plain(item.entry.get('url') or shlex.join(words))}")
    for note in item.notes:
        say(f"    {plain(note)}")
    if item.state != "new":
        return
    if item.secrets:
        say(f"    Goes into the secret store: {plain(', '.join(sorted(item.secrets)))}.")
    for name in item.needs:
        say(f"    Needs a value: checkrein servers secret set {plain(name)}")


def _bring_in(items: list[Item], new: list[Item], source: str, yes: bool, as_json: bool) -> None:
    taken = [each.was for each in items if each.state == "clash"]
    if taken:
        names = ", ".join(taken)
        raise InputError(
            f"These names are taken: {names}. Nothing was imported.",
            remedy="Add --rename, or choose with --only.",
        )
    if as_json and not yes:
        raise InputError("This needs a yes.", remedy="Add --yes, or --dry-run.")
    confirmed(f"Import {len(new)} server(s)? They are started at once, with the commands shown.", yes)
    servers = [{"name": each.name, "entry": each.entry, "secrets": each.secrets} for each in new]
    ask_server("upstream.import", doing="Importing", servers=servers, source=source)


def _tell_next(new: list[Item]) -> None:
    say(f"Imported {len(new)} server(s).")
    for each in new:
        for name in each.needs:
            say(f"{plain(each.name)} needs a value: checkrein servers secret set {plain(name)}")
    say("Next: checkrein servers review, then checkrein servers accept NAME.")
    say(dim("The program they came from still starts its own; take them out there and connect it to us:"))
    say(dim("checkrein servers connect"))


def _show_profiles(profiles: str) -> None:
    say()
    say(f"The file has evaluation profiles. They belong into {user_file()}; put this there:")
    say()
    say(plain(profiles))
