"""`checkrein rules`: write, order, check and try the rules."""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
import msgspec

from checkrein.authority.rule import CLEARABLE
from checkrein.call import tool_call
from checkrein.cli.opening import ask, json_option, project_option, project_path, reading
from checkrein.cli.terminal import dim, fact, moment, plain, say, say_json, table, word
from checkrein.errors import ConfigError, InputError
from checkrein.ledger.entries import moment as shown_time
from checkrein.policies import Policies, as_rule
from checkrein.policy.lint import lint as lint_rules
from checkrein.policy.rules import Rule, RuleSet, rule
from checkrein.settings.reading import read
from checkrein.settings.sources import parse
from checkrein.shadowing import MOST_CALLS, Trial
from checkrein.store import Reader
from checkrein.store import rules as stored

_WORTH_A_BAR = 2_000
WRITTEN = ("action", "priority", "server", "tool", "pattern", "when", "expires_at", "uses", "reason")


@click.group()
def rules() -> None:
    """Write, order, check and try the rules. Lower priority numbers come first; the first match decides."""


def rule_options(command: Any) -> Any:
    """What a rule is made of, as options."""
    for option in reversed(
        (
            click.option("--tool", help="Exactly this tool."),
            click.option("--pattern", help="Tools by pattern; * matches any run of characters."),
            click.option("--server", help="Only tools of this MCP server."),
            click.option(
                "--when", metavar="JSON", help='Conditions: [{"path": "command", "starts_with": "git "}]'
            ),
            click.option("--priority", type=int, help="Place in the order."),
            click.option("--expires", metavar="TIME", help="Ends then: 2h, 7d or ISO 8601."),
            click.option("--uses", type=int, help="Ends after this many uses."),
            click.option("--reason", help="Why the rule exists; shown with every verdict it decides."),
        )
    ):
        command = option(command)
    return command


@rules.command()
@click.argument("action", type=click.Choice(["allow", "ask", "deny"]))
@rule_options
@json_option
def add(action: str, as_json: bool, **given: Any) -> None:
    """Add a rule, e.g. `checkrein rules add deny --pattern 'delete_*' --reason 'never from an agent'`."""
    body = {"action": action, **_written(given)}
    made = ask("rule.add", rule=body)
    if as_json:
        say_json(made)
    else:
        say(f"Added {made['id']}: {plain(rule(body, id=made['id']).label)}")
        _warn(made["id"])


@rules.command("list")
@project_option
@json_option
def list_(project: str | None, as_json: bool) -> None:
    """List all rules in the order they are tried, file and stored ones together."""
    with reading() as reader:
        ordered = _ordered(reader, project_path(project))
        times = {each.id: each for each in stored.all_rules(reader)}
    if as_json:
        say_json([_as_json(each, times.get(each.id)) for each in ordered])
        return
    table(
        ("ID", "PRIORITY", "ACTION", "TOOL", "SERVER", "WHEN", "FROM"),
        [
            (
                each.id,
                str(each.priority),
                each.action,
                each.tool if each.tool is not None else f"{each.pattern}",
                each.server or "any",
                f"{len(each.when)} condition(s)" if each.when else "",
                each.origin,
            )
            for each in ordered
        ],
    )


@rules.command()
@click.argument("rule_id")
@json_option
def show(rule_id: str, as_json: bool) -> None:
    """Show one stored rule."""
    with reading() as reader:
        found = stored.get_rule(reader, rule_id)
    if as_json:
        say_json(_as_json(as_rule(found), found))
        return
    for name, value in _as_json(as_rule(found), found).items():
        if value not in (None, "", []):
            fact(name, value, 11)


@rules.command()
@click.argument("rule_id")
@click.option("--action", type=click.Choice(["allow", "ask", "deny"]))
@rule_options
@click.option("--clear", multiple=True, type=click.Choice(CLEARABLE))
def edit(rule_id: str, clear: Sequence[str], **given: Any) -> None:
    """Change parts of a stored rule; what is not named stays."""
    ask("rule.edit", id=rule_id, changes=_written(given), clear=list(clear))
    say(f"Changed {rule_id}.")
    _warn(rule_id)


@rules.command()
@click.argument("rule_id")
def rm(rule_id: str) -> None:
    """Remove a stored rule."""
    ask("rule.remove", id=rule_id)
    say(f"Removed {rule_id}.")


@rules.command()
@click.argument("rule_id")
@click.option("--before", help="Put it right before this stored rule.")
@click.option("--after", help="Put it right after this stored rule.")
@click.option("--priority", type=int, help="Give it this priority.")
def move(rule_id: str, before: str | None, after: str | None, priority: int | None) -> None:
    """Move a stored rule in the order."""
    ask("rule.move", id=rule_id, before=before, after=after, priority=priority)
    say(f"Moved {rule_id}.")


@rules.command()
@project_option
@json_option
def lint(project: str | None, as_json: bool) -> None:
    """Find rules that can never match, repeat or shadow another, or allow too much; exit 1 then."""
    with reading() as reader:
        found = lint_rules(_ordered(reader, project_path(project)), time.time())
    if as_json:
        say_json(found)
    else:
        for each in found:
            say(f"{each.rule}: {plain(each.message)}.")
        say(f"{len(found)} finding(s)." if found else "Nothing to complain about.")
    if found:
        raise SystemExit(1)


