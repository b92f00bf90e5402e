"""`NAME=value command`: the value is masked, unless the name decides what runs."""

import pytest
from ground import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from checkrein.ledger.prefixes import COMMAND_KEYS, mask_assigned, mask_prefixes
from checkrein.ledger.redact import MASK, Redactor
from checkrein.ledger.secrets import PROGRAMS

VALUE = "hunter2secret"
redactor = Redactor()


@pytest.mark.parametrize(
    "line",
    [
        "MY_VAR=@@ ls",
        "my_var=@@ ls",
        "A=1 B=@@ C=2 ls -l",
        "cd app && X=@@ npm test",
        "true; X=@@ ls",
        "(X=@@ ls)",
        "a | X=@@ sort",
        "if X=@@ test -f a; then Y=@@ ls; fi",
        "env -i X=@@ ls",
        "sudo -E X=@@ ls",
        "nohup env X=@@ ls",
        "echo $(X=@@ date)",
        "bash -c 'X=@@ ls'",
        "ls\nX=@@ ls",
        "X=@@ \\\n  ls",
        "X='@@' ls",
        'X="@@ and more" ls',
    ],
)
def test_a_value_set_for_a_command_is_masked(line):
    masked = mask_prefixes(line.replace("@@", VALUE))
    assert VALUE not in masked and MASK in masked
    assert masked.startswith(line.partition("@@")[0])
    assert mask_prefixes(masked) == masked


@pytest.mark.invariant("names that decide what runs keep their values")
@pytest.mark.parametrize(
    "name",
    """PATH LD_PRELOAD LD_LIBRARY_PATH DYLD_INSERT_LIBRARIES GIT_SSH_COMMAND GIT_PROXY_COMMAND GIT_SSH
    GIT_EDITOR GIT_PAGER GIT_EXTERNAL_DIFF GIT_CONFIG_COUNT PYTHONPATH PYTHONSTARTUP NODE_OPTIONS PERL5LIB
    PERL5OPT RUBYOPT BASH_ENV ENV PAGER MANPAGER EDITOR VISUAL SHELL IFS PROMPT_COMMAND CLASSPATH
    JAVA_TOOL_OPTIONS LESSOPEN RSYNC_RSH MAKEFLAGS RUSTFLAGS CC HTTPS_PROXY https_proxy""".split(),
)
def test_names_that_decide_what_runs_keep_their_values(name):
    for line in (f"{name}=evil,x1 ls", f"env {name}=evil,x1 ls", f"docker run -e {name}=evil,x1 a"):
        assert redactor.value({"command": line}) == {"command": line}


@pytest.mark.parametrize(
    "line",
    [
        "CI=1 npm test",
        "NODE_ENV=test npm test",
        "DEBUG=app:* node x.js",
        "PORT=3000 npm start",
        "LC_ALL=C.UTF-8 sort a",
        "X= ls",
        "X=$HOME ls",
        "X=${Y:-} ls",
        "X=$(cat a) ls",
        "X=/srv/app/data ls",
        "MODE=production ./run",
        "N=4096 ./run",
        "OK=true ./run",
        "X=hunter2",  # Sets a variable of the shell, for no command.
        "X=hunter2; ls",
        "dd if=disk.img of=/dev/sdb1 bs=1M",
        "make target=all2build clean",
        "git config a.b=c23456 x",
        "curl 'https://a.example/?a=b23456' -o x",
        "ls --color=always2 x",
        "awk -v n=count22 -f x",
    ],
)
def test_everything_else_stays(line):
    assert mask_prefixes(line) == line


def test_a_command_given_in_words():
    words = ["env", "-i", f"X={VALUE}", "NODE_ENV=test", "tool", "a=b23456"]
    assert mask_assigned(words) == ["env", "-i", f"X={MASK}", "NODE_ENV=test", "tool", "a=b23456"]
    assert mask_assigned(["bash", "-lc", f"X={VALUE} ls"]) == ["bash", "-lc", f"X={MASK} ls"]
    assert mask_assigned(["tool", f"X={VALUE}"]) == ["tool", f"X={VALUE}"]


def test_only_arguments_that_are_commands_are_read_so():
    line = f"MY_VAR={VALUE} ls"
    for key in COMMAND_KEYS:
        assert redactor.value({key: line}) == {key: f"MY_VAR={MASK} ls"}
    assert redactor.value({"content": line}) == {"content": line}


PIECES = st.sampled_from(
    ["A=b1cdefg", "env", "sudo", "ls", ";", "&&", "|", "'", '"', "\\", "$(", "\n", "x", "="]
)


@settings(max_examples=examples(300))
@given(st.lists(PIECES | st.text(max_size=4), max_size=16).map(" ".join))
def test_masking_never_raises_and_masking_twice_changes_nothing(line):
    once = mask_prefixes(line)
    assert mask_prefixes(once) == once
    assert redactor.value({"command": redactor.value({"command": line})["command"]}) == redactor.value(
        {"command": line}
    )


@pytest.mark.invariant("a value has so many pieces, or quotes in a row would be read again from each of them")
@pytest.mark.parametrize(
    "piece", ["A=", "A=b ", "A='", 'A="', "A=\\", "env ", "A=b c ", "then A=b ", "A=b\\\n"]
)
def test_hostile_lines_cost_linear_time(piece):
    """Each takes a fraction of a second; quadratic time runs into the limit of every test."""
    mask_prefixes(piece * (400_000 // len(piece)))


@pytest.mark.parametrize("piece", [" -a x:", " a=", " --a -b c", ' "a', " -n -b", " x", " login -p"])
def test_hostile_arguments_of_every_program_cost_linear_time(piece):
    for program in PROGRAMS:
        redactor.text(program + piece * (12_000 // len(piece)))
