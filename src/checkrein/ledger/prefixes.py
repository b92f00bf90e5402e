"""Values that a shell line sets for one command (`NAME=value command`), masked. Pure and linear-time.

`Redactor` calls it for arguments that are command lines. Names that decide what runs keep their values.
"""

from __future__ import annotations

import re

from checkrein.ledger.secrets import COMMON_WORDS, KEPT_NAME, MASK, is_plain

# Arguments that hold a shell line, under the names that agents and tools give them.
COMMAND_KEYS = frozenset(
    "command cmd commands script shell_command bash_command command_line commandline shell line".split()
)
_KEPT = re.compile(KEPT_NAME)
# INVARIANT: a value has so many pieces, or quotes in a row would be read again from each of them.
_WORD = r"""(?:"(?:[^"\\]|\\.)*+"|\$?'[^']*+'|[^\s"'`;|&<>()\\]++|\\.){0,16}+"""
# An assignment with another word behind it on the same line.
_ASSIGNMENT = re.compile(
    r"(?s)(?<![\w./=:$%@+~^,\[\]{}-])(?P<name>[A-Za-z_]\w*+)=(?P<value>"
    + _WORD
    + r")(?=[ \t]+(?:\\\n[ \t]*)?[^\s;&|)#])"
)
# What stands right before a command: the beginning, a separator, a quotation, or a program that runs others.
_BEFORE = re.compile(
    r"""(?:^|[\n;&|({`!"'])[ \t]*$|\$\([ \t]*$
    |(?:^|[\s;&|(/"'])(?:then|do|else|elif|if|while|until|time|env|sudo|doas|exec|nohup|command|builtin|nice)
     (?:[ \t]+-\S*)*[ \t]+$""",
    re.VERBOSE,
)
_LOOK_BACK = 80
_DULL = re.compile(r"[+-]?\d{1,5}(?:\.\d{1,3}){0,2}|[\w]{0,3}")


def mask_prefixes(line: str) -> str:
    """The line with the values of `NAME=value` before a command masked."""
    pieces: list[str] = []
    kept = ended = 0
    for found in _ASSIGNMENT.finditer(line):
        start, (begin, end) = found.start(), found.span("value")
        follows = bool(ended) and not line[ended:start].strip(" \t\\\n")
        if follows or _BEFORE.search(line[max(0, start - _LOOK_BACK) : start]):
            ended = end
            if _is_secret(found["name"], found["value"]):
                pieces += (line[kept:begin], _masked(found["value"]))
                kept = end
    return "".join([*pieces, line[kept:]]) if pieces else line


def mask_assigned(words: list[str]) -> list[str]:
    """A command given in words: values set behind `env` or `sudo`, and lines handed to a shell."""
    runs_others, masked = True, list[str]()
    for at, word in enumerate(words):
        name, sign, value = word.partition("=")
        if runs_others and at and sign and name.isidentifier() and _is_secret(name, value):
            masked.append(f"{name}={_masked(value)}")
        else:
            runs_others = runs_others and (bool(sign) or word.startswith("-") or _runs_others(word))
            masked.append(mask_prefixes(word) if "=" in word and " " in word else word)
    return masked


def _runs_others(word: str) -> bool:
    return word.rpartition("/")[2] in ("env", "sudo", "doas", "nice", "nohup", "time", "exec")


def _is_secret(name: str, value: str) -> bool:
    # INVARIANT: names that decide what runs keep their values.
    if _KEPT.fullmatch(name):
        return False
    bare = value[1:-1] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else value
    return not (_DULL.fullmatch(bare) or bare.lower() in COMMON_WORDS or MASK in bare or is_plain(bare))


def _masked(value: str) -> str:
    quote = value[0] if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'" else ""
    return f"{quote}{MASK}{quote}"
