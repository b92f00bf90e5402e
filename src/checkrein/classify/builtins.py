"""Shell builtins that change the shell itself: directories, variables, positional words, evaluated text.

Handlers for the table entries that name them.
"""

from __future__ import annotations

import re

from checkrein.classify.arguments import SCRIPTS, delicate, path, shell_text
from checkrein.classify.commands import handler
from checkrein.classify.options import parse
from checkrein.classify.shell import Shell
from checkrein.classify.tables import Spec
from checkrein.classify.words import DYNAMIC, EMPTY, GLOB, HOLE, LITERAL, OPEN, SECRET, UNKNOWN, Word, joined

_PERCENT = re.compile(r"%(?:%|[-+ #0]*[\d*]*(?:\.[\d*]+)?[diouxXfFeEgGaAcsbqn(])")


@handler("cd")
def change_directory(shell: Shell, _spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    target = next((w for w in words if not w.text.startswith("-") or w.text == "-"), None)
    if target is None:
        shell.cwd = shell.places.home
    elif target.literal and target.text != "-":
        shell.cwd = shell.places.absolute(target.text, shell.cwd)
    else:
        shell.cwd = None
    return EMPTY


@handler("echo")
def echo(shell: Shell, _spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    """Text that is only data; a secret variable among it is still a secret shown."""
    escapes = False
    while words and re.fullmatch(r"-[neE]+", words[0].text) and words[0].literal:
        escapes = escapes or "e" in words[0].text
        words = words[1:]
    if any(w.taint & SECRET for w in words):
        shell.find("read", "secret", "environment", "it prints a secret variable")
    text = joined(words) if words else Word("\n")
    if escapes and "\\" in text.text:
        return Word(HOLE, DYNAMIC, text.taint)
    return shell.found(text, words) if text.kind == GLOB else text


@handler("printf")
def printf(shell: Shell, _spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    if any(w.taint & SECRET for w in words):
        shell.find("read", "secret", "environment", "it prints a secret variable")
    if len(words) >= 2 and words[0].text == "-v":
        shell.set_variable(words[1].text, UNKNOWN)
        return EMPTY
    words = words[1:] if words and words[0].text == "--" else words
    if not words:
        return EMPTY
    form = words[0].text
    if all(w.literal for w in words) and "\\" not in form:
        rest = iter([w.text for w in words[1:]])
        if "%" not in form:
            return Word(form)
        if set(re.findall(r"%(.)", form)) <= set("s%"):
            return Word(re.sub(r"%[s%]", lambda m: "%" if m.group() == "%%" else next(rest, ""), form))
    if all(w.literal for w in words) and re.fullmatch(r"[^\\%]*(?:\\n)?", form):
        return Word(form.replace("\\n", "\n"))
    if all(w.literal for w in words) and re.fullmatch(r"%s(?:\\n)?", form):
        return Word("\n".join(w.text for w in words[1:]))
    kind = DYNAMIC if "\\" in form.replace("\\n", "") or any(w.kind == DYNAMIC for w in words) else OPEN
    return Word(HOLE, kind if kind == DYNAMIC else DYNAMIC, joined(words).taint)


@handler("set")
def set_options(shell: Shell, _spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    if not words:
        shell.find("secret", "environment", "set", "`set` prints variables, secrets among them")
    shell.find("note", "state", "set", "it changes this shell")
    for index, word in enumerate(words):
        if word.text == "--":
            shell.positional = list(words[index + 1 :])
            break
        if not word.text.startswith(("-", "+")) and (index == 0 or words[index - 1].text not in ("-o", "+o")):
            shell.positional = list(words[index:])
            break
        if word.text in ("allexport", "history") or (
            word.text.startswith("-") and "a" in word.text and "o" not in word.text
        ):
            shell.find("config", "shell", word.text, "it exports or records every variable from here on")
    return EMPTY


@handler("state")
def state(shell: Shell, _spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    """`ulimit -n 100`, `unalias x`: flags alone show, words change this shell."""
    if any(not w.text.startswith("-") for w in words):
        shell.find("note", "state", "", "it changes this shell")
    return Word(HOLE, OPEN)


@handler("shift")
def shift(shell: Shell, _spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    if shell.positional:
        count = int(words[0].text) if words and words[0].text.isdigit() and len(words[0].text) < 4 else 1
        shell.positional = shell.positional[count:]
    return EMPTY


@handler("read")
def read_variable(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word:
    """`read` and `mapfile`: variables filled from input."""
    parsed = parse(spec, words)
    for name in parsed.unknown:
        shell.find("exec", "unknown", name, f"`{name}` of `{spec.name}` is not an option we know")
    if parsed.has("-C"):
        shell.find("exec", "shell", spec.name, f"`{spec.name} -C` runs a command for each line")
    source = stdin if stdin is not None else UNKNOWN
    value = source if source.kind in (LITERAL, OPEN) else Word(HOLE, DYNAMIC, source.taint)
    if value.literal and len(parsed.operands) > 1:
        # Which part goes where depends on IFS.
        value = Word(HOLE, DYNAMIC, source.taint)
    names = parsed.operands + [g.value for g in parsed.given if g.name == "-a" and g.value is not None]
    for word in names:
        shell.set_variable(word.text, value)
    shell.set_variable("REPLY", value)
    shell.set_variable("MAPFILE", value)
    return EMPTY


@handler("getopts")
def get_options(shell: Shell, _spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    if len(words) > 1:
        shell.set_variable(words[1].text, UNKNOWN)
    return EMPTY


@handler("eval")
def evaluate(shell: Shell, _spec: Spec, words: list[Word], stdin: Word | None) -> Word:
    if not words:
        shell.unclear("text is evaluated as shell code")
        return UNKNOWN
    text = joined(words)
    shell.find("exec", "eval", "eval", "`eval` runs text as shell code")
    if text.literal:
        shell.text(text.text, stdin)
        return UNKNOWN
    return shell_text(shell, text, stdin)


@handler("source")
def source(shell: Shell, _spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    if not words:
        return EMPTY
    target = words[0]
    path(shell, "read", target)
    scope = "flow" if target.taint & 2 else "script"
    shell.find("exec", scope, target.shown, f"it runs {target.shown} in this shell")
    return UNKNOWN


@handler("alias")
def alias(shell: Shell, _spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    for word in words:
        name, mark, text = word.text.partition("=")
        if mark:
            shell.find("exec", "hijack", name, f"it makes `{name}` mean something else")
            shell.functions.setdefault(name, None)
            shell_text(shell, word._replace(text=text))
    return Word(HOLE, OPEN)


@handler("trap")
def trap(shell: Shell, _spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    words = [w for w in words if w.text != "--"]
    if words and not words[0].text.startswith("-") and len(words) > 1 and words[0].text:
        if any(w.text.upper().removeprefix("SIG") in ("DEBUG", "ERR", "RETURN") for w in words[1:]):
            shell.find("exec", "hijack", "trap", "it runs a command behind every other command")
        shell_text(shell, words[0])
    return EMPTY


@handler("exec")
def replace_shell(shell: Shell, _spec: Spec, words: list[Word], stdin: Word | None) -> Word:
    while words and words[0].text.startswith("-") and words[0].literal:
        words = words[2:] if words[0].text == "-a" else words[1:]
    if not words or re.fullmatch(r"\{\w+\}", words[0].text):
        return EMPTY
    return shell.argv(words, stdin)


@handler("command")
def command_builtin(shell: Shell, _spec: Spec, words: list[Word], stdin: Word | None) -> Word:
    """`command -v x` only looks; `command x` and `builtin x` run it past functions and aliases."""
    if words and words[0].text in ("-v", "-V", "-pv", "-pV"):
        if any(w.text.startswith("-") for w in words[2:]):
            shell.find("exec", "unknown", "command", "what looks like a command is not what it runs")
        return Word(HOLE, OPEN)
    while words and words[0].text in ("-p", "--"):
        words = words[1:]
    return shell.argv(words, stdin) if words else EMPTY


@handler("coproc")
def coprocess(shell: Shell, _spec: Spec, words: list[Word], stdin: Word | None) -> Word:
    shell.unclear("a co-process runs beside this line")
    if words and words[0].text not in ("{", "("):
        body = words[2:] if len(words) > 1 and words[1].text == "{" else words
        if body:
            shell.argv(body, stdin)
    return UNKNOWN


@handler("test")
def test(_shell: Shell, _spec: Spec, _words: list[Word], _stdin: Word | None) -> Word:
    return EMPTY


@handler("printenv")
def printenv(shell: Shell, _spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    from checkrein.classify.arguments import secret_name

    named = [w for w in words if not w.text.startswith("-")]
    if not named and not any(w.text in ("--help", "--version") for w in words):
        shell.find("secret", "environment", "printenv", "it prints the environment, secrets among it", None)
        return Word(HOLE, DYNAMIC, SECRET)
    if any(secret_name(w.text) or not w.literal for w in named):
        shell.find("secret", "environment", named[0].shown, f"it prints {named[0].shown}")
        return Word(HOLE, DYNAMIC, SECRET)
    return Word(HOLE, OPEN)


@handler("opaque")
def opaque(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    """Builtins that rewire the shell (`enable`, `hash -p`, `bind -x`, `complete -C`)."""
    flags = {w.text for w in words if w.text.startswith("-")}
    quiet = set(spec.raw.get("needs", "").split())
    if words and not flags <= quiet:
        shell.find("exec", "hijack", spec.name, f"`{spec.name}` changes what a name or key runs")
        delicate(shell, words)
    return Word(HOLE, OPEN)


SCRIPTS.setdefault("text", lambda _shell, _spec, _word: None)
