"""Build tools, test runners, checkers and formatters: when they only look, and when they change the project.

Handlers for npm and its kin; a runner pointed at somebody else's configuration is not a test run.
"""

from __future__ import annotations

import re

from checkrein.classify.arguments import away, delicate, is_url, network, outside, path
from checkrein.classify.commands import HANDLERS, apply, handler, plain
from checkrein.classify.flags import options, unlisted
from checkrein.classify.options import Parsed, parse
from checkrein.classify.shell import Shell
from checkrein.classify.tables import Spec, matches_verb
from checkrein.classify.words import EMPTY, HOLE, OPEN, UNKNOWN, Word

_TEST_SCRIPT = re.compile(r"^(?:test|tests|t)(?:[:_-][\w:.-]+)?$")
_CHECK_SCRIPT = re.compile(
    r"^(?:lint|typecheck|type-check|check|tsc|types|format:check|fmt:check|lint:check)(?:[:_-](?:check|ci|all|types|ts|js|css|strict))?$"
)
_TESTING = re.compile(r"[tT]est|[cC]heck|spec|lint")
_ONLY_CHECKS = re.compile(
    r"-(?:fsyntax-only|W[\w=+-]*|std=[\w+]+|[ID].*|O\w?|g\d?|pedantic[\w-]*|ansi|c|m[\w=-]+)"
)
_ARCHIVE_LISTS = re.compile(r"-?[tp][vfOoVT]*|--list")
_VERBOSE = frozenset("ant fab invoke inv doit rake just task grunt mage jake".split())
"""Runners whose `-v` is no version: they talk more while they do what they do by default."""
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


_PATTERNS = frozenset(
    "-t -k -g -m -R -E -L -n -N -run -bench -skip -list --grep --fgrep --filter --name --plain-name --run"
    " --skip --testNamePattern --testPathPattern --testPathPatterns --testPathIgnorePatterns --testRegex"
    " --tests --ignore --ignore-glob --ignore-pattern --exclude --include --deselect --example"
    " --match-test --match-path --match-contract".split()
)
"""Options whose value is a pattern, not a path."""
_NAMED = frozenset(
    "--reporter --reporters -R -f --format --formatter --test-reporter --filter --environment --env --pool"
    " --browser --logger -r --coverageReporters".split()
)
"""Options that take the name of something built in, or a file to load."""
_CODE_FILE = re.compile(r"^[./~]|[.](?:[cm]?[jt]sx?|py|rb|so|dll|jar|php|ex|exs|lua)$")


