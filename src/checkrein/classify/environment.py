"""Environment hijacks: variables that make the next program run, load or trust something else.

Called for every assignment in a shell line; harmless names and plainly inert values stay silent.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Protocol

from checkrein.classify.tables import data
from checkrein.classify.words import HOLE, OPEN, Word


class Finder(Protocol):
    """Whoever collects what is found."""

    def find(self, kind: str, scope: str, target: str, why: str) -> None: ...
    def given(self, name: str, value: Word) -> None: ...


@cache
def _rules() -> dict[str, re.Pattern[str]]:
    rows = data("_environment")
    exact = {
        key: "|".join(re.escape(n).replace(r"\*", r"\w*") for n in rows[key])
        for key in ("hijack", "harmless")
    }
    shape = "|".join(rows["shapes"])
    return {
        "hijack": re.compile(f"(?:{exact['hijack']})\\Z"),
        "harmless": re.compile(f"(?:{exact['harmless']})\\Z"),
        "shape": re.compile(f"(?:^|_)(?:{shape})(?:_|\\d*$)"),
        "values": re.compile("|".join(rows["values"])),
        "inert": re.compile(f"(?:{'|'.join(rows['inert'])})\\Z"),
    }


_SWITCHABLE = ("PAGER", "EDITOR", "VISUAL")


def judge(finder: Finder, name: str, value: Word, *, exported: bool) -> None:
    """Report an assignment that redirects what other programs do."""
    rules = _rules()
    if exported:
        finder.given(name, value)
    if rules["harmless"].match(name):
        return
    if rules["hijack"].match(name):
        if value.literal and _tame(name, value.text):
            return
        finder.find("exec", "hijack", name, f"{name}={value.shown} changes what other programs run or trust")
    elif exported and name.isupper() and rules["shape"].search(name):
        finder.find("config", "environment", name, f"{name} may change what the program runs or loads")
    elif exported and value.literal and rules["values"].search(value.text):
        finder.find("config", "environment", name, f"the value of {name} looks like code or an option")
    # INVARIANT: an unknown name is harmless only with a value that can name no file host or option
    elif exported and not name.islower() and not _inert(value, rules["inert"]):
        finder.find("exec", "environment", name, f"{name}={value.shown} may change what the program runs")


def _inert(value: Word, plain: re.Pattern[str]) -> bool:
    """A switch, a number, a plain word, or what the user's own environment holds already."""
    return bool(plain.match(value.text)) if value.literal else value.kind == OPEN and value.text == HOLE


def _tame(name: str, value: str) -> bool:
    """Values that switch a program off rather than redirect it (`PAGER=cat`, `GIT_EDITOR=true`)."""
    if name == "PATH" and re.fullmatch(r"(?:(?:/usr(?:/local)?|/opt/homebrew)?/s?bin:?)+", value):
        return True
    return value in ("", "cat", "true", ":", "less", "more", "/bin/cat") and name.endswith(_SWITCHABLE)