@rules.command()
@click.argument("tool")
@click.option("--server", help="The MCP server the tool belongs to.")
@click.option("--args", "arguments", metavar="JSON", default="{}", help="The call's arguments.")
@project_option
@json_option
def test(tool: str, server: str | None, arguments: str, project: str | None, as_json: bool) -> None:
    """Try a call: which rule decides it, if any."""
    folder = project_path(project)
    raw = {"tool": tool, "server": server, "arguments": _json("--args", arguments), "project": folder}
    with reading() as reader:
        match = RuleSet(_ordered(reader, folder)).match(tool_call(raw), time.time())
    if as_json:
        say_json(
            {
                "rule": match and match.rule.id,
                "action": match and match.rule.action,
                "doubt": match and match.doubt,
            }
        )
    elif match is None:
        say("No rule matches.")
    else:
        say(
            f"{match.rule.id} decides: {plain(match.rule.label)}"
            + (f" ({match.doubt})" if match.doubt else "")
        )


@rules.command("try")
@click.argument("file", type=click.Path(dir_okay=False, exists=True))
@click.option(
    "--last", type=click.IntRange(1, MOST_CALLS), default=500, show_default=True, help="How many calls."
)
@click.option("--project", type=click.Path(file_okay=False), help="Only calls of this project.")
@json_option
def try_(file: str, last: int, project: str | None, as_json: bool) -> None:
    """Try the [[rules]] of a file on the last recorded calls, in place of yours. Nothing is changed.

    Each call is judged twice, by your rules and by the tried ones, as recorded and in the phase of now.
    """
    written = parse(read(Path(file)) or b"", file)
    tried = written.pop("rules", [])
    if not isinstance(tried, list) or not all(isinstance(each, dict) for each in tried):
        raise ConfigError("rules", None, "must be a list of tables.", "Write each rule as [[rules]].")
    if written:
        click.echo(f"Note: only [[rules]] are tried, not {', '.join(map(plain, written))}.", err=True)
    with reading() as reader, _progress(last) as step:
        found = Trial(reader, tried).run(last, project_path(project) if project else "", step)
    if as_json:
        say_json(found)
        return
    say(found["sentence"])
    for each in found["changes"]:
        by = each["rule"] or (f"no longer {each['was']}" if each["was"] else "")
        arrow = f"{word(each['before'])} → {word(each['after'])}"
        say(f"{each['entry']}  {arrow}  {plain(each['tool'])} {plain(each['input'][:80])}  {dim(plain(by))}")
    for each in found["cannot_tell"]:
        say(f"{each['entry']}  {dim('cannot tell')}  {plain(each['tool'])} {plain(each['input'][:80])}")
    if found["left_out"]:
        say(dim(f"… and {found['left_out']} more"))


@contextlib.contextmanager
def _progress(last: int) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on the terminal for what takes a while; nothing where nobody looks."""
    if last < _WORTH_A_BAR or not sys.stderr.isatty():
        yield None
        return
    with click.progressbar(length=last, label="Trying", file=sys.stderr) as bar:
        yield lambda done, total: bar.update(done - bar.pos if done < total else last - bar.pos)


def _ordered(reader: Reader, project: str) -> list[Rule]:
    force = Policies(reader).of(project)
    if force.policy.fault:
        raise ConfigError("settings", None, force.policy.fault, "Fix the file first.")
    return [*force.policy.rules.rules, *force.policy.project_rules.rules]


def _written(given: dict[str, Any]) -> dict[str, Any]:
    """Options as rule keys, without what was not given."""
    given = {**given, "expires_at": given.pop("expires", None)}
    if given.get("when") is not None:
        given["when"] = _json("--when", given["when"])
    if given["expires_at"] is not None:
        given["expires_at"] = moment(given["expires_at"], ahead=True)
    return {key: given[key] for key in WRITTEN if given.get(key) is not None}


def _json(option: str, text: str) -> Any:
    try:
        return msgspec.json.decode(text)
    except (msgspec.MsgspecError, UnicodeEncodeError) as error:
        raise InputError(f"{option} is not JSON: {error}.", remedy="Put it in single quotes.") from None


def _as_json(each: Rule, row: stored.StoredRule | None) -> dict[str, Any]:
    return {
        "id": each.id,
        "priority": each.priority,
        "action": each.action,
        "server": each.server,
        "tool": each.tool,
        "pattern": each.pattern,
        "when": [{"path": condition.path, **dict(condition.tests)} for condition in each.when],
        "expires_at": None if each.expires_at is None else shown_time(each.expires_at),
        "uses": each.uses,
        "reason": each.reason,
        "origin": each.origin,
        "created_at": row and shown_time(row.created_at),
        "updated_at": row and shown_time(row.updated_at),
    }


def _warn(rule_id: str) -> None:
    """Lint the list after a change, as far as the changed rule goes."""
    with reading() as reader:
        for each in lint_rules(_ordered(reader, project_path(None)), time.time()):
            if each.rule == rule_id:
                click.echo(f"Note: {each.rule} {plain(each.message)}.", err=True)