@handler("runner")
def runner(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word | None:
    """Test runners load configuration and files: only the project's own are a test run."""
    for count in (2, 1):
        if len(words) >= count and all(w.literal for w in words[:count]):
            below = shell.tables.spec(" ".join([spec.name, *(w.text for w in words[:count])]))
            if below is not None:
                return apply(shell, below, words[count:], stdin)
    parsed = parse(spec, [w for w in words if w.text != "--"])
    _run_by(shell, spec, parsed)
    shell.find(
        spec.effect or "test", spec.scope, spec.name, f"`{spec.name}` runs the project's tests or checks"
    )
    return Word(HOLE, OPEN)


def _run_by(shell: Shell, spec: Spec, parsed: Parsed) -> None:
    """What a run is pointed at: the project's own files and settings, or foreign code."""
    for word in parsed.operands:
        if is_url(word.text):
            network(shell, spec, word)
        elif word.text.startswith("@") or (not word.text.startswith("//") and away(shell, word)):
            shell.find("exec", "elsewhere", word.shown, f"`{spec.name}` runs what {word.shown} says")
        elif shell.places.place(word, shell.cwd).scope == "secret":
            path(shell, "read", word)
    kept = []
    for given in parsed.given:
        used = given.value
        if used is None:
            kept.append(given)
        elif given.role == "config":
            if is_url(used.text):
                network(shell, spec, used)
            elif outside(shell, used):
                kept.append(given)
        elif given.role == "text" and _foreign_value(shell, given.name, used):
            why = f"`{given.name}` makes `{spec.name}` use {used.shown}"
            shell.find("exec", "elsewhere", used.shown, why)
        elif not (given.name == "-p" and used.text.startswith("no:")):
            kept.append(given)
    options(shell, spec, parsed._replace(given=kept))


def _foreign_value(shell: Shell, name: str, word: Word) -> bool:
    if name in _NAMED and _CODE_FILE.search(word.text):
        return True
    if name in _PATTERNS:
        return False
    return away(shell, word)


@handler("checks-syntax")
def checks_syntax(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word | None:
    """`bash -n FILE`, `node --check FILE` only parse; `node --test` runs the project's tests."""
    parsed = parse(spec, words, stop=True)
    harmless = not parsed.unknown and all(g.role == "text" for g in parsed.given) and not parsed.has("-i")
    only = harmless and all(g.value is None for g in parsed.given)
    inline = "codes" not in spec.raw and parsed.has("-c")
    if only and not inline and parsed.operands and parsed.has(*spec.needs.split()):
        path(shell, "read", parsed.operands[0])
        return Word(HOLE, OPEN)
    if harmless and parsed.has("--test"):
        _run_by(shell, spec, parsed)
        shell.find("test", "", f"{spec.name} --test", f"`{spec.name} --test` runs the project's tests")
        return Word(HOLE, OPEN)
    return HANDLERS["interpreter" if "codes" in spec.raw else "shell"](shell, spec, words, stdin)


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


_REWRITES = frozenset("-w --write -i --in-place -r --fix --overwrite-in-place -modify --inplace".split())


def _rewrites(name: str, text: str) -> bool:
    """`-ir`, `-lw`: the letter that rewrites may stand among others."""
    if text in _REWRITES:
        return name != "shfmt" or text != "-i"
    letters = {"tidy": "m", "shfmt": "w", "prettier": "w"}.get(name, "wi")
    return len(text) <= 4 and text[:1] == "-" and text[1:].isalpha() and bool(set(text[1:]) & set(letters))


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
    rewriting = any(_rewrites(spec.name, w.text) for w in words)
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
        if not (g.role == "config" and g.value is not None and not outside(shell, g.value))
    ]
    options(shell, spec, parsed._replace(given=kept, unknown=[u for u in parsed.unknown if u not in known]))
    checks = parsed.role("dry") or flags & {"--version", "--help", "-h", "-V", "-v", "--support-info"}
    if (checks and not rewriting) or (printing and not rewriting):
        # INVARIANT: a checker shows what it reads
        for word in parsed.operands:
            path(shell, "read", word)
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
    if flags & {"-check", "-write=false", "--check", "--write=false"}:
        return Word(HOLE, OPEN)
    shell.find("write", "project", spec.name, f"`{spec.name}` rewrites files")
    return UNKNOWN


@handler("compiler")
def compiler(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word | None:
    """`gcc -fsyntax-only` reads, as long as every other option only says how."""
    flags = [w.text for w in words if w.text.startswith(("-", "@"))]
    if "-fsyntax-only" in flags and all(map(_ONLY_CHECKS.fullmatch, flags)):
        for word in words:
            if word.text not in flags:
                path(shell, "read", word)
        return EMPTY
    return version_only(shell, spec, words, stdin)


@handler("version-only")
def version_only(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word | None:
    """A tool that runs anything it is told to, except when it is only asked for its version."""
    if (
        len(words) == 1
        and words[0].text in _VERSION
        and not (words[0].text == "-v" and spec.name in _VERBOSE)
    ):
        return Word(HOLE, OPEN)
    tests = shell.tables.spec(f"{spec.name} test")
    if tests is not None and tests.needs:
        goal = next(iter(parse(tests, words).operands), None)
        if (
            goal is not None
            and _TESTING.search(goal.text)
            and matches_verb(goal.text, tuple(tests.needs.split()))
        ):
            return apply(shell, tests, words, stdin)
    if len(words) > 1 and all(w.literal for w in words[:2]):
        below = shell.tables.spec(f"{spec.name} {words[0].text} {words[1].text}")
        if below is not None:
            return apply(shell, below, words[2:], stdin)
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


@handler("archiver")
def archiver(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word | None:
    """`ar t LIB`, `jar tf FILE`: letters that list or print; others make or change an archive."""
    plain_rest = not any(w.text.startswith(("-", "@")) for w in words[1:])
    if words and words[0].literal and _ARCHIVE_LISTS.fullmatch(words[0].text) and plain_rest:
        for word in words[1:]:
            path(shell, "read", word)
        return Word(HOLE, OPEN)
    return version_only(shell, spec, words, stdin)


@handler("build-test")
def build_test(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word | None:
    """`bazel test //x`, `mvn test`: a test run unless it also builds or comes from elsewhere."""
    words = [w for w in words if w.text != "--"]
    parsed = parse(spec, words)
    goals = tuple(spec.needs.split())
    for word in parsed.operands:
        fits = matches_verb(word.text, goals) if goals else "=" not in word.text
        if not word.literal or not fits:
            shell.find("exec", "elsewhere", word.shown, f"`{spec.name} {word.shown}` does more than test")
    return runner(shell, spec, words, stdin)


@handler("npm")
def npm(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word | None:
    """Global options first; `bun FILE`, `yarn SCRIPT` and `pnpm SCRIPT` run something."""
    parsed = parse(spec, words, stop=True)
    for given in parsed.given:
        if given.name in ("--prefix", "-C", "--dir", "--cwd") and given.value and outside(shell, given.value):
            shell.find("exec", "elsewhere", given.value.shown, f"`{spec.name}` runs in {given.value.shown}")
    first = parsed.operands[0] if parsed.operands else None
    if spec.name == "bun" and words and words[0].text[:2] in ("-e", "-p"):
        shell.find("exec", "code", "bun", "`bun` runs inline code")
    if first is None:
        if spec.name == "yarn" and not parsed.has("-v", "--version", "-h", "--help"):
            shell.find("package", "", spec.name, f"`{spec.name}` installs packages")
        options(shell, spec, parsed)
        unlisted(shell, spec, parsed)
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
    named = [w for w in words if not w.text.startswith("-") or w.text == "-"]
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
    script = shell.tables.spec("npm --") or spec
    _run_by(shell, script, parse(script, [w for w in words if w.text != "--"]))


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
