"""Build tools, test runners, checkers and formatters: when they only look, and when they change the project.

Handlers for npm and its kin; a runner pointed at somebody else's configuration is not a test run.
"""

from __future__ import annotations

import re

from checkrein.classify.arguments import delicate, path
from checkrein.classify.commands import apply, handler, options, plain
from checkrein.classify.options import parse
from checkrein.classify.shell import Shell
from checkrein.classify.tables import Spec
from checkrein.classify.words import HOLE, OPEN, UNKNOWN, Word

_TEST_SCRIPT = re.compile(r"^(?:test|tests|t)(?:[:_-][\w:.-]+)?$")
_CHECK_SCRIPT = re.compile(
    r"^(?:lint|typecheck|type-check|check|tsc|types|format:check|fmt:check|lint:check)(?:[:_-](?:check|ci|all|types|ts|js|css|strict))?$"
)
_VERSION = frozenset(("--version", "-v", "-V", "version", "-version", "--help", "-h", "help"))
_INSTALLED = (
    "eslint",
    "tsc",
    "vitest",
    "jest",
    "mocha",
    "prettier",
    "playwright",
    "stylelint",
    "markdownlint",
    "biome",
    "vue-tsc",
)


def _outside(shell: Shell, word: Word) -> bool:
    """Whether a path is one the project does not control."""
    return shell.places.place(word, shell.cwd).scope in (
        "tmp",
        "home",
        "outside",
        "system",
        "unknown",
        "secret",
        "null",
        "device",
    )


