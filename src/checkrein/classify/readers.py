"""Readers with habits a table cannot say: when sed, jq, gzip, unzip or ps stop being readers.

Handlers; each leaves the rest of its command to the table.
"""

from __future__ import annotations

import re

from checkrein.classify.arguments import among_secrets, delicate, members, path
from checkrein.classify.commands import handler, operands, passed_on, plain
from checkrein.classify.finders import seeks_secrets
from checkrein.classify.flags import options
from checkrein.classify.options import parse
from checkrein.classify.shell import Shell
from checkrein.classify.tables import Spec
from checkrein.classify.words import DYNAMIC, EMPTY, HOLE, NAMES, OPEN, SECRET, Word, names_secrets

_LISTING = re.compile(r"^(?:l|t|lt|i|h|b|vt|lb|v)$")


@handler("sed")
def sed(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word | None:
    """On macOS `-i ''` takes a word of its own."""
    for index, word in enumerate(words[:-1]):
        if word.text == "-i" and not words[index + 1].text and words[index + 1].quoted:
            return plain(shell, spec, [*words[: index + 1], *words[index + 2 :]], stdin)
    return None


_PICKS = ("--include", "-g", "--glob", "--iglob")
_ONLY_NAMES = ("-l", "--files-with-matches", "-c", "--count", "-L", "--files-without-match", "-q", "--quiet")


@handler("grep")
def grep(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word | None:
    """`-f FILE` reads patterns: a read like any other."""
    parsed = parse(spec, words)
    for given in parsed.given:
        if given.role == "scriptfile" and given.value is not None:
            path(shell, "read", given.value)
        pick = given.value if given.name in _PICKS and not parsed.has(*_ONLY_NAMES) else None
        if pick is not None and not pick.text.startswith("!") and seeks_secrets(shell, pick.text):
            shell.find("read", "secret", pick.shown, f"it searches {pick.shown} (secret)")
    if stdin is None and among_secrets(shell) and len(parsed.operands) <= 1:
        shell.find("read", "secret", ".", "it searches a folder that holds secrets")
    kept = [g for g in parsed.given if g.role != "scriptfile"]
    replaced = [g._replace(role="script") if g.role == "scriptfile" else g for g in parsed.given]
    options(shell, spec, parsed._replace(given=[g for g in kept if g.role != "script"]))
    operands(shell, spec, parsed._replace(given=replaced), stdin, dry=False)
    secret = any(f.effect.scope == "secret" for f in shell.part.findings)
    kind = passed_on(stdin) if stdin is not None and len(parsed.operands) <= 1 else OPEN
    taint = (stdin.taint if stdin is not None else 0) | (SECRET if secret else 0) | names_secrets(words)
    sought = [g.value for g in parsed.given if g.role == "script"] or parsed.operands[:1]
    picks = any(word is not None and seeks_secrets(shell, word.text) for word in sought)
    if stdin is not None and picks and not parsed.has("-v", "--invert-match"):
        taint |= NAMES
    return Word(HOLE, kind, taint)


@handler("jq")
def jq(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word | None:
    """`--arg NAME VALUE` takes two words, `--slurpfile NAME FILE` reads one."""
    kept: list[Word] = []
    index, positional = 0, False
    while index < len(words):
        name = words[index].text
        if name in ("--arg", "--argjson"):
            index += 3
        elif name in ("--slurpfile", "--rawfile", "--argfile"):
            if index + 2 < len(words):
                path(shell, "read", words[index + 2])
            index += 3
        elif name in ("--args", "--jsonargs"):
            positional = True
            index += 1
        elif positional and not name.startswith("-"):
            index += 1
        else:
            kept.append(words[index])
            index += 1
    return plain(shell, spec, kept, stdin)


@handler("yq")
def yq(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word | None:
    if words and words[0].text in ("eval", "e", "eval-all", "ea"):
        words = words[1:]
    rest = [w for w in words if not w.text.startswith("-")]
    if rest and re.fullmatch(r"[\w./-]+\.(?:ya?ml|json|xml|toml|csv|props)", rest[0].text):
        words = [Word("."), *words]
    return plain(shell, spec, words, stdin)


@handler("xxd")
def xxd(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word | None:
    return plain(shell, spec, [Word("-p") if w.text == "-ps" else w for w in words], stdin)


@handler("compress")
def compress(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word:
    """Compressors replace the file they are given unless told to print, list or test."""
    parsed = parse(spec, words)
    options(shell, spec, parsed)
    quiet = parsed.has(
        "-c", "--stdout", "--to-stdout", "-l", "--list", "-t", "--test", "-h", "--help", "-V", "--version"
    )
    quiet = quiet or parsed.has("-L", "--license")
    for word in parsed.operands:
        path(shell, "read", word)
        if not quiet:
            path(shell, "write", word)
    taint = stdin.taint if stdin is not None else 0
    return Word(HOLE, DYNAMIC, taint)


@handler("unzip")
def unzip(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    parsed = parse(spec, words)
    options(shell, spec, parsed)
    for word in parsed.operands[:1]:
        path(shell, "read", word)
    if parsed.has("-p", "-c") and not parsed.has("-l", "-v", "-t", "-z", "-Z"):
        members(shell, parsed.operands[1:])
    if parsed.operands and not parsed.has("-l", "-v", "-t", "-z", "-Z", "-p", "-c", "-h"):
        target = next((g.value for g in parsed.given if g.name == "-d" and g.value is not None), Word("."))
        path(shell, "write", target)
    return Word(HOLE, DYNAMIC)


@handler("sevenzip")
def sevenzip(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    """The first operand is the command: l, t, i, h and b only look."""
    named = [w for w in words if not w.text.startswith("-")]
    if not named or (named[0].literal and _LISTING.match(named[0].text)):
        if any(w.text.startswith(("-o", "-w", "-si")) for w in words):
            shell.find("write", "project", spec.name, f"`{spec.name}` writes files")
        for word in named[1:]:
            path(shell, "read", word)
        return Word(HOLE, OPEN)
    shell.find("write", "project", spec.name, f"`{spec.name} {named[0].shown}` writes files")
    delicate(shell, named)
    return EMPTY


@handler("ps")
def ps(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    """BSD letters without a dash; `e` among them shows every process's environment."""
    flags = [w for w in words[:1] if re.fullmatch(r"[A-Za-z]{1,6}", w.text)]
    rest = [w for w in words if w not in flags and not re.fullmatch(r"[\d,\s]+", w.text) and w.kind != OPEN]
    if any("e" in w.text for w in flags) or any(re.fullmatch(r"-[a-zA-Z]*E[a-zA-Z]*", w.text) for w in words):
        shell.find("secret", "environment", "ps", "it shows other programs' environments")
    parsed = parse(spec, rest)
    options(shell, spec, parsed)
    return Word(HOLE, OPEN)


@handler("fzf")
def fzf(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word | None:
    """`--bind` actions run commands when they are called execute, become, reload or transform."""
    kept: list[Word] = []
    index = 0
    while index < len(words):
        name, mark, text = words[index].text.partition("=")
        if name == "--bind":
            if not mark and index + 1 < len(words):
                index += 1
                text = words[index].text
            _binding(shell, text)
        else:
            kept.append(words[index])
        index += 1
    return plain(shell, spec, kept, stdin)


def _binding(shell: Shell, text: str) -> None:
    for action in re.findall(
        r"(execute(?:-silent|-multi)?|become|reload(?:-sync)?|transform[\w-]*|preview|unbind|change-preview)",
        text,
    ):
        if action in ("unbind",):
            continue
        if action.startswith(("execute", "become", "reload")):
            shell.find("exec", "shell", action, "a key binding runs a command")
        command = re.split(rf"{action}[:(\[{{]", text, maxsplit=1)
        if len(command) == 2:
            shell.subshell(command[1].rstrip(")]}"))
        else:
            shell.find("exec", "shell", action, "a key binding runs a command")


@handler("rsync")
def rsync(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    parsed = parse(spec, words)
    options(shell, spec, parsed)
    for given in parsed.given:
        if given.name in ("-e", "--rsh", "--rsync-path") and given.value is not None:
            shell.find("exec", "shell", given.value.shown, f"`rsync {given.name}` runs {given.value.shown}")
    dry = parsed.has("-n", "--dry-run", "--list-only")
    deletes = any(g.name.startswith(("--del", "--remove")) for g in parsed.given)
    for word in parsed.operands:
        if re.match(r"^(?:[^/]+@)?[\w.-]+::?", word.text) or word.text.startswith("rsync://"):
            shell.find("network", "outside", word.shown, f"`rsync` talks to {word.shown}")
    local = [w for w in parsed.operands if ":" not in w.text]
    for word in local[:-1] or local[:1]:
        path(shell, "read", word)
    if len(local) > 1 and not dry:
        path(shell, "delete" if deletes else "write", local[-1])
    return EMPTY


_RENAMES = re.compile(r"(?:\s*(?:s|y|tr)/[^/]*/[^/]*/[gixsrcd]*;?)+\s*|[\w .-]*")


@handler("rename")
def rename(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word | None:
    """Perl's `rename` runs its first operand as code, for a dry run too."""
    parsed = parse(spec, words)
    codes = parsed.operands[:1] + [g.value for g in parsed.given if g.name == "-e" and g.value is not None]
    if any(not _RENAMES.fullmatch(w.text) or "$(" in w.text or "@{" in w.text for w in codes):
        shell.find("exec", "code", spec.name, "`rename` runs its expression as code")
    return None


@handler("mode")
def change_mode(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word | None:
    """`chmod -x FILE`: a mode that looks like an option."""
    kept = [w._replace(text=f"a{w.text}") if re.fullmatch(r"-[rwxXst]+", w.text) else w for w in words]
    return plain(shell, spec, kept, stdin)


_WATCHERS = re.compile(r"\bhv_(?:vendor|vmm_present)\b|hypervisor|\bguest\b")


@handler("sysctl")
def sysctl(shell: Shell, _spec: Spec, words: list[Word], _stdin: Word | None) -> Word | None:
    if any("=" in w.text and not w.text.startswith("-") for w in words):
        shell.find("config", "system", "sysctl", "it changes a kernel setting")
    if any(_WATCHERS.search(w.text) for w in words):
        why = "it asks whether this machine is a virtual one"
        shell.find("read", "watchers", "sysctl", why)
    return None


@handler("pager")
def pager(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word | None:
    """`less +!cmd FILE`: a command for the pager to start with."""
    if any(w.text.startswith("+") and not re.fullmatch(r"\+(?:\d+|G|F|/.*)", w.text) for w in words):
        shell.find("exec", "shell", spec.name, f"`{spec.name}` starts with a command of its own")
    return None


_CALCULATED = re.compile(r"!(?![<>=])")
_CODER = re.compile(r"^(?!(?:png|jpe?g|gif|bmp|tiff?|webp|heic|svg|ico|pdf)\d*:)[A-Za-z]{2,}:(?!//)")


@handler("dc")
def calculator(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word | None:
    """`dc` runs a command behind `!`, so what it calculates must be known."""
    parsed = parse(spec, words)
    texts = [g.value for g in parsed.given if g.name == "-e" and g.value is not None]
    texts += [stdin] if stdin is not None else []
    if parsed.operands or parsed.has("-f") or any(not w.literal or _CALCULATED.search(w.text) for w in texts):
        shell.find("exec", "code", spec.name, "`dc` can run commands from what it calculates")
    return None


@handler("image")
def image(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word | None:
    """`identify CODER:FILE`: some coders fetch, run or delete what they name."""
    for word in parse(spec, words).operands:
        if _CODER.match(word.text):
            shell.find("exec", "unknown", word.shown, f"`{spec.name}` may do more than read {word.shown}")
    return None
