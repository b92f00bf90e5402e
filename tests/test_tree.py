"""What the project promises about itself: modules are short, docs name everything, imports are light."""

import ast
import subprocess
import sys
from pathlib import Path

import checkrein
from checkrein import errors
from checkrein.policy.conditions import TESTS
from checkrein.policy.rules import KEYS
from checkrein.settings import documented_keys

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "checkrein"
DOCS = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "docs").glob("*.md")}
MODULES = sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))


def test_every_module_is_short_and_says_what_it_is():
    wrong = []
    for module in MODULES:
        text = (SOURCE / module).read_text(encoding="utf-8")
        tree = ast.parse(text)
        if not ast.get_docstring(tree):
            wrong.append(f"{module} has no docstring")
        if text.count("\n") > 500:
            wrong.append(f"{module} has more than 500 lines")
        wrong += [
            f"{module}: {node.name} has more than 80 lines"
            for node in ast.walk(tree)
            if isinstance(node, ast.FunctionDef) and node.end_lineno - node.lineno >= 80
        ]
    assert not wrong


def test_every_setting_rule_key_and_condition_is_documented():
    missing = [key for key in documented_keys() if f"`{key}`" not in DOCS["configuration.md"]]
    missing += [key for key in (*KEYS, *TESTS) if f"`{key}`" not in DOCS["rules.md"]]
    assert not missing


def error_classes(base=errors.CheckreinError):
    return [base, *(each for sub in base.__subclasses__() for each in error_classes(sub))]


def test_every_error_is_documented_and_in_the_drawn_tree():
    wrong = [
        error.__name__
        for error in error_classes()
        if f"`{error.code}`" not in DOCS["errors.md"]
        or error.__name__ not in errors.__doc__
        or not error.__doc__
    ]
    assert not wrong


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
