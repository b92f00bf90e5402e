"""Secrets: where they are kept, how references find them, and that no error ever holds one."""

import stat
import sys
import types

import pytest

from checkrein.errors import ConfigError, InputError, NotFoundError
from checkrein.settings.secrets import (
    environment_file,
    expanded,
    has_reference,
    key_store,
    list_secrets,
    references,
    remove_secret,
    secrets_file,
    set_secret,
)

VALUE = "hunter2-and-more"


class Keys:
    """A desktop's key store, which can be locked."""

    def __init__(self):
        self.kept, self.locked = {}, False

    def _open(self):
        if self.locked:
            raise RuntimeError(f"locked, and {VALUE} is inside")

    def get_password(self, service, name):
        self._open()
        return self.kept.get((service, name))

    def set_password(self, service, name, value):
        self._open()
        self.kept[service, name] = value

    def delete_password(self, service, name):
        self._open()
        del self.kept[service, name]


@pytest.fixture
def keyring(monkeypatch):
    """The `keyring` package as its users see it, over a key store of the test's own."""
    keys = Keys()
    package = types.ModuleType("keyring")
    package.get_keyring = lambda: keys
    fail = types.ModuleType("keyring.backends.fail")
    fail.Keyring = type("Keyring", (), {})
    for name, module in {
        "keyring": package,
        "keyring.backends": types.ModuleType("keyring.backends"),
        "keyring.backends.fail": fail,
    }.items():
        monkeypatch.setitem(sys.modules, name, module)
    keys.nowhere = fail.Keyring
    keys.package = package
    return keys


@pytest.fixture
def no_keyring(monkeypatch):
    monkeypatch.setitem(sys.modules, "keyring", None)


def environment(text, mode=0o600):
    path = environment_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def test_a_secret_in_the_file(no_keyring):
    assert set_secret("github", VALUE) == "file"
    assert stat.S_IMODE(secrets_file().stat().st_mode) == 0o600
    assert list_secrets() == {"github": "file"}
    assert expanded("Bearer ${keyring:github}!", "s.headers.A") == f"Bearer {VALUE}!"
    remove_secret("github")
    assert list_secrets() == {}
    with pytest.raises(NotFoundError):
        remove_secret("github")


def test_a_secret_in_the_key_store(keyring):
    assert set_secret("github", VALUE) == "keyring"
    assert VALUE not in secrets_file().read_text()
    assert list_secrets() == {"github": "keyring"}
    assert expanded("${keyring:github}", "s.env.A") == VALUE
    remove_secret("github")
    assert keyring.kept == {}
    assert list_secrets() == {}


def test_a_locked_key_store_keeps_nothing_and_tells_nothing(keyring):
    set_secret("one", VALUE)
    keyring.locked = True
    assert set_secret("two", VALUE) == "file"
    with pytest.raises(ConfigError) as found:
        expanded("${keyring:one}", "s.env.A")
    assert VALUE not in str(found.value)
    remove_secret("one")
    assert list_secrets() == {"two": "file"}


def test_a_key_store_that_does_not_remove_is_said(keyring, monkeypatch):
    set_secret("one", VALUE)
    monkeypatch.setattr(Keys, "delete_password", lambda *_: 1 / 0)
    with pytest.raises(InputError, match="did not remove"):
        remove_secret("one")
    assert list_secrets() == {"one": "keyring"}


def test_a_key_store_with_nowhere_to_keep_things_is_none(keyring):
    keyring.package.get_keyring = keyring.nowhere
    assert key_store() is None


def test_setting_it_again_moves_it(keyring):
    keyring.locked = True
    set_secret("one", VALUE)
    keyring.locked = False
    assert set_secret("one", "another") == "keyring"
    assert VALUE not in secrets_file().read_text()
    assert expanded("${keyring:one}", "x") == "another"


@pytest.mark.parametrize("name", ["", "a b", "../x", "ä", "a" * 97, "a\n"])
def test_names_that_cannot_be(name):
    with pytest.raises(InputError):
        set_secret(name, VALUE)


@pytest.mark.parametrize("value", ["", "a\x00b", "x" * 65_537])
def test_values_that_cannot_be(no_keyring, value):
    with pytest.raises(InputError):
        set_secret("a", value)
    assert list_secrets() == {}


def test_a_variable_of_ours_comes_first_then_the_file_then_the_default(monkeypatch):
    monkeypatch.setenv("FIRST", "ours")
    environment("# mine\nFIRST=file\nexport SECOND='in quotes'\nTHIRD = spaced \nnonsense\n")
    assert expanded("${FIRST} ${env:FIRST}", "x") == "ours ours"
    assert expanded("${SECOND}|${THIRD}", "x") == "in quotes|spaced"
    assert expanded("${FOURTH:-}${FIFTH:-a:-b}", "x") == "a:-b"


def test_what_is_no_reference_stays():
    assert expanded("$HOME $ {x} $${literal} $$", "x") == "$HOME $ {x} ${literal} $$"
    assert not has_reference("$HOME $${literal}")
    assert has_reference("a${b}")
    assert references("${keyring:one} ${two} x${keyring:three}") == ["one", "three"]


def test_a_value_is_not_looked_into(monkeypatch):
    monkeypatch.setenv("TRICK", "${keyring:other}")
    assert expanded("${TRICK}", "x") == "${keyring:other}"


@pytest.mark.parametrize(
    "reference", ["${input:token}", "${}", "${a b}", "${file:/etc/passwd}", "${keyring:}"]
)
def test_a_reference_of_another_kind_is_refused_by_name(reference):
    with pytest.raises(ConfigError) as found:
        expanded(reference, "s.env.A")
    assert "`s.env.A`" in str(found.value)


def test_a_default_is_a_value_and_stays_out_of_errors():
    with pytest.raises(ConfigError) as found:
        expanded(f"${{not good:-{VALUE}}}", "s.env.A")
    assert VALUE not in str(found.value)


@pytest.mark.invariant("a secret others can read is not used, so that somebody notices")
def test_a_secret_others_can_read_is_not_used(no_keyring):
    set_secret("one", VALUE)
    secrets_file().chmod(0o644)
    for work in (list_secrets, lambda: expanded("${keyring:one}", "x"), lambda: set_secret("two", "x")):
        with pytest.raises(ConfigError, match="other users") as found:
            work()
        assert VALUE not in str(found.value)
    environment(f"A={VALUE}\n", 0o640)
    with pytest.raises(ConfigError, match="chmod 600"):
        expanded("${A}", "x")


def test_a_broken_secrets_file_is_not_written_over(no_keyring):
    set_secret("one", VALUE)
    broken = '{"secrets": {"one": "hunter2-and-more"'
    secrets_file().write_text(broken)
    with pytest.raises(ConfigError, match="cannot be read") as found:
        set_secret("two", "x")
    assert VALUE not in str(found.value)
    assert secrets_file().read_text() == broken
    secrets_file().write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="UTF-8"):
        list_secrets()
