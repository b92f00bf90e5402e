"""Where a path lies, however it is spelt."""

from __future__ import annotations

import pytest
from ground import judge

from checkrein.call import Category, tool_call
from checkrein.classify import classify
from checkrein.classify.paths import Places, worse
from checkrein.classify.words import GLOB, HOLE, LITERAL, OPEN, Word

PROJECT, HOME = "/home/dev/app", "/home/dev"


def scope(text, resolve=None, kind=LITERAL):
    places = Places(project=PROJECT, cwd=PROJECT, home=HOME, resolve=resolve)
    return places.place(Word(text, kind)).scope


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.py", "project"),
        ("docs/a.md", "docs"),
        ("vendor/docs/a.md", "project"),
        ("pkg/src/a.py", "src"),
        ("tests/a.py", "tests"),
        ("docs/../src/a.py", "src"),
        (".claude/worktrees/side/a.py", "project"),
        (".claude/worktrees/side/src/a.py", "src"),
        (".claude/worktrees/side/.env", "secret"),
        (".claude/worktrees/side/.claude/settings.json", "agent-hooks"),
        (".claude/worktrees/side/../../settings.json", "agent-hooks"),
        (".claude/worktrees/settings.json", "agent-config"),
        ("../other/a.py", "home"),
        ("../../../etc/passwd", "system"),
        ("/tmp/x", "tmp"),
        ("/tmp/../etc/x", "system"),
        ("~/notes", "home"),
        ("/etc/hosts", "system"),
        ("/srv/x", "outside"),
        ("/", "everything"),
        ("~", "everything"),
        ("/etc", "everything"),
        ("/dev/null", "null"),
        ("/dev/sda", "device"),
        ("/dev/shm/x", "tmp"),
        ("/dev/shm/../sda", "device"),
    ],
)
def test_the_places_of_a_machine(path, expected):
    assert scope(path) == expected


@pytest.mark.parametrize(
    "path",
    [
        ".env",
        "a/.env.local",
        "~/.ssh/id_rsa",
        "/home/other/.ssh/id_ed25519",
        "~/.aws/credentials",
        "certs/server.key",
        "/etc/shadow",
        "/proc/self/environ",
        "/proc/123/environ",
        "~/.netrc",
        "~/.bash_history",
        "x/../.env",
    ],
)
def test_secrets_are_found_by_name_and_place(path):
    assert scope(path) == "secret"


@pytest.mark.parametrize(
    "path",
    [
        ".env.example",
        ".env.sample",
        "~/.ssh/known_hosts",
        "~/.ssh/id_rsa.pub",
        "src/secrets.py",
        "environment.py",
        "monkey.py",
        "docs/credentials.md",
    ],
)
def test_names_that_resemble_a_secret_are_not_one(path):
    assert scope(path) != "secret"


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (".git/hooks/pre-commit", "vcs-internal"),
        (".git/config", "vcs-internal"),
        (".gitignore", "project"),
        (".claude/settings.json", "agent-hooks"),
        ("~/.codex/config.toml", "agent-hooks"),
        (".claude/commands/x.md", "agent-config"),
        ("AGENTS.md", "agent-config"),
        (".vscode/settings.json", "agent-config"),
        ("checkrein.toml", "self"),
        ("~/.config/checkrein/config.toml", "self-secret"),
        ("~/.local/state/checkrein/store.db", "self"),
        ("src/checkrein/classify/paths.py", "src"),
        ("docs/checkrein.md", "docs"),
    ],
)
def test_what_steers_git_agents_and_us_has_a_scope_of_its_own(path, expected):
    assert scope(path) == expected


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        (".e*", "secret"),
        (".en[v]", "secret"),
        ("~/.ss?/id*", "secret"),
        ("~/.s*/*", "secret"),
        ("id_*", "secret"),
        ("*.py", "project"),
        ("src/*.ts", "src"),
        ("~/*", "everything"),
        ("/*", "everything"),
    ],
)
def test_a_glob_is_judged_by_what_it_could_match(glob, expected):
    assert scope(glob, kind=GLOB) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (HOLE, "unknown"),
        (f"/tmp/{HOLE}", "tmp"),
        (f"{HOLE}/.env", "secret"),
        (f"{HOLE}/.ssh/x", "secret"),
    ],
)
def test_an_unknown_path_is_judged_by_what_is_known_of_it(text, expected):
    assert scope(text, kind=OPEN) == expected


@pytest.mark.invariant("a symlink is judged by the worse of where it is and where it leads")
def test_a_symlink_is_judged_by_the_worse_of_where_it_is_and_where_it_leads():
    def resolve(path):
        return path.replace(f"{PROJECT}/link", f"{HOME}/.ssh").replace(f"{HOME}/.netrc", "/tmp/harmless")

    assert scope("link/notes", resolve) == "secret"
    assert scope("~/.netrc", resolve) == "secret"
    assert scope("a.py", resolve) == "project"
    assert worse("tmp", "secret") == worse("secret", "tmp") == "secret"
    assert worse("self", "secret") == "self"


def test_a_directory_change_moves_relative_paths():
    places = Places(project=PROJECT, cwd=PROJECT, home=HOME, resolve=None)
    assert places.place(Word("id_rsa"), f"{HOME}/.ssh").scope == "secret"
    assert places.place(Word("x"), "/etc").scope == "system"


@pytest.mark.parametrize(
    "path",
    [
        "/dev/fd/../cwd/.env",
        "/proc/self/root/etc/shadow",
        "/proc/1/task/1/environ",
        "/proc/self/fd/../cwd/x",
        ".ENV",
    ]
    + [
        "~/.AWS/Credentials",
        "~/.m2/settings.xml",
        "~/.config/sops/age/keys.txt",
        "AuthKey_1.p8",
        ".dev.vars",
    ],
)
def test_secrets_are_found_in_any_case_and_through_any_process(path):
    read = {"tool": "Read", "arguments": {"file_path": path}, "project": "/p"}
    assert classify(tool_call(read)).category >= Category.high


def test_an_open_name_below_src_lies_in_src():
    call = {"tool": "Bash", "arguments": {"command": "echo x > src/$F.py"}, "project": "/p"}
    assert classify(tool_call(call)).domains == ("file_write_src",)


@pytest.mark.parametrize(
    "path", ["/var/log/auth.log", "/var/log/secure", "/var/log/ufw.log.1", "/tmp/krb5cc_1000"]
)
def test_who_came_in_and_tickets_are_secret(path):
    assert judge(f"cat {path}").category is Category.high


def test_the_machines_passwords_are_not_even_looked_at():
    assert judge("ls -l /etc/shadow").category is Category.medium
    assert judge("ls -l /etc/hosts ~/.ssh").category is Category.low
