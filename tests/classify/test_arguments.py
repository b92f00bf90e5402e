import pytest

from checkrein.call import Category, tool_call
from checkrein.classify import classify


def judge(command, **extra):
    return classify(tool_call({"tool": "Bash", "arguments": {"command": command}, "project": "/p", **extra}))


@pytest.mark.parametrize(
    "command,kind,scope",
    [
        ("cat src/a.py", "read", "src"),
        ("cat .env", "read", "secret"),
        ("tee out.txt", "write", "project"),
        ("rm build/x", "delete", "project"),
        ("rm -rf /", "delete", "everything"),
        ("curl http://localhost:8000/x", "network", "loopback"),
        ("curl https://api.example.com", "network", "outside"),
        ("bash -c 'rm x'", "delete", "project"),
        ("tee .git/hooks/pre-commit", "write", "vcs-internal"),
        ("tee conftest.py", "write", "armed"),
    ],
)
def test_an_argument_is_judged_by_the_role_it_plays(command, kind, scope):
    assert (kind, scope) in {(effect.kind, effect.scope) for effect in judge(command).effects}


@pytest.mark.invariant("who removes the folder around our hooks removes the hooks")
@pytest.mark.parametrize(
    "folder", [".claude", ".codex", ".gemini", ".copilot", ".github", "~/.codex", "./.github/"]
)
def test_who_removes_the_folder_around_our_hooks_removes_the_hooks(folder):
    for command in (
        f"rm -rf {folder}",
        f"mv {folder} away",
        f"mv {folder} x dest/",
        f"cd sub; rm -r {folder}",
    ):
        assert judge(command).category is Category.critical, command
    # What only looks at it, adds to it or removes another of its files stays what it was.
    assert judge(f"ls {folder}").category is Category.low
    for command in (
        f"mkdir -p {folder}",
        f"cp x.yml {folder}",
        f"mv x.yml {folder}",
        f"rm {folder}/notes.md",
    ):
        assert judge(command).category < Category.critical, command


def test_looking_at_a_name_is_not_reading_what_it_holds():
    assert judge("ls -la .env").category is Category.low
    assert judge("test -f .env").category is Category.low
    assert judge("cat .env").category is Category.high


def test_a_path_nobody_can_know_is_never_low_to_read():
    assert judge('cat "$(cat list.txt)"').category > Category.low
    assert judge("rm $(cat list.txt)").category >= Category.high


def test_what_an_unknown_command_is_given_still_counts():
    assert judge("frobnicate ~/.ssh/id_rsa").category >= Category.high
    assert judge("frobnicate --to=/p/checkrein.toml").category is Category.critical
    assert judge("frobnicate README.md").category is Category.medium


def test_a_secret_handed_on_as_text_is_a_secret_read():
    assert judge('echo "$(cat .env)"').category >= Category.high


@pytest.mark.parametrize(
    "command",
    [
        'x=xenv; cat ".${x#x}"',
        "cat ./$(base64 -d <<< LmVudg==)",
        "sort names.txt | xargs cat",
        "echo .env,x | cut -d , -f 1 | xargs cat",
        "printf '.e\\nnv' | paste -sd '' | xargs cat",
        "IFS=, read a b <<< .env,x; cat $a",
        'mapfile -t F < names.txt; cat "${F[@]}"',
    ],
)
def test_what_is_read_must_be_known(command):
    assert judge(command).category >= Category.medium


@pytest.mark.parametrize(
    "command",
    [
        "cd ~/.ssh && ls | xargs cat",
        "cd ~/.ssh && grep -r .",
        "cat $(ls -d .en*)",
        "cat $(echo .e?v)",
        "ls -A1 | sed -n '/env/p' | xargs cat",
        "bash -c 'cat \"$0\"' .env",
    ],
)
def test_names_of_secrets_are_followed(command):
    assert judge(command).category >= Category.high


@pytest.mark.parametrize(
    "command",
    [
        "find . -name '*.py' | while read -r f; do wc -l \"$f\"; done",
        "cd src && ls | xargs cat",
        "cat $(git ls-files '*.md')",
        'ls *.log | while IFS= read -r x; do head -1 "$x"; done',
        "grep -rl foo src | xargs head -5",
    ],
)
def test_names_that_readers_found_are_names(command):
    assert judge(command).category is Category.low


@pytest.mark.parametrize("command", ["cat /dev/sda", "xxd /dev/nvme0n1p1", "dd if=/dev/mapper/root"])
def test_a_disk_holds_every_secret(command):
    assert judge(command).category >= Category.high


def test_noise_is_no_disk():
    assert judge("head -c 8 /dev/urandom").category is Category.low
