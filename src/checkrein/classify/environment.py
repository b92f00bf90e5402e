"""Environment hijacks: variables that make the next program run, load or trust something else.

Called for every assignment in a shell line; harmless names stay silent.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Protocol

from checkrein.classify.tables import data
from checkrein.classify.words import Word


class Finder(Protocol):
    """Whoever collects what is found."""

    def find(self, kind: str, scope: str, target: str, why: str) -> None: ...


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
    }


_SWITCHABLE = ("PAGER", "EDITOR", "VISUAL")


def judge(finder: Finder, name: str, value: Word, *, exported: bool) -> None:
    """Report an assignment that redirects what other programs do."""
    rules = _rules()
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


def _tame(name: str, value: str) -> bool:
    """Values that switch a program off rather than redirect it (`PAGER=cat`, `GIT_EDITOR=true`)."""
    if name == "PATH" and re.fullmatch(r"(?:(?:/usr(?:/local)?|/opt/homebrew)?/s?bin:?)+", value):
        return True
    return value in ("", "cat", "true", ":", "less", "more", "/bin/cat") and name.endswith(_SWITCHABLE)
