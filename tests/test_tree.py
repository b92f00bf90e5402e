"""What the project promises about itself: tests mirror the source, docs name everything."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import checkrein
from checkrein import errors
from checkrein.policy.conditions import TESTS
from checkrein.policy.rules import KEYS
from checkrein.settings import documented_keys

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "checkrein"
DOCS = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")}
MODULES = sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))
# A package's __init__ is tested under the package's name; these hold names and docstrings only.
WITHOUT_TESTS = {
    "approval/__init__.py",
    "doors/__init__.py",
    "doors/hooks/__init__.py",
    "execute/__init__.py",
    "ledger/__init__.py",
    "store/__init__.py",
}


def test_file_for(module):
    stem = module.parent.name if module.name == "__init__.py" else module.stem
    name = "exports" if module == Path("__init__.py") else stem.strip("_")
    return Path("tests", module.parent, f"test_{name}.py")


test_file_for.__test__ = False


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_every_module_has_a_test_of_its_name(module):
    if str(module) not in WITHOUT_TESTS:
        assert (ROOT / test_file_for(module)).exists(), f"{test_file_for(module)} is missing"


@pytest.mark.parametrize("module", sorted(WITHOUT_TESTS))
def test_what_has_no_test_does_nothing(module):
    for node in ast.walk(ast.parse((SOURCE / module).read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef):
            assert all(isinstance(each, ast.Expr) for each in node.body), node.name


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_modules_are_short_and_say_what_they_are(module):
    text = (SOURCE / module).read_text(encoding="utf-8")
    tree = ast.parse(text)
    assert ast.get_docstring(tree), "a module opens with what it is"
    assert text.count("\n") <= 500
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            assert node.end_lineno - node.lineno < 80, node.name


@pytest.mark.parametrize("key", documented_keys())
def test_every_setting_is_documented(key):
    assert f"`{key}`" in DOCS["configuration.md"]


@pytest.mark.parametrize("key", [*KEYS, *TESTS])
def test_every_rule_key_and_condition_is_documented(key):
    assert f"`{key}`" in DOCS["rules.md"]


def error_classes(base=errors.CheckreinError):
    return [base, *(each for sub in base.__subclasses__() for each in error_classes(sub))]


@pytest.mark.parametrize("error", error_classes(), ids=lambda error: error.__name__)
def test_every_error_is_documented_and_in_the_drawn_tree(error):
    assert f"`{error.code}`" in DOCS["errors.md"]
    assert error.__name__ in errors.__doc__
    assert error.__doc__


def test_exports_are_sorted_complete_and_documented():
    assert list(checkrein.__all__) == sorted(checkrein.__all__)
    for name in checkrein.__all__:
        assert getattr(checkrein, name) is not None
    text = "".join(DOCS.values())
    assert all(f"`{name}" in text for name in checkrein.__all__)


def test_importing_the_package_is_light():
    """Neither the store nor cryptography, RE2 or the command line load before they are needed."""
    code = "import sys, checkrein; print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"sqlite3", "cryptography", "re2", "click", "asyncio", "msgspec"} & set(loaded)
    code = "import sys; from checkrein import explain; explain({'tool': 'Read'}); print(*sys.modules)"
    loaded = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.split()
    assert not {"sqlite3", "cryptography", "re2", "click", "asyncio"} & set(loaded)
