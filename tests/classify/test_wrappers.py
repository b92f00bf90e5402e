"""Commands that carry commands: unwrapped, with what the wrapper adds."""

from __future__ import annotations

import pytest
from ground import judge

from checkrein.call import Category

WRAPPERS = [
    "env {}",
    "env -i A=1 {}",
    "env -S '{}'",
    "nohup {}",
    "nice -n 5 {}",
    "timeout -k 1 5 {}",
    "timeout 5 nice nohup {}",
    "flock x {}",
    "busybox {}",
    "mise exec -- {}",
    "docker exec c {}",
    "kubectl exec p -- {}",
    "find . -exec {} ;",
    "find . -name x -execdir {} +",
    "ls | xargs {}",
    "ls | xargs -n1 -P4 {}",
    "stdbuf -oL {}",
    "command {}",
]


@pytest.mark.parametrize("wrapper", WRAPPERS)
def test_a_wrapper_neither_hides_nor_worsens_what_it_carries(wrapper):
    line = wrapper.replace(" ;", " \\;")
    assert judge(line.format("rm -rf x")).category >= Category.high
    assert judge(line.format("ls -la")).category is Category.low


@pytest.mark.parametrize(
    ("command", "category"),
    [
        ("sudo ls", Category.high),
        ("sudo -e /etc/hosts", Category.high),
        ("su -c ls", Category.high),
        ("ssh host", Category.critical),
        ("ssh host ls", Category.critical),
        ("parallel echo ::: a", Category.high),
        ("script -c ls x", Category.medium),
        ("docker exec -it c bash", Category.medium),
        ("kill 1", Category.high),
        ("pkill -f checkrein", Category.critical),
        ("ionice -p 1", Category.high),
        ("dd if=a of=b", Category.medium),
        ("dd if=/dev/zero of=/dev/sda", Category.critical),
        ("ls | tee out", Category.medium),
        ("ls | tee ~/.bashrc", Category.high),
    ],
)
def test_what_the_wrapper_adds_counts(command, category):
    assert judge(command).category is category


@pytest.mark.parametrize(
    "command",
    ["kill -l", "kill -0 1", "timeout --help", "find . -name '*.py'", "fd x", "tar tf a.tar", "dd if=a"],
)
def test_wrappers_that_only_look_are_low(command):
    assert judge(command).category is Category.low


def test_the_environment_a_wrapper_sets_is_judged():
    assert judge("env LD_PRELOAD=x ls").category is Category.high
    assert judge("sudo LD_PRELOAD=x ls").category is Category.high
    assert judge("env LANG=C ls").category is Category.low
    assert judge("env").category is Category.high


@pytest.mark.parametrize(
    ("command", "category"),
    [
        ("tar xf a.tar", Category.medium),
        ("tar cf a.tar src", Category.medium),
        ("tar cf a.tar .env", Category.high),
        ("tar cf host:a.tar src", Category.critical),
        ("tar tf a.tar --to-command=sh", Category.high),
        ("tar -tf a.tar -I 'sh x'", Category.high),
        ("tar tzf a.tar.gz", Category.low),
        ("tar -xOf a.tar x", Category.low),
    ],
)
def test_tar_is_judged_by_its_mode(command, category):
    assert judge(command).category is category


@pytest.mark.invariant("our own command line beyond its read-only verbs is critical")
def test_our_own_command_line_beyond_its_read_only_verbs_is_critical():
    for verb in ("status", "audit list", "explain x", "--version"):
        assert judge(f"checkrein {verb}").category is Category.low, verb
    for verb in ("rules add x", "phase building", "status --output x", "$V", "inbox", "stop", "nonsense"):
        assert judge(f"checkrein {verb}").category is Category.critical, verb
        assert judge(f"timeout 5 checkrein {verb}").category is Category.critical, verb


def test_tar_packs_what_lies_below_the_folder_it_is_sent_to():
    assert judge("tar -C ~/.aws -cf - .").category is Category.high
    assert judge("tar -C ~/.ssh -cf - config").category is Category.high
    assert judge("tar -cf - -T list").category > Category.low
    assert judge("tar -xOf a.tar .env").category is Category.high
    assert judge("tar -C src -cf - .").category is Category.low


def test_xargs_without_a_command_or_input_says_nothing():
    assert judge("xargs -0 -n 1").category is Category.medium
    assert judge("echo ' a ' | xargs").category is Category.low
    assert judge("xargs < names.txt").category < Category.high


def test_an_archive_printed_whole_may_hold_anything():
    assert judge("tar -xOf a.tar").category is Category.medium
    assert judge("tar -xOf a.tar README.md").category is Category.low
    assert judge("tar -xOf a.tar .env").category is Category.high
