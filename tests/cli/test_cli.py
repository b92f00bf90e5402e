import os
import subprocess
import sys

import click
import pytest

from checkrein import __version__
from checkrein.cli import COMMANDS, checkrein


def test_the_overview_lists_every_command(run):
    text = run("--help")
    assert all(name in text for name in COMMANDS)
    assert run("--version") == f"checkrein {__version__}\n"


def every_command(group=checkrein, path=()):
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from every_command(command, (*path, name))
        else:
            yield (*path, name)


@pytest.mark.parametrize("words", list(every_command()), ids=" ".join)
def test_every_command_explains_itself(run, words):
    text = run(*words, "--help")
    assert "Usage:" in text
    assert len(text.splitlines()) > 3


def test_a_mistyped_command_gets_a_suggestion(run):
    assert "Did you mean 'explain'?" in run("explian", code=2)
    assert "Did you mean" in run("audit", "lst", code=2)


def test_errors_are_one_clear_line_with_their_own_exit_code(run, user_settings):
    path = user_settings("[trust]\ninitial_score = 0.9")
    text = run("config", "check", code=3)
    assert text.startswith(f"checkrein: {path}: `trust.initial_score` = 0.9")
    assert "Traceback" not in text
    assert text.count("\n") == 1


def test_overrides_are_for_this_command_only(run):
    assert "hibernation_days = 3    # changed" in run("--set", "trust.hibernation_days=3", "config", "show")
    assert "changed" not in run("config", "show")
    assert "KEY=VALUE" in run("--set", "nonsense", "config", "show", code=2)


def test_starting_is_quick_because_nothing_heavy_is_imported():
    code = "import sys; from checkrein.cli import checkrein; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"sqlite3", "msgspec", "cryptography", "re2", "asyncio"} & set(loaded)


def test_commands_that_only_read_leave_no_trace(run, home):
    run("audit", "list")
    run("trust", "show")
    run("rules", "list")
    run("config", "show")
    run("audit", "verify")
    run("explain", "ls")
    run("status")
    run("phase")
    run("inbox", "--json")
    assert not (home / "state").exists()
    assert not (home / "config").exists()


def test_the_module_runs_as_a_program():
    done = subprocess.run(
        [sys.executable, "-m", "checkrein", "--version"], capture_output=True, text=True, check=True
    )
    assert done.stdout == f"checkrein {__version__}\n"


def test_a_closed_pipe_is_no_stack_trace(run):
    command = f"{sys.executable} -m checkrein config show | head -n 1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True, env=os.environ)
    assert done.stderr == ""


def test_an_unexpected_error_is_a_sentence_unless_more_is_asked_for(run, monkeypatch):
    monkeypatch.setattr("checkrein.cli.trust.earning.book", lambda *_: 1 / 0)
    text = run("trust", "show", code=70)
    assert text.startswith("checkrein: unexpected error: ZeroDivisionError")
    assert "Traceback" not in text
    monkeypatch.setenv("CHECKREIN_DEBUG", "1")
    assert "ZeroDivisionError" in repr(run.runner.invoke(checkrein, ["trust", "show"]).exception)
