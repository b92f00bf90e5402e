"""Assignments that make the next program run, load or trust something else."""

from __future__ import annotations

import pytest
from ground import judge

from checkrein.call import Category


@pytest.mark.parametrize(
    "assignment",
    [
        "LD_PRELOAD=./x.so",
        "LD_PRELOAD=",
        "DYLD_INSERT_LIBRARIES=x.dylib",
        "GIT_SSH_COMMAND='sh x'",
        "GIT_EXTERNAL_DIFF=x",
        "PAGER='sh x'",
        "EDITOR=x",
        "PATH=/tmp/x:$PATH",
        "PATH=.:/bin",
        "BASH_ENV=x",
        "PROMPT_COMMAND=x",
        "PS4='$(x)'",
        "PYTHONPATH=/tmp/x",
        "PYTHONSTARTUP=x",
        "NODE_OPTIONS='--require ./x.js'",
        "PERL5OPT=-Mx",
        "RUBYOPT=-rx",
        "JAVA_TOOL_OPTIONS=-javaagent:x.jar",
        "MAKEFLAGS=--eval=x",
        "RUSTC_WRAPPER=x",
        "LESSOPEN='|x %s'",
        "https_proxy=http://x.example",
        "KUBECONFIG=x",
        "CHECKREIN_STATE=x",
        "CLAUDE_CONFIG_DIR=x",
    ],
)
def test_a_hijacking_variable_is_high_however_it_is_set(assignment):
    for line in (
        f"{assignment} ls",
        f"export {assignment}; ls",
        f"env {assignment} ls",
        f"declare -x {assignment}",
    ):
        assert judge(line).category >= Category.high, line


@pytest.mark.parametrize(
    "assignment",
    [
        "MY_PLUGIN_PATH=/tmp",
        "FOO_OPTS=x",
        "X_PRELOAD=x",
        "TOOL_HOOK=x",
        "FOO='sh -c x'",
        "FOO=x.so",
        "FOO='() { x; }'",
    ],
)
def test_an_unknown_name_or_value_of_that_shape_is_not_low_when_exported(assignment):
    assert judge(f"{assignment} ls").category > Category.low


@pytest.mark.parametrize(
    "assignment",
    [
        "LANG=C",
        "LC_ALL=C",
        "NO_COLOR=1",
        "CI=true",
        "NODE_ENV=test",
        "RUST_BACKTRACE=1",
        "PYTHONUNBUFFERED=1",
        "GIT_TERMINAL_PROMPT=0",
        "PAGER=cat",
        "GIT_PAGER=cat",
        "GIT_EDITOR=true",
        "PATH=/usr/bin:/bin",
        "COUNT=3",
        "name='rm -rf x'",
    ],
)
def test_harmless_names_and_tame_values_stay_silent(assignment):
    assert judge(f"{assignment} ls").category is Category.low


def test_a_variable_kept_to_the_line_is_not_another_programs_business():
    assert judge("MY_PATH=/tmp/x; ls $MY_PATH").category is Category.low
    assert judge("export MY_PATH=/tmp/x; ls $MY_PATH").category > Category.low
    assert judge("MY_PATH=x; export MY_PATH; ls").category > Category.low


@pytest.mark.invariant("an unknown name is harmless only with a value that can name no file host or option")
@pytest.mark.parametrize(
    ("assignment", "low"),
    [
        ("PYLINTRC=/tmp/x", False),
        ("GOCACHEPROG=/tmp/x", False),
        ("PROTOC=./protoc", False),
        ("CC_x86_64_unknown_linux_gnu=/tmp/x", False),
        ("HARNESS_PERL_SWITCHES=-Mx", False),
        ("CustomBeforeTargets=/tmp/x.targets", False),
        ("SOME_THING=host.example:80", False),
        ("SOME_THING=203.0.113.9", False),
        ("SOME_THING='a b'", False),
        ('SOME_THING="$(cat x)"', False),
        ("SOME_THING=", True),
        ("SOME_THING=1.5", True),
        ("SOME_THING=true", True),
        ("SOME_THING=fast", True),
        ("TZ=Europe/Berlin", True),
        ("RUST_LOG=app::db=debug", True),
    ],
)
def test_an_unknown_name_is_harmless_only_with_a_value_that_can_name_no_file_host_or_option(assignment, low):
    assert (judge(f"{assignment} ls").category is Category.low) == low
    assert (judge(f"export {assignment}; ls").category is Category.low) == low
