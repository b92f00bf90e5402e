"""Build tools, runners and formatters: looking is low, changing and foreign configuration are not."""

from __future__ import annotations

import pytest
from ground import judge

from checkrein.call import Category


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


@pytest.mark.parametrize(
    "command",
    [
        "npm test --prefix /tmp/x",
        "cargo test --manifest-path /tmp/x/Cargo.toml",
        "cargo test --config 'build.rustc-wrapper=\"./x\"'",
        "mvn test -f /tmp/x/pom.xml",
        "gradle test -p /tmp/x",
        "swift test --package-path /tmp/x",
        "go test /tmp/x/a_test.go",
        "pytest tests/../../other",
        "pytest @/tmp/arguments",
        "pytest --cov-report=html:/home/dev/.config/x",
        "meson test -C /tmp/x",
        "vitest run --dir /tmp/x",
        "uv run --directory /tmp/x pytest",
        "conda run -p /tmp/x pytest",
        "semgrep --config https://host.example/r.yml src",
        "python -m doctest setup.py",
    ],
)
def test_a_run_pointed_out_of_the_project_is_never_low(command):
    assert judge(command).category > Category.low


@pytest.mark.parametrize(
    "command",
    [
        "pytest --some-new-option",
        "mocha -r ./x.js",
        "mocha -R ./x.js",
        "rspec -r ./x.rb",
        "vitest run --reporter=./x.js",
        "bun test --preload ./x.ts",
        "node --test --test-reporter=./x.js",
        "eslint -f ./x.js src",
        "go test -ldflags '-extld=x' ./...",
        "mvn test -DargLine=-javaagent:x.jar",
        "dotnet test -p:Custom=x.targets",
        "forge test --ffi",
        "hardhat test --network mainnet",
        "meson test --wrapper x",
        "elm-test --compiler x",
        "make -n SHELL=x",
        "npm test -- -r ./x.js",
        "npm run lint -- --rulesdir rules",
        "bun --print='process.env'",
    ],
)
def test_an_option_that_may_load_code_makes_a_run_more_than_a_test(command):
    assert judge(command).category > Category.low


@pytest.mark.parametrize(
    "command",
    [
        "gradle test bootRun",
        "./gradlew test deployProd",
        "mvn test exec:exec",
        "sbt test 'runMain X'",
        "rake test deploy",
    ],
)
def test_every_goal_behind_a_test_goal_is_judged(command):
    risk = judge(command)
    assert risk.category > Category.low
    assert "shell_exec" in risk.domains


@pytest.mark.parametrize(
    "command",
    [
        "npm version patch",
        "poetry version minor",
        "ncu -u",
        "rubocop -a",
        "biome check --apply src",
        "yapf -ir src",
        "prettier -lw .",
        "tidy -m index.html",
        "terraform fmt -diff",
        "phpcbf -n src",
        "golangci-lint fmt",
        "oxlint --fix-suggestions src",
    ],
)
def test_what_rewrites_the_project_is_never_low(command):
    assert judge(command).category > Category.low


@pytest.mark.parametrize(
    "command",
    [
        "python -m pytest -k foo",
        "pytest -xvs -rA --cov=src --cov-report=term-missing",
        "npm test -- --coverage --watchAll=false -t 'a b'",
        "npm run lint -- --max-warnings=0",
        "npm run test -w packages/a",
        "yarn test --silent",
        "npx jest --ci --runInBand src/a.test.js",
        "npx mocha -R spec",
        "go test -race -count=1 -run TestX ./...",
        "cargo test -p a --lib -- --nocapture",
        "cargo clippy --all-targets -- -D warnings",
        "mvn test -q -Dtest=FooTest",
        "./gradlew :app:test --tests 'a.*' --no-daemon",
        "dotnet test --no-build --filter Name~X",
        "bazel test //... --test_output=errors",
        "ng test --watch=false --browsers=ChromeHeadless",
        "rake test TEST=test/a_test.rb",
        "meson test -C build",
        "shellcheck -f gcc a.sh",
        "bandit -r src",
        "pip-audit -r requirements.txt",
        "node --test",
        "make -n test",
    ],
)
def test_ordinary_options_leave_a_test_run_a_test_run(command):
    risk = judge(command)
    assert (risk.category, risk.domains) == (Category.low, ("test_run",))


@pytest.mark.parametrize(
    ("parses", "runs"),
    [
        ("bash -n a.sh", "bash a.sh"),
        ("node --check a.js", "node --check -r ./x.js a.js"),
        ("php -l a.php", "php a.php"),
        ("ruby -c a.rb", "ruby -c -r./x a.rb"),
        ("zsh -n a.zsh", "nu -n a.nu"),
        ("npm version", "npm version 1.2.3"),
        ("cargo tree --manifest-path=a/Cargo.toml", "cargo tree --manifest-path=/tmp/x/Cargo.toml"),
    ],
)
def test_parsing_a_file_is_not_running_it(parses, runs):
    assert judge(parses).category is Category.low
    assert judge(runs).category > Category.low


def test_a_runner_told_to_talk_more_still_runs():
    assert judge("rake -v").category is Category.medium
    assert judge("make -v").category is Category.low


def test_a_checkers_own_commands_may_be_two_words():
    assert judge("snyk container monitor img").category is Category.medium


def test_code_from_a_pipe_is_not_a_list_of_scripts():
    assert judge("cat x | bun run -").category >= Category.medium


@pytest.mark.parametrize(
    "command",
    [
        "ar t lib.a",
        "jar tf x.jar",
        "gcc -fsyntax-only -Wall -Iinclude x.c",
        "rustc --explain E0382",
        "jupyter kernelspec list",
        "zig fmt --check .",
        "just -l",
    ],
)
def test_tools_that_build_can_also_just_look(command):
    assert judge(command).category is Category.low


@pytest.mark.parametrize(
    "command",
    [
        "ar t --plugin=/tmp/x.so lib.a",
        "ar d lib.a x.o",
        "jar xf x.jar",
        "gcc -fsyntax-only -B/tmp x.c",
        "gcc -fsyntax-only -fplugin=./x.so x.c",
        "gcc -fsyntax-only @args x.c",
        "jar tf .env",
    ],
)
def test_just_looking_ends_where_something_is_loaded_or_changed(command):
    assert judge(command).category >= Category.medium


@pytest.mark.invariant("a checker shows what it reads")
@pytest.mark.parametrize(
    "command", ["shfmt .env", "black --diff .env", "shellcheck .env", "xmllint .env", "eslint .env"]
)
def test_a_checker_shows_what_it_reads(command):
    assert judge(command).category is Category.high


@pytest.mark.parametrize("command", ["shfmt -d x.sh", "black --check src", "shellcheck scripts/x.sh"])
def test_checking_the_projects_own_code_is_low(command):
    assert judge(command).category is Category.low
