import os
from pathlib import Path

import pytest

from checkrein.errors import ConfigError, InputError, StoreError
from checkrein.policy.load import compile_policy
from checkrein.settings import Settings
from checkrein.settings.reading import LARGEST_FILE
from checkrein.settings.sources import (
    config_dir,
    content_hash,
    load,
    parse,
    state_dir,
    user_file,
)


def write(project, text):
    path = Path(project) / "checkrein.toml"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_ac_033_without_any_file_the_defaults_are_safe(project):
    loaded = load(project)
    assert (loaded.settings, loaded.fault, loaded.notices) == (Settings(), "", ())
    assert load("").settings == load("/no/such/folder").settings == Settings()
    assert not user_file().exists()


def test_layers_apply_in_order(project, user_settings):
    user_settings("[trust]\ninitial_score = 0.2\nboost_threshold = 9\n")
    write(project, "[trust]\ninitial_score = 0.1\n")
    trust = load(project, overrides=["trust.boost_threshold=7"]).settings.trust
    assert (trust.initial_score, trust.boost_threshold) == (0.1, 7)


def test_an_unaccepted_project_only_tightens_and_says_so(project):
    path = write(project, '[trust]\ninitial_score = 0.5\n[[rules]]\npattern = "*"\naction = "allow"\n')
    loaded = load(project)
    assert (loaded.settings, loaded.project_rules) == (Settings(), ())
    assert all(notice.startswith(f"{path}: ") and "policy accept" in notice for notice in loaded.notices)
    assert len(loaded.notices) == 2


def test_an_accepted_project_is_taken_whole_until_a_byte_changes(project):
    path = write(project, "[trust]\ninitial_score = 0.5\n")
    sha = content_hash(path.read_bytes())
    seen = {(str(path), sha)}
    assert load(project, accepted=lambda *key: key in seen).settings.trust.initial_score == 0.5
    write(project, "[trust]\ninitial_score = 0.5 \n")
    assert load(project, accepted=lambda *key: key in seen).settings.trust.initial_score == 0.3


BROKEN = {
    "not toml": "[trust",
    "unknown key": "[trust]\nnonsense = 1\n",
    "refused value": "[trust]\ninitial_score = 0.9\n",
    "not utf-8": b"\xff\xfe",
    "a nul": "a = '\0'",
    "a huge number": f"[retention]\nmirror_days = {'9' * 5000}\n",
    "a huge hexadecimal number": f"[retention]\nmirror_days = 0x{'f' * 9000}\n",
    "deep arrays": "a = " + "[" * 5000,
    "deep keys": "a." * 900 + "a = 1",
    "very deep keys": "a." * 100_000 + "a = 1",
    "too large": "#" * (LARGEST_FILE + 1),
    "twice": "[trust]\n[trust]\n",
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
@pytest.mark.parametrize("whose", ["user", "project"])
def test_a_broken_file_is_a_fault_that_blocks_and_never_a_default(whose, text, project, user_settings):
    path = user_settings("") if whose == "user" else write(project, "")
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    loaded = load(project)
    assert str(path) in loaded.fault
    assert loaded.error
    assert compile_policy(loaded.settings, fault=loaded.fault).fault


def folder(path):
    path.mkdir()


def loop(path):
    path.symlink_to(path)


def endless(path):
    path.symlink_to("/dev/zero")


@pytest.mark.parametrize("make", [folder, os.mkfifo, loop, endless])
def test_what_is_no_plain_file_is_a_fault_and_never_waited_for(make, project):
    make(Path(project) / "checkrein.toml")
    assert "cannot be read" in load(project).fault


def test_a_link_to_a_plain_file_is_read(project, tmp_path):
    (tmp_path / "shared.toml").write_text("[trust]\ninitial_score = 0.1\n", encoding="utf-8")
    (Path(project) / "checkrein.toml").symlink_to(tmp_path / "shared.toml")
    assert load(project).settings.trust.initial_score == 0.1


def test_a_project_that_cannot_be_a_path_is_a_fault():
    assert load("/tmp/\0x").fault


def test_an_acceptance_that_cannot_be_looked_up_is_a_fault(project):
    def fails(_path, _sha):
        raise StoreError("gone")

    write(project, "")
    assert load(project, accepted=fails).fault == "gone"


@pytest.mark.parametrize(
    ("text", "log_dir"),
    [
        ("audit.log_dir=logs", "logs"),
        ('audit.log_dir = "a b"', "a b"),
        ("audit.log_dir=", ""),
        ("audit.log_dir=''", ""),
    ],
)
def test_an_override_is_toml_or_a_bare_word(text, log_dir):
    assert load(overrides=[text]).settings.audit.log_dir == log_dir


@pytest.mark.parametrize("text", ["", "x", "=5", " = 5", "a b=1", 'audit.log_dir="', f"a={'9' * 5000}"])
def test_an_override_that_cannot_be_read_is_a_fault(text):
    assert isinstance(load(overrides=[text]).error, InputError | ConfigError)


def test_an_override_is_checked_like_a_file():
    assert "--set" in load(overrides=["trust.initial_score=0.9"]).fault


def test_parse_names_the_file():
    with pytest.raises(ConfigError, match=r"^x\.toml: "):
        parse(b"=", "x.toml")


def test_folders_follow_the_environment_but_never_a_relative_one(home, monkeypatch):
    assert state_dir() == home / "state" / "checkrein"
    assert user_file() == config_dir() / "config.toml" == home / "config" / "checkrein" / "config.toml"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("XDG_CONFIG_HOME", "")
    assert state_dir() == home / ".local" / "state" / "checkrein"
    assert config_dir() == home / ".config" / "checkrein"


@pytest.mark.invariant("a project never says where a person is told of its questions")
@pytest.mark.parametrize("is_accepted", [True, False])
def test_a_project_never_says_where_a_person_is_told(project, user_settings, is_accepted):
    user_settings('[notify]\nurls = ["json://127.0.0.1:1"]')
    path = Path(project) / "checkrein.toml"
    path.write_text('[notify]\nurls = ["json://evil.example"]\nevents = []\n[trust]\ninitial_score = 0.1')
    found = load(project, accepted=lambda _path, _sha: is_accepted)
    assert found.settings.notify.urls == ("json://127.0.0.1:1",)
    assert found.settings.notify.events == ("asked", "expiring")
    assert found.settings.trust.initial_score == 0.1
    assert found.notices == (f"{path}: [notify] ignored; only your own file sets it",)


def test_no_project_says_which_model_is_asked_or_over_which_wires(project, user_settings):
    user_settings('[chat]\nmodel = "mine/m"')
    text = '[chat]\nmodel = "theirs/m"\n[connections]\nproxy = "custom"\nproxy_url = "http://evil.example"'
    path = Path(project, "checkrein.toml")
    path.write_text(text, encoding="utf-8")
    found = load(project, accepted=lambda *_: True)
    assert found.settings.chat.model == "mine/m"
    assert found.settings.connections.proxy == "environment"
    assert "evil.example" not in str(found.notices)
