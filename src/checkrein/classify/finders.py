"""Commands that look for files by name: what they look for, and what is done with the names they find.

Handlers for find and fd; whoever is fed names asks here whether they could be those of secrets.
"""

from __future__ import annotations

import re
from fnmatch import fnmatchcase

from checkrein.call import Category
from checkrein.classify.arguments import path
from checkrein.classify.commands import handler, plain
from checkrein.classify.options import parse
from checkrein.classify.shell import Shell
from checkrein.classify.tables import Spec, data
from checkrein.classify.words import DYNAMIC, HOLE, NAMES, OPEN, Word, names_secrets

_FILTER = re.compile(r"\|\s*(?:[ef]?grep|rg)\s+((?:-{1,2}[\w=-]+\s+)*)(?:\"([^\"]*)\"|'([^']*)'|([^\s|;&]+))")
_PICKER = re.compile(r"\|\s*(?:sed\s+-n\s+['\"]?/([^/\n]+)/p|[gmn]?awk\s+['\"][^'\"\n/]*/([^/\n]+)/)")
_SEARCH = re.compile(r"\b(?:[ef]?grep|rg)\s([^|;&]{0,300})")
_LISTS_FILES = re.compile(r"(?:^|\s)-(?:\w{0,8}l\b|\w{0,8}l\w{0,8}\s|-files-with-matches)")
_KEY_TEXT = re.compile(r"\bPRIVATE\b|BEGIN [A-Z ]{0,30}KEY|\bAKIA|\bghp_|\bsk-")
_NAME_TESTS = ("-name", "-iname", "-path", "-ipath", "-wholename", "-iwholename", "-regex", "-iregex")
_SECRET_WORDS = frozenset(
    "env pem key p12 pfx ppk kdbx jks id_rsa id_dsa id_ecdsa id_ed25519 credential credentials secret secrets"
    " password passwords passwd shadow netrc npmrc pypirc pgpass kubeconfig ssh aws gnupg kube keystore"
    " tfstate".split()
)


def seeks_secrets(shell: Shell, pattern: str) -> bool:
    """Whether a name, glob or expression that picks files picks files that hold secrets."""
    plain_text = re.sub(r"\\(.)", r"\1", pattern.lower()).strip("^$()'\"")
    if re.sub(r"^[.*?/]+|[.*?/$]+$", "", plain_text) in _SECRET_WORDS:
        return True
    name = plain_text.rpartition("/")[2]
    if len(name.strip("*?.")) < 1 and not name.startswith(".*"):
        return False
    if shell.places.place(Word(name), shell.cwd).scope == "secret":
        return True
    return any(mark in name for mark in "*?[") and any(
        fnmatchcase(example, name) for example in data("_paths")["secret"]["examples"]
    )


def sought(shell: Shell) -> int:
    """NAMES when a filter in the line picks names of secrets out of a list, or files that hold keys."""
    for flags, *patterns in _FILTER.findall(shell.source[:20_000]):
        inverted = any("v" in flag and not flag.startswith("--") for flag in flags.split())
        if not inverted and "--invert-match" not in flags and seeks_secrets(shell, "".join(patterns)):
            return NAMES
    for patterns in _PICKER.findall(shell.source[:20_000]):
        if seeks_secrets(shell, "".join(patterns)):
            return NAMES
    searches = _SEARCH.findall(shell.source[:20_000])
    return NAMES if any(_KEY_TEXT.search(text) and _LISTS_FILES.search(text) for text in searches) else 0


def filled(word: Word, mark: str, fed: Word) -> Word:
    if mark not in word.text:
        return word
    return Word(
        word.text.replace(mark, fed.text), max(word.kind, fed.kind), word.taint | fed.taint, word.quoted
    )


