"""The tools scripts can use, by the names scripts use: what may be called, what is shown, what is found.

Shown is only what a profile could ever allow; what is called is judged all the same, whether shown or not.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

from checkrein.doors.gateway.catalogue import Catalogue, Offered
from checkrein.doors.gateway.clients import DEFAULT_PROJECT
from checkrein.doors.gateway.scripts.run import DOOR
from checkrein.doors.gateway.standing import always_denied, call_of
from checkrein.execute import stubs
from checkrein.execute.names import script_names
from checkrein.execute.preview import Language
from checkrein.execute.search import Search, Searchable
from checkrein.execute.stubs import Budget, Described
from checkrein.pipeline import Pipeline
from checkrein.policies import InForce
from checkrein.policy import profiles

Shelf = tuple[InForce, list[dict[str, Any]], list[tuple[Offered, Described]]]
Detail = Literal["brief", "detailed", "full"]
DETAILS: tuple[Detail, ...] = get_args(Detail)


# The checker does not know what a refused call raises.
_REFUSAL = "class PermissionError(OSError): ...\n"


class Toolbox:
    """What there is, looked at again whenever the catalogue or the policy changed."""

    def __init__(self, pipeline: Pipeline, catalogue: Catalogue) -> None:
        self._pipeline, self._catalogue = pipeline, catalogue
        self._shelves: dict[str, Shelf] = {}
        self._named: tuple[Any, dict[str, tuple[str, str]]] = (None, {})
        self._checks: tuple[Any, str] = (None, "")
        self._indexes: dict[str, tuple[list[tuple[Offered, Described]], Search]] = {}

    def names(self) -> dict[str, tuple[str, str]]:
        """Every tool's script name; those a profile refuses too, so that a script hears of the refusal."""
        if self._named[0] is not self._catalogue.tools():
            named = script_names((each.server, each.tool) for each in self._all())
            self._named = self._catalogue.tools(), {name: pair for pair, name in named.items()}
        return self._named[1]

    def described(self, profile: str) -> list[Described]:
        """What the profile could ever allow."""
        return [described for _, described in self._shelf(profile)]

    def python_check(self) -> str:
        """Stubs for the check before a Python script runs."""
        if self._checks[0] is not self._catalogue.tools():
            named = script_names((each.server, each.tool) for each in self._all())
            text = stubs.python_check([_described(each, named, False) for each in self._all()])
            self._checks = self._catalogue.tools(), _REFUSAL + text
        return self._checks[1]

    def declared(self, profile: str, language: Language, tokens: int) -> str:
        """As much of the tools as fits."""
        tools, budget = self.described(profile), Budget(tokens)
        return stubs.python(tools, budget) if language == "python" else stubs.typescript(tools, budget)

    def found(self, profile: str, query: str, limit: int) -> list[Described]:
        shelf = self._shelf(profile)
        known = self._indexes.get(profile)
        if known is None or known[0] is not shelf:
            if known is not None:
                known[1].close()
            known = shelf, Search(_searchable(*each) for each in shelf)
            self._indexes[profile] = known
        by_name = {described.name: described for _, described in shelf}
        return [by_name[name] for name in known[1].find(query, limit)]

    def page(self, profile: str, after: str, size: int) -> tuple[list[Described], str]:
        """Tools in the order of their names, after the one named; and where the next page begins."""
        everyone = sorted((described for _, described in self._shelf(profile)), key=lambda each: each.name)
        left = [each for each in everyone if each.name > after]
        return left[:size], left[size - 1].name if len(left) > size else ""

    def named(self, profile: str, names: list[str]) -> tuple[list[Described], list[str]]:
        """The tools of these names, a script's or ours, and the names nobody knows."""
        by_name: dict[str, Described] = {}
        for each, described in self._shelf(profile):
            by_name[described.name] = by_name[each.name] = described
        found = [by_name[name] for name in names if name in by_name]
        return _once(found), [name for name in names if name not in by_name]

    def close(self) -> None:
        for _, search in self._indexes.values():
            search.close()
        self._indexes = {}

    def _all(self) -> list[Offered]:
        found = (self._catalogue.tool(each["name"]) for each in self._catalogue.tools())
        return [each for each in found if each is not None]

    def _shelf(self, profile: str) -> list[tuple[Offered, Described]]:
        force = self._pipeline.policies.of(DEFAULT_PROJECT, DOOR, profile=profile)
        listed = self._catalogue.tools()
        known = self._shelves.get(profile)
        if known is None or known[0] is not force or known[1] is not listed:
            every = self._all()
            named = script_names((each.server, each.tool) for each in every)
            shown = [
                (each, _described(each, named, self._asks(force, each)))
                for each in every
                if not always_denied(self._pipeline, each, DEFAULT_PROJECT, door=DOOR, profile=profile)
            ]
            known = self._shelves[profile] = force, listed, shown
        return known[2]

    def _asks(self, force: InForce, offered: Offered) -> bool:
        """Whether the profile's ask list names it."""
        profile = force.policy.profile
        said = profiles.judge(profile, call_of(offered, DEFAULT_PROJECT, DOOR)) if profile else None
        return said is not None and said[0] == "ask"


def told(tools: list[Described], detail: Detail, language: Language) -> str:
    """Tools as a model reads them."""
    if not tools:
        return "No tool was found."
    if detail == "brief":
        return "\n".join(stubs.brief(each) for each in tools)
    docs: stubs.Docs = "sentence" if detail == "detailed" else "whole"
    return stubs.python_with(tools, docs) if language == "python" else stubs.typescript_with(tools, docs)


def _described(offered: Offered, named: dict[tuple[str, str], str], asks: bool) -> Described:
    definition = offered.definition
    said = definition.get("description")
    return Described(
        name=named[offered.server, offered.tool],
        description=said if isinstance(said, str) else "",
        takes=definition.get("inputSchema"),
        gives=definition.get("outputSchema"),
        asks=asks,
    )


def _searchable(offered: Offered, described: Described) -> Searchable:
    schema = offered.definition.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    names = tuple(str(each) for each in properties) if isinstance(properties, dict) else ()
    return Searchable(described.name, described.description, names)


def _once(tools: list[Described]) -> list[Described]:
    return list({each.name: each for each in tools}.values())
