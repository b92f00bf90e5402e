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
    ("command", "low"),
    [
        ("find . -delete", False),
        ("find . -name '*.pem' -exec cat {} +", False),
        ("find . -name '*.md' -exec cat {} +", True),
        ("find / -name id_rsa", False),
        ("find . -name id_rsa.pub", True),
        ("find . -fprint out", False),
        ("find ~/.ssh -type f", False),
        ("fd x -x rm", False),
        ("fd -e py --exec=rm", False),
        ("ls | xargs -I{} sh -c '{}'", False),
        ("echo .env | xargs cat", False),
        ("echo a.txt | xargs cat", True),
        ("cat list | xargs rm", False),
    ],
)
def test_names_that_are_found_are_judged_by_what_they_could_be(command, low):
    assert (judge(command).category is Category.low) == low


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


def test_our_own_command_line_beyond_its_read_only_verbs_is_critical():
    for verb in ("status", "audit list", "explain x", "--version"):
        assert judge(f"checkrein {verb}").category is Category.low, verb
    for verb in ("rules add x", "phase building", "status --output x", "$V", "inbox", "stop", "nonsense"):
        assert judge(f"checkrein {verb}").category is Category.critical, verb
        assert judge(f"timeout 5 checkrein {verb}").category is Category.critical, verb


@pytest.mark.parametrize(
    ("command", "low"),
    [
        ("find . -iname .ENV -exec cat {} +", False),
        ("find . -regex '.*env' -exec cat {} \\;", False),
        ("find . -name '.en*' -exec cat {} +", False),
        ("find . -name x -o -name .env -exec cat {} +", False),
        ("find . -maxdepth 1 -name '.*' -type f -exec head {} +", False),
        ("fd . ~/.ssh -x cat", False),
        ("fd -e pem -x cat", False),
        ("fd -e pem | xargs cat", False),
        ("ls -A | grep env | xargs cat", False),
        ("git ls-files | grep -i '\\.pem$' | xargs head -1", False),
        ("grep -rl PRIVATE . | xargs cat", False),
        ("find . -name '*secret*' | xargs cat", False),
        ("find . -name '*.py' -exec wc -l {} +", True),
        ("find . -not -name .env -name '*.md' -exec cat {} +", True),
        ("find . -name '.env*' -exec ls -l {} +", True),
        ("fd -e py -x wc -l", True),
        ("git ls-files | grep environment | xargs wc -l", True),
        ("git ls-files | grep -v env | xargs wc -l", True),
        ("grep -rl private src | xargs wc -l", True),
    ],
)
def test_names_of_secrets_that_are_fed_to_a_reader_are_secrets_read(command, low):
    assert (judge(command).category is Category.low) == low


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
