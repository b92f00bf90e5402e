"""Interpreters and shells: inline code is never low, and cheap hints in it say how much worse it is.

Handlers for bash, python, node, perl ... and the code hints that inline code and notebooks share.
"""

from __future__ import annotations

import re
from functools import cache

from checkrein.classify.arguments import delicate, path, shell_text
from checkrein.classify.commands import handler
from checkrein.classify.flags import options
from checkrein.classify.options import Parsed, parse
from checkrein.classify.shell import Shell
from checkrein.classify.tables import Spec, data
from checkrein.classify.words import GLOB, HOLE, LITERAL, NETWORK, OPEN, UNKNOWN, Word

_STRING = re.compile(r"""(?<!\w)(?:"([^"\n]{1,300})"|'([^'\n]{1,300})')""")
_OTHER_SYNTAX = frozenset("fish csh tcsh elvish nu xonsh".split())
_ONE_WORD = re.compile(r"[\w./-]+")
_LONELY = frozenset(("--version", "-V", "--help", "-h", "-v", "-version"))


@cache
def _hints() -> list[tuple[re.Pattern[str], str, str, str]]:
    return [
        (re.compile("|".join(row["patterns"])), row["effect"], row["scope"], row["why"])
        for row in data("_code")["hint"]
    ]


@handler("shell")
def run_shell(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word:
    """`bash -c TEXT`, `bash FILE`, `... | bash`."""
    parsed = parse(spec, words, stop=True)
    for name in parsed.unknown:
        shell.find("exec", "unknown", name, f"`{name}` of `{spec.name}` is not an option we know")
    for given in parsed.given:
        if given.role in ("config", "exec") and given.value is not None:
            shell.find(
                "exec", "script", given.value.shown, f"`{given.name}` makes it run {given.value.shown}"
            )
    if parsed.has("-c"):
        if not parsed.operands:
            return UNKNOWN
        if spec.name in _OTHER_SYNTAX:
            code(shell, spec.name, parsed.operands[0])
        if parsed.operands[1:] and _ONE_WORD.fullmatch(parsed.operands[0].text):
            why = f"`{spec.name} -c` runs `{parsed.operands[0].shown}` alone, without the words behind it"
            shell.find("exec", "unknown", parsed.operands[0].shown, why)
        delicate(shell, parsed.operands[1:2])
        return shell_text(shell, parsed.operands[0], stdin, parsed.operands[2:])
    if parsed.has("--version", "--help"):
        return Word(HOLE, OPEN)
    if parsed.operands and not parsed.has("-s"):
        return run_script(shell, spec, parsed.operands[0], parsed.operands[1:])
    if parsed.has("-n") and stdin is not None:
        return Word(HOLE, OPEN)
    if stdin is None:
        shell.unclear("it starts a shell that waits for commands")
        return UNKNOWN
    shell.find("exec", "piped", spec.name, f"`{spec.name}` runs what it is fed")
    if spec.name in _OTHER_SYNTAX:
        code(shell, spec.name, stdin)
    return shell_text(shell, stdin)


def run_script(shell: Shell, spec: Spec, script: Word, rest: list[Word]) -> Word:
    """A script given by its path: only where it lies is known."""
    if script.text == "-" or script.text.startswith("/dev/stdin"):
        shell.unclear("it runs what it is fed")
        return UNKNOWN
    if script.taint & NETWORK:
        shell.find("exec", "flow", script.shown, "it runs what it just downloaded")
        return UNKNOWN
    place = shell.places.place(script, shell.cwd)
    shell.find("exec", place.scope, place.path, f"`{spec.name}` runs {script.shown} ({place.scope})")
    delicate(shell, [script, *rest])
    return UNKNOWN


@handler("interpreter")
def run_interpreter(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word:
    """`python -c CODE`, `python -m MODULE`, `python FILE`, `... | python`."""
    if len(words) == 1 and words[0].text in _LONELY:
        return Word(HOLE, OPEN)
    parsed = parse(spec, words, stop=True)
    options(shell, spec, parsed._replace(given=[g for g in parsed.given if g.role not in ("code", "shell")]))
    module = next((g.value for g in parsed.given if g.name == "-m" and g.value is not None), None)
    if module is not None and spec.scope == "python":
        return _module(shell, spec, module, _after(words, module), stdin)
    return _code_of(shell, spec, parsed, stdin)


def _code_of(shell: Shell, spec: Spec, parsed: Parsed, stdin: Word | None) -> Word:
    inline = [g.value for g in parsed.given if g.role == "code" and g.value is not None]
    if inline:
        for word in inline:
            code(shell, spec.name, word)
        delicate(shell, parsed.operands)
        if (
            stdin is not None
            and stdin.taint & NETWORK
            and any("stdin" in w.text or w.text == "-" for w in inline)
        ):
            shell.find("network", "inbound", spec.name, "it reads what was downloaded", None)
        return UNKNOWN
    if parsed.operands and parsed.operands[0].text != "-":
        return run_script(shell, spec, parsed.operands[0], parsed.operands[1:])
    if stdin is not None:
        code(shell, spec.name, stdin)
        return UNKNOWN
    shell.unclear(f"`{spec.name}` waits for code")
    return UNKNOWN


def _after(words: list[Word], module: Word) -> list[Word]:
    """The words behind `-m MODULE` (or `-mMODULE`)."""
    for index, word in enumerate(words):
        if word.text == "-m":
            return words[index + 2 :]
        if word.text == f"-m{module.text}":
            return words[index + 1 :]
    return []


def _module(shell: Shell, _spec: Spec, module: Word, rest: list[Word], stdin: Word | None) -> Word:
    name = module.text
    entry = shell.tables.spec(f"python -m {name}")
    if entry is not None:
        from checkrein.classify.commands import apply

        return apply(shell, entry, rest, stdin)
    if name.partition(".")[0] == "checkrein":
        return shell.argv([Word("checkrein"), *rest], stdin)
    if name in data("_code")["modules"]:
        return shell.argv([Word(name), *rest], stdin)
    shell.find("exec", "module", name, f"it runs the module {module.shown}")
    delicate(shell, rest)
    return UNKNOWN


def code(shell: Shell, language: str, word: Word) -> None:
    """Inline code: opaque, raised by what it visibly does.

    INVARIANT: an interpreter with inline or piped code is never low
    """
    shell.opaque = True
    if word.taint & NETWORK:
        shell.find("exec", "flow", language, f"`{language}` runs what was just downloaded")
    elif word.kind not in (LITERAL, GLOB) and not word.known:
        shell.find("exec", "shell", language, f"`{language}` runs code nobody can know beforehand")
    else:
        shell.find("exec", "code", language, f"`{language}` runs inline code")
    hints(shell, word.text)


def hints(shell: Shell, text: str) -> None:
    """What code visibly does: connect, start programs, delete, or name delicate paths."""
    for pattern, effect, scope, why in _hints():
        if match := pattern.search(text):
            shell.find(effect, scope, match.group()[:60], f"{why} (`{match.group()[:40]}`)")
    for one, other in _STRING.findall(text[:20_000])[:200]:
        string = one or other
        if "/" in string or string.startswith((".", "~", "id_")):
            place = shell.places.place(Word(string), shell.cwd)
            if place.scope == "secret":
                shell.find("read", "secret", place.path, f"its code names {string[:60]} (secret)")
            elif place.scope in ("self", "self-secret", "agent-hooks"):
                shell.find("write", place.scope, place.path, f"its code names {string[:60]} ({place.scope})")


@handler("osascript")
def osascript(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    shell.find("exec", "code", spec.name, f"`{spec.name}` runs a script")
    for word in words:
        hints(shell, word.text)
        path_like = word.text.endswith((".scpt", ".ps1", ".psm1"))
        if path_like:
            path(shell, "read", word)
    shell.opaque = True
    return UNKNOWN
