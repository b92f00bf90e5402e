"""One command: its name looked up, its arguments sorted by the table, each argument's effect found.

Called by the shell walk for every command. Commands with a language of their own have a handler elsewhere.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable

from checkrein.call import Category, Effect
from checkrein.classify.arguments import (
    FOREIGN,
    SAYS,
    delicate,
    outside,
    shell_text,
    value,
)
from checkrein.classify.findings import Finding
from checkrein.classify.flags import options, quiet, unlisted
from checkrein.classify.options import Parsed, assign, parse
from checkrein.classify.shell import Shell
from checkrein.classify.tables import Spec
from checkrein.classify.verbs import asks_for_help, named_thing, picks_secrets, verbs
from checkrein.classify.words import (
    DYNAMIC,
    EMPTY,
    GLOB,
    HOLE,
    LITERAL,
    NETWORK,
    OPEN,
    SECRET,
    UNKNOWN,
    Word,
    names_secrets,
)

Handler = Callable[[Shell, Spec, list[Word], Word | None], Word | None]
HANDLERS: dict[str, Handler] = {}
"""Commands with a grammar of their own, by the name the table gives; filled by the modules that know them."""

_BINARIES = re.compile(
    r"^(?:/bin|/sbin|/usr/bin|/usr/sbin|/usr/local/bin|/usr/local/sbin|/opt/homebrew/bin|/opt/local/bin|/snap/bin)/([^/]+)$"
)
_LOADERS = frozenset(
    "terraform tofu terragrunt vagrant bundle bundler cargo mix pulumi cdk cdktf ansible"
    " ansible-inventory sls serverless".split()
)
"""Commands that run the files of the directory they stand in even when they only show something."""
_ASKS = (("--help", "--version"), ("--help", "--version", "-help", "-version"))
_OPTION = re.compile(r"-+[^-]")
_PLACES = frozenset("src docs tests tmp project null".split())
"""Where one file written is like another."""
_PLAIN_WORD = re.compile(r"[a-z][a-z0-9-]*$")


def handler(name: str) -> Callable[[Handler], Handler]:
    def register(function: Handler) -> Handler:
        HANDLERS[name] = function
        return function

    return register


def run(shell: Shell, words: list[Word], stdin: Word | None) -> Word:
    """Judge a command; what it prints."""
    before, part, cwd = len(shell.part.findings), shell.part, shell.cwd
    output = _run(shell, words, stdin)
    shell.commands[headed(shell, words, part.findings[before:], cwd)] = None
    return output


def _run(shell: Shell, words: list[Word], stdin: Word | None) -> Word:
    first, rest = words[0], words[1:]
    if first.kind != LITERAL or HOLE in first.text:
        return _computed(shell, first, rest)
    name = first.text
    if "/" in name:
        match = _BINARIES.match(name)
        if match is None:
            return run_file(shell, first, rest, stdin)
        name = match.group(1)
    elif name in shell.functions:
        shell.called.add(name)
        return shell.call_function(shell.functions[name], rest, stdin)
    return known(shell, name, rest, stdin)


def headed(shell: Shell, words: list[Word], found: list[Finding], cwd: str | None) -> str:
    """A command as people name it: `sed`, `git commit`; with every word where its effects do not say all."""
    match = _BINARIES.match(words[0].text)
    name, rest = match.group(1) if match else words[0].text, words[1:]
    kinds = {finding.effect.kind for finding in found}
    # INVARIANT: a command whose effects do not say all is named with every word and its folder
    told = all(_says_all(finding.effect) for finding in found) and not (kinds - {"read"} and _open(rest))
    spelled = [name, *([word.text for word in rest] if not told else _subcommand_of(shell, name, rest))]
    if told and kinds & {"git", "write"}:
        # What an option makes of a command, no effect tells: `git branch -f`, `truncate -s`, `tar -x`.
        spelled += sorted({word.text.partition("=")[0] for word in rest if _OPTION.match(word.text)})
    line = " ".join(shlex.quote(text) for text in spelled).replace(HOLE, "…")
    if not kinds - {"read"}:
        return line
    place = shell.places.place(Word("."), cwd)
    at_home = place.scope not in FOREIGN if told else place.path == shell.places.project
    return line if at_home else f"{line} (in {place.path})"


def _open(rest: list[Word]) -> bool:
    """Whether a word nobody knows may be an option or several words; not so the value of an option."""
    before = [Word(""), *rest]
    return any(
        HOLE in word.text and (not word.quoted or not last.text.startswith("-"))
        for last, word in zip(before, rest, strict=False)
    )


def _says_all(effect: Effect) -> bool:
    """Whether an effect tells what a command did, whatever its other words are."""
    return effect.kind in ("read", "test", "git") or (effect.kind == "write" and effect.scope in _PLACES)


def _subcommand_of(shell: Shell, name: str, rest: list[Word]) -> list[str]:
    """The subcommand, behind the options that come before it."""
    spec = shell.tables.spec(name)
    if spec is not None and not (shell.tables.has_subcommands(name) or any(spec.verbs)):
        return []
    operands = rest if spec is None else parse(spec, rest, stop=True).operands
    return [operands[0].text] if operands else []


def _computed(shell: Shell, first: Word, rest: list[Word]) -> Word:
    """INVARIANT: a command whose name is computed is never low."""
    scope = "flow" if first.taint & NETWORK else "shell" if first.kind == DYNAMIC else "unknown"
    shell.opaque = True
    shell.find("exec", scope, first.shown, f"which command `{first.shown}` is cannot be known")
    delicate(shell, rest)
    return UNKNOWN


def run_file(shell: Shell, first: Word, rest: list[Word], stdin: Word | None) -> Word:
    """A program named by its path: nothing is known of it but where it lies."""
    base = first.text.rpartition("/")[2]
    spec = shell.tables.spec(f"./{base}")
    if spec is not None and first.text == f"./{base}":
        return _here(shell, spec, rest, stdin)
    place = shell.places.place(first, shell.cwd)
    # INVARIANT: our name on a file says nothing about what the file does.
    shell.find("exec", place.scope, place.path, f"it runs {first.shown} ({place.scope})")
    if place.scope == "self" or base == "checkrein":
        return known(shell, "checkrein", rest, stdin)
    if (ours := _our_module(rest)) is not None:
        return known(shell, "checkrein", ours, stdin)
    delicate(shell, rest)
    return UNKNOWN


def _our_module(rest: list[Word]) -> list[Word] | None:
    """What follows `-m checkrein`, whichever interpreter runs it; None where it is not named."""
    for number, word in enumerate(rest):
        name = word.text[2:] or "".join(each.text for each in rest[number + 1 : number + 2])
        if word.text.startswith("-m") and name.partition(".")[0] == "checkrein":
            return rest[number + (1 if word.text[2:] else 2) :]
    return None


def known(shell: Shell, name: str, rest: list[Word], stdin: Word | None) -> Word:
    spec = shell.tables.spec(name)
    if spec is None:
        return unknown_command(shell, name, rest)
    return _here(shell, spec, rest, stdin)


def _here(shell: Shell, spec: Spec, rest: list[Word], stdin: Word | None) -> Word:
    """INVARIANT: tests and checks of a directory outside the project are code from elsewhere."""
    before = len(shell.part.findings)
    output = apply(shell, spec, rest, stdin)
    if spec.effect == "network" and any(spec.verbs):
        picks_secrets(shell, spec, rest)
    runs = any(f.effect.kind == "test" for f in shell.part.findings[before:])
    runs = runs or (spec.name in _LOADERS and bool(rest) and rest[0].text not in ("--version", "version"))
    if runs and outside(shell, Word(".")):
        why = f"`{spec.name}` runs the code of a directory outside the project"
        shell.find("exec", "elsewhere", spec.name, why)
    return output


def unknown_command(shell: Shell, name: str, rest: list[Word]) -> Word:
    plain_words = all(_PLAIN_WORD.match(w.text) and w.literal for w in rest[:-1])
    last = rest[-1].text if rest else ""
    asks = last == "--help" or (last in ("--version", "version") and len(rest) == 1)
    if asks and plain_words and name.replace("-", "").isalnum():
        shell.find("read", "help", name, f"`{name}` shows its {last.lstrip('-')}")
        return Word(HOLE, OPEN)
    shell.find("exec", "unknown", name, f"`{name}` is not a command we know")
    delicate(shell, rest)
    return UNKNOWN


def apply(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word:
    """The words after a command's name, judged by its table entry."""
    if len(words) == 1 and words[0].literal and words[0].text in _ASKS[spec.style == "long"]:
        return Word(HOLE, OPEN)
    if spec.handler in HANDLERS:
        output = HANDLERS[spec.handler](shell, spec, words, stdin)
        if output is not None:
            return output
    if shell.tables.has_subcommands(spec.name) or any(spec.verbs):
        return _subcommand(shell, spec, words, stdin)
    return plain(shell, spec, words, stdin)


