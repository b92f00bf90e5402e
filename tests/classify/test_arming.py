"""Files that something else executes: recognised wherever they lie, and only by their whole name."""

from __future__ import annotations

import pytest

from checkrein.classify import arming


@pytest.mark.parametrize(
    ("path", "when"),
    [
        ("/home/dev/app/.git/hooks/post-checkout", "git"),
        ("/home/dev/app/.gitattributes", "git"),
        ("/home/dev/app/.husky/pre-push", "git"),
        ("/home/dev/app/tests/conftest.py", "Python"),
        ("/home/dev/.venv/lib/site-packages/evil.pth", "Python"),
        ("/home/dev/.zshenv", "shell"),
        ("/home/dev/app/.envrc", "shell"),
        ("/etc/cron.d/job", "timer"),
        ("/home/dev/.config/autostart/x.desktop", "login"),
        ("/home/dev/.ssh/config", "ssh"),
        ("/home/dev/app/.vscode/tasks.json", "editor"),
        ("/home/dev/app/.gdbinit", "debugger"),
        ("/home/dev/app/sub/Makefile", "build"),
        ("/home/dev/app/vite.config.ts", "build"),
        ("/home/dev/app/.github/workflows/ci.yml", "build server"),
    ],
)
def test_a_write_is_judged_by_what_it_arms(path, when):
    assert when in arming.what(path)


@pytest.mark.parametrize(
    "path",
    [
        "/home/dev/app/src/hooks/use_state.py",
        "/home/dev/app/my_conftest.py",
        "/home/dev/app/docs/Makefile.md",
        "/home/dev/app/bashrc.txt",
        "/home/dev/app/.github/workflows",
        "/home/dev/app/.github/workflows/nested/notes.md",
        "/home/dev/app/cron.py",
        "/home/dev/app/package-lock.json",
    ],
)
def test_a_name_that_only_resembles_one_arms_nothing(path):
    assert arming.what(path) == ""


def test_a_relative_name_is_enough():
    assert arming.what("conftest.py") == arming.what("/any/where/conftest.py") != ""


def test_build_files_are_part_of_ordinary_work():
    assert arming.scope(arming.what("/p/Makefile")) == "armed-build"
    assert arming.scope(arming.what("/p/.github/workflows/ci.yml")) == "armed"
    assert arming.scope(arming.what("/p/.bashrc")) == "armed"
