"""Commands that carry other commands, unwrapped with what they add: privilege, machines, unknown words.

Handlers for sudo, env, xargs, ssh, parallel, script, su, tar and friends; `finders` has those that look for
names first.
"""

from __future__ import annotations

import re

from checkrein.classify import environment
from checkrein.classify.arguments import delicate, members, network, path, shell_text
from checkrein.classify.commands import handler, operands
from checkrein.classify.finders import filled, sought
from checkrein.classify.flags import options
from checkrein.classify.options import Parsed, parse
from checkrein.classify.shell import Shell
from checkrein.classify.tables import Spec
from checkrein.classify.words import (
    DYNAMIC,
    EMPTY,
    HOLE,
    LITERAL,
    OPEN,
    SECRET,
    UNKNOWN,
    Word,
    joined,
)

_OUR_PROCESS = re.compile(r"\b(?:pgrep|pidof|grep|cat|lsof|fuser)\b[^;&\n]*checkrein")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")


@handler("sudo")
def privileged(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word:
    parsed = parse(spec, words, stop=True)
    options(shell, spec, parsed)
    shell.find("privilege", "", spec.name, f"`{spec.name}` runs as another user")
    rest = _assignments(shell, parsed.operands)
    if parsed.has("-e", "--edit"):
        for word in rest:
            path(shell, "write", word)
        return EMPTY
    return shell.argv(rest, stdin) if rest else EMPTY


def _assignments(shell: Shell, words: list[Word]) -> list[Word]:
    """Leading NAME=value words judged, the command behind them returned."""
    while words and _ASSIGNMENT.match(words[0].text):
        name, _, text = words[0].text.partition("=")
        environment.judge(shell, name, words[0]._replace(text=text), exported=True)
        words = words[1:]
    return words


@handler("env")
def env(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word:
    parsed = parse(spec, words, stop=True)
    for name in parsed.unknown:
        shell.find("exec", "unknown", name, f"`{name}` of `env` is not an option we know")
    kept = shell.cwd
    for given in parsed.given:
        if given.name in ("-S", "--split-string") and given.value is not None:
            tail = " ".join(w.text for w in parsed.operands)
            return shell_text(shell, given.value._replace(text=f"{given.value.text} {tail}"), stdin)
        if given.name in ("-C", "--chdir") and given.value is not None and given.value.literal:
            shell.cwd = shell.places.absolute(given.value.text, shell.cwd)
    rest = _assignments(shell, [w for i, w in enumerate(parsed.operands) if i or w.text != "-"])
    if rest:
        output = shell.argv(rest, stdin)
        shell.cwd = kept
        return output
    if parsed.has("--version", "--help"):
        return EMPTY
    shell.find("secret", "environment", "env", "it prints the environment, secrets among it")
    return Word(HOLE, DYNAMIC, SECRET)


@handler("xargs")
def xargs(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word:
    """The command it builds, with one more word: whatever is read."""
    parsed = parse(spec, words, stop=True)
    for name in parsed.unknown:
        shell.find("exec", "unknown", name, f"`{name}` of `xargs` is not an option we know")
    source = stdin
    replace = ""
    for given in parsed.given:
        if given.name in ("-a", "--arg-file") and given.value is not None:
            path(shell, "read", given.value)
            source = UNKNOWN
        if given.name in ("-I", "-i", "-J", "--replace"):
            replace = given.value.text if given.value is not None else "{}"
    words = parsed.operands or [Word("echo")]
    if not parsed.operands and source is None and not parsed.has("--version", "--show-limits"):
        shell.find("exec", "unknown", "xargs", "neither what `xargs` is to run nor its input is said")
    fed = _fed(source)
    if fed.kind != LITERAL:
        fed = fed._replace(taint=fed.taint | sought(shell))
    if replace and any(replace in w.text for w in words):
        words = [filled(w, replace, fed) for w in words]
    else:
        words = [*words, fed]
    return shell.argv(words, None)


def _fed(source: Word | None) -> Word:
    """A word made from input: names found by readers are trusted to be names, other text is not."""
    if source is None or source.kind == OPEN:
        return Word(HOLE, OPEN, source.taint if source is not None else 0, quoted=True)
    if source.literal and source.text.strip() and len(source.text.split()) == 1:
        return Word(source.text.strip())
    return Word(HOLE, DYNAMIC, source.taint, quoted=True)


@handler("ssh")
def ssh(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    """Another machine: a connection, and a command that runs there."""
    parsed = parse(spec, words, stop=True)
    options(shell, spec, parsed)
    if parsed.operands and not parsed.has("-G", "-Q"):
        network(shell, spec, parsed.operands[0])
        if parsed.operands[1:]:
            shell.find(
                "exec", "remote", parsed.operands[0].shown, f"it runs a command on {parsed.operands[0].shown}"
            )
    return Word(HOLE, DYNAMIC, 2)


@handler("parallel")
def parallel(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    shell.find("exec", "shell", "parallel", "it runs commands built from its input")
    parsed = parse(spec, words, stop=True)
    command = []
    for word in parsed.operands:
        if word.text.startswith(":::"):
            break
        command.append(word)
    if command:
        shell_text(shell, joined(command)._replace(text=" ".join(w.text for w in command)))
    else:
        delicate(shell, parsed.operands)
    return UNKNOWN


@handler("su")
def su(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word:
    shell.find("privilege", "", spec.name, f"`{spec.name}` becomes another user")
    parsed = parse(spec, words)
    for given in parsed.given:
        if given.name in ("-c", "--command") and given.value is not None:
            shell_text(shell, given.value, stdin)
    return UNKNOWN


@handler("script")
def script(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word:
    """`script FILE COMMAND` records a command; on Linux the command is `-c`'s value."""
    parsed = parse(spec, words, stop=True)
    options(shell, spec, parsed)
    if parsed.has("-p", "-d") and not parsed.has("-c", "--command"):
        return Word(HOLE, OPEN)
    if parsed.operands:
        path(shell, "write", parsed.operands[0])
        if len(parsed.operands) > 1:
            return shell.argv(parsed.operands[1:], stdin)
    if not parsed.has("-c", "--command"):
        shell.unclear("it opens an interactive shell")
    return UNKNOWN


@handler("tar")
def tar(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    """Bundled and dashed options alike; which files are read or written depends on the mode."""
    if words and words[0].literal and re.fullmatch(r"[A-Za-z]+", words[0].text):
        words = _debundled(words)
    parsed = parse(spec, words)
    options(shell, spec, parsed)
    names = {g.name for g in parsed.given}
    archive = next(
        (g.value for g in parsed.given if g.name in ("-f", "--file") and g.value is not None), None
    )
    if archive is not None and re.match(r"[^/]+:", archive.text):
        network(shell, spec, archive)
    reading = names & {"-t", "--list", "-d", "--diff", "--compare"}
    if names & {"-x", "--extract", "--get"}:
        if archive is not None:
            path(shell, "read", archive)
        if not names & {"-O", "--to-stdout"}:
            shell.find("write", "project", "tar", "it unpacks files")
        members(shell, parsed.operands)
    elif reading:
        if archive is not None:
            path(shell, "read", archive)
    elif names & {"-c", "--create", "-r", "-u", "-A", "--append", "--update"}:
        _archived(shell, parsed)
        if archive is not None:
            path(shell, "write", archive)
    elif not names & {"--version", "--help"}:
        shell.unclear("what `tar` is to do is not said")
    tainted = any(f.effect.scope == "secret" for f in shell.part.findings)
    return Word(HOLE, DYNAMIC, SECRET if tainted else 0)


def _archived(shell: Shell, parsed: Parsed) -> None:
    """What goes into the archive: operands below the folder `-C` names, and what a list names."""
    folders = [g.value for g in parsed.given if g.name in ("-C", "--directory") and g.value is not None]
    for word in parsed.operands:
        path(shell, "read", word)
        for folder in folders:
            path(shell, "read", joined([folder, word])._replace(text=f"{folder.text}/{word.text}"))
    if parsed.has("-T", "--files-from"):
        shell.find("exec", "unknown", "tar", "which files it packs is said elsewhere")


def _debundled(words: list[Word]) -> list[Word]:
    """`tar cf a b` as `tar -c -f a b`."""
    result, rest = [], list(words[1:])
    for letter in words[0].text:
        result.append(Word(f"-{letter}"))
        if letter in "fCTXbIKNVg" and rest:
            result.append(rest.pop(0))
    return [*result, *rest]


@handler("dd")
def dd(shell: Shell, _spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    for word in words:
        name, mark, text = word.text.partition("=")
        if mark and name in ("if", "of"):
            path(shell, "read" if name == "if" else "write", word._replace(text=text))
    return Word(HOLE, DYNAMIC)


@handler("kill")
def kill(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    """Ending processes; ours are not to be ended by an agent."""
    if any(w.text in ("-l", "-L", "--list") for w in words) or (words and words[0].text == "-0"):
        return Word(HOLE, OPEN)
    about_us = any("checkrein" in w.text for w in words) or bool(_OUR_PROCESS.search(shell.source))
    shell.find("process", "self" if about_us else "", spec.name, f"`{spec.name}` ends processes")
    return EMPTY


@handler("mise")
def mise(shell: Shell, _spec: Spec, words: list[Word], stdin: Word | None) -> Word | None:
    """`mise exec -- CMD`: everything behind the dashes is a command."""
    marks = [i for i, w in enumerate(words) if w.text == "--"]
    if words and words[0].text in ("exec", "x") and marks:
        return shell.argv(words[marks[0] + 1 :], stdin) if words[marks[0] + 1 :] else EMPTY
    return None


@handler("container-exec")
def container_exec(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word:
    """`docker exec C CMD`, `kubectl exec P -- CMD`: judged as if run here, never better than there."""
    parsed = parse(spec, words, stop=True)
    options(shell, spec, parsed)
    rest = parsed.operands[1:]
    if spec.name.startswith("kubectl"):
        marks = [i for i, w in enumerate(words) if w.text == "--"]
        rest = words[marks[0] + 1 :] if marks else rest
    nested = rest and rest[0].text in (
        "bash",
        "sh",
        "zsh",
        "env",
        "docker",
        "sudo",
        "su",
        "python",
        "node",
        "npm",
        "make",
    )
    if not rest or nested or parsed.has("-d", "--detach", "--privileged", "--detach-keys"):
        shell.find("exec", "container", spec.name, "what it does inside the container is not said")
    return shell.argv(rest, stdin) if rest else UNKNOWN


@handler("flock")
def flock(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word | None:
    parsed = parse(spec, words, stop=True)
    options(shell, spec, parsed)
    return shell.argv(parsed.operands[1:], stdin) if len(parsed.operands) > 1 else None


@handler("tee")
def tee(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word:
    parsed = parse(spec, words)
    options(shell, spec, parsed)
    operands(shell, spec, parsed, stdin, dry=False)
    return stdin if stdin is not None else EMPTY


@handler("same")
def passes_on(shell: Shell, _spec: Spec, words: list[Word], stdin: Word | None) -> Word | None:
    """Known under another name: `busybox CMD`, `toybox CMD`."""
    return shell.argv(words, stdin) if words and not words[0].text.startswith("-") else None


@handler("timeout")
def timeout(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word | None:
    """A wrapper with a value first; without a command there is nothing to run."""
    parsed = parse(spec, words, stop=True)
    options(shell, spec, parsed)
    count = sum(1 for role in spec.args if role != "command*")
    rest = parsed.operands[count:]
    if spec.name in ("ionice", "chrt", "taskset", "prlimit") and parsed.has("-p", "--pid"):
        shell.find("process", "", spec.name, f"`{spec.name}` changes a running process")
        return EMPTY
    return shell.argv(rest, stdin) if rest else Word(HOLE, OPEN)


@handler("self")
def ourselves(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    """INVARIANT: our own command line beyond its read-only verbs is critical."""
    plain_words = [w.text for w in words if w.literal and not w.text.startswith("-")]
    line = " ".join(plain_words)
    verbs = spec.raw["needs"].split(",")
    reads = any(line == v or line.startswith(f"{v} ") for v in verbs)
    flags = [w.text for w in words if w.text.startswith("-")]
    writes = any(
        f.startswith(("--output", "-o", "--out", "--write", "--fix", "--yes", "--repair")) for f in flags
    )
    if plain_words[:1] == ["inbox"]:
        reads = flags == ["--json"] and len(plain_words) == 1
    if not words or (not plain_words and set(flags) <= {"--help", "--version"}):
        reads = True
    if any(not w.literal for w in words) or writes or not reads:
        shell.find(
            "self",
            "command",
            line or "checkrein",
            f"`checkrein {line}` would let the agent change its own gate",
        )
        return UNKNOWN
    shell.find("read", "self", line, f"`checkrein {line}` only looks")
    return Word(HOLE, OPEN)
