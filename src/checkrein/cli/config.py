"""`checkrein config`: show, check and start the settings."""

from __future__ import annotations

from pathlib import Path

import click
import msgspec

from checkrein.cli.opening import json_option, project_option, project_path, reading
from checkrein.cli.terminal import say, say_json
from checkrein.errors import ConfigError, InputError
from checkrein.policies import Policies
from checkrein.settings import SECTIONS, Settings, keys_of
from checkrein.settings.addresses import shown
from checkrein.settings.legacy import from_settings_json
from checkrein.settings.sources import PROJECT_FILE, state_dir, user_file


@click.group()
def config() -> None:
    """Show, check and start the settings. Order: built-in, your file, the project's file, --set."""


@config.command()
@project_option
@json_option
@click.pass_obj
def show(overrides: tuple[str, ...], project: str | None, as_json: bool) -> None:
    """Show every setting in force for a project; what differs from the default is marked."""
    with reading() as reader:
        loaded = Policies(reader, overrides).loaded(project_path(project))
    if loaded.error:
        raise loaded.error
    if as_json:
        say_json(msgspec.to_builtins(shown(loaded.settings)))
        return
    default, masked = Settings(), shown(loaded.settings)
    for section, struct in SECTIONS.items():
        say(f"[{section}]")
        for name in keys_of(struct):
            value = getattr(getattr(masked, section), name)
            mark = "" if value == getattr(getattr(default, section), name) else "    # changed"
            say(f"{name} = {_toml(value)}{mark}")
        say()
    for name, phase in loaded.settings.phases.items():
        say(f"[phases.{name}]")
        say(
            "\n".join(f"{key} = {_toml(getattr(phase, key))}" for key in ("allowed", "denied", "trust_gated"))
            + "\n"
        )
    for name, door in loaded.settings.doors.items():
        say(
            f'[doors.{name}]\nunmatched = "{door.unmatched}"'
            + (f'\nprofile = "{door.profile}"' if door.profile else "")
        )
    for notice in loaded.notices:
        click.echo(f"Note: {notice}", err=True)


@config.command()
@project_option
@json_option
@click.pass_obj
def check(overrides: tuple[str, ...], project: str | None, as_json: bool) -> None:
    """Check the files; says what is wrong, where, and what to do. Exits 3 if they cannot be used."""
    folder = project_path(project)
    with reading() as reader:
        policies = Policies(reader, overrides)
        loaded, policy = policies.loaded(folder), policies.of(folder).policy
    if as_json:
        say_json({"ok": not policy.fault, "fault": policy.fault or None, "notices": list(loaded.notices)})
    if loaded.error:
        raise loaded.error if not as_json else SystemExit(3)
    if policy.fault:
        raise ConfigError("rules", None, policy.fault, "") if not as_json else SystemExit(3)
    if not as_json:
        say("The settings are good.")
        for notice in loaded.notices:
            say(f"Note: {notice}")


@config.command()
@project_option
@json_option
def path(project: str | None, as_json: bool) -> None:
    """Say where the files are, whether or not they exist."""
    places = {
        "user": user_file(),
        "project": Path(project_path(project)) / PROJECT_FILE,
        "state": state_dir(),
    }
    if as_json:
        say_json({name: str(place) for name, place in places.items()})
        return
    for name, place in places.items():
        say(f"{name:<8} {place}{'' if place.exists() else '  (not there yet)'}")


@config.command()
@click.option(
    "--from", "source", type=click.Path(dir_okay=False), help="An oath-harness settings.json to import."
)
@click.option("--force", is_flag=True, help="Replace a file that is there; the old one is kept as .bak.")
def init(source: str | None, force: bool) -> None:
    """Write a commented settings file to start from."""
    target = user_file()
    if target.exists() and not force:
        raise InputError(f"{target} exists.", remedy="Edit it, or use --force to replace it.")
    text = template()
    left_out: list[str] = []
    if source is not None:
        try:
            text, left_out = from_settings_json(Path(source).read_bytes(), source)
        except OSError as error:
            raise InputError(f"{source}: {error.strerror}.", remedy="Name a settings.json.") from None
    target.parent.mkdir(parents=True, mode=0o700, exist_ok=True)
    if target.exists():
        target.replace(target.with_suffix(".toml.bak"))
    part = target.with_suffix(".new")
    part.write_text(text, encoding="utf-8")
    part.replace(target)
    say(f"Wrote {target}.")
    for key in left_out:
        say(f"Left out {key}: it has no meaning here.")


def template() -> str:
    """Every plain setting with its meaning and default, commented out."""
    lines = ["# Checkrein settings. Everything is optional; remove the # to change a value.", ""]
    default = Settings()
    for section, struct in SECTIONS.items():
        lines.append(f"[{section}]")
        for name, (_, key) in keys_of(struct).items():
            lines += [f"# {key.doc}", f"# {name} = {_toml(getattr(getattr(default, section), name))}"]
        lines.append("")
    lines += [
        "# [[rules]]",
        '# action = "ask"',
        '# pattern = "delete_*"',
        '# reason = "look before anything is deleted"',
        "",
    ]
    return "\n".join(lines)


def _toml(value: object) -> str:
    return msgspec.json.encode(value).decode().replace(",", ", ")