@handler("find")
def find(shell: Shell, spec: Spec, words: list[Word], _stdin: Word | None) -> Word:
    """Tests and actions; `-exec` carries a command whose `{}` is a name found below the start."""
    index, starts = 0, []
    while index < len(words) and not (words[index].text.startswith(("-", "(", "!")) and words[index].literal):
        starts.append(words[index])
        index += 1
    if any(w.kind == DYNAMIC and not w.quoted and not w.known for w in starts):
        shell.find("exec", "unknown", "find", "an option of `find` cannot be known")
    for word in starts:
        path(shell, "list", word)
    root = starts[0] if starts else Word(".")
    _hunts(shell, starts, words[index:])
    while index < len(words):
        name = words[index].text
        index += 1
        option = spec.options.get(name)
        if name in ("-ok", "-okdir"):
            shell.find("exec", "unknown", name, f"`find {name}` waits for answers")
        if name in ("-exec", "-execdir", "-ok", "-okdir"):
            index = _find_exec(shell, words, index, root)
        elif name == "-delete":
            shell.find(
                "delete",
                shell.places.place(root, shell.cwd).scope,
                root.shown,
                f"it deletes below {root.shown}",
            )
        elif name in ("(", ")", "!", ",", "-") or not name.startswith("-"):
            continue
        elif option is None:
            shell.find("exec", "unknown", name, f"`{name}` of `find` is not a test we know")
        elif option.value:
            if option.role != "text" and index < len(words):
                path(shell, option.role, words[index])
            index += 1
    return Word(HOLE, OPEN, names_secrets(words) | _named_in(shell, words))


def _hunts(shell: Shell, starts: list[Word], tests: list[Word]) -> None:
    """Looking for secrets by name, all over the machine or in the places that hold them."""
    for start in starts:
        scope = shell.places.place(start, shell.cwd).scope
        wanted = [tests[i + 1] for i, w in enumerate(tests[:-1]) if w.text in ("-name", "-iname", "-path")]
        if scope == "secret" or (
            scope in ("everything", "home", "system")
            and any(shell.places.place(w).scope == "secret" for w in wanted)
        ):
            shell.find("read", "hunt", start.shown, "it looks for secrets by name", Category.medium)
            return


def _find_exec(shell: Shell, words: list[Word], index: int, root: Word) -> int:
    end = index
    while end < len(words) and words[end].text not in (";", "+"):
        end += 1
    tests = words[: index - 1]
    named = next((name for test, name in _wanted(tests) if test in ("-name", "-path")), "")
    tail = f"/{named.strip('*')}" if named else ""
    found = Word(f"{root.text.rstrip('/')}/{HOLE}{tail}", OPEN, _named_in(shell, tests), quoted=True)
    command = [filled(w, "{}", found) for w in words[index:end]]
    if command:
        shell.argv(command, None)
    return end + 1


def _wanted(tests: list[Word]) -> list[tuple[str, str]]:
    """The tests on names, with what they ask for; those that are negated ask for nothing."""
    return [
        (word.text, tests[index + 1].text)
        for index, word in enumerate(tests[:-1])
        if word.text in _NAME_TESTS and not (index and tests[index - 1].text in ("!", "-not"))
    ]


def _named_in(shell: Shell, tests: list[Word]) -> int:
    """NAMES when one of the tests asks for the name of a secret."""
    return NAMES if any(seeks_secrets(shell, name) for _, name in _wanted(tests)) else 0


@handler("fd")
def fd(shell: Shell, spec: Spec, words: list[Word], stdin: Word | None) -> Word | None:
    """`-x` carries a command for every name that is found."""
    for index, word in enumerate(words):
        name, mark, text = word.text.partition("=")
        if name in ("-x", "-X", "--exec", "--exec-batch"):
            carried = ([word._replace(text=text)] if mark else []) + words[index + 1 :]
            found = Word(HOLE, OPEN, _fd_names(shell, spec, words[:index]), quoted=True)
            if carried:
                shell.argv([*(filled(w, "{}", found) for w in carried), found], None)
            return plain(shell, spec, words[:index], stdin)
    output = plain(shell, spec, words, stdin)
    return output._replace(taint=output.taint | _fd_names(shell, spec, words))


def _fd_names(shell: Shell, spec: Spec, words: list[Word]) -> int:
    """NAMES when the pattern, an extension or a folder to look in means secrets."""
    parsed = parse(spec, words)
    picks = [g.value.text for g in parsed.given if g.name in ("-e", "--extension") and g.value is not None]
    picks += [w.text for w in parsed.operands[:1]]
    if any(seeks_secrets(shell, pick) for pick in picks):
        return NAMES
    folders = parsed.operands[1:]
    return NAMES if any(shell.places.place(w, shell.cwd).scope == "secret" for w in folders) else 0
