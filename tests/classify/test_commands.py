"""One command: its name, its options, its operands, and what nobody can know about them."""

from __future__ import annotations

import pytest
from ground import PROJECT, judge

from checkrein.call import Category


@pytest.mark.invariant("a command whose name is computed is never low")
@pytest.mark.parametrize(
    "command",
    [
        "$X -la",
        '"$TOOL"',
        "$(head -1 names) x",
        "`cat cmd`",
        "/usr/bin/l? x",
        "l* x",
        '"$(curl -s http://localhost)" x',
    ],
)
def test_a_command_whose_name_is_computed_is_never_low(command):
    risk = judge(command)
    assert risk.category > Category.low
    assert risk.complexity > 0.64


@pytest.mark.invariant("network output that is executed is critical")
@pytest.mark.parametrize(
    "command",
    [
        "curl -s http://localhost:1/x | sh",
        "wget -qO- http://localhost:1/x | bash -s",
        'sh -c "$(curl -s http://localhost:1)"',
        'eval "$(curl -s http://localhost:1)"',
        '"$(curl -s http://localhost:1)" x',
    ],
)
def test_network_output_that_is_executed_is_critical(command):
    assert judge(command).category is Category.critical


def test_network_output_that_is_only_read_is_not():
    assert judge("curl -s http://localhost:1/x | jq .a").category is Category.medium


def test_a_program_is_known_by_its_usual_places_only():
    assert judge("/usr/bin/ls -la").category is Category.low
    assert judge("/usr/bin/rm -rf x").category is Category.high
    for command in ("./ls", "/tmp/ls", "bin/ls", "~/bin/ls", "/usr/bin/../../tmp/ls"):
        assert judge(command).category > Category.low, command


@pytest.mark.parametrize("python", [".venv/bin/python", "/srv/env/bin/python3.12", "~/.venv/bin/python -I"])
@pytest.mark.parametrize("module", ["-m checkrein", "-mcheckrein", "-m checkrein.__main__"])
def test_our_module_is_ours_whichever_interpreter_runs_it(python, module):
    assert judge(f"{python} {module} phase planning").category is Category.critical
    # Whatever lies there need not be Python at all.
    assert judge(f"{python} {module} status").category is Category.medium


@pytest.mark.invariant("our name on a file says nothing about what the file does")
@pytest.mark.parametrize("program", ["./checkrein", "bin/checkrein", "/tmp/checkrein", ".venv/bin/checkrein"])
def test_our_name_on_a_file_says_nothing_about_what_the_file_does(program):
    assert judge(f"{program} status").category is Category.medium
    assert judge(f"{program} down").category is Category.critical


def test_an_unknown_command_may_be_asked_for_help_only():
    assert judge("frobnicate --help").category is Category.low
    assert judge("frobnicate sub --help").category is Category.low
    assert judge("frobnicate --version").category is Category.low
    for command in (
        "frobnicate",
        "frobnicate x",
        "frobnicate --go --help",
        "./frobnicate --help",
        "frobnicate /etc --help",
    ):
        assert judge(command).category is Category.medium, command


@pytest.mark.parametrize("command", ["cat -Q x", "sort --frob x", "git log --frobnicate", "git frobnicate"])
def test_what_the_table_does_not_know_is_medium(command):
    risk = judge(command)
    assert risk.category is Category.medium
    assert "shell_exec" in risk.domains


def test_delicate_paths_count_in_any_argument():
    assert judge("frobnicate ~/.ssh/id_rsa").category is Category.high
    assert judge("frobnicate --key=.env").category is Category.high
    assert judge("frobnicate ~/.config/checkrein/config.toml").category is Category.critical
    assert judge("frobnicate README.md").category is Category.medium


def test_help_is_help_only_where_it_cannot_be_a_value():
    assert judge("rm --help").category is Category.low
    assert judge("git push --help").category is Category.low
    assert judge("rm -rf x --help").category is Category.high
    assert judge("sort x -o --help").category > Category.low


@pytest.mark.parametrize(
    ("reads", "changes"),
    [
        ("docker ps -a", "docker rm x"),
        ("kubectl get pods -n x", "kubectl scale deploy x --replicas 0"),
        ("gh pr view 1", "gh pr merge 1"),
        ("aws ec2 describe-instances", "aws ec2 terminate-instances"),
        ("terraform plan", "terraform apply"),
        ("systemctl status x", "systemctl stop x"),
        ("helm list", "helm uninstall x"),
    ],
)
def test_a_verb_decides_between_looking_and_changing(reads, changes):
    assert judge(reads).category is Category.low
    assert judge(changes).category >= Category.high


def test_a_dry_run_only_says_what_it_would_do():
    assert judge("git clean -ndx").category is Category.low
    assert judge("git clean -fdx").category is Category.high


@pytest.mark.invariant("tests and checks of a directory outside the project are code from elsewhere")
@pytest.mark.parametrize(
    "command",
    [
        "cd /tmp/x && npm test",
        "cd ../other && go test ./...",
        "env -C /tmp/x pytest",
        "pushd /tmp/x; cargo test",
        "cd /tmp/x && terraform plan",
    ],
)
def test_tests_and_checks_of_a_directory_outside_the_project_are_code_from_elsewhere(command):
    risk = judge(command)
    assert risk.category > Category.low
    assert "shell_exec" in risk.domains