def _subcommand(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word:
    parsed = parse(spec, words, stop=True)
    options(shell, spec, parsed)
    if not parsed.operands:
        if spec.effect and not any(spec.verbs) and not (words and spec.effect == "exec"):
            _own_effect(shell, spec, parsed, dry=False)
        elif any(spec.verbs) and not _only_informs(spec, words):
            shell.find("exec", "unknown", spec.name, f"what `{spec.name}` is to do is not said")
        return Word(HOLE, OPEN)
    first, rest = parsed.operands[0], parsed.operands[1:]
    if first.kind != LITERAL:
        shell.unclear(f"which subcommand of `{spec.name}` runs cannot be known")
        delicate(shell, rest)
        return UNKNOWN
    if first.text == "help" or (words[0].text.startswith("--") and words[0].text in spec.verbs[0]):
        return Word(HOLE, OPEN)
    if parsed.role("dry"):
        # INVARIANT: a dry run still does what its other options say
        whole = parse(spec, words)
        options(shell, spec, whole)
        unlisted(shell, spec, whole)
        shell.find("read", "dry", spec.name, f"`{spec.name} {first.shown}` only says what it would do")
        return Word(HOLE, OPEN)
    deeper = _deeper(shell, spec.name, parsed.operands)
    if deeper is not None:
        if quiet(deeper[0]):
            unlisted(shell, spec, parsed)
        return apply(shell, deeper[0], deeper[1], stdin)
    if any(spec.verbs):
        return verbs(shell, spec, words)
    if "args" in spec.raw:
        return plain(shell, spec, words, stdin)
    if asks_for_help(rest) or (not rest and first.text in ("version", "completion")):
        return Word(HOLE, OPEN)
    shell.find(
        "exec",
        "unknown",
        f"{spec.name} {first.text}",
        f"`{spec.name} {first.shown}` is not something we know",
    )
    delicate(shell, rest)
    return UNKNOWN


def _only_informs(spec: Spec, words: list[Word]) -> bool:
    """Options without a verb: versions and what the table lists are harmless, others may start something."""
    informing = ("--version", "-v", "-V", "--help", "-h", *spec.verbs[0])
    return bool(words) and all(w.text in informing or w.text.partition("=")[0] in spec.options for w in words)


def _deeper(shell: Shell, name: str, words: list[Word]) -> tuple[Spec, list[Word]] | None:
    """The nearest entry below a command: `az keyvault secret show` even when `az keyvault` has none."""
    for index, word in enumerate(words[:4]):
        if not word.literal:
            return None
        name = f"{name} {word.text}"
        below = shell.tables.spec(name)
        if below is not None:
            return below, words[index + 1 :]
    return None


def plain(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word:
    if asks_for_help(words) and "command*" not in spec.args and "shell*" not in spec.args:
        return Word(HOLE, OPEN)
    if not words and not spec.bare:
        shell.find("exec", "unknown", spec.name, f"what `{spec.name}` is to do is not said")
    if spec.effect == "network" and any(w.text == HOLE and not w.quoted for w in words):
        shell.find("exec", "unknown", spec.name, f"an option of `{spec.name}` cannot be known")
    stops = any(role in ("command*", "shell*") for role in spec.args)
    parsed = parse(spec, words, stop=stops)
    dry = options(shell, spec, parsed)
    output = operands(shell, spec, parsed, stdin, dry=dry)
    _own_effect(shell, spec, parsed, dry=dry)
    if output is not None:
        return output
    return _printed(shell, spec, parsed, stdin)


def _own_effect(shell: Shell, spec: Spec, parsed: Parsed, *, dry: bool) -> None:
    if not spec.effect and spec.risk is None:
        return
    target = " ".join([spec.name, *(w.shown for w in parsed.operands[:2])])
    raised = [Category[g.role] for g in parsed.given if g.role in Category.__members__]
    if dry or (raised and min(raised) == Category.low):
        shell.find("read", "dry", target, f"`{spec.name}` only says what it would do")
        return
    looks = spec.effect == "read" or spec.scope in ("read", "service", "list")
    says = "only looks" if looks and spec.effect != "git-remote" else SAYS.get(spec.effect, "has effects")
    why = spec.raw.get("about") or f"`{target}` {says}"
    if not spec.effect and spec.risk == Category.low:
        return
    shell.find(
        spec.effect or "exec", spec.scope, target, why, max([spec.risk, *raised]) if spec.risk else None
    )


def operands(shell: Shell, spec: Spec, parsed: Parsed, stdin: Word | None, *, dry: bool) -> Word | None:
    """Effects of the operands; the output when the operands were a command of their own."""
    inplace, targeted = parsed.role("inplace"), parsed.role("target")
    if inplace and not dry:
        shell.find("write", "project", spec.name, f"`{spec.name}` rewrites files in place")
    pairs = assign(spec, _operands_for(spec, parsed), all_same=targeted)
    for index, (role, word) in enumerate(pairs):
        if role in ("command", "shell") and role + "*" in spec.args:
            rest = [w for r, w in pairs[index:] if r == role]
            return _carried(shell, role, rest, stdin)
        if role == "extra":
            shell.find(
                "exec", "unknown", word.shown, f"`{spec.name}` got more operands than we know the meaning of"
            )
            continue
        if role == "text" and spec.effect in ("network", "read", "package"):
            named_thing(shell, spec, word)
        value(shell, spec, _changed_role(role, inplace=inplace, dry=dry), word, "")
    return None


def _changed_role(role: str, *, inplace: bool, dry: bool) -> str:
    if dry and role in ("write", "delete", "exec", "move"):
        return "list"
    return "write" if inplace and role == "read" else role


def _operands_for(spec: Spec, parsed: Parsed) -> list[Word]:
    """A script given by an option takes the place of the script operand."""
    given = any(g.role in ("script", "scriptfile", "sql") or g.name == "--files" for g in parsed.given)
    scripted = bool(spec.args) and spec.args[0] in ("pattern", "script", "sql")
    return [EMPTY, *parsed.operands] if given and scripted else parsed.operands


def _carried(shell: Shell, role: str, words: list[Word], stdin: Word | None) -> Word:
    if role == "command":
        return shell.argv(words, stdin)
    return shell_text(shell, Word(" ".join(w.text for w in words), max(w.kind for w in words)), stdin)


def _printed(shell: Shell, spec: Spec, parsed: Parsed, stdin: Word | None) -> Word:
    """What the command prints, as far as its table entry says."""
    taint = (stdin.taint if stdin is not None else 0) | names_secrets(parsed.operands)
    for finding in shell.part.findings:
        if finding.effect.scope == "secret" or finding.effect.kind == "secret":
            taint |= SECRET
        elif finding.effect.kind == "network" and finding.effect.scope != "service":
            taint |= NETWORK
    for word in parsed.operands:
        taint |= word.taint
    if any(word.kind == GLOB for word in parsed.operands):
        taint = shell.found(Word("", OPEN, taint), parsed.operands).taint
    gives = spec.gives
    if gives == "words":
        kind = max((w.kind for w in parsed.operands), default=LITERAL)
        return Word(" ".join(w.text for w in parsed.operands), kind if kind != GLOB else OPEN, taint)
    if gives == "same":
        files = [] if spec.args == ("text*",) else [w for w in parsed.operands if w.text != "-"]
        alone = len(files) <= (1 if spec.args[0] in ("pattern", "script") else 0)
        # An open entry does not know which of its operands are values of options.
        if stdin is not None and (alone or spec.open):
            same = stdin.literal and spec.name in ("cat", "tee")
            return stdin if same else Word(HOLE, passed_on(stdin), taint)
        return Word(HOLE, DYNAMIC, taint)
    if gives == "content":
        return Word(HOLE, DYNAMIC, taint)
    return Word(HOLE, OPEN, taint)


def passed_on(stdin: Word) -> int:
    """What a filter makes of its input: names stay names, text that was written here becomes anything."""
    return DYNAMIC if stdin.literal else max(stdin.kind, OPEN)
