"""Examples in the documentation work: settings load, Python runs, commands exist."""

import re
import tomllib
from pathlib import Path

import click
import pytest

from checkrein.cli import checkrein
from checkrein.policy.load import compile_policy
from checkrein.settings import Settings
from checkrein.settings.check import apply

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.MULTILINE | re.DOTALL)


def blocks(language):
    return [
        pytest.param(body, id=f"{page.name}-{number}")
        for page in PAGES
        for number, (found, body) in enumerate(BLOCK.findall(page.read_text(encoding="utf-8")))
        if found == language
    ]


@pytest.mark.parametrize("body", blocks("toml"))
def test_settings_in_the_docs_load(body):
    assert compile_policy(apply(Settings(), tomllib.loads(body))).fault == ""


# A framework's page is one story with a model in it; the tests of its adapter run it from top to bottom.
STORIES = "library-"
ALONE = [each for each in blocks("python") if not str(each.id).startswith(STORIES)]


@pytest.mark.parametrize("body", ALONE)
def test_python_in_the_docs_runs(body, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    exec(compile(body, "docs", "exec"), {})


@pytest.mark.parametrize("body", blocks("console"))
def test_commands_in_the_docs_exist(body):
    for line in body.splitlines():
        words = line.removeprefix("$ ").split("#")[0].split()
        if not line.startswith("$ checkrein"):
            continue
        command = checkrein
        for word in words[1:]:
            if not isinstance(command, click.Group):
                break
            command = command.get_command(click.Context(command), word)
            assert command is not None, line
        options = {name for parameter in command.params for name in parameter.opts}
        assert {word.split("=")[0] for word in words if re.match(r"--\w", word)} <= options | {"--help"}, line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target
