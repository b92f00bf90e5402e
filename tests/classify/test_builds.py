"""Build tools, runners and formatters: looking is low, changing and foreign configuration are not."""

from __future__ import annotations

import pytest

from checkrein.call import Category, tool_call
from checkrein.classify import classify


def judge(command):
    call = {
        "tool": "Bash",
        "arguments": {"command": command},
        "project": "/home/dev/app",
        "cwd": "/home/dev/app",
    }
    return classify(tool_call(call), home="/home/dev")


@pytest.mark.parametrize(
    "command",
    [
        "npm test",
        "npm run test:unit",
        "npm run lint",
        "yarn test",
        "pytest tests -p no:cacheprovider",
        "pytest -c pytest.ini",
        "pytest -k delete",
        "uv run pytest",
        "uv run -m pytest",
        "npx eslint src",
        "uvx ruff check .",
        "bazel test //x",
        "mvn test",
        "tsc --noEmit",
    ],
)
def test_a_projects_own_tests_and_checks_are_a_test_run(command):
    risk = judge(command)
    assert (risk.category, risk.domains) == (Category.low, ("test_run",))


@pytest.mark.parametrize(
    "command",
    [
        "pytest /tmp/evil",
        "pytest ../other",
        "pytest -c /tmp/evil.ini",
        "npm test -- --globalSetup=/tmp/x.js",
        "npm test --script-shell=/tmp/x",
        "mvn test deploy",
        "npm run deploy",
        "bun index.ts",
        "make",
    ],
)
def test_what_the_project_does_not_call_a_test_is_code_being_run(command):
    risk = judge(command)
    assert risk.category > Category.low
    assert "shell_exec" in risk.domains
    assert "test_run" not in risk.domains


@pytest.mark.parametrize(
    ("looks", "changes"),
    [
        ("prettier --check .", "prettier --write ."),
        ("black --check .", "black ."),
        ("gofmt -l .", "gofmt -w ."),
        ("yapf x.py", "yapf -i x.py"),
        ("cargo fmt -- --check", "cargo fmt"),
        ("terraform fmt -check", "terraform fmt"),
        ("tsc --noEmit", "tsc"),
        ("npm run test", "npm run test -- -u"),
        ("npm audit", "npm audit fix"),
        ("make --version", "make -f x.mk"),
    ],
)
def test_one_word_decides_between_looking_and_changing(looks, changes):
    assert judge(looks).category is Category.low
    assert judge(changes).category > Category.low


@pytest.mark.parametrize("command", ["npx some-package", "npx -p evil eslint", "uvx evil", "yarn"])
def test_what_may_be_fetched_first_is_a_package(command):
    assert judge(command).domains == ("package",)


def test_code_given_to_uv_is_still_code():
    assert judge("uv run python -c 1").category > Category.low
    assert judge("uv run x.py").category > Category.low