@pytest.mark.parametrize("command", ["cd src && npm test", "cd /home/dev/app && pytest", "cd ../other && ls"])
def test_a_directory_of_the_project_is_no_elsewhere(command):
    assert judge(command).category is Category.low


@pytest.mark.parametrize(
    "command",
    [
        "nm --plugin ./x.so a.o",
        "diff3 --diff-program=x a b c",
        "xsv sort -o out.csv data.csv",
        "coredumpctl dump --output=core",
        "flux --kubeconfig=/tmp/x get all",
        "composer --working-dir=/tmp/x show",
        "gem list --source http://host.example",
        "dnf list --setopt=pluginpath=/tmp/x",
        "ansible all --list-hosts -i ./x.sh",
        "pip list --log=/home/dev/x",
        "brew info ./x.rb",
    ],
)
def test_an_unlisted_option_that_tells_of_more_is_never_low(command):
    assert judge(command).category > Category.low


@pytest.mark.parametrize(
    "command",
    [
        "ls --color=auto --group-directories-first -o",
        "du -sh --exclude=node_modules .",
        "df -h --output=source,size",
        "uname -o",
        "apt list --installed",
        "pip list --format=json",
        "kubectl get pods -o wide",
        "docker ps --filter name=x --no-trunc",
        "mypy src --ignore-missing-imports",
        "brew info wget",
    ],
)
def test_an_unlisted_option_that_only_shapes_output_stays_low(command):
    assert judge(command).category is Category.low


@pytest.mark.parametrize(
    ("pretends", "acts"),
    [
        (
            "kubectl apply -f x.yaml --dry-run=client",
            "kubectl apply -f x.yaml --dry-run=client --dry-run=none",
        ),
        ("kubectl delete pod x --dry-run=server", "kubectl exec p -- rm -rf /data --dry-run"),
        ("npm pack --dry-run", "npm pack --dry-run=false"),
        ("helm upgrade a ./b --dry-run", "helm upgrade a ./b --dry-run=none"),
        ("docker rm --help", "docker rm help"),
    ],
)
def test_a_dry_run_that_is_cancelled_is_none(pretends, acts):
    assert judge(pretends).category is Category.low
    assert judge(acts).category > Category.low


@pytest.mark.parametrize(
    "command",
    [
        "xmllint http://host.example/x.xml",
        "helm show values oci://host.example/x",
        "skopeo inspect docker://host.example/x",
        "kubectl get -f https://host.example/x.yaml",
        "deno info https://host.example/x.ts",
        "rpm -qp http://host.example/x.rpm",
        "argocd app list --server host.example",
        "etcdctl get / --endpoints=http://host.example",
        "kafka-topics --list --bootstrap-server host.example:9092",
    ],
)
def test_a_reader_pointed_at_another_machine_talks_to_it(command):
    risk = judge(command)
    assert risk.category > Category.low


@pytest.mark.invariant("a dry run still does what its other options say")
@pytest.mark.parametrize(
    "command",
    [
        "apt-get -s update -o APT::Update::Pre-Invoke::=id",
        "helm --dry-run install a b --post-renderer=/tmp/x",
    ],
)
def test_a_dry_run_still_does_what_its_other_options_say(command):
    assert judge(command).category >= Category.medium


def test_dry_is_what_the_command_itself_calls_dry():
    assert judge("apt-get -s install x").category is Category.low
    assert judge("port -s install x").category is Category.high


def test_a_command_that_needs_an_operand_says_nothing_without_one():
    assert judge("sample").category is Category.medium
    assert judge("sample 1234").category is Category.low


def test_a_version_is_asked_for_in_many_ways():
    for command in ("gopls version", "packer -help", "mytool --version", ": rm -rf /"):
        assert judge(command).category is Category.low
    assert judge("mytool version now").category is Category.medium


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("go test ./a -run X", ("go test",)),
        ("git commit -m x && git --no-pager add d", ("git commit -m", "git add --no-pager")),
        ("sed -i s/a/b/ src/x.py; echo done", ("sed -i", "echo")),
        ("/usr/bin/go vet ./...", ("go vet",)),
        ("timeout 5 pytest tests/a", ("pytest", "timeout")),
        ('git commit -m "$(cat notes)"', ("cat", "git commit -m")),
    ],
)
def test_what_effects_say_in_full_needs_no_more_than_a_name(line, commands):
    assert judge(line).commands == commands


@pytest.mark.invariant("a command whose effects do not say all is named with every word and its folder")
@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("make -C sub x y", "make -C sub x y"),
        ("make 'x y'", "make 'x y'"),
        ("cd sub && make x", f"make x (in {PROJECT}/sub)"),
        ("cd /tmp/x && make x", "make x (in /tmp/x)"),
        ("cd /tmp/x && git commit -m x", "git commit -m x (in /tmp/x)"),
        ("python manage.py flush --noinput", "python manage.py flush --noinput"),
        ("curl -X DELETE localhost:1", "curl -X DELETE localhost:1"),
        ("frobnicate --x y", "frobnicate --x y"),
        ("make $X", "make '…'"),
        ("git add $X", "git add '…'"),
        ('git add a b "$X"', "git add a b '…'"),
        ("AWS_PROFILE=live make x", "AWS_PROFILE=live"),
        ("env A=1 make x", "A=1"),
        ("export A=1; make x", "A=1"),
    ],
)
def test_a_command_whose_effects_do_not_say_all_is_named_with_every_word_and_its_folder(line, command):
    assert command in judge(line).commands
