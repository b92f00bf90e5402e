"""`checkrein servers browse | review | accept | refuse`: what servers offer, and a person's word on it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from checkrein.cli.opening import confirmed, json_option, project_option, project_path
from checkrein.cli.servers_asking import ask_server
from checkrein.cli.servers_show import PENDING, show_definitions, show_tools
from checkrein.cli.terminal import plain, say, say_json
from checkrein.errors import NotFoundError

Facts = dict[str, Any]


@click.command()
@click.argument("name", required=False)
@project_option
@json_option
def browse(name: str | None, project: str | None, as_json: bool) -> None:
    """Look through the tools of the running servers: what they take, their risk, what policy says today.

    The verdict shown is the one a call without arguments would get; `checkrein explain` tells more.
    """
    found = ask_server(
        "upstream.browse", doing="Waiting for the servers", name=name, project=project_path(project)
    )
    if as_json:
        say_json(found)
    elif found:
        show_tools(found)
    else:
        say("No running server has any tools. `checkrein servers` shows how they are.")


@click.command()
@click.argument("name", required=False)
@click.option("--all", "everything", is_flag=True, help="Also what you accepted or refused before.")
@click.option("--full", is_flag=True, help="Every definition whole, however long.")
@json_option
def review(name: str | None, everything: bool, full: bool, as_json: bool) -> None:
    """See what servers say about themselves that nobody accepted yet: new, or changed with the difference.

    Clients see a tool only after its definition was accepted, in exactly the version that was shown.
    """
    found = [
        each for each in _reviewed(name) if everything or each.get("state") not in ("accepted", "refused")
    ]
    if as_json:
        say_json(found)
        return
    if not found:
        say("Nothing waits for you.")
        return
    show_definitions(found, risks(name), whole=full)
    for server in dict.fromkeys(each["server"] for each in found if each.get("state") in PENDING):
        say(f"Accept: checkrein servers accept {plain(server)}")


@click.command()
@click.argument("name")
@click.argument("tools", nargs=-1)
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def accept(name: str, tools: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Accept what a server says about itself: all that waits, or only the tools named.

    What is accepted is what is shown here, word for word; a definition that changes later waits again.
    """
    _settle("accept", name, tools, PENDING if not tools else (*PENDING, "refused"), yes, as_json)


@click.command()
@click.argument("name")
@click.argument("tools", nargs=-1)
@click.option("--yes", is_flag=True, help="Do not ask.")
@json_option
def refuse(name: str, tools: tuple[str, ...], yes: bool, as_json: bool) -> None:
    """Refuse definitions of a server: they stay hidden, and nobody is asked about them again."""
    _settle("refuse", name, tools, PENDING if not tools else (*PENDING, "accepted"), yes, as_json)


def _settle(
    action: str, name: str, tools: Sequence[str], states: Sequence[str], yes: bool, as_json: bool
) -> None:
    found = picked(_reviewed(name), tools, states)
    if not found:
        say_json([]) if as_json else say("Nothing waits for you.")
        return
    if not as_json:
        show_definitions(found, risks(name), whole=True)
    confirmed(f"{action.capitalize()} {len(found)} definition(s) of {name} as shown?", yes)
    settle(action, name, found, as_json)


def settle(action: str, name: str, found: Sequence[Facts], as_json: bool = False) -> None:
    """Tell the server, by the exact hashes that were shown, and say what became of them."""
    # INVARIANT: what is accepted is what the person saw.
    picks = [{key: each[key] for key in ("kind", "name", "hash")} for each in found]
    after = ask_server(f"upstream.{action}", doing=f"{name}: {action}", name=name, picks=picks)
    if as_json:
        say_json(after)
        return
    wanted = "accepted" if action == "accept" else "refused"
    hashes = {each["hash"] for each in found}
    done = [each for each in after if each.get("hash") in hashes and each.get("state") == wanted]
    say(f"{wanted.capitalize()} {len(done)} of {len(found)} definition(s).")
    if len(done) < len(found):
        say("The rest changed meanwhile or cannot be used; see `checkrein servers review`.")
    still = [each for each in done if each.get("hidden")]
    for each in still if action == "accept" else ():
        say(f"{plain(str(each['name']))} stays hidden: {plain(str(each['hidden']))}")


def picked(found: Sequence[Facts], tools: Sequence[str], states: Sequence[str]) -> list[Facts]:
    """Those in one of the states, or of those named; a name nobody has is an error."""
    if not tools:
        return [each for each in found if each.get("state") in states]
    for tool in tools:
        if not any(tool in _names(each) for each in found):
            known = ", ".join(sorted({str(each.get("name") or each.get("kind")) for each in found}))
            raise NotFoundError(f"The server has no {tool!r}.", remedy=f"It has: {known or 'nothing yet'}.")
    return [each for each in found if each.get("state") in states and {*tools} & _names(each)]


def _names(each: Facts) -> set[str]:
    return {str(each.get("name") or each.get("kind")), f"{each.get('server')}__{each.get('name')}"}


def pending(name: str) -> list[Facts]:
    return [each for each in _reviewed(name) if each.get("state") in PENDING]


def _reviewed(name: str | None) -> list[Facts]:
    found: list[Facts] = ask_server("upstream.review", doing="Reading the definitions", name=name)
    return found


def risks(name: str | None) -> dict[str, str]:
    tools = ask_server("upstream.browse", doing="Looking at the tools", name=name)
    return {f"{each.get('server')}/{each.get('tool')}": str(each.get("risk", "")) for each in tools}