@handler("runner")
def runner(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word | None:
    """Test runners load configuration and files: only the project's own are a test run."""
    below = shell.tables.spec(f"{spec.name} {words[0].text}") if words and words[0].literal else None
    if below is not None:
        return apply(shell, below, words[1:], stdin)
    parsed = parse(spec, words)
    for word in parsed.operands:
        if word.text.startswith(("/", "~", "..")) and _outside(shell, word):
            shell.find("exec", "elsewhere", word.shown, f"`{spec.name}` runs tests from {word.shown}")
    kept = [
        g
        for g in parsed.given
        if not (g.role == "config" and g.value is not None and not _outside(shell, g.value))
    ]
    kept = [
        g for g in kept if not (g.name == "-p" and g.value is not None and g.value.text.startswith("no:"))
    ]
    options(shell, spec, parsed._replace(given=kept))
    shell.find(
        spec.effect or "test", spec.scope, spec.name, f"`{spec.name}` runs the project's tests or checks"
    )
    return Word(HOLE, OPEN)


@handler("checker")
def checker(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word | None:
    return runner(shell, spec, words, stdin)


@handler("tsc")
def tsc(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word | None:
    """Without `--noEmit` the compiler writes; with it, it only checks."""
    flags = {w.text for w in words}
    if not flags & {"--noEmit", "--version", "-v", "--showConfig", "--help", "-h", "--listFilesOnly"}:
        shell.find("write", "project", spec.name, f"`{spec.name}` writes what it compiles")
    return runner(shell, spec, words, stdin)


@handler("formatter")
def formatter(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    """Formatters rewrite files unless told to check; some print unless told to rewrite."""
    parsed = parse(spec, words)
    printing = spec.name in (
        "gofmt",
        "goimports",
        "gofumpt",
        "shfmt",
        "clang-format",
        "prettier",
        "rustfmt1",
        "xmllint",
        "tidy",
        "pg_format",
        "autopep8",
    )
    printing = printing or spec.name in ("yapf", "autoflake", "swift-format", "mdformat1", "perltidy")
    flags = {w.text for w in words}
    rewriting = flags & {
        "-w",
        "--write",
        "-i",
        "--in-place",
        "-r",
        "--fix",
        "--overwrite-in-place",
        "-modify",
        "--inplace",
    }
    known = {
        "-i",
        "-w",
        "--write",
        "--in-place",
        "--inplace",
        "--fix",
        "-modify",
        "-r",
        "--remove-all-unused-imports",
    }
    kept = [
        g
        for g in parsed.given
        if not (g.role == "config" and g.value is not None and not _outside(shell, g.value))
    ]
    options(shell, spec, parsed._replace(given=kept, unknown=[u for u in parsed.unknown if u not in known]))
    checks = parsed.role("dry") or flags & {"--version", "--help", "-h", "-V", "-v", "--support-info"}
    if (checks and not rewriting) or (printing and not rewriting):
        for word in parsed.operands:
            path(shell, "list", word)
        return Word(HOLE, OPEN)
    for word in parsed.operands or [Word(".")]:
        path(shell, "write", word)
    return Word(HOLE, OPEN)


@handler("check-flag")
def check_flag(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word | None:
    """`cargo fmt -- --check`: the flag may stand behind the dashes."""
    if any(w.text in ("--check", "check", "--dry-run") for w in words):
        return Word(HOLE, OPEN)
    return plain(shell, spec, words, stdin)


@handler("terraform-fmt")
def terraform_fmt(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    flags = {w.text for w in words}
    if flags & {"-check", "-diff", "-write=false", "--check", "--diff"}:
        return Word(HOLE, OPEN)
    shell.find("write", "project", spec.name, f"`{spec.name}` rewrites files")
    return UNKNOWN


@handler("compiler")
def compiler(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word | None:
    return version_only(shell, spec, words, stdin)


@handler("version-only")
def version_only(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word | None:
    """A tool that runs anything it is told to, except when it is only asked for its version."""
    if len(words) == 1 and words[0].text in _VERSION:
        return Word(HOLE, OPEN)
    parsed_first = next((w for w in words if not w.text.startswith("-")), None)
    below = shell.tables.spec(f"{spec.name} {parsed_first.text}") if parsed_first is not None else None
    below = below or (shell.tables.spec(f"{spec.name} {words[0].text}") if words else None)
    if below is not None and words and below.name.endswith(words[0].text):
        return apply(shell, below, words[1:], stdin)
    shell.find(
        "exec",
        spec.scope,
        " ".join([spec.name, *(w.shown for w in words[:2])]),
        spec.raw.get("about") or f"`{spec.name}` runs code",
    )
    delicate(shell, words)
    return UNKNOWN


@handler("build-test")
def build_test(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word | None:
    """`bazel test //x`, `mvn test`: a test run unless it also builds or comes from elsewhere."""
    named = [w.text for w in words if not w.text.startswith("-")]
    if any(
        n.startswith("@") or n in ("install", "deploy", "publish", "run", "clean", "build") for n in named
    ):
        shell.find("exec", "elsewhere", named[0], f"`{spec.name}` does more than test")
    return plain(shell, spec, words, stdin)


@handler("npm")
def npm(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word | None:
    """Global options first; `bun FILE`, `yarn SCRIPT` and `pnpm SCRIPT` run something."""
    parsed = parse(spec, words, stop=True)
    for given in parsed.given:
        if (
            given.name in ("--prefix", "-C", "--dir", "--cwd")
            and given.value
            and _outside(shell, given.value)
        ):
            shell.find("exec", "elsewhere", given.value.shown, f"`{spec.name}` runs in {given.value.shown}")
    first = parsed.operands[0] if parsed.operands else None
    if first is None:
        if spec.name in ("yarn", "npm", "pnpm", "bun") and not parsed.given and spec.name == "yarn":
            shell.find("package", "", spec.name, f"`{spec.name}` installs packages")
        options(shell, spec, parsed)
        return Word(HOLE, OPEN)
    known = shell.tables.spec(f"{spec.name} {first.text}") is not None
    if not known and spec.name in ("yarn", "pnpm", "bun") and first.literal:
        if _TEST_SCRIPT.match(first.text) or _CHECK_SCRIPT.match(first.text):
            return run_script(shell, spec, [first, *parsed.operands[1:]], stdin)
        if spec.name == "bun" and re.search(r"\.[cm]?[jt]sx?$", first.text):
            shell.find("exec", "project", first.shown, f"`bun` runs {first.shown}")
            return UNKNOWN
    if any(w.text in ("-v", "--version") for w in words) and len(words) == 1:
        return Word(HOLE, OPEN)
    return None


@handler("audit")
def audit(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word | None:
    if any(w.text in ("fix", "--fix") for w in words):
        shell.find("package", "", spec.name, f"`{spec.name} fix` changes packages")
        return UNKNOWN
    return None


@handler("run-script")
def run_script(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    """A script of package.json: a test or check by its name, else whatever the project says."""
    named = [w for w in words if not w.text.startswith("-")]
    if not named:
        return Word(HOLE, OPEN)
    name = named[0].text
    if named[0].literal and (_TEST_SCRIPT.match(name) or _CHECK_SCRIPT.match(name)):
        _script_arguments(shell, spec, words)
        shell.find(
            "test", "", f"{spec.name} {name}", f"`{spec.name} {name}` runs the project's tests or checks"
        )
        return Word(HOLE, OPEN)
    shell.find("exec", "project", f"{spec.name} {name}", f"`{spec.name} {name}` runs a script of the project")
    return UNKNOWN


def _script_arguments(shell: Shell, spec: Spec, words: list[Word]) -> None:
    """What is handed on to a test script must not load or write anything."""
    for word in words:
        name, _, text = word.text.partition("=")
        if name in (
            "--script-shell",
            "--node-options",
            "--require",
            "--import",
            "--loader",
            "--globalSetup",
            "--prefix",
            "-C",
            "--cwd",
        ):
            if name not in ("--prefix", "-C", "--cwd") or _outside(shell, Word(text or ".")):
                shell.find("exec", "option", word.shown, f"`{word.shown}` changes what `{spec.name}` runs")
        elif name in ("--fix", "--write", "-u", "--update", "--updateSnapshot", "--update-snapshots"):
            shell.find("write", "project", word.shown, f"`{word.shown}` rewrites files")
        elif name == "--config" and _outside(shell, Word(text or "..")):
            shell.find("exec", "option", word.shown, f"`{word.shown}` changes what `{spec.name}` runs")


@handler("test-script")
def test_script(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    _script_arguments(shell, spec, words)
    shell.find("test", "", spec.name, f"`{spec.name}` runs the project's tests")
    return Word(HOLE, OPEN)


@handler("npx")
def npx(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word:
    """Runs a package, fetched when it is not installed; well-known checkers are the project's own."""
    parsed = parse(spec, words, stop=True)
    options(shell, spec, parsed)
    rest = parsed.operands
    if rest and rest[0].literal and rest[0].text in _INSTALLED and not parsed.has("-p", "--package"):
        return shell.argv(rest, stdin)
    if parsed.has("-c", "--call"):
        return UNKNOWN
    if spec.name in ("pnpm exec", "yarn exec") and rest:
        return shell.argv(rest, stdin)
    shell.find(
        "package",
        "",
        rest[0].shown if rest else spec.name,
        f"`{spec.name}` may fetch and run {rest[0].shown if rest else 'a package'}",
    )
    return UNKNOWN


@handler("uv-run")
def uv_run(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word:
    parsed = parse(spec, words, stop=True)
    module = next(
        (g.value for g in parsed.given if g.name in ("-m", "--module") and g.value is not None), None
    )
    options(shell, spec, parsed)
    if module is not None:
        at = next(i for i, w in enumerate(words) if w.text in ("-m", "--module") or w is module)
        return shell.argv([Word("python"), Word("-m"), module, *words[at + 2 :]], stdin)
    rest = parsed.operands
    if rest and rest[0].literal and rest[0].text.endswith(".py"):
        return shell.argv([Word("python"), *rest], stdin)
    return shell.argv(rest, stdin) if rest else Word(HOLE, OPEN)


@handler("uvx")
def uvx(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word:
    parsed = parse(spec, words, stop=True)
    options(shell, spec, parsed)
    rest = parsed.operands
    if (
        rest
        and rest[0].literal
        and rest[0].text in ("ruff", "black", "mypy", "isort", "flake8", "pytest", "pyright", "ty")
    ):
        return shell.argv(rest, stdin)
    shell.find(
        "package",
        "",
        rest[0].shown if rest else spec.name,
        f"`{spec.name}` fetches and runs {rest[0].shown if rest else 'a package'}",
    )
    return UNKNOWN
